//! Writes events as Kineto does, generation by generation.
//!
//! The order is Kineto's too: host spans of the autograd thread, then of the main thread, then
//! Python frames, then runtime calls and device work, then metadata. Within a group events are in
//! order of their start; the file as a whole is not.

mod device;
mod host;
mod meta;

use std::io::Write as _;

use crate::dialect::{Layout, TimeStyle, Vendor};
use crate::program::{Program, Span, SpanKind, Thread};
use crate::schedule::{Event, What};
use crate::spec::{ClockSpec, JobSpec};

/// `baseTimeNanoseconds` is a multiple of this, longer than any clock offset.
const BASE_SPAN_NS: i64 = 1_000_000_000_000_000;

/// Writes the trace of one rank.
pub(crate) struct Writer<'a> {
    spec: &'a JobSpec,
    program: &'a Program,
    layout: Layout,
    clock: ClockSpec,
    rank: u32,
    /// Collective arguments by name, the same for every event of a bucket.
    comms_args: Vec<String>,
    pid: u32,
    base_ns: i64,
    event_index: u64,
    written: u64,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(spec: &'a JobSpec, program: &'a Program, rank: u32) -> Self {
        let layout = spec.dialect.layout();
        let base_ns = match layout.time {
            // At least one span back, so that a clock that is behind still shows positive times.
            TimeStyle::Relative => spec.epoch_ns - spec.epoch_ns % BASE_SPAN_NS - BASE_SPAN_NS,
            TimeStyle::Absolute | TimeStyle::IntMicros => 0,
        };
        Self {
            spec,
            program,
            layout,
            clock: spec.clock(rank),
            rank,
            comms_args: (0..program.buckets.len())
                .map(|bucket| host::comms_by_name(spec, program, bucket))
                .collect(),
            pid: 21_000 + rank,
            base_ns,
            event_index: 0,
            written: 0,
        }
    }

    /// Events written so far, metadata included.
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    pub(crate) fn events(&mut self, out: &mut Vec<u8>, events: &[Event]) {
        for event in events.iter().filter(|event| matches!(event.what, What::Gloo(_))) {
            self.gloo(out, event);
        }
        for thread in [Thread::Autograd, Thread::Main] {
            for event in events.iter().filter(|event| event.thread == thread) {
                if let Some(span) = self.span_of(event).filter(|s| s.kind != SpanKind::Python) {
                    self.span(out, event, span);
                }
            }
        }
        for event in events {
            if let Some(span) = self.span_of(event).filter(|s| s.kind == SpanKind::Python) {
                self.frame(out, event, span);
            }
        }
        for event in events {
            match event.what {
                What::Runtime(api) => self.runtime(out, event, api),
                What::Kernel(kernel) => self.kernel(out, event, kernel),
                What::Comm(bucket) => self.comm_kernel(out, event, bucket),
                What::Copy(kind, bytes) => self.memcpy(out, event, kind, bytes),
                What::Span(_) | What::Gloo(_) => {}
            }
        }
    }

    fn span_of(&self, event: &Event) -> Option<&'a Span> {
        match event.what {
            What::Span(span) => self.program.spans.get(span as usize),
            _ => None,
        }
    }

    /// A time as the rank's clock shows it, in ns.
    fn local(&self, true_ns: i64) -> i64 {
        let drift = (true_ns as f64 * self.clock.drift_ppm * 1e-6).round() as i64;
        self.spec.epoch_ns - self.base_ns + true_ns + self.clock.offset_ns + drift
    }

    fn timestamp(&self, out: &mut Vec<u8>, true_ns: i64) {
        let local = self.local(true_ns);
        match self.layout.time {
            TimeStyle::IntMicros => put(out, format_args!("{}", local.div_euclid(1_000))),
            TimeStyle::Absolute | TimeStyle::Relative => {
                put(
                    out,
                    format_args!("{}.{:03}", local.div_euclid(1_000), local.rem_euclid(1_000)),
                );
            }
        }
    }

    fn duration(&self, out: &mut Vec<u8>, event: &Event) {
        let (start, end) = (self.local(event.start), self.local(event.end));
        match self.layout.time {
            TimeStyle::IntMicros => {
                let dur = end.div_euclid(1_000) - start.div_euclid(1_000);
                put(out, format_args!("{dur}"));
            }
            TimeStyle::Absolute | TimeStyle::Relative => {
                let ns = end - start;
                put(out, format_args!("{}.{:03}", ns / 1_000, ns % 1_000));
            }
        }
    }

    fn separate(&mut self, out: &mut Vec<u8>) {
        if self.written > 0 {
            out.extend_from_slice(b",\n");
        }
        self.written += 1;
    }

    /// A complete event up to the opening of its arguments.
    fn begin(&mut self, out: &mut Vec<u8>, cat: &str, name: &str, place: Place, event: &Event) {
        self.separate(out);
        put(out, format_args!("  {{\n    \"ph\": \"X\", \"cat\": \"{cat}\", "));
        if self.layout.array {
            out.extend_from_slice(b"\n    ");
        }
        put(out, format_args!("\"name\": \"{name}\", "));
        self.place(out, place);
        out.extend_from_slice(b",\n    \"ts\": ");
        self.timestamp(out, event.start);
        out.extend_from_slice(b", \"dur\": ");
        self.duration(out, event);
        out.extend_from_slice(b",\n    \"args\": {\n      ");
    }

    fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\n    }\n  }");
    }

    fn place(&self, out: &mut Vec<u8>, place: Place) {
        match (place, self.layout.string_threads) {
            (Place::Host(tid), false) => {
                put(out, format_args!("\"pid\": {}, \"tid\": {tid}", self.pid));
            }
            (Place::Host(tid), true) => {
                put(out, format_args!("\"pid\": {}, \"tid\": \"{tid}\"", self.pid));
            }
            (Place::Stream(stream), false) => {
                put(out, format_args!("\"pid\": {}, \"tid\": {stream}", self.device()));
            }
            (Place::Stream(stream), true) => {
                put(out, format_args!("\"pid\": {}, \"tid\": \"stream {stream}\"", self.device()));
            }
        }
    }

    fn flow(&mut self, out: &mut Vec<u8>, flow: &Flow, place: Place, true_ns: i64) {
        self.separate(out);
        let phase = if flow.start { 's' } else { 'f' };
        put(out, format_args!("  {{\n    \"ph\": \"{phase}\", \"id\": {}, ", flow.id));
        self.place(out, place);
        out.extend_from_slice(b", \"ts\": ");
        self.timestamp(out, true_ns);
        let (cat, name) = (flow.cat, flow.name);
        put(out, format_args!(",\n    \"cat\": \"{cat}\", \"name\": \"{name}\""));
        out.extend_from_slice(if flow.start { b"\n  }" } else { b", \"bp\": \"e\"\n  }" });
    }

    fn device(&self) -> u32 {
        self.rank % self.spec.ranks_per_node
    }

    fn thread_id(&self, thread: Thread) -> u32 {
        match thread {
            Thread::Main => self.pid,
            Thread::Autograd => self.pid + 9_500,
        }
    }

    /// Compute and communication stream.
    fn streams(&self) -> (u32, u32) {
        if self.layout.vendor == Vendor::Hip { (0, 3) } else { (7, 20) }
    }
}

/// Where an event is drawn.
#[derive(Clone, Copy)]
enum Place {
    Host(u32),
    Stream(u32),
}

struct Flow {
    start: bool,
    id: u64,
    cat: &'static str,
    name: &'static str,
}

/// Formats into memory, which cannot fail.
fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).unwrap_or_default();
}
