//! The JSON of `inspect`.

use foretrain_core::{Bandwidth, Bytes, Nanos};
use foretrain_predict::inspect::{
    Activity, CollectiveRow, DeviceActivity, Inspection, RankInspection, RankRelation, StepPattern,
    StepTime, Together,
};
use foretrain_trace::align::Spread;
use schemars::JsonSchema;
use serde::Serialize;

use super::capture::CaptureReport;
use super::common::{LedgerReport, finite};
use super::predict::OwnerReport;

/// What is in a job's traces.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InspectReport {
    /// `foretrain/inspect/1`.
    pub schema: String,
    /// The traces, by rank.
    pub ranks: Vec<RankReport>,
    /// How the ranks relate; `null` for one rank and where their clocks cannot be aligned.
    pub together: Option<TogetherReport>,
    /// Why several ranks could not be put on one clock.
    pub cannot_merge: Option<String>,
    /// What a reader must know before using the figures.
    pub warnings: Vec<String>,
    /// What reading and analysing the traces met.
    pub ledger: LedgerReport,
}

/// One rank's trace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RankReport {
    /// Global rank.
    pub rank: u32,
    /// How the rank is known.
    pub rank_source: String,
    /// File.
    pub path: String,
    /// Device as the recording names it; empty if it does not.
    pub device: String,
    /// Events kept.
    pub events: usize,
    /// From the first to the last usable event near the steps.
    pub span_ns: i64,
    /// Usable events far from the steps; in no figure.
    pub outliers: usize,
    /// How step boundaries are known.
    pub step_source: String,
    /// Steps in order.
    pub steps: Vec<StepReport>,
    /// Leading steps left out of the statistics.
    pub warm_up_steps: usize,
    /// Median time of the others; `null` without steps.
    pub median_step_ns: Option<i64>,
    /// Shortest of the others.
    pub shortest_step_ns: Option<i64>,
    /// Longest of the others.
    pub longest_step_ns: Option<i64>,
    /// `unknown`, `steady` or `bimodal`.
    pub step_pattern: String,
    /// `measured`, `no-device` or `not-measurable`.
    pub device_activity: String,
    /// Device time within the steps, where it was measured.
    pub activity: Option<ActivityReport>,
    /// Whether launches were seen to wait for a full launch queue.
    pub launch_queue_full: bool,
    /// Name of the step whose owners follow.
    pub breakdown_step: Option<String>,
    /// Who owns that step.
    pub breakdown: Vec<OwnerReport>,
    /// Communication by kind, group and size.
    pub collectives: Vec<CollectiveUseReport>,
    /// Operations that move data.
    pub collective_count: usize,
    /// Of which with a known size.
    pub collective_sized: usize,
    /// Share of communication time with known size (0 to 1).
    pub collective_time_share_sized: f64,
    /// Kernels that look like communication of an unknown kind.
    pub unclassified: Vec<UnclassifiedReport>,
    /// What the recorder measured beside the trace; `null` without a capture.
    pub capture: Option<CaptureReport>,
}

/// One recorded step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StepReport {
    /// Its mark's name, or a made-up one.
    pub name: String,
    /// Step time.
    pub time_ns: i64,
    /// Data inside it was rejected: its time does not compare.
    pub incomplete: bool,
}

/// Unions of device time within the steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ActivityReport {
    /// Length of the stretch.
    pub window_ns: i64,
    /// Any device work.
    pub busy_ns: i64,
    /// Computation kernels.
    pub compute_ns: i64,
    /// Communication.
    pub communication_ns: i64,
    /// Communication while nothing computes.
    pub exposed_communication_ns: i64,
    /// Copies and fills.
    pub copies_ns: i64,
}

