//! Reading whatever a set of inputs holds: profiler traces, or step graphs.

use std::path::PathBuf;

use foretrain_core::{InputError, Ledger, Result, Severity};
use foretrain_trace::Trace;
use rayon::prelude::*;

use crate::budget::Budget;
use crate::gate::Hold;
use crate::graph_file::{GraphFile, read_graph, settle};
use crate::options::ReadOptions;
use crate::read::{
    Progress, keep_wanted, read_timelines, refuse_same_rank, take_timelines, threads, wanted,
};
use crate::source::captures::Captures;
use crate::source::discover::discover_bundles;
use crate::source::{FileKind, TraceFile};

/// What a set of inputs holds, sorted by rank.
#[derive(Clone, Debug)]
pub enum Loaded<T = Trace> {
    /// Profiler traces, or what was taken from each.
    Traces(Vec<T>),
    /// Step graphs without a timeline.
    Graphs(Vec<GraphFile>),
}

/// Reads the traces or graphs of many ranks from files, directories and patterns, in parallel.
/// Where profiler traces and graphs lie together, the profiler traces are read and the graphs set
/// aside with a note: only the former hold all times.
///
/// # Errors
/// As [`read_ranks`](crate::read_ranks) for either kind, and if files of different kinds were
/// named.
pub fn load(
    inputs: &[PathBuf],
    options: &ReadOptions,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<(Loaded, Ledger)> {
    load_with(inputs, options, progress, |files, captures, ledger| {
        read_timelines(files, captures, options, progress, ledger)
    })
}

/// As [`load()`], but hands each profiler trace to `take` as soon as it is read and keeps only
/// what that returns. As many ranks are in memory at once as there are threads and, with a memory
/// cap, room: `factor` says how much a rank takes over [`Trace::heap_bytes`], which [`Hold`] may
/// correct in `take`. The result depends neither on the threads nor on the cap, so `take` may be
/// called again for a rank that needs more memory than was left beside others.
///
/// # Errors
/// As [`load()`], where a single rank must fit below the memory cap, not all together; and the
/// first error of `take`.
pub fn load_each<T: Send>(
    inputs: &[PathBuf],
    options: &ReadOptions,
    progress: &(dyn Fn(Progress<'_>) + Sync),
    factor: u64,
    take: &(dyn Fn(Trace, Hold<'_>) -> Result<T> + Sync),
) -> Result<(Loaded<T>, Ledger)> {
    load_with(inputs, options, progress, |files, captures, ledger| {
        take_timelines(files, captures, options, progress, factor, take, ledger)
    })
}

fn load_with<T>(
    inputs: &[PathBuf],
    options: &ReadOptions,
    progress: &(dyn Fn(Progress<'_>) + Sync),
    timelines: impl FnOnce(Vec<TraceFile>, &Captures, &mut Ledger) -> Result<Vec<T>>,
) -> Result<(Loaded<T>, Ledger)> {
    let (files, captures, mut ledger) = discover_bundles(inputs)?;
    let captures = Captures::new(captures)?;
    let loaded = match choose(files, &mut ledger)? {
        Chosen::Timelines(files) => Loaded::Traces(timelines(files, &captures, &mut ledger)?),
        Chosen::Graphs(files) => {
            captures.note_unused(std::iter::empty(), &mut ledger);
            Loaded::Graphs(read_graphs(files, options, progress, &mut ledger)?)
        }
    };
    Ok((loaded, ledger))
}

/// Files of one kind.
pub(crate) enum Chosen {
    Timelines(Vec<TraceFile>),
    Graphs(Vec<TraceFile>),
}

/// Decides between timelines and graphs.
pub(crate) fn choose(files: Vec<TraceFile>, ledger: &mut Ledger) -> Result<Chosen> {
    let (graphs, timelines): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| file.kind.is_graph());
    let Some(timeline) = timelines.first() else {
        if let Some(other) = graphs.iter().find(|file| file.kind != graphs[0].kind) {
            return Err(mixture(&graphs[0], other));
        }
        return Ok(Chosen::Graphs(graphs));
    };
    if let Some(graph) = graphs.iter().find(|file| file.named) {
        return Err(mixture(timeline, graph).hint("the profiler trace is the one with all times"));
    }
    for file in &graphs {
        let message = "graph beside the profiler traces, set aside: those hold the times";
        ledger.record_at(Severity::Note, "graph-file", message, || {
            format!("{} ({})", file.path.display(), file.kind.describe())
        });
    }
    Ok(Chosen::Timelines(timelines))
}

fn mixture(one: &TraceFile, other: &TraceFile) -> InputError {
    InputError::new(format!(
        "these are of different kinds: {} is {}, {} is {}",
        one.path.display(),
        one.kind.describe(),
        other.path.display(),
        other.kind.describe()
    ))
    .hint("name files of one kind")
}

/// The refusal of graphs where profiler traces are needed.
pub(crate) fn only_graphs(files: &[TraceFile]) -> InputError {
    let kind = files.first().map(|file| &file.kind);
    let what = match kind {
        Some(FileKind::StepGraph) => "saved step graphs",
        _ => "execution traces",
    };
    let more = match files.len() {
        0 | 1 => String::new(),
        several => format!("; the first of {several}"),
    };
    let error = InputError::new(format!("only {what} found, no profiler traces{more}"));
    let error = match files.first() {
        Some(file) => error.in_file(&file.path),
        None => error,
    };
    error.hint("add the profiler traces of the run, or inspect and export the graphs")
}

fn read_graphs(
    files: Vec<TraceFile>,
    options: &ReadOptions,
    progress: &(dyn Fn(Progress<'_>) + Sync),
    ledger: &mut Ledger,
) -> Result<Vec<GraphFile>> {
    if options.window.is_some() {
        let error = InputError::new("a time window needs profiler traces; a graph has no timeline");
        return Err(match files.first() {
            Some(file) => error.in_file(&file.path),
            None => error,
        });
    }
    let files = wanted(files, options)?;
    let budget = Budget::new(options, files.len());
    let read = |(index, file): (usize, &TraceFile)| {
        read_graph(file, options, &|bytes| budget.hold(index, bytes), progress)
    };
    // All results are looked at in order, so the error reported is the first one's.
    let results: Vec<_> =
        threads(options)?.install(|| files.par_iter().enumerate().map(read).collect());
    let mut graphs = Vec::new();
    for (result, file) in results.into_iter().zip(&files) {
        let (read, found) = result?;
        graphs.push(settle(read, file, files.len(), ledger)?);
        ledger.merge(&found, Some(&file.path.display().to_string()));
    }
    keep_wanted(&mut graphs, options, |file| Some(file.graph.meta.rank))?;
    refuse_same_rank(graphs.iter().map(|file| (Some(file.graph.meta.rank), file.path.clone())))?;
    graphs.sort_by_key(|file| file.graph.meta.rank);
    let world = graphs.iter().map(|file| file.graph.meta.world_size).max().unwrap_or(1);
    for file in &mut graphs {
        file.graph.meta.world_size = world;
    }
    Ok(graphs)
}
