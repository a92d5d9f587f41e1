//! One job size, simulated.

use foretrain_core::{Estimate, Nanos, Result};
use foretrain_graph::{Job, NodeId, RankClass, StepGraph};
use foretrain_rewrite::strategy::Applied;
use foretrain_sim::{ClassTimeline, Timeline};
use rustc_hash::FxHashMap;

use super::PredictOptions;
use super::base::Base;
use super::cost::{Cost, Costs};
use super::held_up::held_up;
use super::slowdown::put_back;
use super::steady::{Sharing, settled_timeline};
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
    pub(crate) inserted: Vec<Applied>,
}

impl Draft {
    /// Training steps that one pass over the graphs makes.
    pub(crate) fn steps(&self) -> u32 {
        steps(&self.inserted)
    }

    /// Micro-batches per step for each that was recorded.
    pub(crate) fn batches(&self) -> u32 {
        batches(&self.inserted)
    }

    /// What strategies had to say.
    pub(crate) fn notes(&self) -> &[String] {
        self.inserted.first().map_or(&[], |applied| &applied.notes)
    }
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
    /// What its nodes do to others on their device.
    sharing: Sharing,
    /// Time between steps, without random lateness.
    settled: Nanos,
    pub(crate) converged: bool,
    pub(crate) breakdown: Breakdown,
    pub(crate) held_up: Vec<HeldUp>,
    pub(crate) straggling: Nanos,
    /// Per class, what was inserted.
    inserted: Vec<Applied>,
}

impl Simulated {
    pub(crate) fn step_time(&self) -> Nanos {
        self.settled + self.straggling
    }

    /// Micro-batches per step for each that was recorded.
    pub(crate) fn batches(&self) -> u32 {
        batches(&self.inserted)
    }

    /// What strategies had to say.
    pub(crate) fn notes(&self) -> &[String] {
        self.inserted.first().map_or(&[], |applied| &applied.notes)
    }
}

impl Base<'_> {
    /// Simulates one job size with usual times of communication.
    pub(crate) fn simulate(&self, gpus: u32, options: &PredictOptions) -> Result<Simulated> {
        let draft = self.draft(gpus, options)?;
        let costs = self.costs_of(&draft)?;
        let steps = draft.steps();
        let Draft { replicas, positions, mut job, inserted, .. } = draft;
        set_communication(&mut job, &costs, |time| time.value);
        let work = |class: usize, id| job.classes[class].graph.work(id);
        let sharing = self.sharing(&job, work, &costs, &positions);
        let (timeline, iteration, converged) =
            settled_timeline(&job, &costs, &inserted, sharing.clone())?;
        let (graph, class) = (&job.classes[0].graph, &timeline.classes[0]);
        let settled = per_step(iteration, steps);
        let window = window(class, iteration, &inserted);
        let mut breakdown = steady_step(graph, class, &costs[0], window, steps);
        let straggling = self.noise.straggling(gpus, busy(&breakdown));
        breakdown.add(Owner::StragglerWait, straggling);
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
            breakdown,
            straggling,
            inserted,
        })
    }

    /// The model of things that share a device, if one was asked for.
    pub(crate) fn sharing(
        &self,
        job: &Job,
        work: impl Fn(usize, NodeId) -> Nanos,
        costs: &[Costs],
        positions: &[usize],
    ) -> Sharing {
        let (model, device) = self.interference.as_ref()?;
        let recorded = positions
            .iter()
            .map(|&at| self.is_same_device.then(|| self.ranks.classes[at].loads.clone()))
            .collect();
        put_back(model, *device, job, work, costs, recorded)
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
            inserted.push(self.synchronise(class, &mut graph, replicas, options)?);
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
                // What a strategy took out is a mark now, what it repeats costs as the first time.
                costs.retain(|(id, _)| rank.graph.kind(*id).communicates());
                let known: FxHashMap<NodeId, Cost> = costs.iter().copied().collect();
                let again = inserted.repeated.iter();
                costs.extend(again.filter_map(|(id, copy)| Some((*copy, *known.get(id)?))));
                costs.extend(self.synchronised_costs(class, inserted, draft.replicas)?);
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
        let inserted = &simulated.inserted;
        let (_, iteration, _) =
            settled_timeline(&job, &simulated.costs, inserted, simulated.sharing.clone())?;
        Ok(per_step(iteration, steps(inserted)))
    }
}

/// The last iteration beside which all that usually runs beside one does: exchanges that outlast
/// their step have none to overlap with at the end of a run.
pub(crate) fn window(
    class: &ClassTimeline,
    iteration: Nanos,
    inserted: &[Applied],
) -> (Nanos, Nanos) {
    let overhang = inserted.iter().map(|applied| applied.overhang).max().unwrap_or(0) as usize;
    let ends = &class.iteration_end;
    let last = ends.len().saturating_sub(1 + overhang).max(ends.len().min(2).saturating_sub(1));
    let to = ends.get(last).copied().unwrap_or(iteration);
    (to - iteration, to)
}

/// Who owns a step of a class of a timeline, without random lateness, by a window of an iteration
/// that makes `steps` of them.
pub(crate) fn steady_step(
    graph: &StepGraph,
    class: &ClassTimeline,
    costs: &Costs,
    (from, to): (Nanos, Nanos),
    steps: u32,
) -> Breakdown {
    let waits: FxHashMap<NodeId, Nanos> = costs.iter().map(|(id, cost)| (*id, cost.wait)).collect();
    let wait = |id: NodeId| waits.get(&id).copied().unwrap_or(Nanos::ZERO);
    breakdown(graph, class, from, to, &wait).per_step(steps)
}

fn steps(inserted: &[Applied]) -> u32 {
    inserted.iter().map(|applied| applied.steps).max().unwrap_or(1).max(1)
}

fn batches(inserted: &[Applied]) -> u32 {
    inserted.iter().map(|applied| applied.batches).max().unwrap_or(1).max(1)
}

/// The time of one of the `steps` that an iteration makes.
pub(crate) fn per_step(iteration: Nanos, steps: u32) -> Nanos {
    if steps > 1 { iteration.scale(1.0 / f64::from(steps)) } else { iteration }
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
