//! The working form that passes rewrite: a step, its gradients, and the exchanges to be made.

use std::ops::Range;

use foretrain_core::{Bytes, InputError, Nanos, Result};
use foretrain_cost::primitives::Codec;
use foretrain_graph::{CollectiveKind, EdgeKind, NodeId, NodeSet, StepGraph};

use super::costs::{Scope, SyncCosts};
use super::find::{self, Found};
use crate::unroll::repeat;

/// A point of the step that something starts after or ends before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Anchor {
    /// The node.
    pub node: NodeId,
    /// Kind of the edge to or from it.
    pub kind: EdgeKind,
    /// In how many steps the other side lies (see [`Edge`](foretrain_graph::Edge)).
    pub distance: u16,
}

impl Anchor {
    /// The same point, `steps` further on.
    #[must_use]
    pub fn later(mut self, steps: u16) -> Self {
        self.distance = self.distance.saturating_add(steps);
        self
    }
}

/// A parameter's gradient, or several that become ready together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gradient {
    /// Its size as recorded.
    pub bytes: Bytes,
    /// When it is ready, ns after the start of the recorded step.
    pub at: Nanos,
    /// What must have ended before it can be sent.
    pub ready: Vec<Anchor>,
    /// What uses the parameters in the next forward pass.
    pub forward: Vec<Anchor>,
}

/// How an exchange is carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// As the collective library decides.
    #[default]
    Library,
    /// A ring over all replicas.
    Ring {
        /// Each step of the ring is an operation of its own.
        unrolled: bool,
    },
    /// A double binary tree between machines, a chain within.
    Tree,
    /// Reduce-scatter within each machine, the exchange between machines, all-gather within.
    Hierarchical,
    /// Push to servers, pull from them.
    Servers(ServerPlan),
}

/// Where servers are and what they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerPlan {
    /// Machines that only serve; 0 leaves all of it to the workers.
    pub own: u32,
    /// Whether workers serve too, in the share that lets all links finish together.
    pub colocated: bool,
    /// Whether replicas of one machine sum up before they push.
    pub local: bool,
}

/// A transfer of gradients or parameters among replicas.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchange {
    /// What is done.
    pub kind: CollectiveKind,
    /// The whole buffer before compression.
    pub bytes: Bytes,
    /// Whose gradients (or parameters): positions in [`Draft::gradients`].
    pub gradients: Range<usize>,
    /// Which micro-batch of the step it belongs to.
    pub micro_step: usize,
    /// Among whom.
    pub scope: Scope,
    /// What must have ended before.
    pub after: Vec<Anchor>,
    /// Other exchanges, by position, that must have ended before.
    pub follows: Vec<usize>,
    /// Added between them and the start: negotiation, a cycle's end.
    pub delay: Nanos,
    /// What starts only afterwards.
    pub before: Vec<Anchor>,
    /// Higher goes first where links are scheduled by priority.
    pub priority: i32,
    /// How it is shrunk.
    pub codec: Option<Codec>,
    /// How it is carried out.
    pub way: Way,
    /// Whether its result is copied to where it is used.
    pub copied: bool,
    /// What stands beside the name, for people: "part 2 of 4".
    pub label: String,
}

/// The step under construction.
pub struct Draft<'a> {
    /// The step. After changing its nodes call [`find`](Self::find).
    pub graph: &'a mut StepGraph,
    /// What the machines cost.
    pub costs: &'a dyn SyncCosts,
    /// Gradients in ready order, by micro-batch; every micro-batch completes all of them.
    pub gradients: Vec<Vec<Gradient>>,
    /// What is exchanged, in the order of issue. At first one all-reduce per gradient after the
    /// last micro-batch, which the optimiser waits for.
    pub exchanges: Vec<Exchange>,
    /// Recorded communication and its copies, where the step was repeated.
    pub(super) repeated: Vec<(NodeId, NodeId)>,
    /// How many training steps the graph holds.
    pub steps: u32,
    /// How many micro-batches a step has for each that was recorded.
    pub batches: u32,
    /// Whether all ranks issue exchanges in the order of the list. Else nobody knows the order that
    /// they agree on, and they are not simulated as waiting for each other.
    pub in_order: bool,
    /// Links run what has the highest priority first, with so many bytes in flight at most
    /// (`None`: one operation at a time).
    pub by_priority: bool,
    /// Credit of a priority scheduler.
    pub credit: Option<Bytes>,
    /// Where the optimiser begins and ends.
    pub optimiser: find::Optimiser,
    /// Whether gradients become ready on a device.
    pub on_device: bool,
    /// What a reader must know of what passes did or could not do.
    pub notes: Vec<String>,
}

