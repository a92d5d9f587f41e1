//! Files that hold a step graph: execution traces, Chakra files, graphs that Foretrain saved.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foretrain_core::{Bytes, InputError, Ledger, Result, Severity};
use foretrain_graph::{Limits, StepGraph};
use rustc_hash::FxHashSet;

use crate::execution_trace::Operator;
use crate::options::ReadOptions;
use crate::read::Progress;
use crate::source::{FileKind, TraceFile, discover, open};
use crate::{chakra, execution_trace};

/// What a file tells of the rank that it was recorded on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatedRank {
    /// Nothing.
    Unknown,
    /// Its place within the largest group that it takes part in, which need not hold all ranks.
    WithinGroup,
    /// Its global rank.
    Global,
}

/// A step graph as read, with what a graph has no place for.
#[derive(Clone, Debug)]
pub struct ReadGraph {
    /// The graph.
    pub graph: StepGraph,
    /// Version of the schema that the file names.
    pub schema: Option<String>,
    /// What `graph.meta.rank` is; the number is 0 if it is unknown.
    pub rank: StatedRank,
}

/// The step graph of one rank and where it comes from.
#[derive(Clone, Debug)]
pub struct GraphFile {
    /// The graph. Its rank is settled: no two graphs of one job share one.
    pub graph: StepGraph,
    /// The file.
    pub path: String,
    /// What the file is.
    pub kind: FileKind,
    /// Version of the schema that the file names.
    pub schema: Option<String>,
    /// How the rank is known.
    pub rank_source: String,
}

/// Ids met in a file. Repetitions are left out as they are met: a small file that repeats itself
/// asks for no memory.
#[derive(Debug, Default)]
pub(crate) struct SeenIds(FxHashSet<u64>);

impl SeenIds {
    /// Whether a node with this id is the first; others are recorded as left out.
    pub(crate) fn is_new(&mut self, id: u64, ledger: &mut Ledger) -> bool {
        let new = self.0.insert(id);
        if !new {
            let message = "a second node with the same id was left out";
            ledger.record(Severity::Dropped, "repeated-id", message);
        }
        new
    }
}

/// Bytes read from the stream at a time.
const BLOCK: u64 = 1 << 20;
/// Text that a file of any size may hold: these bytes, and this many per byte on the disk. Packed
/// text grows by less than a hundred, bombs by a thousand.
const TEXT_BASE: u64 = 16 << 20;
const TEXT_GROWTH: u64 = 256;

