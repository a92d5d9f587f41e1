//! From estimates to their wire form.

use foretrain_plan::Answer;
use foretrain_plan::advice::Advice;
use foretrain_plan::detailed::{Detailed, Remedies};
use foretrain_plan::horizon::Horizon;
use foretrain_plan::memory::{Fit, Item, MemoryRange, StageMemory};
use foretrain_plan::rhythm::Rhythm;
use foretrain_plan::times::{Part, Parts};

use super::{
    AdviceReport, EstimateReport, HorizonReport, LayoutReport, MemoryItemReport, PartReport,
    PipelineReport, RangeBytes, RemediesReport, StageMemoryReport, StageTimeReport, TrainingReport,
};
use crate::json::common::finite;

pub(in crate::json) fn fit(fit: Fit) -> String {
    match fit {
        Fit::Yes => "yes",
        Fit::Tight => "tight",
        Fit::No => "no",
    }
    .into()
}

impl EstimateReport {
    /// The report of an estimate.
    pub fn new(detailed: &Detailed) -> Self {
        let answer = &detailed.answer;
        Self {
            schema: "foretrain/estimate/1".into(),
            model: detailed.model.clone(),
            parameters: detailed.parameters,
            active_parameters: detailed.active_parameters,
            cluster: detailed.cluster.clone(),
            device: detailed.device.clone(),
            peak_flops_per_s: detailed.peak.map(finite),
            software: detailed.software.clone(),
            training: TrainingReport::of(&detailed.training),
            calibrated: detailed.calibrated.as_ref().map(Into::into),
            layout: answer.into(),
            pipeline: detailed.rhythm.as_ref().map(|rhythm| PipelineReport::of(rhythm, answer)),
            to_finish: detailed.horizon.as_ref().map(Into::into),
            remedies: detailed.remedies.as_ref().map(Into::into),
            evidence: answer.evidence.iter().map(Into::into).collect(),
            notes: answer.notes.clone(),
        }
    }
}

impl TrainingReport {
    pub(in crate::json) fn of(training: &foretrain_plan::Training) -> Self {
        let precision = &training.precision;
        Self {
            global_batch: training.global_batch,
            sequence: training.sequence,
            target_sequence: training.target,
            compute_dtype: precision.compute.as_str().into(),
            activation_dtype: precision.activations.as_str().into(),
            weight_dtype: precision.weights.as_str().into(),
            gradient_dtype: precision.gradients.as_str().into(),
            optimiser: training.optimiser.as_str().into(),
            lora_rank: training.lora.map(|lora| lora.rank),
        }
    }
}

impl From<&Answer> for LayoutReport {
    fn from(answer: &Answer) -> Self {
        let stages = answer.step.stages.iter().map(|stage| StageTimeReport {
            busy_ns: stage.busy.nanos(),
            started_ns: stage.started.nanos(),
            computed_ns: stage.computed.nanos(),
            synchronised_ns: stage.synchronised.nanos(),
            update_ns: stage.update.nanos(),
        });
        Self {
            text: answer.layout.to_string(),
            devices: answer.devices,
            step_time: answer.time.into(),
            micro_batches: answer.step.micro_batches,
            tokens_per_step: finite(answer.tokens),
            in_samples: answer.in_samples,
            tokens_per_second: finite(answer.tokens_per_second()),
            model_flops_per_step: finite(answer.model_flops),
            mfu: answer.mfu.map(finite),
            parts: parts(&answer.step.parts),
            parts_stage: answer.step.stage,
            hidden_communication_ns: answer.step.hidden.nanos(),
            stages: stages.collect(),
            fits: fit(answer.fit()),
            memory: answer.memory.iter().map(Into::into).collect(),
            watts: answer.cost.watts.map(finite),
            joules_per_step: answer.cost.joules_per_step.map(finite),
            dollars_per_hour: answer.cost.dollars_per_hour.map(finite),
            dollars_per_step: answer.cost.dollars_per_step.map(finite),
        }
    }
}

fn parts(parts: &Parts) -> Vec<PartReport> {
    parts.iter().map(|(part, time)| PartReport::of(part, time)).collect()
}

impl PartReport {
    pub(in crate::json) fn of(part: Part, time: foretrain_core::Nanos) -> Self {
        Self { part: part.key().into(), label: part.as_str().into(), time_ns: time.nanos() }
    }
}

impl From<&StageMemory> for StageMemoryReport {
    fn from(stage: &StageMemory) -> Self {
        let items = stage
            .items
            .iter()
            .map(|(item, bytes)| MemoryItemReport { item: item_key(*item), bytes: bytes.get() });
        Self {
            stage: stage.stage,
            capacity_bytes: stage.capacity.get(),
            fits: fit(stage.fits()),
            items: items.collect(),
            allocated: (&stage.allocated).into(),
            reserved: (&stage.reserved).into(),
            used: (&stage.used).into(),
        }
    }
}

/// As it is serialised elsewhere.
fn item_key(item: Item) -> String {
    let value = serde_json::to_value(item).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

impl From<&MemoryRange> for RangeBytes {
    fn from(range: &MemoryRange) -> Self {
        Self {
            value_bytes: range.value.get(),
            low_bytes: range.low.get(),
            high_bytes: range.high.get(),
        }
    }
}

impl PipelineReport {
    fn of(rhythm: &Rhythm, answer: &Answer) -> Self {
        Self {
            schedule: answer.layout.schedule.as_str().into(),
            micro_batches: rhythm.micro_batches,
            chunks: rhythm.chunks,
            warm_up: rhythm.stages.iter().map(|stage| stage.warm_up).collect(),
            in_flight: rhythm.stages.iter().map(|stage| stage.in_flight).collect(),
            bubble: finite(rhythm.bubble),
            ideal_bubble: rhythm.ideal_bubble.map(finite),
        }
    }
}

impl From<&Horizon> for HorizonReport {
    fn from(horizon: &Horizon) -> Self {
        Self {
            tokens: finite(horizon.tokens),
            steps: finite(horizon.steps),
            seconds: horizon.seconds.into(),
            dollars: horizon.dollars.map(finite),
            joules: horizon.joules.map(finite),
        }
    }
}

impl From<&Remedies> for RemediesReport {
    fn from(remedies: &Remedies) -> Self {
        let nearest = remedies.nearest.as_ref();
        Self {
            changes: remedies.changes.iter().map(Into::into).collect(),
            plan: remedies.plan.as_ref().map(|plan| plan.layout.to_string()),
            nearest: nearest.map(|(layout, _)| layout.to_string()),
            nearest_bytes: nearest.map(|(_, bytes)| bytes.get()),
        }
    }
}

impl From<&Advice> for AdviceReport {
    fn from(advice: &Advice) -> Self {
        Self {
            change: advice.change.clone(),
            layout: advice.layout.to_string(),
            step_time: advice.time.into(),
            memory_bytes: advice.memory.get(),
            fits: fit(advice.fit),
        }
    }
}
