//! A job with changes on top: only what differs from the shared ground is kept.

use std::sync::{Mutex, MutexGuard, PoisonError};

use foretrain_core::{Nanos, Result};
use foretrain_graph::{Job, NodeId, NodeKind, NodeSet, StepGraph};
use foretrain_sim::{Program, Workspace};

use crate::replay::compile;
use crate::scale::base::Base;
use crate::scale::cost::{Cost, Costs};
use crate::scale::ranks::Class;
use crate::scale::simulate::Draft;
use crate::scale::steady::repeats;

/// A drafted job and its layout for the engine, shared by all scenarios that do not change its
/// structure.
pub(super) struct Ground {
    pub(super) draft: Draft,
    pub(super) repeats: bool,
    program: Program,
    /// What scenarios have given back: to copy a layout, or to get memory, costs as much as a run.
    spare: Mutex<Vec<(Program, Workspace)>>,
}

impl Ground {
    pub(super) fn new(draft: Draft) -> Result<Self> {
        let program = compile(&draft.job, &draft.job.classes[0].graph.meta.source)?;
        let repeats = repeats(&draft.job);
        Ok(Self { draft, repeats, program, spare: Mutex::default() })
    }

    /// A copy of the layout, with any work, and memory to run it in.
    fn lend(&self) -> (Program, Workspace) {
        let spare = self.spare().pop();
        spare.unwrap_or_else(|| (self.program.clone(), Workspace::default()))
    }

    fn spare(&self) -> MutexGuard<'_, Vec<(Program, Workspace)>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job under change.
pub(super) struct Sketch<'a> {
    pub(super) base: &'a Base<'a>,
    pub(super) ground: &'a Ground,
    /// The job, if more than times has changed.
    job: Option<Job>,
    /// Work of each node of each class; that of communication follows from `costs`.
    pub(super) work: Vec<Vec<Nanos>>,
    /// Communication of each class, in order of the nodes.
    pub(super) costs: Vec<Costs>,
    /// Class of each simulated rank among the recorded ones.
    pub(super) positions: Vec<usize>,
    /// Whether ranks are late at random.
    pub(super) is_late: bool,
    /// Samples per replica over the recorded ones.
    pub(super) batch: f64,
    /// Relative spread of what a model rather than arithmetic changed.
    pub(super) spread: f64,
    /// What was changed, in words, one entry per change.
    pub(super) notes: Vec<String>,
}

impl<'a> Sketch<'a> {
    pub(super) fn new(base: &'a Base<'a>, ground: &'a Ground) -> Result<Self> {
        let job = &ground.draft.job;
        Ok(Self {
            base,
            ground,
            job: None,
            work: job.classes.iter().map(|class| class.graph.works().to_vec()).collect(),
            costs: base.costs_of(&ground.draft)?,
            positions: ground.draft.positions.clone(),
            is_late: true,
            batch: 1.0,
            spread: 0.0,
            notes: ground.draft.notes().to_vec(),
        })
    }

    pub(super) fn job(&self) -> &Job {
        self.job.as_ref().unwrap_or(&self.ground.draft.job)
    }

    /// The job, to change its structure. Nodes that are added need an entry in `work`.
    pub(super) fn job_mut(&mut self) -> &mut Job {
        self.job.get_or_insert_with(|| self.ground.draft.job.clone())
    }

    pub(super) fn graph(&self, class: usize) -> &StepGraph {
        &self.job().classes[class].graph
    }

    pub(super) fn classes(&self) -> std::ops::Range<usize> {
        0..self.positions.len()
    }

    /// The recorded rank that a class comes from.
    pub(super) fn origin(&self, class: usize) -> &Class {
        &self.base.ranks.classes[self.positions[class]]
    }

    pub(super) fn repeats(&self) -> bool {
        self.ground.repeats
    }

    /// The nodes of a class that are no communication and of which `test` holds.
    pub(super) fn own_work(
        &self,
        class: usize,
        test: impl Fn(NodeId, NodeKind) -> bool,
    ) -> Vec<NodeId> {
        let graph = self.graph(class);
        let is_own = |&id: &NodeId| {
            let kind = graph.kind(id);
            !kind.communicates() && test(id, kind)
        };
        graph.node_ids().filter(is_own).collect()
    }

    /// Gives nodes of a class new work.
    pub(super) fn rework(
        &mut self,
        class: usize,
        nodes: impl IntoIterator<Item = NodeId>,
        new: impl Fn(NodeId, Nanos) -> Nanos,
    ) {
        for id in nodes {
            let work = &mut self.work[class][id.index()];
            *work = new(id, *work).clamp_positive();
        }
    }

    /// Gives communication nodes of a set new costs.
    pub(super) fn recost(&mut self, class: usize, set: &NodeSet, new: impl Fn(&mut Cost)) {
        for (id, cost) in &mut self.costs[class] {
            if set.contains(*id) {
                new(cost);
            }
        }
    }

    /// Takes communication nodes out: they take no time and meet nobody, and what waits for them
    /// waits for what they waited for.
    pub(super) fn silence(&mut self, class: usize, set: &NodeSet) {
        self.costs[class].retain(|(id, _)| !set.contains(*id));
        let graph = &mut self.job_mut().classes[class].graph;
        let nodes: Vec<NodeId> = set.iter().filter(|&id| graph.kind(id).communicates()).collect();
        for &id in &nodes {
            let mut node = graph.node(id);
            (node.kind, node.group, node.collective) = (NodeKind::Mark, None, None);
            graph.set_node(id, node);
        }
        self.rework(class, nodes, |_, _| Nanos::ZERO);
    }

    /// The communication nodes of a class.
    pub(super) fn communication(&self, class: usize) -> NodeSet {
        let graph = self.graph(class);
        NodeSet::from_fn(graph.node_count(), |i| graph.kind(NodeId::from_index(i)).communicates())
    }

    /// The program of the job with its present work outside communication, and memory to
    /// run it in.
    pub(super) fn program(&self) -> Result<(Program, Workspace)> {
        let (mut program, workspace) = match &self.job {
            None => self.ground.lend(),
            Some(job) => (compile(job, &job.classes[0].graph.meta.source)?, Workspace::default()),
        };
        for (class, works) in self.work.iter().enumerate() {
            for (index, &work) in works.iter().enumerate() {
                program.set_work(class, NodeId::from_index(index), work);
            }
        }
        Ok((program, workspace))
    }

    /// Done with what [`program`](Self::program) gave.
    pub(super) fn give_back(&self, program: Program, workspace: Workspace) {
        if self.job.is_none() {
            self.ground.spare().push((program, workspace));
        }
    }
}
