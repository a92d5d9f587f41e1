//! Fully sharded data parallelism.

use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::{CollectiveKind, EdgeKind, NodeId, NodeSet, Phase};

use super::accumulate::each_micro_step;
use crate::strategy::costs::Scope;
use crate::strategy::draft::{Anchor, Draft, Exchange};
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{Pass, PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "fully-shard",
    stage: Stage::Shard,
    about: "Parameters, gradients and optimiser states are sharded. Units (the fused gradients) are gathered before their forward pass, again before their backward pass unless kept, and reduce-scattered after it, in every micro-batch. Hybrid sharding keeps that within each machine and all-reduces the shards between machines.",
    source: "PyTorch FSDP (arXiv 2304.11277)",
    parameters: &[
        Parameter::new(
            "prefetch",
            Kind::Count,
            "1",
            "Units gathered ahead of the one that computes.",
        ),
        Parameter::new(
            "reshard",
            Kind::Flag,
            "true",
            "Free parameters after the forward pass and gather them again.",
        ),
        Parameter::new("hybrid", Kind::Flag, "false", "Shard within each machine only (HSDP)."),
        Parameter::optional(
            "shards",
            Kind::Count,
            "Replicas that share one copy, where that is neither all nor a machine's. Fewer replicas share one among all.",
        ),
    ],
    build: &|values| {
        let hybrid = values.flag("hybrid");
        let shards = match values.count("shards") {
            Some(0) => return Err(InputError::new("shards = 0: expected at least one replica")),
            Some(_) if hybrid => {
                return Err(InputError::new(
                    "hybrid sharding has as many shards as a machine has replicas",
                )
                .hint("leave out either hybrid or shards"));
            }
            shards => shards.map(|shards| u32::try_from(shards).unwrap_or(u32::MAX)),
        };
        Ok(Box::new(Fsdp {
            prefetch: values.count("prefetch").unwrap_or(1) as usize,
            reshard: values.flag("reshard"),
            hybrid,
            shards,
        }))
    },
};

struct Fsdp {
    prefetch: usize,
    reshard: bool,
    hybrid: bool,
    shards: Option<u32>,
}

impl Pass for Fsdp {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        let replicas = draft.costs.replicas();
        let machine = draft.costs.replicas_per_node().min(replicas);
        let shards = match self.shards {
            Some(shards) => shards.min(replicas),
            None if self.hybrid => machine,
            None => replicas,
        };
        if !replicas.is_multiple_of(shards) {
            return Err(InputError::new(format!(
                "{replicas} replicas cannot be split into groups of {shards} that share one copy"
            ))
            .hint("choose a divisor of the number of replicas"));
        }
        shard(draft, &Sharding { shards, prefetch: self.prefetch, reshard: self.reshard })
    }
}

/// How parameters are sharded.
pub(super) struct Sharding {
    /// Replicas that share one copy.
    pub(super) shards: u32,
    /// Units gathered ahead.
    pub(super) prefetch: usize,
    /// Whether they are freed between forward and backward.
    pub(super) reshard: bool,
}

/// Plans gathers and reductions of every unit in every micro-batch.
pub(super) fn shard(draft: &mut Draft<'_>, sharding: &Sharding) -> Result<()> {
    let replicas = draft.costs.replicas();
    let within = Scope::contiguous(sharding.shards);
    each_micro_step(draft);
    // Gathers are planned ahead of what they follow.
    draft.in_order = false;
    let reductions = std::mem::take(&mut draft.exchanges);
    shard_optimiser(draft, sharding.shards);
    let order = Order::of(draft);
    let mut planned: Vec<Exchange> = Vec::new();
    for micro_step in 0..draft.micro_steps() {
        let units: Vec<&Exchange> =
            reductions.iter().filter(|one| one.micro_step == micro_step).collect();
        forward_gathers(draft, &order, &units, within, sharding, &mut planned);
        for (i, unit) in units.iter().enumerate() {
            if sharding.reshard && i > 0 {
                planned.extend(backward_gather(draft, &order, &units, i, within, sharding));
            }
            let scatter =
                Exchange { kind: CollectiveKind::ReduceScatter, scope: within, ..(*unit).clone() };
            if sharding.shards < replicas {
                // Shards are summed over the copies before anyone uses them.
                let copies = Scope { size: replicas / sharding.shards, stride: sharding.shards };
                let all = Exchange {
                    kind: CollectiveKind::AllReduce,
                    bytes: foretrain_core::Bytes::new(
                        unit.bytes.get().div_ceil(u64::from(sharding.shards)),
                    ),
                    scope: copies,
                    after: Vec::new(),
                    follows: vec![planned.len()],
                    label: "between copies".into(),
                    ..(*unit).clone()
                };
                planned.push(Exchange { before: Vec::new(), ..scatter });
                planned.push(all);
            } else {
                planned.push(scatter);
            }
        }
    }
    draft.exchanges = planned;
    Ok(())
}

