//! Packing by predicted utilisation (Horus, Horus+).

use std::collections::BTreeSet;

use super::super::board::Board;
use super::super::fragments::Fragments;
use super::super::job::{JobId, Share};
use super::groups::Groups;
use super::packer::{Packer, PackingCost};
use super::queue::fragments;
use super::{Placer, Policy, Rhythm};

/// Jobs ahead in the queue among which the least busy goes first.
const LOOK_AHEAD: usize = 5;

/// Places jobs on the GPUs where they cost least, beside others if need be. Of the first few jobs of
/// the queue the one that keeps GPUs least busy goes first.
///
/// Source: Yeung et al., TPDS 2022, whose published simulator fixes the constants. There busy GPUs never
/// won against idle ones by a slip in the order of operations; here costs are as intended.
#[derive(Clone, Debug)]
pub struct Horus {
    packer: Packer,
    /// Jobs of one kind are queued together, and the queue that waited longest in all is served first
    /// (Horus+).
    groups: Option<Groups>,
    waiting: BTreeSet<JobId>,
    /// Whether a job could start now that could not at the last look: GPUs were freed, or it is new
    /// among the first of the queue.
    stale: bool,
    fragments: Option<Fragments>,
}

impl Horus {
    /// One queue.
    pub fn new() -> Self {
        let packer = Packer::new(PackingCost::Horus);
        Self { packer, groups: None, waiting: BTreeSet::new(), stale: false, fragments: None }
    }

    /// So many queues of jobs that are alike (Horus+).
    pub fn grouped(queues: usize) -> Self {
        Self { groups: Some(Groups::new(queues)), ..Self::new() }
    }

    /// Other rules of packing.
    #[must_use]
    pub fn with(mut self, packer: Packer) -> Self {
        self.packer = packer;
        self
    }

    /// The jobs to be tried next, in order.
    fn next(&mut self, board: &Board<'_>) -> Vec<JobId> {
        let mut next: Vec<JobId> = match &mut self.groups {
            None => self.waiting.iter().copied().take(LOOK_AHEAD).collect(),
            Some(groups) => groups.next(board, &self.waiting, LOOK_AHEAD),
        };
        let busy = |id: JobId| board.job(id).utilisation();
        next.sort_by(|a, b| busy(*a).total_cmp(&busy(*b)).then(a.cmp(b)));
        next
    }
}

impl Default for Horus {
    fn default() -> Self {
        Self::new()
    }
}

impl Policy for Horus {
    fn name(&self) -> String {
        if self.groups.is_some() { "horus+" } else { "horus" }.into()
    }

    fn rhythm(&self) -> Rhythm {
        Rhythm::Events
    }

    fn arrived(&mut self, board: &Board<'_>, id: JobId) {
        self.waiting.insert(id);
        // Which queue is served changes with time.
        self.stale |=
            self.groups.is_some() || self.waiting.iter().take(LOOK_AHEAD).any(|w| *w == id);
        if let Some(groups) = &mut self.groups {
            groups.add(board.job(id), id);
        }
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
        loop {
            let next = self.next(board);
            let mut start = |board: &mut Board<'_>, id: JobId| {
                let at = if board.job(id).share == Share::Whole {
                    self.packer.find(board, id)?
                } else {
                    // Parts and slices share GPUs among themselves, by what they asked for.
                    Placer::Consolidated.find(board, id, fragments(&mut self.fragments, board))?
                };
                board.start(id, at).ok()
            };
            let Some(started) = next.into_iter().find(|id| start(board, *id).is_some()) else {
                break;
            };
            self.waiting.remove(&started);
            if let Some(groups) = &mut self.groups {
                groups.remove(started);
            }
        }
    }
}