/// Reads the graph of one file. `hold` is told the bytes in memory.
pub(crate) fn read_graph(
    file: &TraceFile,
    options: &ReadOptions,
    hold: &dyn Fn(u64) -> Result<()>,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<(ReadGraph, Ledger)> {
    let mut ledger = Ledger::new();
    let text = whole_text(file, options, hold, progress, &mut ledger)?;
    let path = file.path.display().to_string();
    let found = match file.kind {
        FileKind::StepGraph => saved_graph(text, &file.path, options)?,
        FileKind::Chakra if !text.trim_ascii_start().starts_with(b"{") => {
            chakra::read(&text, &path, &mut ledger)?
        }
        _ => execution_trace::read(&text, &path, &mut ledger)?,
    };
    if options.strict {
        refuse_damage(&ledger, &file.path)?;
    }
    Ok((found, ledger))
}

/// The operators of a PyTorch execution trace, plain or packed, and what reading it met.
///
/// # Errors
/// If the file cannot be read or is no such trace.
pub fn read_operators(path: &Path) -> Result<(Vec<Operator>, Ledger)> {
    let mut ledger = Ledger::new();
    let (files, _) = discover(&[path.to_path_buf()])?;
    let Some(file) = files.into_iter().find(|file| file.kind == FileKind::ExecutionTrace) else {
        return Err(InputError::new("no PyTorch execution trace").in_file(path));
    };
    let text = whole_text(&file, &ReadOptions::default(), &|_| Ok(()), &|_| {}, &mut ledger)?;
    let operators = execution_trace::operators(&text, &path.display().to_string(), &mut ledger)?;
    Ok((operators, ledger))
}

/// The uncompressed content. A stream that breaks gives what came before, with a warning.
fn whole_text(
    file: &TraceFile,
    options: &ReadOptions,
    hold: &dyn Fn(u64) -> Result<()>,
    progress: &(dyn Fn(Progress<'_>) + Sync),
    ledger: &mut Ledger,
) -> Result<Vec<u8>> {
    let path = &file.path;
    let taken = Arc::new(AtomicU64::new(0));
    let mut stream = open(path, false, &taken)?;
    let most = TEXT_BASE.saturating_add(file.size_bytes.saturating_mul(TEXT_GROWTH));
    let mut text = Vec::new();
    loop {
        options.cancel.check()?;
        let before = text.len();
        let outcome = stream.by_ref().take(BLOCK).read_to_end(&mut text);
        let length = text.len() as u64;
        hold(length)?;
        let read_bytes = taken.load(Ordering::Relaxed).min(file.size_bytes);
        progress(Progress { path, read_bytes, total_bytes: file.size_bytes, events: 0 });
        match outcome {
            Ok(_) if text.len() == before => return Ok(text),
            Ok(_) if length > most => {
                return Err(InputError::new(format!(
                    "the file unpacks to more than {} from {}",
                    Bytes::new(most),
                    Bytes::new(file.size_bytes)
                ))
                .in_file(path)
                .hint("no trace packs that well; unpack the file and look at it"));
            }
            Ok(_) => {}
            Err(error) if text.is_empty() => return Err(InputError::io(&error, path)),
            Err(error) => {
                let message = "the packed file is damaged; what comes before was read";
                ledger.record_at(Severity::Dropped, "damaged-packing", message, || {
                    format!("byte {length} of the text: {error}")
                });
                return Ok(text);
            }
        }
    }
}

fn saved_graph(text: Vec<u8>, path: &Path, options: &ReadOptions) -> Result<ReadGraph> {
    let mut limits = Limits::default();
    if let Some(cap) = options.memory_cap {
        limits.memory_bytes = limits.memory_bytes.min(cap.get());
    }
    let graph = StepGraph::from_file_bytes(text, &limits).map_err(|error| error.in_file(path))?;
    Ok(ReadGraph { graph, schema: None, rank: StatedRank::Global })
}

/// Strict reading takes no file from which anything had to be mended or left out.
fn refuse_damage(ledger: &Ledger, path: &Path) -> Result<()> {
    let harms = |severity| matches!(severity, Severity::Dropped | Severity::Repaired);
    let Some(finding) = ledger.findings().find(|finding| harms(finding.severity)) else {
        return Ok(());
    };
    let error = InputError::new(format!("damaged trace: {}", finding.message));
    let error = match finding.places.first() {
        Some(place) => error.at(place),
        None => error,
    };
    Err(error
        .in_file(path)
        .hint("read it without strict checking to mend or leave out what is damaged"))
}

/// Settles the rank of one of several files: what the file states, else its name, else its place
/// in a group.
pub(crate) fn settle(
    read: ReadGraph,
    file: &TraceFile,
    files: usize,
    ledger: &mut Ledger,
) -> Result<GraphFile> {
    let ReadGraph { mut graph, schema, rank } = read;
    let path = file.path.display().to_string();
    let rank_source = match (rank, file.rank) {
        (StatedRank::Global, _) => "stated in the file".to_owned(),
        (_, Some(number)) => {
            graph.meta.rank = number;
            let message = "rank not stated in the trace; taken from the file's name";
            ledger.record_at(Severity::Inferred, "rank-from-name", message, || {
                format!("{path} is rank {number}")
            });
            file.rank_source.clone()
        }
        (StatedRank::WithinGroup, None) => {
            let message = "rank not stated in the trace; taken for its place in its largest group";
            ledger.record_at(Severity::Inferred, "rank-from-group", message, || {
                format!("{path} is rank {}", graph.meta.rank)
            });
            "place in the largest group".to_owned()
        }
        (StatedRank::Unknown, None) if files == 1 => {
            let message = "no rank stated and only one file; assumed to be rank 0";
            ledger.record(Severity::Inferred, "rank-assumed", message);
            "assumed: only file".to_owned()
        }
        (StatedRank::Unknown, None) => {
            return Err(InputError::new("cannot tell which rank this file belongs to")
                .in_file(&path)
                .hint("put the rank into the file's name, as in rank0.json or trace.0.et"));
        }
    };
    // A job has at least the ranks that are there.
    graph.meta.world_size = graph.meta.world_size.max(graph.meta.rank.saturating_add(1));
    Ok(GraphFile { graph, path, kind: file.kind.clone(), schema, rank_source })
}
