//! Telling what a file is from its first bytes.

use foretrain_trace::Category;

use crate::chakra;
use crate::collective_log;
use crate::json::{Damage, Document, Field, Limits, RawEvent, Sink};
use crate::primitive_table;

/// What a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A PyTorch profiler trace.
    Kineto,
    /// A PyTorch execution trace: a graph without a timeline.
    ExecutionTrace,
    /// A Chakra execution trace, in protobuf or its older JSON form.
    Chakra,
    /// A step graph that Foretrain saved.
    StepGraph,
    /// What `foretrain.capture` measured beside a trace.
    Capture,
    /// What a collective benchmark printed: a text, CSV or JSON table.
    CollectiveLog,
    /// A timeline or profile of another tool.
    ForeignTimeline {
        /// What it is, for a sentence "this is ...".
        what: String,
    },
    /// Nothing that can be forecast from.
    NotATrace {
        /// What it is or lacks, for a sentence "this is ...".
        why: String,
    },
}

impl FileKind {
    /// Whether the file holds a step graph rather than a timeline.
    pub fn is_graph(&self) -> bool {
        matches!(self, Self::ExecutionTrace | Self::Chakra | Self::StepGraph)
    }

    /// What it is, for a sentence "this is ...".
    pub fn describe(&self) -> &str {
        match self {
            Self::Kineto => "a PyTorch profiler trace",
            Self::ExecutionTrace => "a PyTorch execution trace",
            Self::Chakra => "a Chakra execution trace",
            Self::StepGraph => "a saved step graph",
            Self::Capture => "a capture of foretrain.capture",
            Self::CollectiveLog => "the log of a collective benchmark",
            Self::ForeignTimeline { what } => what,
            Self::NotATrace { why } => why,
        }
    }
}

/// Bytes of text that [`sniff`] wants to see.
pub const SNIFF_BYTES: usize = 1 << 20;

/// Tells what a file is from the start of its (uncompressed) text and its name. `head` may end
/// anywhere; more than [`SNIFF_BYTES`] is never needed.
pub fn sniff(head: &[u8], name: &str) -> FileKind {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    if let Some(kind) = by_magic(head) {
        return kind;
    }
    match text.first() {
        None => not_a_trace("an empty file"),
        Some(b'{' | b'[') => match sniff_json(text) {
            FileKind::NotATrace { .. } if collective_log::looks_like(head) => {
                FileKind::CollectiveLog
            }
            kind => kind,
        },
        Some(_) if chakra::looks_like(head) => FileKind::Chakra,
        Some(_) if primitive_table::looks_like(head) => {
            not_a_trace("a table of primitives, which `foretrain calibrate primitives` reads")
        }
        Some(_) if collective_log::looks_like(head) => FileKind::CollectiveLog,
        Some(_) => not_a_trace(plain_or_binary(head, name)),
    }
}

fn foreign(what: &str) -> FileKind {
    FileKind::ForeignTimeline { what: what.into() }
}

fn not_a_trace(why: &str) -> FileKind {
    FileKind::NotATrace { why: why.into() }
}

fn by_magic(head: &[u8]) -> Option<FileKind> {
    Some(match head {
        [b'P', b'K', 3 | 5, ..] => not_a_trace("a zip archive; unpack it first"),
        [b'B', b'Z', b'h', ..] => not_a_trace("a bzip2 file; unpack it first"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => not_a_trace("an xz file; unpack it first"),
        // The edge table, a Parquet file too, comes first in a graph's file.
        _ if head.starts_with(b"PAR1PAR1") => FileKind::StepGraph,
        [b'P', b'A', b'R', b'1', ..] => not_a_trace("a Parquet table without a step graph"),
        [0x80, 2..=5, ..] => foreign("a pickle, such as a PyTorch memory snapshot"),
        _ if head.starts_with(b"SQLite format 3\0") => {
            foreign("an SQLite database, such as an Nsight Systems or rocpd export")
        }
        _ if head.get(257..262) == Some(b"ustar") => not_a_trace("a tar archive; unpack it first"),
        _ => return None,
    })
}

fn plain_or_binary(head: &[u8], name: &str) -> &'static str {
    if name.contains(".xplane.pb") {
        return "an XLA profile (xplane)";
    }
    let start = &head[..head.len().min(4096)];
    let text = start.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    if text.len() + 4 < start.len() || text.contains('\0') {
        return "a binary file of unknown kind";
    }
    let line = text.lines().next().unwrap_or("");
    if line.matches(',').count() >= 2 { "a CSV table" } else { "a text file, not JSON" }
}

