//! One job size, simulated.

use foretrain_core::{Bytes, Estimate, Nanos, Result};
use foretrain_cost::{CollectiveCall, Fabric, GroupPlacement};
use foretrain_graph::{CollectiveKind, Job, NodeId, RankClass, StepGraph};
use foretrain_sim::Timeline;
use rustc_hash::FxHashMap;

use super::PredictOptions;
use super::base::Base;
use super::cost::{Cost, Costs};
use super::gradients::{has_backward, insert_gradients};
use super::held_up::held_up;
use super::links::LinkUse;
use super::ranks::Class;
use super::slowdown::put_back;
use super::steady::{Sharing, settled, settled_timeline};
use crate::answer::HeldUp;
use crate::breakdown::{Breakdown, Owner, breakdown};

/// One job size, simulated with usual times of communication.
pub(super) struct Simulated {
    pub(super) gpus: u32,
    pub(super) replicas: u32,
    /// One class per simulated rank, the lead first.
    pub(super) job: Job,
    /// Communication of each class.
    pub(super) costs: Vec<Costs>,
    pub(super) timeline: Timeline,
    /// What its nodes do to others on their device.
    sharing: Sharing,
    /// Time between steps, without random lateness.
    settled: Nanos,
    pub(super) converged: bool,
    pub(super) breakdown: Breakdown,
    pub(super) held_up: Vec<HeldUp>,
    pub(super) straggling: Nanos,
}

impl Simulated {
    pub(super) fn step_time(&self) -> Nanos {
        self.settled + self.straggling
    }
}

impl Base<'_> {
    /// Simulates one job size with usual times of communication.
    pub(super) fn simulate(&self, gpus: u32, options: &PredictOptions) -> Result<Simulated> {
        let replicas = self.replicas(gpus)?;
        let positions = self.ranks.for_replicas(replicas);
        let (graphs, costs) = self.graphs(&positions, replicas, options)?;
        let each = (u64::from(gpus) / graphs.len() as u64).max(1);
        let classes = graphs.into_iter().map(|graph| RankClass { graph, multiplicity: each });
        let mut job = Job { classes: classes.collect() };
        set_communication(&mut job, &costs, |time| time.value);
        let sharing = self.sharing(&job, &costs, &positions);
        let (timeline, settled, converged) = settled_timeline(&job, &costs, sharing.clone())?;
        let class = &timeline.classes[0];
        let to = class.iteration_end.last().copied().unwrap_or(settled);
        let waits: FxHashMap<NodeId, Nanos> =
            costs[0].iter().map(|(id, cost)| (*id, cost.wait)).collect();
        let wait = |id: NodeId| waits.get(&id).copied().unwrap_or(Nanos::ZERO);
        let mut parts = breakdown(&job.classes[0].graph, class, to - settled, to, &wait);
        let busy = parts.time(|owner| {
            matches!(owner, Owner::Compute | Owner::LaunchBound | Owner::Copy | Owner::Input)
        });
        let straggling = self.noise.straggling(gpus, busy);
        parts.add(Owner::StragglerWait, straggling);
        let window = (to - settled, to);
        Ok(Simulated {
            held_up: held_up(&job, &timeline, window, &self.ranks, &positions),
            gpus,
            replicas,
            job,
            costs,
            timeline,
            sharing,
            settled,
            converged,
            breakdown: parts,
            straggling,
        })
    }

    /// The model of things that share a device, if one was asked for.
    fn sharing(&self, job: &Job, costs: &[Costs], positions: &[usize]) -> Sharing {
        let (model, device) = self.interference.as_ref()?;
        let recorded: Vec<_> = positions
            .iter()
            .map(|&at| self.is_same_device.then(|| self.ranks.classes[at].loads.clone()))
            .collect();
        put_back(model, *device, job, costs, &recorded)
    }

    /// The graphs that stand for a job of `replicas` replicas, and what their communication costs.
    fn graphs(
        &self,
        positions: &[usize],
        replicas: u32,
        options: &PredictOptions,
    ) -> Result<(Vec<StepGraph>, Vec<Costs>)> {
        let (mut graphs, mut all_costs) = (Vec::new(), Vec::new());
        for &position in positions {
            let class = &self.ranks.classes[position];
            let mut graph = class.graph.clone();
            let mut costs = self.machines(class).costs(&graph, replicas)?;
            costs.extend(self.inserted_gradients(class, &mut graph, replicas, options)?);
            graphs.push(graph);
            all_costs.push(costs);
        }
        Ok((graphs, all_costs))
    }

    /// Step time without random lateness when all communication takes as long as `pick` says.
    pub(super) fn settled_with(
        &self,
        simulated: &Simulated,
        pick: impl Fn(&Estimate<Nanos>) -> Nanos,
    ) -> Result<Nanos> {
        let changes =
            simulated.costs.iter().flatten().any(|(_, cost)| pick(&cost.time) != cost.time.value);
        if !changes {
            return Ok(simulated.settled);
        }
        let mut job = simulated.job.clone();
        set_communication(&mut job, &simulated.costs, pick);
        settled(&job, &simulated.costs, simulated.sharing.clone()).map(|(step, _)| step)
    }

    /// Gradient buckets where the recording has one replica and the size asked for more.
    fn inserted_gradients(
        &self,
        class: &Class,
        graph: &mut StepGraph,
        replicas: u32,
        options: &PredictOptions,
    ) -> Result<Costs> {
        if !class.layout.lacks_synchronisation() || replicas <= 1 || !has_backward(graph) {
            return Ok(Vec::new());
        }
        let placement = GroupPlacement::strided(replicas, class.layout.replica_size);
        let fabric = Fabric::for_group(self.cluster, &placement)?;
        let mut name = format!("data-parallel ({replicas} replicas)");
        if self.ranks.classes.len() > 1 {
            // Each rank of a replica synchronises its own part of the model.
            name = format!("{name} of rank {}", class.origin.rank);
        }
        let buckets = options.buckets;
        let inserted =
            insert_gradients(graph, name, replicas, &fabric, buckets, options.gradient_bytes)?;
        let cost = |id: NodeId, time| {
            let bytes = graph.node(id).bytes.unwrap_or(Bytes::new(0));
            let call = CollectiveCall::new(CollectiveKind::AllReduce, bytes);
            let links = LinkUse::of(&call, &fabric);
            Cost { time, wait: Nanos::ZERO, ratio: 1.0, ranks: replicas, links }
        };
        Ok(inserted.into_iter().map(|(id, time)| (id, cost(id, time))).collect())
    }
}

/// Sets the time of every communication node to what `pick` takes of its estimate.
fn set_communication(job: &mut Job, costs: &[Costs], pick: impl Fn(&Estimate<Nanos>) -> Nanos) {
    for (class, costs) in job.classes.iter_mut().zip(costs) {
        for (id, cost) in costs {
            class.graph.set_work(*id, pick(&cost.time) + cost.wait);
        }
    }
}
