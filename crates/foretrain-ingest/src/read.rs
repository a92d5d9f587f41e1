//! Reading one trace or those of all ranks.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foretrain_core::{Bytes, InputError, Ledger, Nanos, Result, Severity};
use foretrain_trace::Trace;
use rayon::prelude::*;

use crate::budget::Budget;
use crate::gate::{Gate, Hold};
use crate::kineto;
use crate::load::{Chosen, choose, only_graphs};
use crate::options::ReadOptions;
use crate::source::captures::Captures;
use crate::source::discover::{discover_bundles, is_readable, refusal};
use crate::source::rank::{NamedRank, rank_of};
use crate::source::sniff::SNIFF_BYTES;
use crate::source::{TraceFile, open, open_bytes, read_up_to, size_of_file, sniff};

/// How far reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// The file that moved on.
    pub path: &'a Path,
    /// Bytes of it taken from the disk.
    pub read_bytes: u64,
    /// Its size on the disk.
    pub total_bytes: u64,
    /// Events of it seen so far.
    pub events: u64,
}

/// Reads one profiler trace, plain or packed.
///
/// # Errors
/// If the file cannot be read, is something else (the message names what), exceeds the memory
/// cap, or (strict) is damaged.
pub fn read_trace(path: &Path, options: &ReadOptions) -> Result<(Trace, Ledger)> {
    let budget = Budget::new(options, 1);
    let (mut trace, mut ledger) = read_file(path, options, &|heap| budget.hold(0, heap), &|_| {})?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name_or_assume_rank(&mut trace, &name, &mut ledger);
    Ok((trace, ledger))
}

/// Reads one profiler trace from memory, plain or packed. `path` is for messages and the rank.
///
/// # Errors
/// As [`read_trace`].
pub fn read_trace_bytes(
    bytes: &[u8],
    path: &str,
    options: &ReadOptions,
) -> Result<(Trace, Ledger)> {
    let budget = Budget::new(options, 1);
    let reopen = || open_bytes(bytes).map_err(|error| InputError::io(&error, path));
    let watch = |_, heap| budget.hold(0, heap);
    let (mut trace, mut ledger) = read_text(reopen, path, options, &watch)?;
    name_or_assume_rank(&mut trace, path.rsplit('/').next().unwrap_or(path), &mut ledger);
    Ok((trace, ledger))
}