/// What the start of a document holds.
#[derive(Default)]
struct Survey {
    members: Vec<String>,
    events: usize,
    known: usize,
    uncategorised: usize,
    strangers: usize,
    with_phase: usize,
    processes: Vec<String>,
    complete: bool,
}

impl Sink for Survey {
    type Stop = ();

    fn event(&mut self, window: &str, event: &RawEvent) -> Result<(), ()> {
        self.events += 1;
        let phase = event.field(Field::Phase);
        self.with_phase += usize::from(phase.is_some());
        if event.field(Field::Name).raw(window) == "process_name" {
            self.processes.push(event.arg(crate::json::Arg::Name).raw(window).to_owned());
        }
        let category = event.field(Field::Category);
        if phase.raw(window) == "X" {
            match Category::parse(category.raw(window)) {
                Category::Other if category.is_some() => self.strangers += 1,
                Category::Other => self.uncategorised += 1,
                _ => self.known += 1,
            }
        }
        Ok(())
    }

    fn member(&mut self, key: &str, _: &str) -> Result<(), ()> {
        self.members.push(key.to_owned());
        Ok(())
    }

    fn damage(&mut self, damage: &Damage<'_>) -> Result<(), ()> {
        self.complete &= damage.kind != crate::json::DamageKind::Truncated;
        Ok(())
    }
}

fn sniff_json(text: &[u8]) -> FileKind {
    // Keys of members whose values the head cuts short count as well.
    let mut survey = Survey { complete: true, ..Survey::default() };
    let _ = Document::new(text, Limits::default()).walk(&mut survey);
    let keys = top_level_keys(text);
    let has = |key: &str| keys.iter().any(|k| k == key) || survey.members.iter().any(|k| k == key);
    if has("foretrain_capture") {
        return FileKind::Capture;
    }
    if has("traceEvents") || (text.starts_with(b"[") && survey.with_phase > 0) {
        return sniff_timeline(&survey, &has);
    }
    if has("nodes") && (has("schema") || has("start_ts")) {
        return FileKind::ExecutionTrace;
    }
    if has("workload_graph") {
        return FileKind::Chakra;
    }
    if has("rocprofiler-sdk-tool") {
        return foreign("a rocprofiler-sdk (rocprofv3) JSON profile");
    }
    if text.starts_with(b"[") {
        return sniff_list(text);
    }
    not_a_trace("JSON without \"traceEvents\" or \"nodes\"")
}

fn sniff_timeline(survey: &Survey, has: &dyn Fn(&str) -> bool) -> FileKind {
    let kineto_header =
        ["schemaVersion", "deviceProperties", "distributedInfo", "baseTimeNanoseconds"];
    let ascend = survey.processes.iter().any(|p| p == "Ascend Hardware" || p == "CANN");
    let undecided = survey.known == 0 && survey.strangers == 0 && !survey.complete;
    if survey.known > 0 || ascend || kineto_header.iter().any(|key| has(key)) {
        return FileKind::Kineto;
    }
    if survey.events == 0 && survey.complete {
        // An empty trace, whoever wrote it.
        return FileKind::Kineto;
    }
    let what = foreign_name(survey.processes.iter().map(String::as_str));
    // Metadata alone tells little: then the reader decides once it has seen the events.
    if undecided && survey.uncategorised == 0 && survey.processes.is_empty() {
        return FileKind::Kineto;
    }
    FileKind::ForeignTimeline { what }
}

fn sniff_list(text: &[u8]) -> FileKind {
    let inner = text[1..].trim_ascii_start();
    match inner.strip_prefix(b"[").map(<[u8]>::trim_ascii_start).and_then(<[u8]>::first) {
        Some(b'-' | b'0'..=b'9') => foreign("a PyTorch memory timeline (rows of numbers)"),
        _ => not_a_trace("a JSON list without profiler events"),
    }
}

