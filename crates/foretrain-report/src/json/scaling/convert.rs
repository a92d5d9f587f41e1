//! From answers to their JSON.

use foretrain_core::{Bandwidth, Estimate, Nanos};
use foretrain_cost::Volume;
use foretrain_predict::scaling::{
    AccumulationAnswer, BreakEven, PointAnswer, Predicted, RankAnswer, Remedy, ScalingAnswer,
    SegmentRate, SeriesAnswer, SplitAnswer, StrategyOutlook,
};

use super::super::common::finite;
use super::{
    AccumulationReport, BreakEvenReport, PredictedScaleReport, RankKindReport, RankSplitReport,
    RanksReport, RateByBatchReport, RemedyReport, ScalePointReport, ScaleSeriesReport,
    ScalingReport, SegmentRateReport, StrategyOutlookReport, VolumeReport,
};

impl ScalingReport {
    /// A report of an answer.
    pub fn new(answer: &ScalingAnswer) -> Self {
        Self {
            schema: "foretrain/scaling/1".into(),
            series: answer.series.iter().map(Into::into).collect(),
            ranks: answer.ranks.as_ref().map(Into::into),
            contradictions: answer.contradictions.clone(),
        }
    }
}

fn gbit(rate: Bandwidth) -> f64 {
    finite(rate.get() * 8e-9)
}

impl From<&SeriesAnswer> for ScaleSeriesReport {
    fn from(series: &SeriesAnswer) -> Self {
        let by_batch = |(batch_per_gpu, rate): &(u32, Bandwidth)| RateByBatchReport {
            batch_per_gpu: *batch_per_gpu,
            effective_gbit_per_s: gbit(*rate),
        };
        let effective = |rate: Estimate<Bandwidth>| rate.map::<f64>(|rate| rate * 8e-9).into();
        Self {
            name: series.name.clone(),
            unit: series.unit.clone(),
            verdict: series.verdict.as_str().into(),
            reasons: series.reasons.clone(),
            points: series.points.iter().map(Into::into).collect(),
            lost_inside_node: series.losses.inside_node.map(finite),
            lost_between_nodes: series.losses.between_nodes.map(finite),
            effective_gbit_per_s: series.effective.map(effective),
            effective_by_batch: series.effective_by_batch.iter().map(by_batch).collect(),
            segments: series.segments.iter().map(Into::into).collect(),
            break_even: series.break_even.map(Into::into),
            accumulation: series.accumulation.as_ref().map(Into::into),
            remedies: series.remedies.iter().map(Into::into).collect(),
            strategies: series.strategies.iter().map(Into::into).collect(),
            predictions: series.predictions.iter().map(Into::into).collect(),
            unanswered: series.unanswered.clone(),
            warnings: series.warnings.clone(),
            assumptions: series.assumptions.clone(),
        }
    }
}

impl From<&PointAnswer> for ScalePointReport {
    fn from(point: &PointAnswer) -> Self {
        Self {
            gpus: point.gpus,
            nodes: point.nodes,
            accumulation: point.accumulation,
            strategy: point.strategy.as_str().into(),
            speed_up: finite(point.speed_up),
            efficiency: finite(point.efficiency),
            scaling_factor: point.scaling_factor.map(finite),
            per_gpu: point.per_gpu.map(finite),
            step_ratio: point.step_ratio.map(finite),
            step_ns: point.step.map(Nanos::nanos),
            rank_bytes: point.rank_bytes.map(Into::into),
            node_bytes: point.node_bytes.map(Into::into),
            effective_gbit_per_s: point.effective.map(gbit),
            average_gbit_per_s: point.average.map(gbit),
        }
    }
}

impl From<Volume> for VolumeReport {
    fn from(volume: Volume) -> Self {
        Self {
            forward: finite(volume.forward),
            backward: finite(volume.backward),
            update: finite(volume.update),
            total: finite(volume.total()),
        }
    }
}

impl From<&SegmentRate> for SegmentRateReport {
    fn from(segment: &SegmentRate) -> Self {
        Self {
            part: segment.part.into(),
            gpus: segment.gpus,
            growth_ns: segment.growth.nanos(),
            node_bytes: finite(segment.node_bytes),
            gbit_per_s: gbit(segment.rate),
        }
    }
}

impl From<BreakEven> for BreakEvenReport {
    fn from(break_even: BreakEven) -> Self {
        Self {
            gpus: break_even.gpus,
            times_for_80_percent: finite(break_even.times_for_80),
            gbit_per_s_for_80_percent: break_even.rate_for_80.map(gbit),
            times_to_hide: finite(break_even.times_to_hide),
            gbit_per_s_to_hide: break_even.rate_to_hide.map(gbit),
        }
    }
}

impl From<&AccumulationAnswer> for AccumulationReport {
    fn from(answer: &AccumulationAnswer) -> Self {
        Self {
            gpus: answer.gpus,
            measured: answer.measured.clone(),
            ceiling: answer.ceiling.map(finite),
            sync_micro_steps: finite(answer.sync_micro_steps),
            sync_ns: answer.sync.map(Nanos::nanos),
            misfit: finite(answer.misfit),
            knee_80_percent: answer.knee_80,
            knee_90_percent: answer.knee_90,
        }
    }
}

impl From<&Remedy> for RemedyReport {
    fn from(remedy: &Remedy) -> Self {
        Self {
            what: remedy.what.clone(),
            efficiency: remedy.efficiency.into(),
            gain: finite(remedy.gain),
            condition: remedy.condition.clone(),
        }
    }
}

impl From<&StrategyOutlook> for StrategyOutlookReport {
    fn from(outlook: &StrategyOutlook) -> Self {
        Self {
            strategy: outlook.strategy.as_str().into(),
            gpus: outlook.gpus,
            present: outlook.is_present,
            relative_bytes: finite(outlook.relative_bytes),
            node_bytes: outlook.node_bytes.map(Into::into),
            at_line_rate_ns: outlook.at_line_rate.map(Nanos::nanos),
            step: outlook.step.map(Into::into),
            efficiency: outlook.efficiency.map(Into::into),
        }
    }
}

impl From<&Predicted> for PredictedScaleReport {
    fn from(predicted: &Predicted) -> Self {
        Self {
            gpus: predicted.gpus,
            nodes: predicted.nodes,
            accumulation: predicted.accumulation,
            efficiency: predicted.efficiency.into(),
            throughput: predicted.throughput.map(Into::into),
            step: predicted.step.map(Into::into),
            basis: predicted.basis.clone(),
        }
    }
}

impl From<&RankAnswer> for RanksReport {
    fn from(answer: &RankAnswer) -> Self {
        Self {
            verdict: answer.verdict.as_str().into(),
            present: answer.present.as_ref().map(Into::into),
            best: (&answer.best).into(),
            warnings: answer.warnings.clone(),
        }
    }
}

impl From<&SplitAnswer> for RankSplitReport {
    fn from(split: &SplitAnswer) -> Self {
        let kinds = split.kinds.iter().map(|(name, count, batch, step)| RankKindReport {
            name: name.clone(),
            count: *count,
            batch: finite(*batch),
            step_ns: step.nanos(),
        });
        Self {
            kinds: kinds.collect(),
            step_ns: split.step.nanos(),
            throughput: finite(split.throughput),
        }
    }
}
