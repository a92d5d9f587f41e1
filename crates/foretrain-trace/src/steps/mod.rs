//! Finding the training steps of a trace.
//!
//! In order of trust: boundaries given by hand, `ProfilerStep#n` marks, other numbered or
//! repeating annotations, optimiser steps, a repeating pattern of kernels or operators, and last
//! the whole window as one step.

mod marks;
mod pattern;

use foretrain_core::{Ledger, Nanos, Severity};
use rustc_hash::FxHashMap;

use crate::index::TraceIndex;
use crate::table::{Trace, TrackId};

/// How a step's boundaries are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepSource {
    /// Given by the user.
    Given,
    /// A `ProfilerStep#n` mark.
    ProfilerStep,
    /// An annotation of this name.
    Annotation(String),
    /// From the end of one optimiser step to the end of the next.
    OptimizerStep,
    /// A repeating pattern of device work or operators.
    Pattern,
    /// Nothing repeats: the whole window.
    WholeWindow,
}

impl StepSource {
    /// For tables: what the boundaries are and how far to trust them.
    pub fn describe(&self) -> String {
        match self {
            Self::Given => "given boundaries".into(),
            Self::ProfilerStep => "ProfilerStep marks".into(),
            Self::Annotation(name) => format!("\"{name}\" annotations (inferred boundaries)"),
            Self::OptimizerStep => "optimizer steps (inferred boundaries)".into(),
            Self::Pattern => "repeating pattern (inferred boundaries)".into(),
            Self::WholeWindow => "whole window as one step (n=1, no spread)".into(),
        }
    }
}

/// One step of one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its mark's name, or a made-up one.
    pub name: String,
    /// Where it starts on the trace's clock.
    pub start: Nanos,
    /// Where it ends.
    pub end: Nanos,
    /// Data inside it was rejected: do not compare its time with others.
    pub incomplete: bool,
}

impl Step {
    /// Step time.
    pub fn duration(&self) -> Nanos {
        self.end - self.start
    }
}

/// The steps of one rank.
#[derive(Clone, Debug)]
pub struct Steps {
    /// In order of time; never overlapping.
    pub steps: Vec<Step>,
    /// How the boundaries are known.
    pub source: StepSource,
    /// The host thread that carries the marks; `None` without host events.
    pub main: Option<TrackId>,
}

/// Finds the steps of a trace; `given` are boundaries by hand (start of each step, and the end of
/// the last one). Empty only if the trace holds no work at all.
pub fn find_steps(
    trace: &Trace,
    index: &TraceIndex,
    given: Option<&[Nanos]>,
    ledger: &mut Ledger,
) -> Steps {
    let mut found = given
        .and_then(|times| given_steps(trace, index, times))
        .or_else(|| marks::profiler_steps(trace, index))
        .or_else(|| marks::repeated_annotations(trace, index))
        .or_else(|| marks::optimizer_steps(trace, index))
        .or_else(|| pattern::repetitions(trace, index))
        .unwrap_or_else(|| whole_window(trace, index));
    if !matches!(found.source, StepSource::Given | StepSource::ProfilerStep) {
        ledger.record(
            Severity::Inferred,
            "step-boundaries",
            &format!(
                "no ProfilerStep marks: {}; give boundaries by hand with --steps",
                found.source.describe()
            ),
        );
    }
    mark_incomplete(trace, index, &mut found.steps, ledger);
    found
}

fn given_steps(trace: &Trace, index: &TraceIndex, times: &[Nanos]) -> Option<Steps> {
    let mut times = times.to_vec();
    times.sort_unstable();
    times.dedup();
    let steps: Vec<Step> = times
        .windows(2)
        .enumerate()
        .map(|(i, pair)| new_step(format!("step {i}"), pair[0], pair[1]))
        .collect();
    (!steps.is_empty()).then(|| Steps {
        steps,
        source: StepSource::Given,
        main: busiest_thread(trace, index),
    })
}

fn whole_window(trace: &Trace, index: &TraceIndex) -> Steps {
    let usable = |row: &usize| {
        let category = trace.category[*row];
        (category.is_host_work() || category.is_device_work()) && !index.is_rejected(*row as u32)
    };
    let start = (0..trace.len()).filter(usable).map(|row| trace.start[row]).min();
    let end = (0..trace.len()).filter(usable).map(|row| trace.end(row)).max();
    let steps = start.zip(end).filter(|(start, end)| end > start);
    Steps {
        steps: steps
            .map(|(start, end)| new_step("window".into(), start, end))
            .into_iter()
            .collect(),
        source: StepSource::WholeWindow,
        main: busiest_thread(trace, index),
    }
}

fn new_step(name: String, start: Nanos, end: Nanos) -> Step {
    Step { name, start, end, incomplete: false }
}

/// The host thread that does most: launches count most, then operators.
pub(crate) fn busiest_thread(trace: &Trace, index: &TraceIndex) -> Option<TrackId> {
    let score = |rows: &[u32]| {
        let launches = rows.iter().filter(|&&row| index.launched_by(row).next().is_some()).count();
        let operators = rows
            .iter()
            .filter(|&&row| trace.category[row as usize] == crate::Category::CpuOp)
            .count();
        (launches + operators, rows.len())
    };
    // The first of equals, for a stable choice.
    let mut best: Option<((usize, usize), TrackId)> = None;
    for thread in &index.threads {
        let score = score(&thread.rows);
        if best.is_none_or(|(top, _)| score > top) {
            best = Some((score, thread.track));
        }
    }
    best.map(|(_, track)| track)
}

/// Flags steps that contain a launch whose kernel was rejected or has no record.
fn mark_incomplete(trace: &Trace, index: &TraceIndex, steps: &mut [Step], ledger: &mut Ledger) {
    if index.rejected.is_empty() {
        return;
    }
    let mut called: FxHashMap<u64, Nanos> = FxHashMap::default();
    for call in (0..trace.len()).filter(|&row| trace.category[row] == crate::Category::Runtime) {
        called.entry(trace.correlation[call]).or_insert(trace.start[call]);
    }
    for &row in &index.rejected {
        let Some(&at) = called.get(&trace.correlation[row as usize]) else { continue };
        for step in steps.iter_mut().filter(|s| s.start <= at && at < s.end && !s.incomplete) {
            step.incomplete = true;
            ledger.record_at(
                Severity::Warning,
                "incomplete-step",
                "device events of this step were rejected: incomplete, do not compare",
                || step.name.clone(),
            );
        }
    }
}