impl<'a> Draft<'a> {
    /// Finds the gradients of a step and plans one all-reduce each.
    ///
    /// # Errors
    /// If the step shows no gradients.
    pub fn new(graph: &'a mut StepGraph, costs: &'a dyn SyncCosts) -> Result<Self> {
        let Found { gradients, optimiser, on_device } = find::find(graph);
        let mut draft = Self {
            graph,
            costs,
            gradients,
            exchanges: Vec::new(),
            repeated: Vec::new(),
            steps: 1,
            batches: 1,
            in_order: true,
            by_priority: false,
            credit: None,
            optimiser,
            on_device,
            notes: Vec::new(),
        };
        draft.plan()?;
        Ok(draft)
    }

    /// Finds gradients again and plans from the start, after the graph's nodes have changed.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn find(&mut self) -> Result<()> {
        let Found { gradients, optimiser, on_device } = find::find(self.graph);
        (self.gradients, self.optimiser, self.on_device) = (gradients, optimiser, on_device);
        self.plan()
    }

    /// How many micro-batches the step has.
    pub fn micro_steps(&self) -> usize {
        self.gradients.len()
    }

    /// The gradients of the last micro-batch, which completes them.
    pub fn last_gradients(&self) -> &[Gradient] {
        self.gradients.last().map_or(&[], Vec::as_slice)
    }

    /// What waits for gradients of a micro-batch that are synchronised at its end: the optimiser,
    /// or the next micro-batch.
    pub fn waiting_for(&self, micro_step: usize) -> Vec<Anchor> {
        if micro_step + 1 == self.micro_steps() {
            return self.optimiser.first.into_iter().collect();
        }
        find::after_backward(self.graph, &self.gradients[micro_step], self.on_device)
            .into_iter()
            .collect()
    }

    /// Repeats a part of the step and finds gradients again.
    ///
    /// # Errors
    /// If the graph would get too large, or as [`find`](Self::find).
    pub(super) fn repeat(&mut self, part: &NodeSet, times: u32) -> Result<()> {
        let copies = repeat(self.graph, part, times)?;
        let communicates = |id: NodeId| self.graph.kind(id).communicates();
        for nodes in &copies[1..] {
            let pairs = copies[0].iter().copied().zip(nodes.iter().copied());
            self.repeated.extend(pairs.filter(|(_, copy)| communicates(*copy)));
        }
        self.find()
    }

    /// The first work of a step.
    pub fn first_work(&self) -> Option<Anchor> {
        let kind = if self.on_device { EdgeKind::EventWait } else { EdgeKind::Data };
        let node = find::first_work(self.graph, self.on_device)?;
        Some(Anchor { node, kind, distance: 0 })
    }

    fn plan(&mut self) -> Result<()> {
        let last = self.micro_steps().checked_sub(1).ok_or_else(no_gradients)?;
        if self.gradients[last].is_empty() {
            return Err(no_gradients());
        }
        let before = self.waiting_for(last);
        let scope = self.costs.everyone();
        let exchange = |(i, gradient): (usize, &Gradient)| Exchange {
            kind: CollectiveKind::AllReduce,
            bytes: gradient.bytes,
            gradients: i..i + 1,
            micro_step: last,
            scope,
            after: gradient.ready.clone(),
            follows: Vec::new(),
            delay: Nanos::ZERO,
            before: before.clone(),
            priority: 0,
            codec: None,
            way: Way::Library,
            copied: false,
            label: String::new(),
        };
        self.exchanges = self.gradients[last].iter().enumerate().map(exchange).collect();
        Ok(())
    }
}

fn no_gradients() -> InputError {
    InputError::new("the step shows no gradient sizes to synchronise")
        .hint("record the trace with record_shapes=True, or give the gradient bytes by hand")
}
