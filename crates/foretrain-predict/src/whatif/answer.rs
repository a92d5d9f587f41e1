//! The answer's plain data.

use foretrain_core::{Estimate, Evidence, Nanos};

use crate::answer::Recorded;
use crate::breakdown::Breakdown;

/// A job as it is or as it would be.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Devices.
    pub gpus: u32,
    /// Nodes they fill.
    pub nodes: u32,
    /// Model replicas.
    pub replicas: u32,
    /// Samples that a replica processes per step, over those of the recording.
    pub batch: f64,
    /// Time of a steady step, 80 % interval.
    pub step_time: Estimate<Nanos>,
    /// Recorded replica batches that the job gets done per second.
    pub throughput: Estimate<f64>,
    /// The same in samples, if the batch of a replica was given.
    pub samples_per_second: Option<Estimate<f64>>,
    /// Who owns the step.
    pub breakdown: Breakdown,
    /// Whether simulated step times had settled.
    pub converged: bool,
}

/// What one change of several is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The change.
    pub change: String,
    /// What it saves made alone; negative if it costs.
    pub alone: Nanos,
    /// What it saves made last, when all the others are made.
    pub last: Nanos,
}

/// One scenario and what it buys.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioAnswer {
    /// What it is called: its name, or its changes.
    pub label: String,
    /// Its changes.
    pub changes: Vec<String>,
    /// What each of the changes did, in words, where there is something to tell.
    pub notes: Vec<String>,
    /// The job under it.
    pub outcome: Outcome,
    /// Time that a step takes less than the baseline's; negative if it takes longer.
    pub saving: Nanos,
    /// What each change is worth, if there are several and it was asked for.
    pub shares: Vec<Share>,
}

impl ScenarioAnswer {
    /// Whether changes pay for the same time: alone they save more than together.
    pub fn overlaps(&self) -> bool {
        let alone: Nanos = self.shares.iter().map(|share| share.alone).sum();
        !self.shares.is_empty() && alone > self.saving + Nanos::from_micros(1)
    }
}

/// The answer of `whatif`.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIf {
    /// What it starts from.
    pub recorded: Recorded,
    /// Cluster of the baseline.
    pub cluster: String,
    /// The job without changes.
    pub baseline: Outcome,
    /// One entry per scenario, in the order asked; of the standard list, the largest saving
    /// first.
    pub scenarios: Vec<ScenarioAnswer>,
    /// Whether the scenarios are the standard list.
    pub is_standard: bool,
    /// Standard scenarios that do not apply, and why.
    pub left_out: Vec<(String, String)>,
    /// What the numbers rest on, strongest first.
    pub evidence: Vec<Evidence>,
    /// What a reader must know before using them.
    pub warnings: Vec<String>,
}
