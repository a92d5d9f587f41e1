//! Sizes that make the most of the cluster for all (Pollux-like).
//!
//! Every interval the sizes of all jobs are chosen together: those with the largest harmonic mean of
//! speed-ups over an equal share of the cluster. With sizes that fill a node evenly or fill whole
//! nodes, that is a knapsack, solved exactly; Pollux searches with a genetic algorithm.

use std::collections::{BTreeMap, BTreeSet};

use foretrain_core::Nanos;

use super::super::board::Board;
use super::super::fragments::Fragments;
use super::super::job::JobId;
use super::queue::fragments;
use super::{Placer, Policy, Rhythm};

/// The policy.
#[derive(Clone, Debug)]
pub struct Goodput {
    interval: Nanos,
    /// Seconds that a restart is believed to cost.
    restart: f64,
    /// Most GPUs that each job has had: it may try twice as many next.
    tried: BTreeMap<JobId, u32>,
    /// Whether jobs or machines came or went since the last decision.
    stale: bool,
    fragments: Option<Fragments>,
}

/// What a job without GPUs counts, so that none is forgotten.
const NOTHING: f64 = 1e-3;
/// Larger clusters are divided in coarser units, so that a decision takes less than a second.
const MOST_UNITS: u32 = 2_048;

/// What one size is worth to a job.
struct Choice {
    gpus: u32,
    worth: f64,
}

impl Goodput {
    /// A policy that chooses at every multiple of an interval.
    pub fn new(interval: Nanos, restart: Nanos) -> Self {
        let restart = restart.secs_f64();
        Self { interval, restart, tried: BTreeMap::new(), stale: false, fragments: None }
    }

    fn choices(&self, board: &Board<'_>, id: JobId, jobs: u32, unit: u32) -> Vec<Choice> {
        let (job, progress) = (board.job(id), board.progress(id));
        let cluster = board.cluster();
        let node = cluster.largest_node().max(1);
        let fair = cluster.gpus().div_ceil(jobs.max(1));
        let nodes = |gpus: u32| gpus.div_ceil(node).max(1);
        let done = progress.done_at(board.now());
        let speed = |gpus: u32| match &job.scaling {
            Some(scaling) => scaling.speed(gpus, nodes(gpus), done),
            None => f64::from(u8::from(gpus == job.gpus)),
        };
        let (least, most) = job.sizes();
        let tried = self.tried.get(&id).copied();
        let limit = tried.map_or(1, |tried| tried.saturating_mul(2)).max(least);
        let most = most.min(cluster.gpus());
        // Sizes that would do, and the one asked for where nodes do not divide into it.
        let asked = (least <= job.gpus).then_some(job.gpus);
        let usual = || {
            let sizes = sizes(node, unit).filter(|gpus| *gpus >= least);
            let mut all: Vec<u32> = sizes.take_while(|gpus| *gpus <= most).collect();
            all.extend(asked.filter(|gpus| *gpus <= most));
            all.sort_unstable();
            all
        };
        let most = match tried {
            Some(tried) => {
                let learnt = job.scaling.as_ref().is_some_and(|scaling| scaling.is_learnt());
                let end = if learnt { job.gpus } else { u32::MAX };
                past_loss(&usual(), (tried, end), limit.min(most), &speed)
            }
            None => limit.min(most),
        };
        let share = match &job.scaling {
            Some(scaling) => {
                let fair = fair.min(scaling.most_gpus()).max(1);
                let shares = (1..=fair).rev().map(|gpus| scaling.speed(gpus, nodes(gpus), done));
                shares.into_iter().find(|speed| *speed > 0.0).unwrap_or(1.0)
            }
            None => (f64::from(fair) / f64::from(job.gpus.max(1))).min(1.0),
        };
        let age = (board.now() - job.submit).clamp_positive().secs_f64();
        let lost = f64::from(progress.starts.saturating_sub(1)) * self.restart;
        let penalty = (age - lost).max(0.0) / (age + self.restart);
        let now = progress.at.gpus.len() as u32;
        // A speed-up of one stands for one node's part of the cluster.
        let scale = cluster.nodes().len() as f64 / f64::from(cluster.gpus());
        let worth = |gpus: u32| {
            // Who has nothing yet loses nothing by a change.
            let kept = if gpus == now || now == 0 { 1.0 } else { penalty };
            -1.0 / (speed(gpus) / share * kept * scale + NOTHING)
        };
        let mut all = vec![Choice { gpus: 0, worth: -1.0 / NOTHING }];
        let sizes = usual().into_iter().take_while(|gpus| *gpus <= most);
        let mut sizes: Vec<u32> = sizes.chain((now > 0).then_some(now)).chain([least]).collect();
        sizes.sort_unstable();
        sizes.dedup();
        all.extend(sizes.into_iter().map(|gpus| Choice { gpus, worth: worth(gpus) }));
        all
    }