/// Reads the traces of many ranks from files, directories and patterns, in parallel, sorted by
/// rank. The result does not depend on the number of threads.
///
/// # Errors
/// As [`read_trace`] and [`discover()`](crate::discover()); also if two files claim the same rank, or the rank of
/// one of several files cannot be told.
pub fn read_ranks(
    inputs: &[PathBuf],
    options: &ReadOptions,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<(Vec<Trace>, Ledger)> {
    let (files, captures, mut ledger) = discover_bundles(inputs)?;
    let captures = Captures::new(captures)?;
    match choose(files, &mut ledger)? {
        Chosen::Timelines(files) => {
            Ok((read_timelines(files, &captures, options, progress, &mut ledger)?, ledger))
        }
        Chosen::Graphs(files) => Err(only_graphs(&files)),
    }
}

/// Reads profiler traces in parallel and keeps them all.
pub(crate) fn read_timelines(
    files: Vec<TraceFile>,
    captures: &Captures,
    options: &ReadOptions,
    progress: &(dyn Fn(Progress<'_>) + Sync),
    ledger: &mut Ledger,
) -> Result<Vec<Trace>> {
    let files = wanted_timelines(files, options, progress)?;
    let budget = Budget::new(options, files.len());
    let read = |(index, file): (usize, &TraceFile)| {
        let hold = |heap: u64| budget.hold(index, heap);
        read_one(file, files.len(), captures, options, &hold, progress)
    };
    let results =
        threads(options)?.install(|| files.par_iter().enumerate().map(read).collect::<Vec<_>>());
    in_order_of_ranks(results, captures, options, ledger)
}

/// Reads profiler traces in parallel and keeps of each only what `take` makes of it, which needs
/// at least `factor` times the memory of the table.
pub(crate) fn take_timelines<T: Send>(
    files: Vec<TraceFile>,
    captures: &Captures,
    options: &ReadOptions,
    progress: &(dyn Fn(Progress<'_>) + Sync),
    factor: u64,
    take: &(dyn Fn(Trace, Hold<'_>) -> Result<T> + Sync),
    ledger: &mut Ledger,
) -> Result<Vec<T>> {
    let files = wanted_timelines(files, options, progress)?;
    let gate = Gate::new(options, &files)?;
    let results = gate.run(&threads(options)?, |index, hold| {
        let hold_table = |heap: u64| hold(Bytes::new(heap.saturating_mul(factor)));
        let read = read_one(&files[index], files.len(), captures, options, &hold_table, progress)?;
        read.map(|trace| take(trace, hold))
    });
    in_order_of_ranks(results, captures, options, ledger)
}

/// The files to read, of which progress is told before the first is begun, so that the whole is
/// known.
fn wanted_timelines(
    files: Vec<TraceFile>,
    options: &ReadOptions,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Vec<TraceFile>> {
    let files = wanted(files, options)?;
    refuse_same_rank(files.iter().map(|file| (file.rank, file.path.display().to_string())))?;
    for file in &files {
        let total_bytes = size_of_file(&file.path)?.unwrap_or(0);
        progress(Progress { path: &file.path, read_bytes: 0, total_bytes, events: 0 });
    }
    Ok(files)
}

/// What was read of one of several files.
struct ReadRank<T> {
    rank: Option<u32>,
    path: String,
    /// `None` if the rank turned out not to be wanted.
    kept: Option<T>,
    /// How the rank was told.
    naming: Ledger,
    reading: Ledger,
}

impl<T> ReadRank<T> {
    fn map<U>(self, take: impl FnOnce(T) -> Result<U>) -> Result<ReadRank<U>> {
        let Self { rank, path, kept, naming, reading } = self;
        Ok(ReadRank { rank, path, kept: kept.map(take).transpose()?, naming, reading })
    }
}

fn read_one(
    file: &TraceFile,
    files: usize,
    captures: &Captures,
    options: &ReadOptions,
    hold: &dyn Fn(u64) -> Result<()>,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<ReadRank<Trace>> {
    let (mut trace, reading) = read_file(&file.path, options, hold, progress)?;
    let mut naming = Ledger::new();
    take_rank(&mut trace, file, files, &mut naming)?;
    let (rank, path) = (trace.meta.rank, trace.meta.path.clone());
    if options.wants_rank(rank) {
        trace.meta.capture = captures.beside(&file.path, rank)?;
    }
    let kept = options.wants_rank(rank).then_some(trace);
    Ok(ReadRank { rank, path, kept, naming, reading })
}

/// All results are looked at in the order of the files, so the error reported is the first one's.
fn in_order_of_ranks<T>(
    results: Vec<Result<ReadRank<T>>>,
    captures: &Captures,
    options: &ReadOptions,
    ledger: &mut Ledger,
) -> Result<Vec<T>> {
    let mut ranks = Vec::new();
    for result in results {
        let read = result?;
        ledger.merge(&read.naming, None);
        ledger.merge(&read.reading, Some(&read.path));
        ranks.push(read);
    }
    if options.ranks.is_none() {
        let traces = ranks.iter().map(|read| (read.path.as_str(), read.rank));
        captures.note_unused(traces, ledger);
    }
    keep_wanted(&mut ranks, options, |read| read.rank)?;
    refuse_same_rank(ranks.iter().map(|read| (read.rank, read.path.clone())))?;
    ranks.sort_by_key(|read| read.rank);
    Ok(ranks.into_iter().filter_map(|read| read.kept).collect())
}

/// The pool to read several files with.
pub(crate) fn threads(options: &ReadOptions) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .build()
        .map_err(|error| InputError::new(format!("cannot start threads: {error}")))
}

/// The files of the wanted ranks, as far as their ranks are known yet.
pub(crate) fn wanted(files: Vec<TraceFile>, options: &ReadOptions) -> Result<Vec<TraceFile>> {
    let known: Vec<String> =
        files.iter().filter_map(|file| file.rank).map(|rank| rank.to_string()).collect();
    let wanted: Vec<TraceFile> =
        files.into_iter().filter(|file| options.wants_rank(file.rank)).collect();
    if wanted.is_empty() { Err(none_wanted(&known)) } else { Ok(wanted) }
}

/// Keeps what belongs to a wanted rank, now that all ranks are known.
pub(crate) fn keep_wanted<T>(
    read: &mut Vec<T>,
    options: &ReadOptions,
    rank: impl Fn(&T) -> Option<u32>,
) -> Result<()> {
    let known: Vec<String> = read.iter().filter_map(&rank).map(|rank| rank.to_string()).collect();
    read.retain(|one| options.wants_rank(rank(one)));
    if read.is_empty() { Err(none_wanted(&known)) } else { Ok(()) }
}

fn none_wanted(known: &[String]) -> InputError {
    InputError::new("none of the wanted ranks is there")
        .hint(format!("ranks found: {}", known.join(", ")))
}

pub(crate) fn refuse_same_rank(ranks: impl Iterator<Item = (Option<u32>, String)>) -> Result<()> {
    let mut seen: BTreeMap<u32, String> = BTreeMap::new();
    for (rank, path) in ranks {
        let Some(rank) = rank else { continue };
        if let Some(other) = seen.insert(rank, path.clone()) {
            return Err(InputError::new(format!(
                "two files claim rank {rank}: {other} and {path}"
            ))
            .hint("name one file per rank of one run"));
        }
    }
    Ok(())
}

/// The rank of one of several files: what the document says, else the name.
fn take_rank(trace: &mut Trace, file: &TraceFile, files: usize, ledger: &mut Ledger) -> Result<()> {
    if trace.meta.rank.is_some() {
        return Ok(());
    }
    if let Some(rank) = file.rank {
        set_rank(trace, rank, &file.rank_source, ledger);
        return Ok(());
    }
    if files == 1 {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        name_or_assume_rank(trace, &name, ledger);
        return Ok(());
    }
    Err(InputError::new("cannot tell which rank this file belongs to")
        .in_file(&file.path)
        .hint("put the rank into the file's name, as in rank0.json"))
}

fn set_rank(trace: &mut Trace, rank: u32, source: &str, ledger: &mut Ledger) {
    trace.meta.rank = Some(rank);
    trace.meta.rank_source = source.into();
    let message = "rank not stated in the trace; taken from the file's name";
    ledger.record_at(Severity::Inferred, "rank-from-name", message, || {
        format!("{} is rank {rank}", trace.meta.path)
    });
}

/// The rank of a single file.
fn name_or_assume_rank(trace: &mut Trace, name: &str, ledger: &mut Ledger) {
    if trace.meta.rank.is_some() {
        return;
    }
    if let Some(NamedRank::Word(rank)) = rank_of(name) {
        set_rank(trace, rank, "file name", ledger);
        return;
    }
    trace.meta.rank = Some(0);
    trace.meta.rank_source = "assumed: only file".into();
    // A stated backend or a collective means that there are other ranks, somewhere.
    if trace.meta.backend.is_empty() && trace.comm_args.is_empty() {
        trace.meta.world_size.get_or_insert(1);
    }
    let message = "no rank stated and only one file; assumed to be rank 0";
    ledger.record(Severity::Inferred, "rank-assumed", message);
}

fn read_file(
    path: &Path,
    options: &ReadOptions,
    hold: &dyn Fn(u64) -> Result<()>,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<(Trace, Ledger)> {
    let total_bytes = size_of_file(path)?.unwrap_or(0);
    let taken = Arc::new(AtomicU64::new(0));
    let reopen = || open(path, options.threads != 1, &taken);
    let watch = |events, heap| {
        let read_bytes = taken.load(Ordering::Relaxed).min(total_bytes);
        progress(Progress { path, read_bytes, total_bytes, events });
        hold(heap)
    };
    read_text(reopen, &path.display().to_string(), options, &watch)
}

/// Reads a document that can be opened more than once.
fn read_text<'a>(
    open: impl Fn() -> Result<Box<dyn Read + Send + 'a>>,
    path: &str,
    options: &ReadOptions,
    watch: kineto::Watch<'_>,
) -> Result<(Trace, Ledger)> {
    let mut text = open()?;
    let head = read_up_to(&mut text, SNIFF_BYTES);
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let kind = sniff(&head, name);
    if !is_readable(&kind) {
        return Err(refusal(&kind, Path::new(path)));
    }
    if kind.is_graph() {
        let message = format!("this is {}: a graph without a timeline", kind.describe());
        return Err(InputError::new(message)
            .in_file(path)
            .hint("read it as a graph, or name the profiler trace of the same run"));
    }
    let whole = head.as_slice().chain(text);
    let Some((from, to)) = options.window else {
        return kineto::read(whole, path, options, None, watch);
    };
    let zero = kineto::time_zero(whole, path, options, watch)?;
    kineto::read(open()?, path, options, Some(shifted(zero, from, to)), watch)
}

fn shifted(zero: Nanos, from: Nanos, to: Nanos) -> (Nanos, Nanos) {
    (zero + from, zero + to)
}
