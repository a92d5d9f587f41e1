//! What a rank's prediction starts from, whether it was a profiler trace or a step graph.

use foretrain_core::Nanos;
use foretrain_core::stats::{median, robust_std};
use foretrain_graph::StepGraph;
use foretrain_rewrite::collectives;

use crate::recording::Recording;

/// Noise of a single step.
pub(super) const ONE_STEP_SPREAD: f64 = 0.02;
/// A characterisation takes a machine to reach a fixed part of every peak: assumed, as no answer here is
/// worse known.
const CHARACTERISED_SPREAD: f64 = 0.3;

/// Where a rank's step comes from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// File.
    pub(crate) path: String,
    /// Global rank.
    pub(crate) rank: u32,
    /// Ranks in the recorded job.
    pub(crate) world_size: u32,
    /// Device as the recording names it; empty if it does not.
    pub(crate) device: String,
    /// How the step's boundaries are known.
    pub(crate) step_source: String,
    /// Recorded step times in nanoseconds; empty if none was recorded.
    pub(crate) step_times: Vec<f64>,
    /// Nobody recorded the step: a characterisation gives its times.
    pub(crate) is_characterised: bool,
    /// Whether anything was communicated.
    pub(crate) communicates: bool,
}

impl Origin {
    pub(crate) fn of_recording(recording: &Recording) -> Self {
        let meta = &recording.trace.meta;
        Self {
            path: meta.path.clone(),
            rank: recording.rank(),
            world_size: recording.world_size(),
            device: meta.devices.first().map_or_else(String::new, |d| d.name.clone()),
            step_source: recording.steps.source.describe(),
            step_times: recording.step_times().iter().map(|t| t.nanos() as f64).collect(),
            is_characterised: false,
            communicates: !recording.collectives.ops.is_empty(),
        }
    }

    pub(crate) fn of_graph(graph: &StepGraph) -> Self {
        let largest = graph.groups.iter().map(|group| group.size).max().unwrap_or(1);
        Self {
            path: graph.meta.source.clone(),
            rank: graph.meta.rank,
            world_size: graph.meta.world_size.max(largest).max(1),
            device: graph.meta.device.clone(),
            step_source: match graph.meta.is_characterised() {
                true => graph.meta.step.clone(),
                false => "step graph".into(),
            },
            step_times: graph.meta.recorded_step.iter().map(|t| t.nanos() as f64).collect(),
            is_characterised: graph.meta.is_characterised(),
            communicates: collectives(graph).next().is_some(),
        }
    }

    /// Median recorded step time; `None` if none was recorded.
    pub(crate) fn usual_step(&self) -> Option<Nanos> {
        median(&self.step_times).map(Nanos::from_nanos_f64)
    }

    /// Whether a replayed step is within a factor of two of any recorded one.
    pub(crate) fn is_like_a_step(&self, replayed: Nanos) -> bool {
        let ratio = |step: &f64| replayed.nanos() as f64 / step.max(1.0);
        self.step_times.is_empty()
            || self.step_times.iter().any(|step| (0.5..=2.0).contains(&ratio(step)))
    }

    /// Standard deviation of the recorded steps over their median, from enough of them.
    pub(crate) fn spread(&self) -> Option<f64> {
        let usual = self.usual_step()?.nanos().max(1) as f64;
        robust_std(&self.step_times).map(|deviation| deviation / usual)
    }

    /// How far off the usual step may be: by the noise of its recordings, or by what a
    /// characterisation assumes of machines.
    pub(crate) fn base_spread(&self) -> f64 {
        if self.is_characterised {
            return CHARACTERISED_SPREAD;
        }
        self.spread().unwrap_or(ONE_STEP_SPREAD) / (self.step_times.len().max(1) as f64).sqrt()
    }
}
