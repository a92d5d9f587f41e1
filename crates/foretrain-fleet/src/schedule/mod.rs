//! Playing a table of jobs on a cluster under a scheduling policy.
//!
//! Jobs hold remaining work and do it at a rate: that of their placement over what the jobs beside
//! them cost them. Whenever somebody comes or goes, the rates nearby are worked out anew; so a job
//! that was slowed down for an hour has lost exactly what it lost, however often its neighbours
//! changed. Equal input and seed give equal runs.

mod answer;
mod board;
mod cluster;
pub mod compare;
pub mod elastic;
mod engine;
mod exchange;
mod failures;
mod fragments;
mod gauge;
mod intake;
mod interleave;
mod job;
mod machines;
mod occupancy;
mod outcome;
mod placement;
pub mod policy;
mod slices;
mod speed;
mod state;

use foretrain_core::Nanos;
use foretrain_core::words::{counted, of_number};

pub use answer::Answer;
pub use board::{Board, Refused};
pub use cluster::{Cluster, GpuKind, Node};
pub use exchange::{DataParallel, Exchange};
pub use failures::Failures;
pub use fragments::Fragments;
pub use gauge::{Sample, Totals};
pub use intake::{Intake, KNOWN, Used};
pub use interleave::round as interleaved_round;
pub use job::{Job, JobId, Scaling, Share, Spread, Stages};
pub use machines::{cluster_of, describe, kind_of};
pub use occupancy::{Gpu, Occupancy};
pub use outcome::{Ending, JobOutcome, Outcome, Times};
pub use placement::Placement;
pub use policy::{Placer, Policy, Rhythm};
pub use slices::{Slot, exists as slice_exists};
pub use speed::{Colocated, ConstantSlowdown, Interference, Interleaved};
pub use state::{Phase, Progress};

/// What changes cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// From getting GPUs for the first time to the first work.
    pub start: Nanos,
    /// The same when a job resumes, moves or changes its size.
    pub restart: Nanos,
    /// Whether every decision that changes anything restarts all running jobs, as schedulers do that
    /// launch all trainers anew.
    pub relaunch_all: bool,
}

/// All that a run depends on beside the policy.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The machines.
    pub cluster: &'a Cluster,
    /// The jobs, in the order of submission: queues serve by number.
    pub jobs: &'a [Job],
    /// What jobs on one GPU do to each other.
    pub interference: &'a dyn Interference,
    /// What changes cost.
    pub costs: Costs,
    /// Machines that fail.
    pub failures: Option<Failures>,
    /// When the run is cut, if it is.
    pub until: Option<Nanos>,
    /// Of everything random.
    pub seed: u64,
}

impl<'a> Setup<'a> {
    /// Nothing costs anything, nothing fails.
    pub fn new(cluster: &'a Cluster, jobs: &'a [Job], interference: &'a dyn Interference) -> Self {
        let (costs, failures, until) = (Costs::default(), None, None);
        Self { cluster, jobs, interference, costs, failures, until, seed: 0 }
    }

    /// Why no GPUs of the cluster would ever do for a job, a lowercase fragment; `None` if some
    /// would.
    pub fn why_impossible(&self, job: &Job) -> Option<String> {
        let kinds = self.cluster.kinds().iter().zip(0u32..);
        let wanted: Vec<u32> = kinds
            .filter(|(_, number)| self.cluster.suits(job.kind, *number))
            .filter(|(kind, _)| kind.memory.is_none_or(|memory| job.memory <= memory))
            .filter(|(kind, _)| kind.sliced || !matches!(job.share, Share::Slice(_)))
            .map(|(_, number)| number)
            .collect();
        if wanted.is_empty() {
            return Some("no GPU of the kind or memory that it needs".into());
        }
        let of_kind = |kind: u32| {
            let nodes = self.cluster.nodes().iter().filter(move |node| node.kind == kind);
            nodes.map(|node| u64::from(node.gpus)).sum::<u64>()
        };
        let most = wanted.into_iter().map(of_kind).max().unwrap_or(0);
        let (least, _) = job.sizes();
        if job.gpus == 0 {
            return Some("it asks for no GPU".into());
        }
        if u64::from(least) > most {
            return Some(format!(
                "it asks for {} of one kind; there {} {most}",
                counted(least, "GPU"),
                of_number(most, "is", "are")
            ));
        }
        if !(job.work.is_finite() && job.work >= 0.0) {
            return Some("its duration is not known".into());
        }
        if let Share::Slice(sevenths) = job.share
            && !slice_exists(sevenths)
        {
            return Some(format!("there are no slices of {sevenths} sevenths"));
        }
        None
    }
}

/// Plays the jobs.
pub fn simulate(setup: &Setup<'_>, policy: &mut dyn Policy) -> Outcome {
    engine::Engine::new(setup).run(policy)
}