    /// Sizes with the largest sum of worths that fit together.
    fn sizes(&self, board: &Board<'_>, jobs: &[JobId]) -> BTreeMap<JobId, u32> {
        let up = board.gpus_up();
        let unit = up.div_ceil(MOST_UNITS).max(1);
        let units = (up / unit) as usize;
        let mut best = vec![0.0; units + 1];
        let mut taken: Vec<Vec<u32>> = Vec::with_capacity(jobs.len());
        for &id in jobs {
            let choices = self.choices(board, id, jobs.len() as u32, unit);
            let mut next = vec![f64::NEG_INFINITY; units + 1];
            let mut chosen = vec![0; units + 1];
            for Choice { gpus, worth } in choices {
                let cost = gpus.div_ceil(unit) as usize;
                for used in cost..=units {
                    let sum = best[used - cost] + worth;
                    if sum > next[used] + 1e-12 {
                        (next[used], chosen[used]) = (sum, gpus);
                    }
                }
            }
            best = next;
            taken.push(chosen);
        }
        let mut used = units;
        let mut sizes = BTreeMap::new();
        for (&id, chosen) in jobs.iter().zip(&taken).rev() {
            let gpus = chosen[used];
            used -= gpus.div_ceil(unit) as usize;
            sizes.insert(id, gpus);
        }
        sizes
    }
}

/// The most GPUs that a job may try which had `tried`: `limit`, twice as many, unless none of those
/// is faster than what it had; then the next size that is, up to `end`. A job would never get past one
/// that is slower, as the first that crosses a slow link may be.
///
/// Speeds that are learnt are believed up to the size that the job's owner asked for.
fn past_loss(
    sizes: &[u32],
    (tried, end): (u32, u32),
    limit: u32,
    speed: &dyn Fn(u32) -> f64,
) -> u32 {
    let fastest = |sizes: &mut dyn Iterator<Item = u32>| sizes.map(speed).fold(0.0, f64::max);
    let (had, beyond) = sizes.split_at(sizes.partition_point(|gpus| *gpus <= tried));
    let best = fastest(&mut had.iter().copied().chain([tried]));
    if fastest(&mut beyond.iter().copied().filter(|gpus| *gpus <= limit)) > best {
        return limit;
    }
    let within = beyond.iter().copied().filter(|gpus| *gpus > limit && *gpus <= end);
    within.into_iter().find(|gpus| speed(*gpus) > best).unwrap_or(limit)
}

/// Sizes that leave nodes whole: powers of two within a node, then whole nodes, in growing steps
/// where there are many.
fn sizes(node: u32, unit: u32) -> impl Iterator<Item = u32> {
    let inside = std::iter::successors(Some(1u32), |size| size.checked_mul(2));
    let inside = inside.take_while(move |size| *size < node);
    let mut step = 1;
    let outside = std::iter::successors(Some(1u32), move |nodes| {
        if *nodes >= 16 * step {
            step *= 2;
        }
        nodes.checked_add(step)
    });
    let outside = outside.map_while(move |nodes| node.checked_mul(nodes));
    let coarse = move |size: &u32| *size < node || size.is_multiple_of(unit) || unit < node;
    inside.chain(outside).filter(coarse)
}

