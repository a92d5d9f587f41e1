//! What is in a recording: steps, device activity, communication, and how the ranks relate.

mod communication;
mod device;
mod ranks;
mod steps;

use std::collections::BTreeMap;

use foretrain_core::{Ledger, Nanos};
use foretrain_sim::SimOptions;
use foretrain_trace::Category;

use crate::breakdown::{Breakdown, Owner, breakdown};
use crate::recording::Recording;
use crate::replay::{marked_step, run, step_marks};

pub use communication::{CollectiveRow, Communication};
pub use device::{Activity, DeviceActivity};
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

/// Says what is in the recordings. `ledger` is the readers'.
pub fn inspect(recordings: &[Recording], ledger: &Ledger) -> Inspection {
    let mut all = ledger.clone();
    let mut warnings = Vec::new();
    let mut ranks = Vec::new();
    for recording in recordings {
        let name = format!("rank {}", recording.rank());
        all.merge(&recording.ledger, (recordings.len() > 1).then_some(name.as_str()));
        let rank = inspect_rank(recording);
        warnings.extend(rank_warnings(&rank));
        ranks.push(rank);
    }
    let relation = (recordings.len() > 1).then(|| ranks::relate(recordings, &mut all));
    let silent = |rank: &RankInspection| rank.communication.rows.is_empty();
    let several = recordings.iter().any(|r| r.world_size() > 1) || recordings.len() > 1;
    if several && ranks.iter().all(silent) {
        warnings.push("a job of several ranks, but no communication was recognised".into());
    }
    if all.count("incomplete") > 0 {
        warnings
            .push("more than 1 % of the events were skipped: the figures are incomplete".into());
    }
    Inspection { ranks, relation, ledger: all, warnings }
}

fn inspect_rank(recording: &Recording) -> RankInspection {
    let (trace, steps) = (&recording.trace, StepTimes::of(recording));
    let mut events: BTreeMap<Category, usize> = BTreeMap::new();
    for &category in &trace.category {
        *events.entry(category).or_default() += 1;
    }
    let (span, outliers) = device::span(recording);
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
        breakdown: steps.representative.and_then(|step| Some((step, owners(recording, step)?))),
        communication: communication::communication(recording, steps.representative),
        steps,
    }
}

/// The owners of a recorded step, by the times of its replay.
fn owners(recording: &Recording, step: usize) -> Option<Breakdown> {
    let graph = recording.graphs.get(step)?;
    let job = foretrain_graph::Job::uniform(graph.clone(), 1);
    let timeline = run(&job, &SimOptions::iterations(1), &graph.meta.source).ok()?;
    let class = timeline.classes.first()?;
    let (begin, _) = step_marks(graph)?;
    let from = class.end[class.row(0, begin)];
    let to = from + marked_step(&timeline, 0, graph, 0)?;
    Some(breakdown(graph, class, from, to, &|_| Nanos::ZERO))
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
    let unknown = rank.communication.unclassified.len();
    if unknown > 0 {
        warnings
            .push(format!("{name}: {unknown} kernel names look like communication, unclassified"));
    }
    warnings
}
