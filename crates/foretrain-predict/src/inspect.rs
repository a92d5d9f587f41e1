//! What is in a recording: steps, device activity, communication, and how the ranks relate.

mod communication;
mod device;
mod ranks;
mod steps;

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::{Bytes, Ledger, Nanos};
use foretrain_graph::attributes::well_known::GRADIENT_BYTES;
use foretrain_graph::{Job, NodeId, StepGraph};
use foretrain_sim::SimOptions;
use foretrain_trace::Capture;
use foretrain_trace::Category;
use foretrain_trace::align::RankOps;

use crate::breakdown::{Breakdown, Owner, breakdown};
use crate::recording::Recording;
use crate::replay::{marked_step, run, step_marks};

pub use communication::{CollectiveRow, Communication};
pub use device::{Activity, DeviceActivity};
pub(crate) use device::{activity, covered};
pub use ranks::{RankAmongOthers, RankRelation, Together};
pub use steps::{StepPattern, StepTime, StepTimes};

/// Everything `inspect` tells.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// One entry per recording, in order.
    pub ranks: Vec<RankInspection>,
    /// How the ranks relate; `None` for one rank.
    pub relation: Option<RankRelation>,
    /// What reading, analysis and matching met.
    pub ledger: Ledger,
    /// What a reader must know before using the figures.
    pub warnings: Vec<String>,
}

/// One rank's recording.
#[derive(Clone, Debug)]
pub struct RankInspection {
    /// Global rank.
    pub rank: u32,
    /// How the rank is known.
    pub rank_source: String,
    /// File.
    pub source: String,
    /// Device as recorded, empty if not.
    pub device: String,
    /// Events by category, categories without events left out.
    pub events: Vec<(Category, usize)>,
    /// Time from the first to the last usable event near the steps.
    pub span: Nanos,
    /// Usable events more than a minute away from the steps; in no figure.
    pub outliers: usize,
    /// Step times.
    pub steps: StepTimes,
    /// Device activity within the steps (within the span, without steps).
    pub device_activity: DeviceActivity,
    /// Whether launches were seen to wait for a full launch queue.
    pub launch_queue_full: bool,
    /// Who owns the representative step, and its index.
    pub breakdown: Option<(usize, Breakdown)>,
    /// Communication.
    pub communication: Communication,
    /// When the first and the last gradient are ready in that step, after its start; `None` where
    /// the trace shows no gradients.
    pub gradients_ready: Option<(Nanos, Nanos)>,
    /// What the recorder measured beside the trace.
    pub capture: Option<Arc<Capture>>,
}

impl RankInspection {
    /// "1.000 s", or "1.000 s (2 outliers ignored)".
    pub fn span_text(&self) -> String {
        match self.outliers {
            0 => self.span.to_string(),
            1 => format!("{} (1 outlier ignored)", self.span),
            n => format!("{} ({n} outliers ignored)", self.span),
        }
    }
}

/// Share of the step above which idling for the host or for input is worth a warning.
const WORTH_WARNING: f64 = 0.2;
/// Trace and hooks may differ by this part of the step in how long gradients become ready.
const GRADIENTS_DISAGREE: f64 = 0.15;
/// Steps whose relative deviation is larger are not compared part by part.
const MOST_SPREAD: f64 = 0.1;

/// What one rank contributes to an inspection. It is small, so that the recording can go before
/// that of the next rank comes.
#[derive(Clone, Debug)]
pub struct InspectedRank {
    /// What is said of the rank itself.
    pub inspection: RankInspection,
    /// Ranks in the recorded job, as far as this rank knows.
    pub world_size: u32,
    /// What relates it to other ranks.
    pub ops: RankOps,
    /// What its analysis met, and the build of the one graph that is shown.
    pub ledger: Ledger,
}

impl InspectedRank {
    /// About how much memory a survey takes over the table of its trace (see
    /// `docs/performance.md`).
    pub const SURVEY: u64 = 2;

    /// About how much memory [`InspectedRank::new`] takes in all.
    pub fn memory(recording: &Recording) -> Bytes {
        /// The graph of a step, its build and its replay over the step's part of the table.
        const GRAPH: u64 = 4;
        let trace = &recording.trace;
        let shown = StepTimes::of(recording).representative;
        let rows = shown.and_then(|step| recording.steps.steps.get(step)).map_or(0, |step| {
            trace.start.iter().filter(|&&at| step.start <= at && at < step.end).count()
        });
        let table = trace.heap_bytes();
        let part = u128::from(table) * rows as u128 / trace.len().max(1) as u128;
        Bytes::new(Self::SURVEY * table + GRAPH * part as u64)
    }

    /// Inspects one rank. Of all steps only the one shown gets a graph.
    pub fn new(recording: &Recording) -> Self {
        let mut ledger = recording.ledger.clone();
        let steps = StepTimes::of(recording);
        let shown = steps.representative.and_then(|step| {
            let (graph, met) = recording.build_graph(step)?;
            ledger.merge(&met, None);
            Some((step, graph))
        });
        Self {
            inspection: inspect_rank(recording, steps, shown),
            world_size: recording.world_size(),
            ops: recording.rank_ops(),
            ledger,
        }
    }
}

/// Says what is in the recordings. `ledger` is the readers'.
pub fn inspect(recordings: &[Recording], ledger: &Ledger) -> Inspection {
    join(recordings.iter().map(InspectedRank::new).collect(), ledger)
}

