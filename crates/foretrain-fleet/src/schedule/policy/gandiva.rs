//! Packing and time slicing (Gandiva).

use std::collections::BTreeMap;

use foretrain_core::Nanos;

use super::super::board::Board;
use super::super::fragments::Fragments;
use super::super::job::JobId;
use super::packer::{Packer, PackingCost};
use super::queue::fragments;
use super::{Placer, Policy, Rhythm};

/// First come, first served on idle GPUs; beside others where those leave room; and where neither is
/// left, those that ran for a whole time slice give way to those that wait, in turn.
///
/// Source: Gandiva, Xiao et al., OSDI 2018.
#[derive(Clone, Debug)]
pub struct Gandiva {
    packer: Packer,
    slice: Nanos,
    /// Who waits, in the order in which it will be served: those that gave way are behind.
    queue: Vec<JobId>,
    fragments: Option<Fragments>,
}

impl Gandiva {
    /// With this time slice.
    pub fn new(slice: Nanos) -> Self {
        let packer = Packer::new(PackingCost::Gandiva);
        Self { packer, slice, queue: Vec::new(), fragments: None }
    }

    /// A place on idle GPUs, else beside jobs that do not keep theirs busy.
    fn place(&mut self, board: &mut Board<'_>, id: JobId) -> bool {
        let fragments = fragments(&mut self.fragments, board);
        if let Some(at) = Placer::Consolidated.find(board, id, fragments) {
            return board.start(id, at).is_ok();
        }
        let Some(at) = self.packer.find(board, id) else { return false };
        let wanted = board.job(id).utilisation();
        let room = |gpu: &u32| board.occupancy().gpu(*gpu).utilisation + wanted <= 1.0;
        at.gpus.iter().all(room) && board.start(id, at).is_ok()
    }

    /// Gives those that wait the GPUs of jobs as large that ran for a slice, one for one, those that
    /// ran longest first.
    fn turns(&mut self, board: &mut Board<'_>) {
        let now = board.now();
        let mut ran: BTreeMap<u32, Vec<JobId>> = BTreeMap::new();
        for &id in board.running() {
            // Those that were started just now have no time yet, or an old one: they waited.
            let start = board.progress(id).last_start.filter(|_| board.was_running(id));
            if start.is_some_and(|start| now - start >= self.slice) {
                ran.entry(board.job(id).gpus).or_default().push(id);
            }
        }
        for jobs in ran.values_mut() {
            // Taken from the end.
            jobs.sort_by_key(|id| std::cmp::Reverse((board.progress(*id).last_start, *id)));
        }
        let mut gave_way = Vec::new();
        for id in std::mem::take(&mut self.queue) {
            let oldest = ran.get_mut(&board.job(id).gpus).and_then(Vec::pop);
            let Some(oldest) = oldest else {
                self.queue.push(id);
                continue;
            };
            let at = board.progress(oldest).at.clone();
            board.stop(oldest);
            if board.start(id, at.clone()).is_ok() {
                gave_way.push(oldest);
            } else {
                // Of another kind or with too little memory; what ran goes on.
                let _ = board.start(oldest, at);
                self.queue.push(id);
            }
        }
        self.queue.extend(gave_way);
    }
}

impl Policy for Gandiva {
    fn name(&self) -> String {
        "gandiva".into()
    }

    fn rhythm(&self) -> Rhythm {
        Rhythm::Every(self.slice)
    }

    fn arrived(&mut self, _board: &Board<'_>, id: JobId) {
        self.queue.push(id);
    }

    fn left(&mut self, id: JobId) {
        self.queue.retain(|known| *known != id);
    }

    fn decide(&mut self, board: &mut Board<'_>) {
        // GPUs and utilisation of those that found no place: who needs as much finds none either.
        let mut failed: Vec<(u32, f64)> = Vec::new();
        for id in std::mem::take(&mut self.queue) {
            let job = board.job(id);
            let (gpus, busy) = (job.gpus, job.utilisation());
            if failed.iter().any(|(g, u)| gpus >= *g && busy >= *u) || !self.place(board, id) {
                if !failed.iter().any(|(g, u)| gpus >= *g && busy >= *u) {
                    failed.push((gpus, busy));
                }
                self.queue.push(id);
            }
        }
        if !self.queue.is_empty() {
            self.turns(board);
        }
    }
}
