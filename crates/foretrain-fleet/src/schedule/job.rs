//! What is to be scheduled.

use std::fmt::Debug;
use std::sync::Arc;

use foretrain_core::{Bytes, Nanos};
use foretrain_cost::interference::colocation::JobLoad;

/// A job's number: its place in the list of jobs.
pub type JobId = u32;

/// How much of each of its GPUs a job asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Share {
    /// All of it, for itself alone unless a policy packs jobs.
    Whole,
    /// So many thousandths of one GPU, beside others whose parts add up to no more than a whole.
    Part(u16),
    /// An isolated slice with so many sevenths of one GPU's compute units (1, 2, 3, 4 or 7).
    Slice(u8),
}

/// How fast a job is when it can run at several sizes.
///
/// Work is counted in units of the implementor's choice; a job's `work` and its speeds have the
/// same.
pub trait Scaling: Debug + Send + Sync {
    /// Units of work per second on `gpus` GPUs on `nodes` nodes, when `done` units are done.
    fn speed(&self, gpus: u32, nodes: u32, done: f64) -> f64;

    /// How much work is done when the speed at one placement next changes by itself, as when
    /// statistical efficiency moves with progress. `None` if it does not.
    fn changes_after(&self, done: f64) -> Option<f64> {
        let _ = done;
        None
    }

    /// Fewest GPUs that will do.
    fn least_gpus(&self) -> u32 {
        1
    }

    /// Most GPUs that can be used.
    fn most_gpus(&self) -> u32;

    /// Whether a scheduler would learn its speeds while the job runs, so that it has no reason to
    /// believe in sizes far beyond those that it tried.
    fn is_learnt(&self) -> bool {
        false
    }

    /// The speed on GPUs that are placed just so, by how many of them each node holds. Where
    /// placements were measured this is finer than [`Scaling::speed`], which a policy can know.
    fn speed_placed(&self, per_node: &[u32], done: f64) -> f64 {
        self.speed(per_node.iter().sum(), per_node.len() as u32, done)
    }
}

/// Times of a step's parts on different resources, which other jobs may use meanwhile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stages {
    /// Storage and CPU: reading and preparing input.
    pub input: Nanos,
    /// GPU.
    pub compute: Nanos,
    /// Network.
    pub network: Nanos,
    /// A whole step when the job runs alone; parts may overlap within it.
    pub step: Nanos,
}

/// One job.
#[derive(Clone, Debug)]
pub struct Job {
    /// As its table calls it.
    pub name: String,
    /// When it is submitted, from the beginning of the run.
    pub submit: Nanos,
    /// GPUs it asks for, all at once (gang).
    pub gpus: u32,
    /// How much of each.
    pub share: Share,
    /// What there is to do: seconds at the size asked for, placed well and alone, or units of its
    /// `scaling`.
    pub work: f64,
    /// Seconds that the scheduler believes the job takes at the size asked for.
    pub expected: f64,
    /// The kind of GPU it needs, as an index into the cluster's kinds; any if `None`.
    pub kind: Option<u32>,
    /// Memory that it takes on each GPU; zero where it is not known.
    pub memory: Bytes,
    /// How it uses a GPU when alone there.
    pub load: Option<JobLoad>,
    /// Highest utilisation seen, 0 to 1.
    pub peak: f64,
    /// Parts of a step, if they are known.
    pub stages: Option<Stages>,
    /// How many times longer it takes on more than one node, and across racks, than placed well.
    pub spread: Spread,
    /// Speeds at other sizes. A job without them runs at the size it asks for.
    pub scaling: Option<Arc<dyn Scaling>>,
}

/// What it costs a job that its GPUs are apart, as factors on its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// On more nodes than needed.
    pub nodes: f64,
    /// In more racks than needed.
    pub racks: f64,
}

impl Default for Spread {
    fn default() -> Self {
        Self { nodes: 1.0, racks: 1.0 }
    }
}

impl Job {
    /// Fewest and most GPUs that it can run on.
    pub fn sizes(&self) -> (u32, u32) {
        let fixed = (self.gpus, self.gpus);
        self.scaling.as_ref().map_or(fixed, |scaling| (scaling.least_gpus(), scaling.most_gpus()))
    }

    /// A job that takes `duration` on `gpus` whole GPUs, of which nothing else is known.
    pub fn new(name: impl Into<String>, submit: Nanos, gpus: u32, duration: Nanos) -> Self {
        let seconds = duration.secs_f64();
        Self {
            name: name.into(),
            submit,
            gpus,
            share: Share::Whole,
            work: seconds,
            expected: seconds,
            kind: None,
            memory: Bytes::ZERO,
            load: None,
            peak: 1.0,
            stages: None,
            spread: Spread::default(),
            scaling: None,
        }
    }

    /// How much of each of its GPUs it asks for, 0 to 1.
    pub fn part(&self) -> f64 {
        match self.share {
            Share::Whole => 1.0,
            Share::Part(thousandths) => f64::from(thousandths) / 1e3,
            Share::Slice(sevenths) => f64::from(sevenths) / 7.0,
        }
    }

    /// Mean utilisation of its GPUs when alone, 0 to 1; on a slice, that of the GPU it is cut from. A
    /// job of which it is not known counts as using all that it asked for.
    pub fn utilisation(&self) -> f64 {
        let asked = self.part();
        match (self.load, self.share) {
            (Some(load), Share::Part(_) | Share::Slice(_)) => load.busy.clamp(0.0, asked),
            (Some(load), Share::Whole) => load.busy.clamp(0.0, 1.0),
            (None, _) => asked,
        }
    }

    /// How it uses a GPU when alone. Without a known step all jobs launch alike, so that the
    /// lengths of their kernels are as their utilisations.
    pub(super) fn load(&self) -> JobLoad {
        let second = Nanos::from_millis(1_000);
        self.load.unwrap_or(JobLoad { step: second, busy: self.utilisation(), launch: second })
    }
}
