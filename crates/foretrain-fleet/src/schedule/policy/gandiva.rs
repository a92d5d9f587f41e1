//! Packing and time slicing (Gandiva).

use foretrain_core::Nanos;

use super::super::board::Board;
use super::super::fragments::Fragments;
use super::super::job::{JobId, Share};
use super::super::placement::Placement;
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
        // Parts and slices share GPUs among themselves only.
        let Some(at) = self.packer.find(board, id) else { return false };
        let wanted = board.job(id).utilisation();
        let room = |gpu: &u32| board.occupancy().gpu(*gpu).utilisation + wanted <= 1.0;
        at.gpus.iter().all(room) && board.start(id, at).is_ok()
    }

    /// Gives those that wait the GPUs of jobs that ran for a slice, those that ran longest first: of one
    /// as large if there is one, else of a larger one, else of as many smaller ones as it takes.
    fn turns(&mut self, board: &mut Board<'_>) {
        let now = board.now();
        let mut ran: Vec<JobId> = board.running().iter().copied().collect();
        // Those that were started just now have no time yet, or an old one: they waited.
        ran.retain(|id| {
            let start = board.progress(*id).last_start.filter(|_| board.was_running(*id));
            start.is_some_and(|start| now - start >= self.slice)
        });
        ran.sort_by_key(|id| (board.progress(*id).last_start, *id));
        let mut gave_way = Vec::new();
        for id in std::mem::take(&mut self.queue) {
            let gone = if ran.is_empty() { None } else { self.turn(board, id, &ran) };
            match gone {
                Some(gone) => {
                    ran.retain(|other| !gone.contains(other));
                    gave_way.extend(gone);
                }
                None => self.queue.push(id),
            }
        }
        self.queue.extend(gave_way);
    }

    /// Starts a job in the place of others; those that gave way, if that worked.
    fn turn(&mut self, board: &mut Board<'_>, id: JobId, ran: &[JobId]) -> Option<Vec<JobId>> {
        let (wanted, share) = (board.job(id).gpus, board.job(id).share);
        let size = |other: &&JobId| board.job(**other).gpus;
        // Where a slice was there is no room for a whole GPU.
        let alike = |other: &&JobId| match (board.job(**other).share, share) {
            (Share::Part(there), Share::Part(part)) => there >= part,
            (there, share) => there == share,
        };
        let as_large = ran.iter().find(|other| size(other) == wanted && alike(other));
        let one = as_large.or_else(|| ran.iter().find(|other| size(other) >= wanted));
        let mut gone: Vec<JobId> = Vec::new();
        match one {
            Some(one) => gone.push(*one),
            None => {
                let mut freed = board.occupancy().idle_total();
                for other in ran {
                    if freed >= wanted {
                        break;
                    }
                    freed += board.job(*other).gpus;
                    gone.push(*other);
                }
                if freed < wanted {
                    return None;
                }
            }
        }
        let places: Vec<Placement> =
            gone.iter().map(|other| board.progress(*other).at.clone()).collect();
        gone.iter().for_each(|other| board.stop(*other));
        let fragments = fragments(&mut self.fragments, board);
        let at = match as_large {
            Some(_) => places.first().cloned(),
            None => Placer::Consolidated.find(board, id, fragments),
        };
        if at.is_some_and(|at| board.start(id, at).is_ok()) {
            return Some(gone);
        }
        // Of another kind, or scattered over nodes: what ran goes on.
        for (other, at) in gone.into_iter().zip(places) {
            let _ = board.start(other, at);
        }
        None
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
