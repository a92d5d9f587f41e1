//! Host spans: operators, annotations, Python frames, collectives' parameters.

use super::{Flow, Place, Writer, put};
use crate::dialect::{CommsStyle, TimeStyle};
use crate::program::{Program, Side, Span, SpanKind};
use crate::schedule::Event;
use crate::spec::JobSpec;

/// The sequence number of the job's first operator.
const FIRST_SEQUENCE: u64 = 100;

impl Writer<'_> {
    pub(super) fn span(&mut self, out: &mut Vec<u8>, event: &Event, span: &Span) {
        let place = Place::Host(self.thread_id(event.thread));
        let annotation = matches!(span.kind, SpanKind::Annotation | SpanKind::StepMark);
        let cat = match (self.layout.capital, annotation) {
            (true, _) => "Operator",
            (false, true) => "user_annotation",
            (false, false) => "cpu_op",
        };
        if span.kind == SpanKind::StepMark {
            let number = self.spec.first_step + event.step - self.spec.warmup_steps;
            self.begin(out, cat, &format!("ProfilerStep#{number}"), place, event);
        } else {
            self.begin(out, cat, &span.name, place, event);
        }
        if self.layout.array {
            self.old_arguments(out, event, span);
        } else {
            self.arguments(out, event, span);
        }
        self.end(out);
        self.autograd_flow(out, event, span, place);
    }

    fn arguments(&mut self, out: &mut Vec<u8>, event: &Event, span: &Span) {
        put(out, format_args!("\"External id\": {}", event.external));
        if self.layout.time != TimeStyle::IntMicros {
            out.extend_from_slice(b",\"Record function id\": 0");
        }
        if let Some((sequence, side)) = span.sequence {
            let number = FIRST_SEQUENCE + self.sequence_in_job(event, sequence);
            let thread = u32::from(side == Side::Backward);
            put(out, format_args!(", \"Sequence number\": {number}, \"Fwd thread id\": {thread}"));
        }
        match (span.kind, self.layout.comms) {
            (SpanKind::Comms(bucket), CommsStyle::Keyword) => {
                out.extend_from_slice(b", ");
                out.extend_from_slice(self.comms_args[bucket as usize].as_bytes());
                put(out, format_args!(", \"Rank\": {}, \"Global rank start\": 0", self.rank));
                out.extend_from_slice(b", \"Global rank stride\": 1");
            }
            (SpanKind::Comms(_), _) => self.positional_comms(out, event, span),
            _ => self.shapes(out, span),
        }
        put(out, format_args!(", \"Ev Idx\": {}", self.event_index));
        self.event_index += 1;
    }

    fn old_arguments(&mut self, out: &mut Vec<u8>, event: &Event, span: &Span) {
        if self.spec.record_shapes && !span.dims.is_empty() {
            out.extend_from_slice(b"\"Input dims\": ");
            dims(out, &span.dims);
            out.extend_from_slice(b", \"Input type\": [], ");
        }
        put(
            out,
            format_args!(
                "\"Device\": {}, \"External id\": {},\n      \"Trace name\": \"PyTorch Profiler\", \"Trace iteration\": 0",
                self.pid, event.external
            ),
        );
    }

    fn shapes(&self, out: &mut Vec<u8>, span: &Span) {
        if !self.spec.record_shapes || span.dims.is_empty() {
            return;
        }
        out.extend_from_slice(b", \"Input type\": [");
        for (index, dims) in span.dims.iter().enumerate() {
            let kind = if dims.is_empty() { "\"Scalar\"" } else { "\"float\"" };
            put(out, format_args!("{}{kind}", if index > 0 { ", " } else { "" }));
        }
        out.extend_from_slice(b"], \"Input Dims\": ");
        dims(out, &span.dims);
    }

    fn positional_comms(&self, out: &mut Vec<u8>, event: &Event, span: &Span) {
        if !self.spec.record_shapes {
            return;
        }
        let elements = span.dims.first().and_then(|dims| dims.first()).copied().unwrap_or(0);
        put(
            out,
            format_args!(
                ", \"Concrete Inputs\": [\"\", \"{}\", \"93825114103440\", \"0\", \"\", \"[]\", \"[]\", \"{}\"], \
                 \"Input type\": [\"TensorList\", \"Scalar\", \"Scalar\", \"Scalar\", \"\", \"ScalarList\", \"ScalarList\", \"Scalar\"], \
                 \"Input Dims\": [[[{elements}]], [], [], [], [], [], [], []]",
                event.external, self.spec.ranks
            ),
        );
    }

    fn sequence_in_job(&self, event: &Event, sequence: u32) -> u64 {
        u64::from(event.step) * u64::from(self.program.sequences) + u64::from(sequence)
    }

    /// The arrow from a forward operator to its backward node.
    fn autograd_flow(&mut self, out: &mut Vec<u8>, event: &Event, span: &Span, place: Place) {
        if self.layout.array || !span.flow {
            return;
        }
        if let Some((sequence, side)) = span.sequence {
            let id = self.sequence_in_job(event, sequence) + 1;
            let start = side == Side::Forward;
            let flow = Flow { start, id, cat: "fwdbwd", name: "fwdbwd" };
            self.flow(out, &flow, place, event.start);
        }
    }

    pub(super) fn frame(&mut self, out: &mut Vec<u8>, event: &Event, span: &Span) {
        if self.layout.array {
            return;
        }
        let place = Place::Host(self.thread_id(event.thread));
        self.begin(out, "python_function", &span.name, place, event);
        match event.correlation {
            0 => out.extend_from_slice(b"\"Python parent id\": null"),
            parent => put(out, format_args!("\"Python parent id\": {parent}")),
        }
        let (id, index) = (event.external, self.event_index);
        put(out, format_args!(", \"Python id\": {id}, \"Ev Idx\": {index}"));
        self.event_index += 1;
        self.end(out);
    }

    pub(super) fn gloo(&mut self, out: &mut Vec<u8>, event: &Event) {
        let crate::schedule::What::Gloo(bucket) = event.what else { return };
        let elements = self.program.buckets[bucket as usize].elements;
        let place = Place::Host(self.pid + 9_600);
        self.begin(out, "user_annotation", "gloo:all_reduce", place, event);
        put(
            out,
            format_args!(
                "\"External id\": {}, \"Record function id\": 0, \"Concrete Inputs\": [\"\"], \
                 \"Input type\": [\"float\"], \"Input Dims\": [[{elements}]], \"Ev Idx\": {}",
                event.external, self.event_index
            ),
        );
        self.event_index += 1;
        self.end(out);
    }
}

fn dims(out: &mut Vec<u8>, list: &[Vec<u64>]) {
    out.push(b'[');
    for (index, dims) in list.iter().enumerate() {
        put(out, format_args!("{}{dims:?}", if index > 0 { ", " } else { "" }));
    }
    out.push(b']');
}

/// What newer profilers say about a collective.
pub(super) fn comms_by_name(spec: &JobSpec, program: &Program, bucket: usize) -> String {
    let elements = program.buckets[bucket].elements;
    let ranks: Vec<u32> = (0..spec.ranks).collect();
    format!(
        "\"Collective name\": \"allreduce\", \"In msg nelems\": {elements}, \"Out msg nelems\": {elements}, \
         \"Group size\": {}, \"dtype\": \"Float\", \"In split size\": \"[]\", \"Out split size\": \"[]\", \
         \"Process Group Name\": \"0\", \"Process Group Description\": \"default_pg\", \
         \"Process Group Ranks\": \"{ranks:?}\"",
        spec.ranks
    )
}