impl Policy for Goodput {
    fn name(&self) -> String {
        "pollux".into()
    }

    fn rhythm(&self) -> Rhythm {
        Rhythm::Every(self.interval)
    }

    fn arrived(&mut self, _board: &Board<'_>, _id: JobId) {
        self.stale = true;
    }

    fn left(&mut self, id: JobId) {
        self.tried.remove(&id);
        self.stale = true;
    }

    fn machines_changed(&mut self) {
        self.stale = true;
    }

    fn decide(&mut self, board: &mut Board<'_>) {
        for id in board.running() {
            let now = board.progress(*id).at.gpus.len() as u32;
            let tried = self.tried.entry(*id).or_default();
            *tried = now.max(*tried);
        }
        let jobs = board.active();
        let may_resize = |id: &JobId| {
            let (least, most) = board.job(*id).sizes();
            least < most
        };
        // Jobs of one size go on as they are until something happens.
        if !std::mem::take(&mut self.stale) && !jobs.iter().any(may_resize) {
            return;
        }
        let sizes = self.sizes(board, &jobs);
        let fragments = fragments(&mut self.fragments, board);
        resize(board, &sizes, Placer::Consolidated, fragments);
    }
}

/// Gives every job its size. Jobs whose size stays are moved only where others find no room
/// otherwise: then those on the node that has the least to move.
pub(super) fn resize(
    board: &mut Board<'_>,
    sizes: &BTreeMap<JobId, u32>,
    placer: Placer,
    fragments: &Fragments,
) {
    let size_now = |board: &Board<'_>, id: JobId| board.progress(id).at.gpus.len() as u32;
    let mut placing: BTreeSet<JobId> = BTreeSet::new();
    for (&id, &size) in sizes {
        if size != size_now(board, id) {
            board.stop(id);
            if size > 0 {
                placing.insert(id);
            }
        }
    }
    loop {
        let mut largest_first: Vec<JobId> = placing.iter().copied().collect();
        largest_first.sort_by_key(|id| (std::cmp::Reverse(sizes[id]), *id));
        let mut started = Vec::new();
        let mut left_out = false;
        for id in largest_first {
            let at = placer.find_for(board, board.job(id), sizes[&id], fragments);
            if at.is_some_and(|at| board.start(id, at).is_ok()) {
                started.push(id);
            } else {
                left_out = true;
            }
        }
        if !left_out {
            return;
        }
        let fresh: BTreeSet<JobId> = started.iter().copied().collect();
        let Some(movable) = easiest_node(board, &fresh) else { return };
        for id in started.into_iter().chain(movable) {
            board.stop(id);
            placing.insert(id);
        }
    }
}

/// Jobs of the node with the fewest GPUs of jobs that lie on it alone, were there before and would
/// leave it idle.
fn easiest_node(board: &Board<'_>, fresh: &BTreeSet<JobId>) -> Option<Vec<JobId>> {
    let mut nodes: BTreeMap<u32, (u32, Vec<JobId>)> = BTreeMap::new();
    for id in board.running().difference(fresh) {
        let at = &board.progress(*id).at;
        if at.per_node(board.cluster()).len() == 1 {
            let node = board.cluster().node_of(at.gpus[0]);
            if at.gpus.len() as u32 >= board.cluster().nodes()[node as usize].gpus {
                // Moving it to another whole node frees nothing.
                continue;
            }
            let (gpus, jobs) = nodes.entry(node).or_default();
            *gpus += at.gpus.len() as u32;
            jobs.push(*id);
        }
    }
    let easiest = nodes.into_iter().min_by_key(|(node, (gpus, _))| (*gpus, *node));
    easiest.map(|(_, (_, jobs))| jobs)
}
