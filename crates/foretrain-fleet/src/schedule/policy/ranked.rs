//! All jobs in an order that changes, GPUs taken from those behind.

use foretrain_core::Nanos;

use super::super::board::Board;
use super::super::fragments::Fragments;
use super::super::job::JobId;
use super::queue::fragments;
use super::{Placer, Policy, Rhythm};

/// Who is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Who is believed to need the least time still (SRTF).
    ShortestRemaining,
    /// Who is believed to need the least GPU-time still (SRSF).
    LeastRemainingService,
    /// Who gains most on what an equal share of the cluster would have given (finish-time fairness,
    /// as in Themis).
    FinishTimeFairness,
}

/// Plans the whole cluster anew, in order of rank; who finds no room waits.
#[derive(Clone, Debug)]
pub struct Ranked {
    rank: Rank,
    placer: Placer,
    rhythm: Rhythm,
    /// Whether anything has happened since the last plan.
    stale: bool,
    fragments: Option<Fragments>,
    fairness: super::fairness::Fairness,
}

impl Ranked {
    /// A policy that is asked whenever something happens.
    pub fn new(rank: Rank, placer: Placer) -> Self {
        Self {
            rank,
            placer,
            rhythm: Rhythm::Events,
            stale: false,
            fragments: None,
            fairness: super::fairness::Fairness::default(),
        }
    }

    /// The same, asked at intervals.
    #[must_use]
    pub fn every(mut self, interval: Nanos) -> Self {
        self.rhythm = Rhythm::Every(interval);
        self
    }

    fn ranked(&mut self, board: &Board<'_>) -> Vec<JobId> {
        let jobs = board.active();
        let mut keyed: Vec<(f64, JobId)> = match self.rank {
            Rank::ShortestRemaining => {
                jobs.into_iter().map(|id| (board.expected_left(id), id)).collect()
            }
            Rank::LeastRemainingService => {
                let service = |id| board.expected_left(id) * f64::from(board.job(id).gpus);
                jobs.into_iter().map(|id| (service(id), id)).collect()
            }
            Rank::FinishTimeFairness => self.fairness.ranks(board, &jobs),
        };
        keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        keyed.into_iter().map(|(_, id)| id).collect()
    }
}

impl Policy for Ranked {
    fn name(&self) -> String {
        match self.rank {
            Rank::ShortestRemaining => "srtf",
            Rank::LeastRemainingService => "srsf",
            Rank::FinishTimeFairness => "themis",
        }
        .into()
    }

    fn rhythm(&self) -> Rhythm {
        self.rhythm
    }

    fn arrived(&mut self, _board: &Board<'_>, _id: JobId) {
        self.stale = true;
    }

    fn left(&mut self, id: JobId) {
        self.stale = true;
        self.fairness.forget(id);
    }

    fn machines_changed(&mut self) {
        self.stale = true;
    }

    fn decide(&mut self, board: &mut Board<'_>) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        let order = self.ranked(board);
        let fragments = fragments(&mut self.fragments, board);
        let started = plan_anew(board, &order, self.placer, fragments);
        if self.rank == Rank::FinishTimeFairness {
            self.fairness.served(&started);
        }
    }
}

/// Gives the cluster to jobs in order, each where it was if that is free still. Those that got GPUs.
///
/// Two passes: the first finds who fits, by placing in order; the second places the largest of them
/// first, so that small ones do not cut nodes up, unless that leaves one of them out.
pub(super) fn plan_anew(
    board: &mut Board<'_>,
    order: &[JobId],
    placer: Placer,
    fragments: &Fragments,
) -> Vec<JobId> {
    board.stop_all();
    let mut started = Vec::new();
    for &id in order {
        if board.occupancy().idle_total() == 0 {
            break;
        }
        let own = board.was_at(id).cloned();
        let back = own.is_some_and(|at| is_idle(board, &at.gpus) && board.start(id, at).is_ok());
        if back || placer.find(board, id, fragments).is_some_and(|at| board.start(id, at).is_ok()) {
            started.push(id);
        }
    }
    started
}

fn is_idle(board: &Board<'_>, gpus: &[u32]) -> bool {
    gpus.iter().all(|gpu| board.occupancy().gpu(*gpu).tenants.is_empty())
}
