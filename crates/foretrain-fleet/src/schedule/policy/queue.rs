//! One queue in some order, without taking GPUs from anyone.

use std::collections::{BTreeMap, BTreeSet};

use foretrain_core::Nanos;

use super::super::board::Board;
use super::super::fragments::Fragments;
use super::super::job::{Job, JobId, Share};
use super::{Placer, Policy, Rhythm};

/// Who is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Who came first.
    Arrival,
    /// Who is believed to take the least time.
    Shortest,
    /// Who is believed to take the least GPU-time.
    LeastService,
    /// Who asks for the fewest GPUs.
    Smallest,
}

/// First come, first served, and its like.
#[derive(Clone, Debug)]
pub struct Queue {
    order: Order,
    placer: Placer,
    /// Whether later jobs may go ahead where the first one does not fit.
    backfill: bool,
    rhythm: Rhythm,
    /// Waiting jobs by what they ask for: if one of a class finds no place, none of it does.
    classes: BTreeMap<Class, BTreeSet<(u64, JobId)>>,
    fragments: Option<Fragments>,
}

/// What a job asks for, as far as it decides whether there is room.
type Class = (u32, Share, Vec<u32>, u64);

impl Queue {
    /// A queue.
    pub fn new(order: Order, placer: Placer, backfill: bool) -> Self {
        let (rhythm, classes, fragments) = (Rhythm::Events, BTreeMap::new(), None);
        Self { order, placer, backfill, rhythm, classes, fragments }
    }

    /// The same, asked at intervals.
    #[must_use]
    pub fn every(mut self, interval: Nanos) -> Self {
        self.rhythm = Rhythm::Every(interval);
        self
    }

    fn key(&self, job: &Job) -> u64 {
        match self.order {
            // Numbers are in the order of the table, which need not be that of submission.
            Order::Arrival => u64::try_from(job.submit.nanos()).unwrap_or(0),
            Order::Shortest => sortable(job.expected),
            Order::LeastService => sortable(job.expected * f64::from(job.gpus)),
            Order::Smallest => u64::from(job.gpus),
        }
    }
}

/// Non-negative numbers sort as their bits do.
fn sortable(value: f64) -> u64 {
    if value > 0.0 { value.to_bits() } else { 0 }
}

fn class(board: &Board<'_>, job: &Job) -> Class {
    let kinds = board.cluster().kinds().iter().zip(0u32..);
    let fits = kinds.filter(|(kind, number)| {
        board.cluster().suits(job.kind, *number)
            && kind.memory.is_none_or(|memory| job.memory <= memory)
    });
    // Beside others memory counts as it is; alone on a GPU, only whether it fits.
    let beside = if job.share == Share::Whole { 0 } else { job.memory.get() };
    (job.gpus, job.share, fits.map(|(_, number)| number).collect(), beside)
}

impl Policy for Queue {
    fn name(&self) -> String {
        match (self.order, self.placer) {
            (Order::Arrival, Placer::LeastFragments) => "best-fit",
            (Order::Arrival, _) if self.backfill => "fifo+backfill",
            (Order::Arrival, _) => "fifo",
            (Order::Shortest, _) => "sjf",
            (Order::LeastService, _) => "ssf",
            (Order::Smallest, _) => "smallest",
        }
        .into()
    }

    fn rhythm(&self) -> Rhythm {
        self.rhythm
    }

    fn arrived(&mut self, board: &Board<'_>, id: JobId) {
        let job = board.job(id);
        let key = self.key(job);
        self.classes.entry(class(board, job)).or_default().insert((key, id));
    }

    fn decide(&mut self, board: &mut Board<'_>) {
        let fragments = fragments(&mut self.fragments, board);
        let mut full: BTreeSet<Class> = BTreeSet::new();
        loop {
            let heads = self.classes.iter().filter(|(class, _)| !full.contains(class));
            let heads = heads.filter_map(|(class, jobs)| Some((*jobs.first()?, class)));
            let Some(((key, id), class)) = heads.min() else { break };
            let class = class.clone();
            let placed = self.placer.find(board, id, fragments);
            if placed.is_some_and(|at| board.start(id, at).is_ok()) {
                if let Some(jobs) = self.classes.get_mut(&class) {
                    jobs.remove(&(key, id));
                    if jobs.is_empty() {
                        self.classes.remove(&class);
                    }
                }
            } else if self.backfill {
                full.insert(class);
            } else {
                break;
            }
        }
    }
}

/// What idle GPUs are worth to the jobs of the run, worked out once.
pub(super) fn fragments<'a>(known: &'a mut Option<Fragments>, board: &Board<'_>) -> &'a Fragments {
    known.get_or_insert_with(|| Fragments::new(board.jobs(), board.cluster().largest_node()))
}
