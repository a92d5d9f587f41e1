//! Groups of jobs that share GPUs by taking turns on different resources (Muri-like).

use std::collections::BTreeMap;

use foretrain_core::Nanos;

use super::super::board::Board;
use super::super::fragments::Fragments;
use super::super::interleave::{resources, round};
use super::super::job::{Job, JobId, Share};
use super::queue::fragments;
use super::{Placer, Policy, Rhythm};

/// Jobs of equal size are grouped so that their steps' parts interleave best, as far as it takes to
/// run all that were chosen. Source: Muri, Zhao et al., SIGCOMM 2022.
#[derive(Clone, Debug)]
pub struct Interleave {
    /// Whether durations are believed (least remaining GPU-time first) or not (least attained).
    knows_durations: bool,
    most: usize,
    placer: Placer,
    rhythm: Rhythm,
    stale: bool,
    fragments: Option<Fragments>,
}

/// Jobs that share GPUs.
type Group = Vec<JobId>;

impl Interleave {
    /// With at most so many jobs per group.
    pub fn new(knows_durations: bool, most: usize, placer: Placer) -> Self {
        let (rhythm, stale, fragments) = (Rhythm::Events, false, None);
        Self { knows_durations, most: most.max(1), placer, rhythm, stale, fragments }
    }

    /// The same, asked at intervals.
    #[must_use]
    pub fn every(mut self, interval: Nanos) -> Self {
        self.rhythm = Rhythm::Every(interval);
        self
    }

    /// Jobs by size, each in order of rank: for every seat there is on an empty cluster, as many as
    /// may share it. And jobs that ask for less than a GPU.
    fn chosen(&mut self, board: &mut Board<'_>) -> (BTreeMap<u32, Vec<JobId>>, Vec<JobId>) {
        let rank = |id: JobId| {
            if self.knows_durations {
                board.expected_left(id) * f64::from(board.job(id).gpus)
            } else {
                board.progress(id).service_at(board.now())
            }
        };
        let all = board.active().into_iter();
        let mut ranked: Vec<(f64, JobId)> = all.map(|id| (rank(id), id)).collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let whole = |id: &JobId| board.job(*id).share == Share::Whole;
        // Parts and slices share GPUs among themselves, by what they asked for.
        let single: Vec<JobId> = ranked.iter().map(|(_, id)| *id).filter(|id| !whole(id)).collect();
        ranked.retain(|(_, id)| whole(id));
        let mut of_size: BTreeMap<u32, Vec<JobId>> = BTreeMap::new();
        for (_, id) in &ranked {
            of_size.entry(board.job(*id).gpus).or_default().push(*id);
        }
        board.stop_all();
        let fragments = fragments(&mut self.fragments, board);
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for (_, id) in ranked {
            let gpus = board.job(id).gpus;
            let (jobs, count) = (&of_size[&gpus], counts.entry(gpus).or_default());
            if jobs[..*count].contains(&id) {
                continue;
            }
            let seat = self.placer.find(board, id, fragments);
            if seat.is_some_and(|at| board.start(id, at).is_ok()) {
                *count = (*count + self.most).min(jobs.len());
            }
        }
        board.stop_all();
        for (gpus, jobs) in &mut of_size {
            jobs.truncate(counts.get(gpus).copied().unwrap_or(0));
        }
        (of_size, single)
    }
}

/// Merges groups of one size, the best pairs first, until all groups have a seat.
fn merge(
    jobs: &[Job],
    mut groups: Vec<(u32, Group)>,
    seats: u32,
    most: usize,
) -> Vec<(u32, Group)> {
    let mut needed: u64 = groups.iter().map(|(gpus, _)| u64::from(*gpus)).sum();
    while needed > u64::from(seats) {
        let mut pairs: Vec<(f64, usize, usize)> = Vec::new();
        for (first, (gpus, one)) in groups.iter().enumerate() {
            for (second, (other_gpus, other)) in groups.iter().enumerate().skip(first + 1) {
                let together = one.len() + other.len();
                if gpus == other_gpus && together <= most {
                    pairs.push((efficiency(jobs, one, other), first, second));
                }
            }
        }
        if pairs.is_empty() {
            break;
        }
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        let mut merged = vec![false; groups.len()];
        let mut gone = vec![false; groups.len()];
        for (_, first, second) in pairs {
            if needed <= u64::from(seats) {
                break;
            }
            if merged[first] || merged[second] {
                continue;
            }
            (merged[first], merged[second], gone[second]) = (true, true, true);
            let other = std::mem::take(&mut groups[second].1);
            groups[first].1.extend(other);
            needed -= u64::from(groups[first].0);
        }
        let mut gone = gone.into_iter();
        groups.retain(|_| !gone.next().unwrap_or(false));
    }
    groups
}

/// How much of the resources a group uses, 0 to 1.
fn efficiency(jobs: &[Job], one: &[JobId], other: &[JobId]) -> f64 {
    let group: Vec<&Job> = one.iter().chain(other).map(|id| &jobs[*id as usize]).collect();
    let used: f64 = group.iter().map(|job| resources(job).secs_f64()).sum();
    used / round(&group).secs_f64().max(f64::MIN_POSITIVE)
}

impl Policy for Interleave {
    fn name(&self) -> String {
        if self.knows_durations { "muri-s" } else { "muri-l" }.into()
    }

    fn rhythm(&self) -> Rhythm {
        self.rhythm
    }

    fn arrived(&mut self, _board: &Board<'_>, _id: JobId) {
        self.stale = true;
    }

    fn left(&mut self, _id: JobId) {
        self.stale = true;
    }

    fn machines_changed(&mut self) {
        self.stale = true;
    }

    fn decide(&mut self, board: &mut Board<'_>) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        let (chosen, single) = self.chosen(board);
        let alone = |(gpus, ids): (&u32, &Vec<JobId>)| {
            let gpus = *gpus;
            ids.iter().map(move |id| (gpus, vec![*id])).collect::<Vec<_>>()
        };
        let groups: Vec<(u32, Group)> = chosen.iter().flat_map(alone).collect();
        let seats = board.occupancy().idle_total();
        let mut groups = merge(board.jobs(), groups, seats, self.most);
        groups.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let fragments = fragments(&mut self.fragments, board);
        for (_, group) in groups {
            let Some(at) = self.placer.find(board, group[0], fragments) else { continue };
            for id in group {
                // Memory may forbid one of them; it waits.
                let _ = board.start(id, at.clone());
            }
        }
        for id in single {
            if let Some(at) = self.placer.find(board, id, fragments) {
                let _ = board.start(id, at);
            }
        }
    }
}
