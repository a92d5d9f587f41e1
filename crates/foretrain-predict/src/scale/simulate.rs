//! One job size, simulated.

use foretrain_core::{Bytes, Estimate, Nanos, Result};
use foretrain_cost::{CollectiveCall, Fabric, GroupPlacement, collective_time};
use foretrain_graph::{CollectiveKind, Job, NodeId, RankClass, StepGraph};
use foretrain_sim::{ClassTimeline, Timeline};
use rustc_hash::FxHashMap;

use super::PredictOptions;
use super::base::Base;
use super::cost::{Cost, Costs, with_latency};
use super::gradients::{has_backward, insert_gradients};
use super::held_up::held_up;
use super::links::LinkUse;
use super::ranks::Class;
use super::steady::{settled, settled_timeline};
use crate::answer::HeldUp;
use crate::breakdown::{Breakdown, Owner, breakdown};

/// A job of one size, before its communication has times.
#[derive(Clone)]
pub(crate) struct Draft {
    pub(crate) gpus: u32,
    pub(crate) replicas: u32,
    /// The class of each simulated rank among the recorded ones, the lead first.
    pub(crate) positions: Vec<usize>,
    /// One class per simulated rank.
    pub(crate) job: Job,
    /// Per class, the gradient synchronisation that was not in the recording.
    pub(crate) inserted: Vec<Vec<NodeId>>,
}

/// One job size, simulated with usual times of communication.
pub(crate) struct Simulated {
    pub(crate) gpus: u32,
    pub(crate) replicas: u32,
    /// One class per simulated rank, the lead first.
    pub(crate) job: Job,
    /// Communication of each class.
    pub(crate) costs: Vec<Costs>,
    pub(crate) timeline: Timeline,
    /// Time between steps, without random lateness.
    settled: Nanos,
    pub(crate) converged: bool,
    pub(crate) breakdown: Breakdown,
    pub(crate) held_up: Vec<HeldUp>,
    pub(crate) straggling: Nanos,
}

impl Simulated {
    pub(crate) fn step_time(&self) -> Nanos {
        self.settled + self.straggling
    }
}

