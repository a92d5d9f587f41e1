//! What stands around the events: properties, process names, the profiler's own window.

use super::{Place, Writer, put};
use crate::dialect::{TimeStyle, Vendor};

impl Writer<'_> {
    pub(crate) fn header(&self, out: &mut Vec<u8>) {
        if self.layout.array {
            out.extend_from_slice(b"[\n");
            return;
        }
        out.extend_from_slice(b"{\n  \"schemaVersion\": 1,\n");
        self.devices(out);
        self.distributed(out);
        put(out, format_args!("  \"record_shapes\": {},\n", u8::from(self.spec.record_shapes)));
        if self.spec.with_stack {
            out.extend_from_slice(b"  \"with_stack\": 1,\n");
        }
        out.extend_from_slice(b"  \"traceEvents\": [\n");
    }

    fn devices(&self, out: &mut Vec<u8>) {
        let visible = match self.layout.vendor {
            Vendor::None => 0,
            Vendor::Cuda | Vendor::Hip => self.spec.ranks.min(self.spec.ranks_per_node),
        };
        out.extend_from_slice(b"  \"deviceProperties\": [");
        let device = &self.spec.device;
        let (major, warp) = if self.layout.vendor == Vendor::Hip { (9, 64) } else { (8, 32) };
        for id in 0..visible {
            let comma = if id > 0 { "," } else { "" };
            put(
                out,
                format_args!(
                    "{comma}\n    {{\n      \"id\": {id}, \"name\": \"{}\", \"totalGlobalMem\": 42297524224,\n      \
                     \"computeMajor\": {major}, \"computeMinor\": 0,\n      \
                     \"maxThreadsPerBlock\": 1024, \"maxThreadsPerMultiprocessor\": 2048,\n      \
                     \"regsPerBlock\": 65536, \"warpSize\": {warp},\n      \
                     \"sharedMemPerBlock\": 49152, \"numSms\": {}\n    }}",
                    escaped(&device.name),
                    device.multiprocessors
                ),
            );
        }
        out.extend_from_slice(b"\n  ],\n");
    }

    fn distributed(&self, out: &mut Vec<u8>) {
        if self.spec.ranks < 2 {
            return;
        }
        let backend = if self.layout.vendor == Vendor::None { "gloo" } else { "nccl" };
        let (rank, ranks) = (self.rank, self.spec.ranks);
        put(
            out,
            format_args!(
                "  \"distributedInfo\": {{\"backend\": \"{backend}\", \"rank\": {rank}, \"world_size\": {ranks}"
            ),
        );
        if self.layout.pg_config {
            let kind = if backend == "nccl" { "cuda:nccl" } else { "cpu:gloo" };
            let members: Vec<u32> = (0..ranks).collect();
            put(
                out,
                format_args!(
                    ", \"pg_count\": 1, \"pg_config\": [{{\"pg_name\": \"0\", \"pg_desc\": \"default_pg\", \
                     \"backend_config\": \"{kind}\", \"pg_size\": {ranks}, \"ranks\": {members:?}}}]"
                ),
            );
            if backend == "nccl" {
                out.extend_from_slice(b", \"nccl_version\": \"2.21.5\"");
            }
        }
        out.extend_from_slice(b"},\n");
    }

    /// Metadata, the window of the profiler, and the end of the file.
    pub(crate) fn footer(&mut self, out: &mut Vec<u8>, start: i64, end: i64) {
        let host = Place::Host(0);
        self.metadata(out, "process_name", "\"name\": \"python\"", host, start);
        self.metadata(out, "process_labels", "\"labels\": \"CPU\"", host, start);
        let sort = format!("\"sort_index\": {}", self.pid);
        self.metadata(out, "process_sort_index", &sort, host, start);
        if self.layout.vendor != Vendor::None {
            let (compute, comm) = self.streams();
            let label = format!("\"labels\": \"GPU {}\"", self.device());
            self.metadata(out, "process_labels", &label, Place::Stream(0), start);
            for stream in [compute, comm] {
                let name = format!("\"name\": \"stream {stream} \"");
                self.metadata(out, "thread_name", &name, Place::Stream(stream), start);
            }
        }
        self.window(out, start, end);
        if self.layout.array {
            out.extend_from_slice(b"\n]\n");
            return;
        }
        put(out, format_args!("\n  ],\n  \"traceName\": \"rank{}.json\",\n", self.rank));
        out.extend_from_slice(b"  \"displayTimeUnit\": \"ms\"");
        if self.layout.time == TimeStyle::Relative {
            put(out, format_args!(",\n  \"baseTimeNanoseconds\": {}", self.base_ns));
        }
        out.extend_from_slice(b"\n}\n");
    }

    fn metadata(&mut self, out: &mut Vec<u8>, name: &str, args: &str, place: Place, at: i64) {
        self.separate(out);
        put(out, format_args!("  {{\n    \"name\": \"{name}\", \"ph\": \"M\", \"ts\": "));
        self.timestamp(out, at);
        out.extend_from_slice(b", ");
        self.place(out, place);
        put(out, format_args!(",\n    \"args\": {{\n      {args}\n    }}\n  }}"));
    }

    fn window(&mut self, out: &mut Vec<u8>, start: i64, end: i64) {
        self.separate(out);
        out.extend_from_slice(b"  {\n    \"ph\": \"X\", \"cat\": \"Trace\", \"ts\": ");
        self.timestamp(out, start);
        let us = (end - start) / 1_000;
        let pid = if self.layout.array { "Traces" } else { "Spans" };
        put(
            out,
            format_args!(
                ", \"dur\": {us},\n    \"pid\": \"{pid}\", \"tid\": \"PyTorch Profiler\",\n    \
                 \"name\": \"PyTorch Profiler (0)\",\n    \"args\": {{\n      \"Op count\": 0\n    }}\n  }}"
            ),
        );
        let marks = [("Iteration Start: PyTorch Profiler", "Traces", start), (WINDOW_END, "", end)];
        let count = if self.layout.array { 1 } else { 2 };
        for (name, pid, at) in marks.into_iter().take(count) {
            self.separate(out);
            put(
                out,
                format_args!("  {{\n    \"name\": \"{name}\", \"ph\": \"i\", \"s\": \"g\",\n"),
            );
            put(out, format_args!("    \"pid\": \"{pid}\", \"tid\": \""));
            put(
                out,
                format_args!("{}", if pid.is_empty() { "" } else { "Trace PyTorch Profiler" }),
            );
            out.extend_from_slice(b"\", \"ts\": ");
            self.timestamp(out, at);
            out.extend_from_slice(b"\n  }");
        }
    }
}

const WINDOW_END: &str = "Record Window End";

/// The name as the inside of a JSON string.
fn escaped(name: &str) -> String {
    let quoted = serde_json::Value::from(name).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