/// Collectives of one kind, group and size.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CollectiveUseReport {
    /// Operation.
    pub collective: String,
    /// Group name; empty if unknown.
    pub group: String,
    /// What the group is for.
    pub role: String,
    /// Members of the group; `null` if unknown.
    pub ranks: Option<u32>,
    /// The larger of a rank's input and output; `null` if unknown.
    pub bytes: Option<u64>,
    /// How many were recorded.
    pub count: usize,
    /// How many per step.
    pub per_step: f64,
    /// Shortest duration: the least waiting.
    pub min_ns: i64,
    /// Median duration, waiting included.
    pub median_ns: i64,
    /// Longest duration.
    pub max_ns: i64,
    /// Size over shortest duration; `null` without a size.
    pub algorithm_bytes_per_s: Option<f64>,
    /// The same times the bus factor of nccl-tests.
    pub bus_bytes_per_s: Option<f64>,
}

/// Kernels of one name that look like communication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnclassifiedReport {
    /// Kernel name.
    pub name: String,
    /// How many.
    pub count: usize,
    /// Their time.
    pub time_ns: i64,
}

/// Ranks on one clock.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TogetherReport {
    /// How clocks were aligned.
    pub method: String,
    /// Rank of the reference clock.
    pub reference_rank: u32,
    /// Spread of ends of matched collectives after alignment; less is not claimed.
    pub residual: SpreadReport,
    /// Collectives seen by two ranks or more.
    pub matched: usize,
    /// Last minus first arrival.
    pub arrival_spread: SpreadReport,
    /// One entry per rank, the most often last first.
    pub ranks: Vec<RankClockReport>,
    /// Waiting over all matched operations and ranks.
    pub waiting_ns: i64,
    /// Transfer over all matched operations and ranks.
    pub transfer_ns: i64,
}

/// A distribution of times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SpreadReport {
    /// Median.
    pub median_ns: i64,
    /// 90th percentile.
    pub p90_ns: i64,
    /// Largest.
    pub max_ns: i64,
}

/// One rank against the others.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RankClockReport {
    /// Global rank.
    pub rank: u32,
    /// How far its clock is ahead of the reference.
    pub clock_offset_ns: i64,
    /// How fast it gains, parts per million.
    pub clock_drift_ppm: f64,
    /// How often it arrived last by more than the clocks' residual.
    pub times_last: usize,
    /// Median of its arrival minus that of the others.
    pub lateness_ns: i64,
    /// Whether the lateness exceeds the clocks' residual.
    pub lateness_is_claimed: bool,
    /// Time by which it alone held up the others.
    pub held_up_ns: i64,
    /// Time it spent waiting for others.
    pub waited_ns: i64,
}

impl InspectReport {
    /// The report of an inspection.
    pub fn new(inspection: &Inspection) -> Self {
        let (together, cannot_merge) = match &inspection.relation {
            Some(RankRelation::Together(together)) => (Some(together.as_ref().into()), None),
            Some(RankRelation::CannotMerge(why)) => (None, Some(why.clone())),
            None => (None, None),
        };
        Self {
            schema: "foretrain/inspect/1".into(),
            ranks: inspection.ranks.iter().map(Into::into).collect(),
            together,
            cannot_merge,
            warnings: inspection.warnings.clone(),
            ledger: (&inspection.ledger).into(),
        }
    }
}