impl Base<'_> {
    /// Simulates one job size with usual times of communication.
    pub(crate) fn simulate(&self, gpus: u32, options: &PredictOptions) -> Result<Simulated> {
        let draft = self.draft(gpus, options)?;
        let costs = self.costs_of(&draft)?;
        let Draft { replicas, positions, mut job, .. } = draft;
        set_communication(&mut job, &costs, |time| time.value);
        let (timeline, settled, converged) = settled_timeline(&job, &costs)?;
        let (graph, class) = (&job.classes[0].graph, &timeline.classes[0]);
        let to = class.iteration_end.last().copied().unwrap_or(settled);
        let mut breakdown = last_step(graph, class, &costs[0], settled);
        let straggling = self.noise.straggling(gpus, busy(&breakdown));
        breakdown.add(Owner::StragglerWait, straggling);
        let window = (to - settled, to);
        Ok(Simulated {
            held_up: held_up(&job, &timeline, window, &self.ranks, &positions),
            gpus,
            replicas,
            job,
            costs,
            timeline,
            settled,
            converged,
            breakdown,
            straggling,
        })
    }

    /// The graphs that stand for a job of `gpus` devices.
    pub(crate) fn draft(&self, gpus: u32, options: &PredictOptions) -> Result<Draft> {
        let replicas = self.replicas(gpus)?;
        let positions = self.ranks.for_replicas(replicas);
        let multiplicity = (u64::from(gpus) / positions.len() as u64).max(1);
        let (mut classes, mut inserted) = (Vec::new(), Vec::new());
        for &position in &positions {
            let class = &self.ranks.classes[position];
            let mut graph = class.graph.clone();
            inserted.push(self.inserted_gradients(class, &mut graph, replicas, options)?);
            classes.push(RankClass { graph, multiplicity });
        }
        Ok(Draft { gpus, replicas, positions, job: Job { classes }, inserted })
    }

    /// What the communication of a draft costs on this cluster, in order of the nodes.
    pub(crate) fn costs_of(&self, draft: &Draft) -> Result<Vec<Costs>> {
        let classes = draft.positions.iter().zip(&draft.inserted).zip(&draft.job.classes);
        classes
            .map(|((&position, inserted), rank)| {
                let class = &self.ranks.classes[position];
                let mut costs = self.machines(class).costs(&class.graph, draft.replicas)?;
                costs.extend(self.gradient_costs(class, &rank.graph, inserted, draft.replicas)?);
                Ok(costs)
            })
            .collect()
    }

    /// Step time without random lateness when all communication takes as long as `pick` says.
    pub(crate) fn settled_with(
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
        settled(&job, &simulated.costs).map(|(step, _)| step)
    }

    /// Gradient buckets where the recording has one replica and the size asked for more.
    fn inserted_gradients(
        &self,
        class: &Class,
        graph: &mut StepGraph,
        replicas: u32,
        options: &PredictOptions,
    ) -> Result<Vec<NodeId>> {
        if !class.layout.lacks_synchronisation() || replicas <= 1 || !has_backward(graph) {
            return Ok(Vec::new());
        }
        let mut name = format!("data-parallel ({replicas} replicas)");
        if self.ranks.classes.len() > 1 {
            // Each rank of a replica synchronises its own part of the model.
            name = format!("{name} of rank {}", class.origin.rank);
        }
        insert_gradients(graph, name, replicas, options.buckets, options.gradient_bytes)
    }

    fn gradient_costs(
        &self,
        class: &Class,
        graph: &StepGraph,
        inserted: &[NodeId],
        replicas: u32,
    ) -> Result<Costs> {
        if inserted.is_empty() {
            return Ok(Vec::new());
        }
        let fabric = self.gradient_fabric(class, replicas)?;
        let cost = |&id: &NodeId| {
            let bytes = graph.node(id).bytes.unwrap_or(Bytes::new(0));
            let call = CollectiveCall::new(CollectiveKind::AllReduce, bytes);
            let links = LinkUse::of(&call, &fabric);
            let time = collective_time(&call, &fabric).time;
            let time = with_latency(time, &call, &fabric, self.latency);
            (id, Cost { time, wait: Nanos::ZERO, ratio: 1.0, ranks: replicas, links })
        };
        Ok(inserted.iter().map(cost).collect())
    }

    /// The fabric under gradient synchronisation that was not in the recording.
    pub(crate) fn gradient_fabric(&self, class: &Class, replicas: u32) -> Result<Fabric> {
        let placement = GroupPlacement::strided(replicas, class.layout.replica_size);
        Fabric::for_group(self.cluster, &placement)
    }
}

/// Who owns the last step of a class of a timeline, without random lateness.
pub(crate) fn last_step(
    graph: &StepGraph,
    class: &ClassTimeline,
    costs: &Costs,
    step: Nanos,
) -> Breakdown {
    let to = class.iteration_end.last().copied().unwrap_or(step);
    let waits: FxHashMap<NodeId, Nanos> = costs.iter().map(|(id, cost)| (*id, cost.wait)).collect();
    let wait = |id: NodeId| waits.get(&id).copied().unwrap_or(Nanos::ZERO);
    breakdown(graph, class, to - step, to, &wait)
}

/// The part of a step in which a rank does something of its own.
pub(crate) fn busy(parts: &Breakdown) -> Nanos {
    parts.time(|owner| {
        matches!(owner, Owner::Compute | Owner::LaunchBound | Owner::Copy | Owner::Input)
    })
}

/// Sets the time of every communication node to what `pick` takes of its estimate.
fn set_communication(job: &mut Job, costs: &[Costs], pick: impl Fn(&Estimate<Nanos>) -> Nanos) {
    for (class, costs) in job.classes.iter_mut().zip(costs) {
        for (id, cost) in costs {
            class.graph.set_work(*id, pick(&cost.time) + cost.wait);
        }
    }
}
