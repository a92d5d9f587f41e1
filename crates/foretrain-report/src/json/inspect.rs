//! The JSON of `inspect`.

use std::collections::BTreeMap;

use foretrain_core::stats::{median, median_i64, robust_std};
use foretrain_core::{Bandwidth, Bytes, Ledger, Nanos};
use foretrain_cost::bus_factor;
use foretrain_graph::{CollectiveKind, Job, StepGraph};
use foretrain_predict::breakdown::breakdown;
use foretrain_predict::replay::step_marks;
use foretrain_predict::{Breakdown, Owner, Recording};
use foretrain_sim::{SimOptions, simulate};
use foretrain_trace::steps::Step;
use schemars::JsonSchema;
use serde::Serialize;

use super::common::{LedgerReport, finite};
use super::predict::OwnerReport;

/// What is in a job's traces.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct InspectReport {
    /// `foretrain/inspect/1`.
    pub schema: String,
    /// Ranks in the recorded job, as stated or as the largest group shows.
    pub world_size: u32,
    /// The traces, by rank.
    pub ranks: Vec<RankReport>,
    /// Communication of all ranks together, by time.
    pub collectives: Vec<CollectiveUseReport>,
    /// How far the collectives' sizes are known.
    pub collective_totals: CollectiveTotalsReport,
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
    /// What wrote it, as far as it tells.
    pub producer: String,
    /// Devices as the recording names them.
    pub devices: Vec<String>,
    /// Events kept.
    pub events: usize,
    /// From the first event to the end of the last.
    pub span_ns: i64,
    /// How step boundaries are known.
    pub step_source: String,
    /// Steps in order.
    pub steps: Vec<StepReport>,
    /// Median step time; `null` without steps.
    pub median_step_ns: Option<i64>,
    /// Robust relative spread of the step times (0.05 is 5 %); `null` below two steps.
    pub relative_spread: Option<f64>,
    /// Who owns the recorded steps; times are per step.
    pub breakdown: Vec<OwnerReport>,
}

/// One recorded step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StepReport {
    /// Its mark's name, or a made-up one.
    pub name: String,
    /// Start on the trace's clock.
    pub start_ns: i64,
    /// Step time.
    pub time_ns: i64,
    /// Data inside it was rejected: its time does not compare.
    pub incomplete: bool,
}

/// Collectives of one kind, group and size.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CollectiveUseReport {
    /// Operation.
    pub collective: String,
    /// Group name; empty if unknown.
    pub group: String,
    /// Members of the group; `null` if unknown.
    pub ranks: Option<u32>,
    /// Payload in bytes; `null` if unknown.
    pub bytes: Option<u64>,
    /// How many were recorded.
    pub count: usize,
    /// Median duration, waiting included.
    pub median_ns: i64,
    /// Sum of the durations.
    pub total_ns: i64,
    /// Payload over median duration in bytes per second; `null` without a size.
    pub algorithm_bytes_per_s: Option<f64>,
    /// The same scaled to what a link carries (nccl-tests' busbw); `null` without size or ranks.
    pub bus_bytes_per_s: Option<f64>,
}

/// Known of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CollectiveTotalsReport {
    /// Operations recorded.
    pub count: usize,
    /// Of which with a known size.
    pub sized: usize,
    /// Time of all operations.
    pub total_ns: i64,
    /// Time of those with a known size.
    pub sized_ns: i64,
    /// Looks like communication, but nobody knows of what kind.
    pub unclassified: usize,
}

impl InspectReport {
    /// The report of recordings and of what reading and analysing them met.
    pub fn new(recordings: &[Recording], ledger: &Ledger) -> Self {
        let mut uses = Uses::default();
        for recording in recordings {
            uses.add(recording);
        }
        let unclassified = recordings.iter().map(|r| r.collectives.unclassified.len()).sum();
        let (collectives, collective_totals) = uses.finish(unclassified);
        Self {
            schema: "foretrain/inspect/1".into(),
            world_size: recordings.iter().map(Recording::world_size).max().unwrap_or(0),
            ranks: recordings.iter().map(RankReport::new).collect(),
            collectives,
            collective_totals,
            ledger: ledger.into(),
        }
    }
}