/// Each replica updates its shard only.
pub(super) fn shard_optimiser(draft: &mut Draft<'_>, shards: u32) {
    let graph = &mut *draft.graph;
    let optimiser = NodeSet::from_fn(graph.node_count(), |row| {
        graph.node(NodeId::from_index(row)).phase == Phase::Optimizer
    });
    if optimiser.is_empty() {
        draft.notes.push("no optimiser work was recognised: none is sharded".into());
        return;
    }
    let part = 1.0 / f64::from(shards.max(1));
    // A factor between 0 and 1 is always accepted.
    let _ = graph.scale_work(&optimiser, part);
}

/// What comes right before each node on its own queue.
struct Order {
    before: Vec<Option<NodeId>>,
    after: Vec<Option<NodeId>>,
}

impl Order {
    fn of(draft: &Draft<'_>) -> Self {
        let count = draft.graph.node_count();
        let (mut before, mut after) = (vec![None; count], vec![None; count]);
        for edge in draft.graph.edges() {
            let orders = matches!(edge.kind, EdgeKind::StreamOrder | EdgeKind::ThreadOrder);
            let same = draft.graph.queue(edge.src) == draft.graph.queue(edge.dst);
            if orders && same && edge.distance == 0 {
                before[edge.dst.index()] = Some(edge.src);
                after[edge.src.index()] = Some(edge.dst);
            }
        }
        Self { before, after }
    }

    fn ended_before(&self, anchor: Anchor) -> Option<Anchor> {
        let node = *self.before.get(anchor.node.index())?;
        node.map(|node| Anchor { node, ..anchor })
    }
}

/// Units are gathered in forward order, the reverse of that in which they are reduced, each while
/// the `prefetch`-th before it computes.
fn forward_gathers(
    draft: &Draft<'_>,
    order: &Order,
    units: &[&Exchange],
    within: Scope,
    sharding: &Sharding,
    planned: &mut Vec<Exchange>,
) {
    let uses: Vec<Vec<Anchor>> = units.iter().rev().map(|unit| first_use(draft, unit)).collect();
    for (position, unit) in units.iter().rev().enumerate() {
        let start = position.checked_sub(sharding.prefetch).map(|i| &uses[i]);
        let mut after: Vec<Anchor> =
            start.into_iter().flatten().filter_map(|use_| order.ended_before(*use_)).collect();
        if position == 0 && unit.micro_step == 0 {
            // Parameters are those of the last update.
            after.extend(draft.optimiser.last.map(|anchor| anchor.later(1)));
        }
        planned.push(Exchange {
            kind: CollectiveKind::AllGather,
            scope: within,
            after,
            before: uses[position].clone(),
            delay: Nanos::ZERO,
            label: "forward".into(),
            ..(*unit).clone()
        });
    }
}

/// The first use of a unit in the forward pass.
fn first_use(draft: &Draft<'_>, unit: &Exchange) -> Vec<Anchor> {
    let gradients = &draft.gradients[unit.micro_step];
    let range = unit.gradients.start..unit.gradients.end.min(gradients.len());
    // Ready last is used first.
    gradients[range].last().map(|gradient| gradient.forward.clone()).unwrap_or_default()
}

/// A unit's backward pass begins where that of the unit before it has ended. The first unit of a
/// backward pass is still there from the forward pass.
fn backward_gather(
    draft: &Draft<'_>,
    order: &Order,
    units: &[&Exchange],
    position: usize,
    within: Scope,
    sharding: &Sharding,
) -> Option<Exchange> {
    let ready = |i: usize| {
        let unit = units[i];
        let gradients = &draft.gradients[unit.micro_step];
        gradients.get(unit.gradients.end.saturating_sub(1)).map(|gradient| &gradient.ready)
    };
    let last = |anchors: &Vec<Anchor>| anchors.last().copied();
    let end_of_previous = last(ready(position - 1)?)?;
    let begin = (*order.after.get(end_of_previous.node.index())?)?;
    let kind = if draft.on_device { EdgeKind::EventWait } else { EdgeKind::Data };
    let start = position.checked_sub(1 + sharding.prefetch).and_then(|i| last(ready(i)?));
    Some(Exchange {
        kind: CollectiveKind::AllGather,
        scope: within,
        after: start.into_iter().collect(),
        before: vec![Anchor { node: begin, kind, distance: 0 }],
        delay: Nanos::ZERO,
        label: "backward".into(),
        ..units[position].clone()
    })
}
