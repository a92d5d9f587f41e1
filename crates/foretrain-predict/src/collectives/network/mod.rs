//! What-ifs that the closed form does not see: another topology, ranks out of order, groups that
//! communicate at once, and links that are slow or dead.
//!
//! Each that is asked is a step on top of those before it. A step is simulated flow by flow, and so
//! is the world before it; the ratio of the two scales the transfer that started as the closed
//! form's. Launch, hops and reduction stay, but for the hops of another topology.

mod culprit;
mod placed;
mod timed;

use foretrain_core::{Bandwidth, Estimate, Evidence, EvidenceKind, InputError, Nanos, Result};
use foretrain_hardware::Cluster;
use foretrain_hardware::topology::{Degradation, Shape, describe};

use self::placed::Placed;
use super::answer::Sweep;
use super::setting::{Layout, Place, WhatIf, situate};

/// What to ask of the network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkWhatIfs {
    /// Connect the nodes like this.
    pub topology: Option<Shape>,
    /// Take the job's nodes in an order drawn from this seed.
    pub scatter: Option<u64>,
    /// So many equal groups, interleaved over the same nodes, run the operation at once.
    pub concurrent: Option<u32>,
    /// What is slow or dead, with nodes counted from the job's first.
    pub degradations: Vec<Degradation>,
}

/// What a step changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// How the nodes are connected.
    Topology,
    /// The order of the nodes.
    Scatter,
    /// Groups that communicate at once.
    Concurrent,
    /// What is slow or dead.
    Degrade,
}

impl StepKind {
    /// The word for JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Topology => "topology",
            Self::Scatter => "scatter",
            Self::Concurrent => "concurrent",
            Self::Degrade => "degrade",
        }
    }
}

/// A what-if on top of those before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What it changes.
    pub kind: StepKind,
    /// The change in words.
    pub what: String,
    /// By size, as the points of the sweep.
    pub points: Vec<StepPoint>,
}

/// A size under a what-if.
#[derive(Clone, Debug, PartialEq)]
pub struct StepPoint {
    /// How long it takes; of several groups the slowest.
    pub time: Estimate<Nanos>,
    /// As nccl-tests defines it.
    pub bus_bandwidth: Bandwidth,
    /// Time over that of the cluster as it is.
    pub times: f64,
    /// The link that holds it back longest; `None` if the library alone does.
    pub bottleneck: Option<String>,
}

impl NetworkWhatIfs {
    /// Whether nothing is asked.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// Where the ranks sit: groups beside each other leave room for each other.
    ///
    /// # Errors
    /// If so many groups do not fit on a node, or what is asked contradicts itself.
    pub(super) fn layout(&self, cluster: &Cluster, asked: Layout) -> Result<Layout> {
        let Some(groups) = self.concurrent else { return Ok(asked) };
        let devices = cluster.devices_per_node().max(1);
        let uneven = |room: u32, of: String| {
            InputError::new(format!("{groups} groups at once do not fit evenly on {of}"))
                .hint(format!("take a number from 1 to {room} that divides {room}"))
        };
        match asked {
            _ if groups == 0 => Err(uneven(devices, format!("{devices} devices"))),
            Layout::Packed if devices.is_multiple_of(groups) => {
                Ok(Layout::PerNode(devices / groups))
            }
            Layout::Packed => Err(uneven(devices, format!("the {devices} devices of a node"))),
            Layout::PerNode(ranks) if ranks.saturating_mul(groups) > devices => Err(uneven(
                (devices / ranks.max(1)).max(1),
                format!("{devices} devices with {ranks} ranks of each"),
            )),
            Layout::PerNode(_) => Ok(asked),
            Layout::Strided(_) => {
                Err(InputError::new("a stride already has all its groups communicate at once")
                    .hint("ask for a number of concurrent groups or for a stride, not both"))
            }
        }
    }

    /// Adds the steps to sweeps of one number of ranks.
    ///
    /// # Errors
    /// If the network is too large or lacks what a what-if names, if ranks are cut off, and if the
    /// in-flight window is asked too, which links do not know.
    pub(super) fn apply(&self, job: Job<'_>, sweeps: &mut [Sweep]) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        if job.what_if.window.is_some() {
            return Err(InputError::new("a window and what-ifs of the network exclude each other")
                .hint("the window limits connections and not links; ask one after the other"));
        }
        let placed = Placed::new(job.cluster, job.ranks, job.layout)?;
        let stages = self.stages(job, &placed)?;
        for sweep in sweeps {
            timed::add_steps(job.cluster, &placed, &stages, sweep)?;
        }
        Ok(())
    }

    /// What is asked, each with all that comes before it.
    fn stages(&self, job: Job<'_>, healthy: &Placed) -> Result<Vec<Stage>> {
        let mut stages = Vec::new();
        let mut now = Stage {
            kind: StepKind::Topology,
            what: String::new(),
            cluster: job.cluster.clone(),
            place: None,
            placed: healthy.clone(),
            degradations: Vec::new(),
        };
        if let Some(shape) = &self.topology {
            now.cluster.fabric = shape.fabric(job.cluster, healthy.nodes())?;
            now.what = describe(&now.cluster.fabric);
            now.place = Some(situate(&now.cluster, job.ranks, job.layout, job.what_if)?);
            stages.push(now.clone());
        }
        if let Some(seed) = self.scatter {
            now.placed = now.placed.scattered(seed);
            now.kind = StepKind::Scatter;
            now.what = format!("nodes in random order, seed {seed}");
            stages.push(now.clone());
        }
        if let Some(groups) = self.concurrent {
            now.placed = now.placed.beside(groups);
            now.kind = StepKind::Concurrent;
            now.what = format!("{groups} groups at once on the same nodes");
            stages.push(now.clone());
        }
        if !self.degradations.is_empty() {
            now.degradations.clone_from(&self.degradations);
            now.kind = StepKind::Degrade;
            let all: Vec<String> = self.degradations.iter().map(ToString::to_string).collect();
            now.what = all.join("; ");
            stages.push(now);
        }
        Ok(stages)
    }
}

/// A number of ranks somewhere.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) ranks: u32,
    pub(super) layout: Layout,
    pub(super) what_if: WhatIf,
}

/// The world of a step.
#[derive(Clone)]
struct Stage {
    kind: StepKind,
    what: String,
    cluster: Cluster,
    /// What the closed form sees, if the topology is another.
    place: Option<Place>,
    placed: Placed,
    degradations: Vec<Degradation>,
}

/// What the steps rest on, in general.
pub(super) fn evidence(asked: &NetworkWhatIfs) -> impl Iterator<Item = Evidence> {
    let flows = (!asked.is_empty()).then(|| {
        let source = "max-min fair flows over every link, as a ratio to the cluster as it is";
        Evidence::new(EvidenceKind::Inferred, "what-ifs of the network", source, 0.0)
    });
    let topology = asked.topology.as_ref().map(|shape| {
        let source = format!("{shape}: what is not given has a usual value");
        Evidence::new(EvidenceKind::Assumed, "topology", source, 0.0)
    });
    [flows, topology].into_iter().flatten()
}
