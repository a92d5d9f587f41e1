//! Steps from annotations.

use std::collections::BTreeMap;

use foretrain_core::{NameId, Nanos};

use super::{Step, StepSource, Steps, new_step};
use crate::category::Category;
use crate::index::{NO_ROW, TraceIndex};
use crate::table::{Trace, TrackId};

/// Names that no training step has, though they repeat.
const NOT_STEPS: [&str; 9] = [
    "enumerate(DataLoader)",
    "Optimizer.",
    "nccl:",
    "gloo:",
    "c10d",
    "DistributedDataParallel",
    "FSDP::",
    "Torch-Compiled",
    "## Call CompiledFxGraph",
];

/// `ProfilerStep#n` marks on one host thread.
pub(super) fn profiler_steps(trace: &Trace, index: &TraceIndex) -> Option<Steps> {
    let rows = host_rows(trace, index, |name| name.starts_with("ProfilerStep"));
    from_rows(trace, rows, |_| StepSource::ProfilerStep)
}

/// User annotations that carry a number ("iteration_12") or repeat under one name, cover most of
/// the window and do not nest in each other.
pub(super) fn repeated_annotations(trace: &Trace, index: &TraceIndex) -> Option<Steps> {
    let mut stems: BTreeMap<(TrackId, String), Vec<u32>> = BTreeMap::new();
    for thread in &index.threads {
        for &row in &thread.rows {
            let name = trace.name_of(row as usize);
            let is_candidate = trace.category[row as usize] == Category::UserAnnotation
                && index.parent[row as usize] == NO_ROW
                && !NOT_STEPS.iter().any(|prefix| name.starts_with(prefix));
            if is_candidate {
                stems.entry((thread.track, stem(name))).or_default().push(row);
            }
        }
    }
    let window = window(trace)?;
    stems
        .into_iter()
        .filter(|(_, rows)| rows.len() >= 2)
        .map(|((_, stem), rows)| {
            let covered: Nanos = rows.iter().map(|&row| trace.duration[row as usize]).sum();
            (covered, stem, rows)
        })
        .filter(|(covered, ..)| covered.nanos() * 2 > window.nanos())
        .max_by_key(|(covered, ..)| *covered)
        .and_then(|(_, stem, rows)| {
            from_rows(trace, rows, |_| StepSource::Annotation(stem.clone()))
        })
}

/// Steps that end where an optimiser step ends. Needs three to have two full ones.
pub(super) fn optimizer_steps(trace: &Trace, index: &TraceIndex) -> Option<Steps> {
    let rows = host_rows(trace, index, |name| {
        name.starts_with("Optimizer.step#") || name.contains(".step#") || name == "optimizer_step"
    });
    if rows.len() < 3 {
        return None;
    }
    let track = trace.track[rows[0] as usize];
    let ends: Vec<Nanos> = rows
        .iter()
        .filter(|&&row| trace.track[row as usize] == track)
        .map(|&row| trace.end(row as usize))
        .collect();
    let steps: Vec<Step> = ends
        .windows(2)
        .enumerate()
        .filter(|(_, pair)| pair[1] > pair[0])
        .map(|(i, pair)| new_step(format!("optimizer step {}", i + 1), pair[0], pair[1]))
        .collect();
    (steps.len() >= 2).then_some(Steps {
        steps,
        source: StepSource::OptimizerStep,
        main: Some(track),
    })
}

fn host_rows(trace: &Trace, index: &TraceIndex, matches: impl Fn(&str) -> bool) -> Vec<u32> {
    // Decide once per distinct name: there are thousands of names and millions of rows.
    let wanted: Vec<NameId> =
        trace.names.iter().filter(|(_, name)| matches(name)).map(|(id, _)| id).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    index
        .threads
        .iter()
        .flat_map(|thread| thread.rows.iter().copied())
        .filter(|&row| wanted.binary_search(&trace.name[row as usize]).is_ok())
        .collect()
}

/// Steps from mark rows: the thread with most of them, sorted, empty and overlapping ones out.
fn from_rows(trace: &Trace, rows: Vec<u32>, source: impl Fn(&str) -> StepSource) -> Option<Steps> {
    let mut by_track: BTreeMap<TrackId, Vec<u32>> = BTreeMap::new();
    for row in rows {
        by_track.entry(trace.track[row as usize]).or_default().push(row);
    }
    let (track, mut rows) =
        by_track.into_iter().max_by_key(|(track, rows)| (rows.len(), std::cmp::Reverse(*track)))?;
    rows.sort_by_key(|&row| trace.start[row as usize]);
    let mut steps: Vec<Step> = Vec::new();
    for row in rows {
        let (start, end) = (trace.start[row as usize], trace.end(row as usize));
        let follows = steps.last().is_none_or(|last| last.end <= start);
        if end > start && follows {
            steps.push(new_step(trace.name_of(row as usize).to_owned(), start, end));
        }
    }
    let source = source(&steps.first()?.name);
    Some(Steps { steps, source, main: Some(track) })
}

/// A name without its numbers: "iter 12" and "iter 13" share "iter ".
fn stem(name: &str) -> String {
    name.chars().filter(|c| !c.is_ascii_digit()).collect()
}

fn window(trace: &Trace) -> Option<Nanos> {
    let rows = || (0..trace.len()).filter(|&row| trace.category[row].is_host_work());
    let start = rows().map(|row| trace.start[row]).min()?;
    let end = rows().map(|row| trace.end(row)).max()?;
    Some(end - start)
}