/// A name for a Chrome trace that PyTorch did not write, from the names of its processes.
pub(crate) fn foreign_name<'a>(processes: impl Iterator<Item = &'a str>) -> String {
    let mut what = "a Chrome trace of another tool";
    for process in processes {
        what = match process {
            p if p.starts_with("/device:") || p.starts_with("/host:") || p.contains("/job:") => {
                "a TensorFlow or JAX profiler timeline"
            }
            p if p.contains("allreduce") || p.contains("DistributedOptimizer") => {
                "a Horovod timeline"
            }
            p if p.contains("byteps") || p.contains("BytePS") => "a BytePS timeline",
            p if p.ends_with("_weight") || p.ends_with("_bias") || p.ends_with("_gamma") => {
                "a communication timeline by tensor (MXNet with BytePS or ByteScheduler)"
            }
            p if p.starts_with("cpu/") || p.starts_with("gpu/") => "an MXNet profiler timeline",
            _ => continue,
        };
        break;
    }
    what.to_owned()
}

/// Keys at depth one of an object, as far as the head goes.
fn top_level_keys(text: &[u8]) -> Vec<String> {
    let mut keys = Vec::new();
    let (mut depth, mut at) = (0_u32, 0);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let Some(length) = string_length(&text[at + 1..]) else { break };
                let end = at + 1 + length;
                let is_key = text[(end + 1).min(text.len())..].trim_ascii_start().starts_with(b":");
                if depth == 1 && is_key && keys.len() < 256 {
                    keys.push(String::from_utf8_lossy(&text[at + 1..end]).into_owned());
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    keys
}

fn string_length(rest: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', &rest[from.min(rest.len())..])?;
        if rest[at] == b'"' {
            return Some(at);
        }
        from = at + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        let kineto = r#"{"schemaVersion": 1, "traceEvents": [{"ph":"X","cat":"kernel","#;
        for (text, name, want) in [
            (kineto, "a.json", FileKind::Kineto),
            (r#"[{"ph":"X","cat":"Operator","name":"a","ts":1,"dur":1}]"#, "a", FileKind::Kineto),
            (r#"{"schema": "1.0.1", "pid": 1, "nodes": [{"id": 1,"#, "a", FileKind::ExecutionTrace),
            ("\x10\x0a\x050.0.4", "x.et", FileKind::Chakra),
            ("\x07\x0a\x050.0.4", "x.bin", FileKind::Chakra),
            (r#"{"workload_graph": [{"Id": 1"#, "a", FileKind::Chakra),
            (r#"{"traceEvents": []}"#, "a", FileKind::Kineto),
            (r#"{"foretrain_capture": 1, "rank": 0, "wor"#, "a", FileKind::Capture),
            ("PAR1PAR1\x15\x04", "a", FileKind::StepGraph),
        ] {
            assert_eq!(sniff(text.as_bytes(), name), want, "{text}");
        }
    }

    #[test]
    fn strangers_are_named() {
        for (text, want) in [
            (
                r#"[{"ph":"M","name":"process_name","args":{"name":"conv1_weight"}},{"ph":"B","ts":1}, "#,
                "MXNet",
            ),
            (r#"{"rocprofiler-sdk-tool": [{"#, "rocprofiler"),
            ("[[-1, 1, 37888, 7], ", "memory timeline"),
            ("SQLite format 3\0xxxx", "SQLite"),
        ] {
            match sniff(text.as_bytes(), "x") {
                FileKind::ForeignTimeline { what } => assert!(what.contains(want), "{what}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        for (text, want) in [
            ("a,b,c\n1,2,3\n", "CSV"),
            ("{\"name\": \"left-pad\"}", "without"),
            ("", "empty"),
            ("PK\x03\x04", "zip"),
            ("PAR1\x15\x04", "Parquet table without"),
            ("hello", "text"),
        ] {
            match sniff(text.as_bytes(), "x") {
                FileKind::NotATrace { why } => assert!(why.contains(want), "{why}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
