//! From a changed job to its outcome, by the path that `predict` takes.

use foretrain_core::estimate::Z80;
use foretrain_core::{Estimate, InputError, Nanos, Result};
use foretrain_graph::{Job, NodeId};
use foretrain_sim::{Program, SimOptions, Timeline, Workspace};
use rustc_hash::FxHashMap;

use super::answer::Outcome;
use super::sketch::Sketch;
use crate::breakdown::Owner;
use crate::scale::simulate::{busy, per_step, steady_step, window};
use crate::scale::steady::{Sharing, engine_options, settle, settled, settled_step};

/// Work of a rank per step, ns: some steps of a hundred days each still fit the engine's clock.
const LONGEST_NS: f64 = 100.0 * 86_400e9;

/// How much longer communication takes than alone, where it does: by class and node.
type Lost = FxHashMap<(usize, NodeId), Nanos>;

impl Sketch<'_> {
    /// Simulates the job. `before` is the baseline's step time, to which a modelled change's
    /// uncertainty is in proportion; `None` for the baseline.
    pub(super) fn outcome(
        &self,
        before: Option<Nanos>,
        replica_batch: Option<f64>,
    ) -> Result<Outcome> {
        self.check_length()?;
        let (mut program, mut workspace) = self.program()?;
        let options = SimOptions {
            interference: self.sharing(),
            ..engine_options(self.job(), &self.costs, &self.ground.draft.inserted)
        };
        self.set_communication(&mut program, |time| time.value, &Lost::default());
        let source = &self.graph(0).meta.source;
        let (timeline, iteration, converged) =
            settle(&program, options.clone(), self.repeats(), source, &mut workspace)?;
        let steps = self.ground.draft.steps();
        let settled = per_step(iteration, steps);
        let (graph, class) = (self.graph(0), &timeline.classes[0]);
        let window = window(class, iteration, &self.ground.draft.inserted);
        let mut breakdown = steady_step(graph, class, &self.costs[0], window, steps);
        let gpus = self.ground.draft.gpus;
        let straggling = match self.is_late {
            true => self.base.noise.straggling(gpus, busy(&breakdown)),
            false => Nanos::ZERO,
        };
        breakdown.add(Owner::StragglerWait, straggling);
        let step = settled + straggling;
        let value = step.nanos().max(1) as f64;
        let communication = match self.is_uncertain() {
            true => {
                let steps = |end| per_step(end, steps) + straggling;
                let ends = self.ends(&mut program, options, timeline, &mut workspace)?;
                let off = ends.map(|end| (steps(end).nanos().max(1) as f64 / value).ln().abs());
                off[0].max(off[1]) / Z80
            }
            false => 0.0,
        };
        self.give_back(program, workspace);
        let straggling = 0.5 * straggling.nanos() as f64 / value;
        let saved = before.map_or(0.0, |before| (before - step).nanos() as f64 / value);
        let spread = self.base.spread.hypot(communication.hypot(straggling));
        let spread = spread.hypot(self.spread * saved.abs());
        let step_time = Estimate::with_relative_spread(step, spread);
        let replicas = self.ground.draft.replicas;
        let batch = self.batch * f64::from(self.ground.draft.batches());
        let work = f64::from(replicas) * batch * 1e9;
        let throughput: Estimate<f64> = step_time.map(|ns| work / ns.max(1.0));
        Ok(Outcome {
            gpus,
            nodes: self.base.cluster.nodes_for(u64::from(gpus))?,
            replicas,
            batch,
            step_time,
            throughput,
            samples_per_second: replica_batch.map(|batch| throughput.map(|rate| rate * batch)),
            breakdown,
            converged,
        })
    }

    /// Refuses a step that the engine's clock could not tell.
    fn check_length(&self) -> Result<()> {
        for (works, costs) in self.work.iter().zip(&self.costs) {
            let ns = |time: Nanos| time.nanos() as f64;
            let work: f64 = works.iter().copied().map(ns).sum();
            let talk: f64 = costs.iter().map(|(_, cost)| ns(cost.time.high) + ns(cost.wait)).sum();
            if work + talk > LONGEST_NS {
                return Err(InputError::new("a step would take more than a hundred days")
                    .hint("check the factors and times of the changes"));
            }
        }
        Ok(())
    }

    /// Step time of one class if it never waited for another.
    pub(super) fn step_alone(&self, class: usize) -> Result<Nanos> {
        let mut graph = self.graph(class).clone();
        for (index, &work) in self.work[class].iter().enumerate() {
            graph.set_work(NodeId::from_index(index), work);
        }
        for (id, cost) in &self.costs[class] {
            graph.set_work(*id, cost.time.value);
        }
        settled(&Job::uniform(graph, 1), &[]).map(|(step, _)| step)
    }

    /// What things on one device do to each other, with the work that they have after all changes.
    fn sharing(&self) -> Sharing {
        self.base.interference.as_ref()?;
        if self.costs.iter().all(Vec::is_empty) {
            return None;
        }
        let work = |class: usize, id: NodeId| self.work[class][id.index()];
        self.base.sharing(self.job(), work, &self.costs, &self.positions)
    }

    /// Whether any communication's time is.
    fn is_uncertain(&self) -> bool {
        let mut costs = self.costs.iter().flatten();
        costs.any(|(_, cost)| cost.time.low != cost.time.value || cost.time.high != cost.time.value)
    }

    /// The settled iteration with the least and the most time of communication. `timeline` is of
    /// its usual time under `options`.
    fn ends(
        &self,
        program: &mut Program,
        options: SimOptions,
        timeline: Timeline,
        workspace: &mut Workspace,
    ) -> Result<[Nanos; 2]> {
        let (options, lost) = match options.interference {
            Some(_) => (Self::frozen(options), self.freeze(program, &timeline)),
            None => (options, Lost::default()),
        };
        workspace.recycle(timeline);
        let source = &self.graph(0).meta.source;
        let mut at = |pick: fn(&Estimate<Nanos>) -> Nanos| {
            self.set_communication(program, pick, &lost);
            settled_step(program, options.clone(), self.repeats(), source, workspace)
        };
        Ok([at(|time| time.low)?, at(|time| time.high)?])
    }

    fn set_communication(
        &self,
        program: &mut Program,
        pick: impl Fn(&Estimate<Nanos>) -> Nanos,
        lost: &Lost,
    ) {
        for (class, costs) in self.costs.iter().enumerate() {
            for (id, cost) in costs {
                let alone = cost.time.value + cost.wait;
                let time = pick(&cost.time) + cost.wait;
                let lost = lost.get(&(class, *id)).copied().unwrap_or(Nanos::ZERO);
                // What is longer shows, beside nothing that could slow it down; what is shorter
                // has less beside it.
                let part = time.nanos() as f64 / alone.nanos().max(1) as f64;
                let time = time + lost.scale(part.min(1.0));
                program.set_work(class, *id, time);
            }
        }
    }

    /// Gives all nodes the time that they took in a settled step, and tells how much longer than
    /// alone communication took.
    ///
    /// The ends of the interval are of other times of communication. What things on one device
    /// do to each other then is taken to be as it is at the usual times: the interval is
    /// an estimate of spread, and this way a run costs a small part of one by the clock.
    fn freeze(&self, program: &mut Program, timeline: &Timeline) -> Lost {
        let mut lost = Lost::default();
        // Of a run that did not settle, the last step has nothing beside its end.
        let iteration = timeline.iterations.saturating_sub(2);
        for (class, times) in timeline.classes.iter().enumerate() {
            for id in self.graph(class).node_ids() {
                let row = times.row(iteration, id);
                let took = times.end[row] - times.start[row] - times.wait[row];
                let alone = program.work(class, id).unwrap_or(took);
                if took == alone {
                    continue;
                }
                if self.graph(class).kind(id).communicates() {
                    lost.insert((class, id), took - alone);
                } else {
                    program.set_work(class, id, took);
                }
            }
        }
        lost
    }

    /// The options for a job whose nodes take what they took in a run under `options`.
    fn frozen(options: SimOptions) -> SimOptions {
        SimOptions { interference: None, resources: Vec::new(), demands: Vec::new(), ..options }
    }
}