impl From<&RankInspection> for RankReport {
    fn from(rank: &RankInspection) -> Self {
        let steps = &rank.steps;
        let (device_activity, activity) = match &rank.device_activity {
            DeviceActivity::NoDevice => ("no-device", None),
            DeviceActivity::NotMeasurable => ("not-measurable", None),
            DeviceActivity::Measured(activity) => ("measured", Some(activity.into())),
        };
        let parts = rank.breakdown.as_ref().map(|(_, parts)| parts);
        let owners = parts.into_iter().flat_map(|parts| {
            let total = parts.total();
            parts.parts.iter().map(move |(owner, time)| OwnerReport::new(owner, *time, total))
        });
        let step = rank.breakdown.as_ref().and_then(|(step, _)| steps.steps.get(*step));
        let communication = &rank.communication;
        let unclassified = communication.unclassified.iter().map(|(name, count, time)| {
            UnclassifiedReport { name: name.clone(), count: *count, time_ns: time.nanos() }
        });
        Self {
            rank: rank.rank,
            rank_source: rank.rank_source.clone(),
            path: rank.source.clone(),
            device: rank.device.clone(),
            events: rank.events.iter().map(|(_, count)| count).sum(),
            span_ns: rank.span.nanos(),
            outliers: rank.outliers,
            step_source: steps.source.clone(),
            steps: steps.steps.iter().map(Into::into).collect(),
            warm_up_steps: steps.warm_up,
            median_step_ns: steps.median.map(Nanos::nanos),
            shortest_step_ns: steps.range.map(|(shortest, _)| shortest.nanos()),
            longest_step_ns: steps.range.map(|(_, longest)| longest.nanos()),
            step_pattern: match steps.pattern {
                StepPattern::Unknown => "unknown",
                StepPattern::Steady => "steady",
                StepPattern::Bimodal { .. } => "bimodal",
            }
            .into(),
            device_activity: device_activity.into(),
            activity,
            launch_queue_full: rank.launch_queue_full,
            breakdown_step: step.map(|step| step.name.clone()),
            breakdown: owners.collect(),
            collectives: communication.rows.iter().map(Into::into).collect(),
            collective_count: communication.bytes_known.1,
            collective_sized: communication.bytes_known.0,
            collective_time_share_sized: finite(communication.time_share_known),
            unclassified: unclassified.collect(),
            capture: rank.capture.as_deref().map(Into::into),
        }
    }
}

impl From<&StepTime> for StepReport {
    fn from(step: &StepTime) -> Self {
        Self { name: step.name.clone(), time_ns: step.time.nanos(), incomplete: step.incomplete }
    }
}

impl From<&Activity> for ActivityReport {
    fn from(activity: &Activity) -> Self {
        Self {
            window_ns: activity.window.nanos(),
            busy_ns: activity.busy.nanos(),
            compute_ns: activity.compute.nanos(),
            communication_ns: activity.communication.nanos(),
            exposed_communication_ns: activity.exposed_communication.nanos(),
            copies_ns: activity.copies.nanos(),
        }
    }
}

impl From<&CollectiveRow> for CollectiveUseReport {
    fn from(row: &CollectiveRow) -> Self {
        let rate = |rate: Option<Bandwidth>| rate.map(|rate| finite(rate.get()));
        Self {
            collective: row.kind.to_string(),
            group: row.group.clone(),
            role: row.role.as_str().into(),
            ranks: (row.ranks > 0).then_some(row.ranks),
            bytes: row.bytes.map(Bytes::get),
            count: row.count,
            per_step: finite(row.per_step),
            min_ns: row.min.nanos(),
            median_ns: row.median.nanos(),
            max_ns: row.max.nanos(),
            algorithm_bytes_per_s: rate(row.algorithm_bandwidth),
            bus_bytes_per_s: rate(row.bus_bandwidth),
        }
    }
}

impl From<Spread> for SpreadReport {
    fn from(spread: Spread) -> Self {
        Self {
            median_ns: spread.median.nanos(),
            p90_ns: spread.p90.nanos(),
            max_ns: spread.max.nanos(),
        }
    }
}

impl From<&Together> for TogetherReport {
    fn from(together: &Together) -> Self {
        let ranks = together.ranks.iter().map(|one| RankClockReport {
            rank: one.rank,
            clock_offset_ns: one.clock_offset.nanos(),
            clock_drift_ppm: finite(one.clock_drift_ppm),
            times_last: one.straggler.times_last,
            lateness_ns: one.straggler.lateness.nanos(),
            lateness_is_claimed: one.straggler.is_claimed,
            held_up_ns: one.straggler.held_up.nanos(),
            waited_ns: one.straggler.waited.nanos(),
        });
        Self {
            method: together.method.into(),
            reference_rank: together.reference,
            residual: together.residual.into(),
            matched: together.matched,
            arrival_spread: together.arrival_spread.into(),
            ranks: ranks.collect(),
            waiting_ns: together.waiting.nanos(),
            transfer_ns: together.transfer.nanos(),
        }
    }
}