impl RankReport {
    fn new(recording: &Recording) -> Self {
        let meta = &recording.trace.meta;
        let times: Vec<f64> =
            recording.step_times().iter().map(|time| time.nanos() as f64).collect();
        let median = median(&times);
        let spread = robust_std(&times).zip(median.filter(|m| *m > 0.0)).map(|(s, m)| s / m);
        let rows = 0..recording.trace.len();
        let start = recording.trace.start.iter().min().copied().unwrap_or(Nanos::ZERO);
        let end = rows.map(|row| recording.trace.end(row)).max().unwrap_or(start);
        Self {
            rank: recording.rank(),
            rank_source: meta.rank_source.clone(),
            path: meta.path.clone(),
            producer: meta.producer.clone(),
            devices: meta.devices.iter().map(|device| device.name.clone()).collect(),
            events: recording.trace.len(),
            span_ns: (end - start).nanos(),
            step_source: recording.steps.source.describe(),
            steps: recording.steps.steps.iter().map(Into::into).collect(),
            median_step_ns: median.map(|m| Nanos::from_nanos_f64(m).nanos()),
            relative_spread: spread.map(finite),
            breakdown: recorded_breakdown(recording),
        }
    }
}

/// Owners of the recorded steps, from replaying each unchanged. Steps that do not replay, which
/// `validate` counts as defects, are left out.
fn recorded_breakdown(recording: &Recording) -> Vec<OwnerReport> {
    let mut sums: BTreeMap<Owner, Nanos> = BTreeMap::new();
    let mut steps = 0;
    for parts in recording.graphs.iter().filter_map(replayed) {
        steps += 1;
        for (owner, time) in parts.parts {
            *sums.entry(owner).or_default() += time;
        }
    }
    let total: Nanos = sums.values().copied().sum();
    let report = |(owner, time): (&Owner, &Nanos)| {
        OwnerReport::new(owner, time.scale(1.0 / f64::from(steps.max(1))), total, *time)
    };
    sums.iter().map(report).collect()
}

fn replayed(graph: &StepGraph) -> Option<Breakdown> {
    let job = Job::uniform(graph.clone(), 1);
    let timeline = simulate(&job, &SimOptions::iterations(1)).ok()?;
    let (begin, end) = step_marks(graph)?;
    let at = |mark| timeline.mark_times(0, mark).first().copied();
    Some(breakdown(graph, timeline.classes.first()?, at(begin)?, at(end)?, &|_| Nanos::ZERO))
}

impl From<&Step> for StepReport {
    fn from(step: &Step) -> Self {
        Self {
            name: step.name.clone(),
            start_ns: step.start.nanos(),
            time_ns: step.duration().nanos(),
            incomplete: step.incomplete,
        }
    }
}

/// What collectives are told apart by: kind, group name, size.
type Use = (CollectiveKind, String, Option<Bytes>);

/// Durations of like collectives of all ranks.
#[derive(Default)]
struct Uses {
    found: BTreeMap<Use, (u32, Vec<i64>)>,
}

impl Uses {
    fn add(&mut self, recording: &Recording) {
        for op in &recording.collectives.ops {
            let group = op.group.and_then(|g| recording.collectives.groups.get(g.index()));
            let key = (op.kind, group.map_or_else(String::new, |g| g.name.clone()), op.bytes);
            let (ranks, durations) = self.found.entry(key).or_default();
            *ranks = (*ranks).max(group.map_or(0, |g| g.size));
            durations.push(op.duration().nanos());
        }
    }

    fn finish(self, unclassified: usize) -> (Vec<CollectiveUseReport>, CollectiveTotalsReport) {
        let mut totals =
            CollectiveTotalsReport { count: 0, sized: 0, total_ns: 0, sized_ns: 0, unclassified };
        let mut reports = Vec::new();
        for ((kind, group, bytes), (ranks, mut durations)) in self.found {
            let total_ns: i64 = durations.iter().fold(0, |sum, d| sum.saturating_add(*d));
            totals.count += durations.len();
            totals.total_ns = totals.total_ns.saturating_add(total_ns);
            if bytes.is_some() {
                totals.sized += durations.len();
                totals.sized_ns = totals.sized_ns.saturating_add(total_ns);
            }
            let median_ns = median_i64(&mut durations).unwrap_or(0);
            let ranks = (ranks > 0).then_some(ranks);
            let rate = bytes
                .filter(|b| *b > Bytes::ZERO)
                .and_then(|b| Bandwidth::of(b, Nanos::from_nanos(median_ns)))
                .map(Bandwidth::get);
            reports.push(CollectiveUseReport {
                collective: kind.to_string(),
                group,
                ranks,
                bytes: bytes.map(Bytes::get),
                count: durations.len(),
                median_ns,
                total_ns,
                algorithm_bytes_per_s: rate.map(finite),
                bus_bytes_per_s: rate.zip(ranks).map(|(r, n)| finite(r * bus_factor(kind, n))),
            });
        }
        reports.sort_by_key(|r| std::cmp::Reverse(r.total_ns));
        (reports, totals)
    }
}
