//! A model on GPUs: stages, replicas, and what a profile says of them.

use std::ops::Range;

use foretrain_core::{Bytes, InputError, Nanos, Result};

use super::profile::{Costs, Filled, Gaps, Profile, Reach};
use super::schedule::Schedule;
use super::simulate::{Pipeline, StageTime};

/// Where the stages of a pipeline stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// A pipeline fills one machine after the other: neighbours mostly share a machine.
    #[default]
    Packed,
    /// The replicas of a stage fill one machine after the other: neighbours mostly do not.
    Scattered,
}

impl Placement {
    /// The word for tables and arguments.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Scattered => "scattered",
        }
    }
}

/// Machines and how pipelines stand on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machines {
    /// GPUs of one machine.
    pub gpus_each: u32,
    /// Where the stages stand.
    pub placement: Placement,
}

impl Machines {
    /// GPUs of a machine in Varuna's simulator, unless it is told otherwise.
    pub const VARUNA_GPUS: u32 = 4;

    /// Whether a message from `stage` to the next leaves its machine; a stage of one replica takes
    /// `gpus_per_stage` GPUs.
    pub fn reach(&self, stage: usize, replicas: u32, gpus_per_stage: u32) -> Reach {
        let workers = u64::from(self.gpus_each / gpus_per_stage.max(1));
        if workers == 0 {
            return Reach::Far;
        }
        let step = match self.placement {
            Placement::Packed => 1,
            Placement::Scattered => u64::from(replicas),
        };
        let machine = |stage: usize| stage as u64 * step / workers;
        if machine(stage) == machine(stage + 1) { Reach::Near } else { Reach::Far }
    }
}

/// One stage, for one micro-batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Its cut-points.
    pub cut_points: Range<usize>,
    /// Forward and backward pass.
    pub time: StageTime,
    /// Copying its input to the host, if that was measured.
    pub copy: Option<Nanos>,
    /// The optimizer's update, once per step, if that was measured.
    pub update: Option<Nanos>,
    /// Its output, if that was measured.
    pub activation: Option<Bytes>,
}

/// Stages of a partition, for a micro-batch size.
///
/// # Errors
/// If the profile lacks that size and it is not to be filled in.
pub fn stages(
    profile: &Profile,
    partition: &[Range<usize>],
    micro_batch: u32,
    gaps: Gaps,
    filled: &mut Filled,
) -> Result<Vec<Stage>> {
    let mut all = Vec::with_capacity(partition.len());
    for part in partition {
        let mut stage = Stage {
            cut_points: part.clone(),
            time: StageTime { forward: Nanos::ZERO, backward: Nanos::ZERO },
            copy: None,
            update: None,
            activation: None,
        };
        for (index, cut) in part.clone().zip(&profile.cut_points[part.clone()]) {
            let costs = cut.costs(micro_batch, gaps, filled)?;
            stage.time.forward += costs.forward;
            stage.time.backward += costs.backward;
            stage.activation = costs.activation;
            if index == part.start {
                stage.copy = costs.copy;
            }
            if let Some(update) = cut.update {
                stage.update = Some(stage.update.unwrap_or_default() + update);
            }
        }
        all.push(stage);
    }
    Ok(all)
}

/// The pipeline that these stages make.
///
/// # Errors
/// If the profile lacks an activation's size or the time of its message.
pub fn pipeline(
    profile: &Profile,
    stages: &[Stage],
    machines: &Machines,
    replicas: u32,
    gaps: Gaps,
    filled: &mut Filled,
) -> Result<Pipeline> {
    let mut messages = Vec::with_capacity(stages.len().saturating_sub(1));
    for (index, stage) in stages.iter().enumerate().take(stages.len().saturating_sub(1)) {
        let bytes = stage.activation.ok_or_else(|| {
            let last = &profile.cut_points[stage.cut_points.end - 1];
            InputError::new(format!(
                "the profile lacks the activation of cut-point {:?}",
                last.name
            ))
            .hint("give activation there, or --activation for a table of layers")
        })?;
        let reach = machines.reach(index, replicas, profile.tensor_parallel);
        messages.push(profile.message(bytes, reach, gaps, filled)?);
    }
    Pipeline::new(stages.iter().map(|stage| stage.time).collect(), messages)
}

/// Memory that a stage needs, as Varuna counts it: what its cut-points need at the most without
/// their outputs, and the output of the last. Inputs that wait to be recomputed are in the host's
/// memory. Where nothing is recomputed, what each further micro-batch keeps comes on top.
///
/// # Errors
/// If the profile lacks an entry that this needs.
pub fn memory(
    profile: &Profile,
    cut_points: &Range<usize>,
    micro_batch: u32,
    schedule: Schedule,
    in_flight: u32,
    gaps: Gaps,
    filled: &mut Filled,
) -> Result<Bytes> {
    let mut sum = Bytes::ZERO;
    let mut output = Bytes::ZERO;
    for cut in &profile.cut_points[cut_points.clone()] {
        let costs: Costs = cut.costs(micro_batch, gaps, filled)?;
        let needed = |what: &str, value: Option<Bytes>| {
            value.ok_or_else(|| {
                InputError::new(format!(
                    "the profile lacks {what} of cut-point {:?} at micro-batch {micro_batch}",
                    cut.name
                ))
                .hint("give it, or leave the GPU's memory out to check none")
            })
        };
        output = needed("activation", costs.activation)?;
        sum += needed("max_memory", costs.max_memory)? - output;
        // A last stage that runs each backward pass at once keeps one micro-batch, as was measured.
        let keeps_more = schedule == Schedule::OneFOneB && in_flight > 1;
        if keeps_more {
            let saved = needed("saved (what 1f1b keeps, as it recomputes nothing)", costs.saved)?;
            sum += Bytes::new(saved.get().saturating_mul(u64::from(in_flight) - 1));
        }
    }
    Ok(sum + output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_hold_neighbours_or_replicas() {
        let of = |placement, stage, replicas, per_stage| {
            Machines { gpus_each: 4, placement }.reach(stage, replicas, per_stage)
        };
        let packed: Vec<Reach> = (0..5).map(|s| of(Placement::Packed, s, 9, 1)).collect();
        assert_eq!(packed, [Reach::Near, Reach::Near, Reach::Near, Reach::Far, Reach::Near]);
        assert_eq!(of(Placement::Scattered, 0, 4, 1), Reach::Far);
        assert_eq!(of(Placement::Scattered, 0, 2, 1), Reach::Near);
        assert_eq!(of(Placement::Scattered, 1, 2, 1), Reach::Far);
        // Two stages of two GPUs share a machine; one of eight shares none.
        assert_eq!(of(Placement::Packed, 0, 1, 2), Reach::Near);
        assert_eq!(of(Placement::Packed, 1, 1, 2), Reach::Far);
        assert_eq!(of(Placement::Packed, 0, 1, 8), Reach::Far);
    }
}