/// Puts ranks together that were inspected one by one. `ledger` is the readers'.
pub fn join(inspected: Vec<InspectedRank>, ledger: &Ledger) -> Inspection {
    let mut all = ledger.clone();
    let mut warnings = Vec::new();
    let several = inspected.len() > 1;
    let of_a_job = several || inspected.iter().any(|rank| rank.world_size > 1);
    let (mut ranks, mut ops) = (Vec::new(), Vec::new());
    for rank in inspected {
        let name = format!("rank {}", rank.inspection.rank);
        all.merge(&rank.ledger, several.then_some(name.as_str()));
        warnings.extend(rank_warnings(&rank.inspection));
        ranks.push(rank.inspection);
        ops.push(rank.ops);
    }
    let relation = several.then(|| ranks::relate(&ops, &mut all));
    let silent = |rank: &RankInspection| rank.communication.rows.is_empty();
    if of_a_job && ranks.iter().all(silent) {
        warnings.push("a job of several ranks, but no communication was recognised".into());
    }
    if all.count("incomplete") > 0 {
        warnings
            .push("more than 1 % of the events were skipped: the figures are incomplete".into());
    }
    Inspection { ranks, relation, ledger: all, warnings }
}

/// `shown` is the step whose owners are told, with its graph.
fn inspect_rank(
    recording: &Recording,
    steps: StepTimes,
    shown: Option<(usize, StepGraph)>,
) -> RankInspection {
    let trace = &recording.trace;
    let communication = communication::communication(recording, shown.as_ref().map(|s| &s.1));
    let mut events: BTreeMap<Category, usize> = BTreeMap::new();
    for &category in &trace.category {
        *events.entry(category).or_default() += 1;
    }
    let (span, outliers) = device::span(recording);
    let (breakdown, gradients_ready) =
        match shown.and_then(|(step, graph)| Some((step, owners(graph)?))) {
            Some((step, (parts, ready))) => (Some((step, parts)), ready),
            None => (None, None),
        };
    RankInspection {
        rank: recording.rank(),
        rank_source: trace.meta.rank_source.clone(),
        source: trace.meta.path.clone(),
        device: trace.meta.devices.first().map_or_else(String::new, |d| d.name.clone()),
        events: events.into_iter().collect(),
        span: span.1 - span.0,
        outliers,
        device_activity: device::activity(recording, span),
        launch_queue_full: recording.typical.queue_was_full,
        breakdown,
        communication,
        gradients_ready,
        capture: trace.meta.capture.clone(),
        steps,
    }
}

/// The owners of a recorded step and when its first and last gradient are ready, by the times of
/// its replay.
fn owners(graph: StepGraph) -> Option<(Breakdown, Option<(Nanos, Nanos)>)> {
    let job = Job::uniform(graph, 1);
    let graph = &job.classes.first()?.graph;
    let timeline = run(&job, &SimOptions::iterations(1), &graph.meta.source).ok()?;
    let class = timeline.classes.first()?;
    let (begin, _) = step_marks(graph)?;
    let from = class.end[class.row(0, begin)];
    let to = from + marked_step(&timeline, 0, graph, 0)?;
    let ready = || {
        let of_gradient = |&id: &NodeId| {
            graph.node_attributes.get_i64(GRADIENT_BYTES, id.index()).is_some_and(|bytes| bytes > 0)
        };
        graph.node_ids().filter(of_gradient).map(|id| class.end[class.row(0, id)] - from)
    };
    let range = ready().min().zip(ready().max());
    Some((breakdown(graph, class, from, to, &|_| Nanos::ZERO), range))
}

/// How trace and capture disagree about when gradients become ready, if they do much.
fn gradients_disagree(rank: &RankInspection) -> Option<String> {
    let capture = rank.capture.as_ref()?;
    let (total, hooked) = (rank.breakdown.as_ref()?.1.total(), capture.hooked.median()?);
    // Where steps differ by more, so do their parts, and the traced step is a single one.
    if capture.unprofiled.spread()? > MOST_SPREAD {
        return None;
    }
    // Profiler and hooks lengthen steps differently, so parts of the step are compared.
    let part = |(first, last): (Nanos, Nanos), step: Nanos| {
        (last - first).nanos() as f64 / step.nanos().max(1) as f64
    };
    let by_trace = part(rank.gradients_ready?, total);
    let by_capture = part(capture.gradients_ready()?, hooked);
    ((by_trace - by_capture).abs() > GRADIENTS_DISAGREE).then(|| {
        format!(
            "gradients become ready over {:.0} % of the step by the trace and over {:.0} % by the capture's hooks: buckets may be ready at other times than a forecast takes them to be",
            by_trace * 100.0,
            by_capture * 100.0
        )
    })
}

fn rank_warnings(rank: &RankInspection) -> Vec<String> {
    let mut warnings = Vec::new();
    let name = format!("rank {}", rank.rank);
    if let Some((_, parts)) = &rank.breakdown {
        let total = parts.total().nanos().max(1) as f64;
        let share = |owner| parts.time(|o| *o == owner).nanos() as f64 / total;
        let (input, host) = (share(Owner::Input), share(Owner::LaunchBound));
        if input > WORTH_WARNING {
            warnings.push(format!("{name} is input-bound: {:.0} % of the step", input * 100.0));
        }
        if host > WORTH_WARNING && rank.device_activity.idle().is_some() {
            warnings.push(format!("{name} is host-bound: {:.0} % of the step", host * 100.0));
        }
    }
    if rank.device_activity == DeviceActivity::NotMeasurable {
        warnings.push(format!("{name}: graph launch without kernel records, idle not measurable"));
    }
    if rank.outliers > 0 {
        warnings.push(format!("{name}: total span {}", rank.span_text()));
    }
    warnings.extend(gradients_disagree(rank).map(|what| format!("{name}: {what}")));
    let unknown = rank.communication.unclassified.len();
    if unknown > 0 {
        warnings
            .push(format!("{name}: {unknown} kernel names look like communication, unclassified"));
    }
    warnings
}
