//! How fast a placed job works.

use std::fmt::Debug;

use foretrain_cost::interference::colocation::{ColocationModel, JobLoad, Sharing};
use smallvec::SmallVec;

use super::cluster::Cluster;
use super::interleave;
use super::job::{Job, Share};
use super::occupancy::Occupancy;
use super::placement::Placement;
use super::slices;
use super::state::Progress;

/// What jobs on one GPU do to each other.
pub trait Interference: Debug + Send + Sync {
    /// How many times longer a step of `victim` takes beside `others`, at least 1 where they have
    /// nothing to give each other.
    fn slowdown(&self, victim: &Job, others: &[&Job]) -> f64;
}

/// By how busy jobs keep a GPU and how long their kernels are, as measured pairs showed.
#[derive(Clone, Debug)]
pub struct Colocated {
    /// The fitted model.
    pub model: ColocationModel,
    /// How the GPU is shared.
    pub sharing: Sharing,
}

impl Interference for Colocated {
    fn slowdown(&self, victim: &Job, others: &[&Job]) -> f64 {
        let loads: SmallVec<[JobLoad; 4]> = others.iter().map(|other| other.load()).collect();
        self.model.slowdown(&victim.load(), &loads, self.sharing)
    }
}

/// One factor for whoever is not alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConstantSlowdown(pub f64);

impl Interference for ConstantSlowdown {
    fn slowdown(&self, _victim: &Job, _others: &[&Job]) -> f64 {
        self.0.max(1.0)
    }
}

/// Jobs that take turns on resources rather than on the GPU alone: while one computes, another
/// reads input and a third communicates. All of a group make one step per round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interleaved;

impl Interference for Interleaved {
    fn slowdown(&self, victim: &Job, others: &[&Job]) -> f64 {
        let step = victim.load().step;
        let own = victim.stages.map_or(step, |stages| stages.step);
        let group: SmallVec<[&Job; 4]> =
            std::iter::once(victim).chain(others.iter().copied()).collect();
        let round = interleave::round(&group);
        (round.secs_f64() / own.secs_f64().max(1e-9)).max(1.0)
    }
}

/// Units of work per second of a job that runs at `at`, `done` units in.
pub(super) fn speed(
    job: &Job,
    at: &Placement,
    done: f64,
    cluster: &Cluster,
    occupancy: &Occupancy,
    (jobs, interference): (&[Job], &dyn Interference),
) -> f64 {
    let alone = match &job.scaling {
        Some(scaling) => scaling.speed_placed(&at.per_node(cluster), done),
        None => 1.0 / spread_factor(job, at, cluster),
    };
    if let Share::Part(_) = job.share {
        // It asked for its part and gets it: parts never add up to more than a GPU.
        return alone;
    }
    if let Some(slot) = at.slot {
        // Isolated from its neighbours; slower where the slice is less than it asked for.
        let busy = job.load().busy;
        let asked = if let Share::Slice(sevenths) = job.share { sevenths } else { 7 };
        return alone * slices::rate(slot.sevenths, busy) / slices::rate(asked, busy);
    }
    let beside = |gpu: &u32| {
        let tenants = &occupancy.gpu(*gpu).tenants;
        if tenants.len() < 2 {
            return 1.0;
        }
        let others: SmallVec<[&Job; 4]> = tenants
            .iter()
            .map(|tenant| &jobs[*tenant as usize])
            .filter(|other| !std::ptr::eq(*other, job))
            .collect();
        interference.slowdown(job, &others)
    };
    // All GPUs of a job wait for its slowest one.
    alone / at.gpus.iter().map(beside).fold(1.0, f64::max)
}

/// How much of each of its GPUs a running job computes on, 0 to 1: its utilisation alone, at the size
/// it asked for and placed well, scaled by the rate at which work is done. So what jobs cost each
/// other is no computation, and a job comes to the same GPU-seconds of it wherever it ran.
pub(super) fn computing(job: &Job, progress: &Progress, cluster: &Cluster) -> f64 {
    let gpus = progress.at.gpus.len() as f64;
    if gpus == 0.0 {
        return 0.0;
    }
    let usual = job.scaling.as_ref().map_or(1.0, |scaling| {
        let nodes = job.gpus.div_ceil(cluster.largest_node().max(1));
        scaling.speed(job.gpus, nodes, progress.done)
    });
    // A size that never works is no measure.
    let rate = if usual > 0.0 { progress.speed / usual } else { 1.0 };
    (job.utilisation() * rate * f64::from(job.gpus) / gpus).clamp(0.0, 1.0)
}

/// GPUs that a job holds: those that it shares are divided among all on them, and parts and slices
/// count as what they are of a GPU. All jobs together hold no more than there is.
pub(super) fn held(job: &Job, at: &Placement, occupancy: &Occupancy) -> f64 {
    match job.share {
        Share::Whole => {
            let tenants = |gpu: &u32| occupancy.gpu(*gpu).tenants.len().max(1) as f64;
            at.gpus.iter().map(|gpu| tenants(gpu).recip()).sum()
        }
        Share::Part(_) | Share::Slice(_) => job.part() * at.gpus.len() as f64,
    }
}

/// How many times longer a job takes than on as few nodes and racks as its GPUs fit on.
fn spread_factor(job: &Job, at: &Placement, cluster: &Cluster) -> f64 {
    if job.spread.nodes <= 1.0 && job.spread.racks <= 1.0 {
        return 1.0;
    }
    let needed = job.gpus.div_ceil(cluster.largest_node().max(1));
    let nodes = at.per_node(cluster).len() as u32;
    let mut factor = 1.0;
    if nodes > needed {
        factor *= job.spread.nodes.max(1.0);
    }
    if nodes > 1 && at.racks(cluster) > 1 {
        factor *= job.spread.racks.max(1.0);
    }
    factor
}
