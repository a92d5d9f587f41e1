//! What each communication node costs at one job size.

use std::collections::hash_map::Entry;

use foretrain_core::{Estimate, Nanos, Result};
use foretrain_cost::own::OwnCosts;
use foretrain_cost::{CollectiveCall, Fabric, Rescaled, collective_time, host_time, rescale};
use foretrain_graph::{CollectiveKind, GroupId, NodeId, StepGraph};
use foretrain_hardware::Cluster;
use foretrain_rewrite::{CollectiveNode, collectives};
use rustc_hash::FxHashMap;

use super::contention::host_use;
use super::layout::Layout;
use super::links::LinkUse;
use crate::answer::ScaledCollective;
use crate::roles::Role;
use crate::transfer::Transfers;

/// The cost of one communication node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    /// Transfer.
    pub(crate) time: Estimate<Nanos>,
    /// Waiting that was recorded with it.
    pub(crate) wait: Nanos,
    /// New over recorded transfer by the model; 1 where it was not scaled.
    pub(crate) ratio: f64,
    /// Members of the group at this size.
    pub(crate) ranks: u32,
    /// What it takes of its rank's links.
    pub(crate) links: LinkUse,
    /// What it takes of its rank's cores, 0 to 1, beyond what it took where it was recorded: host
    /// work beside it contains that already.
    pub(crate) host: f64,
}

/// The communication nodes of a step and what each costs.
pub(crate) type Costs = Vec<(NodeId, Cost)>;

/// Where communication was recorded and where it is asked for.
pub(crate) struct Machines<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) transfers: &'a Transfers,
    /// Part of each recorded transfer that is not due to others on the same links.
    pub(crate) alone: &'a FxHashMap<NodeId, f64>,
    pub(crate) from: Option<&'a Cluster>,
    pub(crate) to: &'a Cluster,
    /// Factor on launch and hops.
    pub(crate) latency: f64,
    /// Cores that all threads of a rank share, if that matters.
    pub(crate) cores: Option<f64>,
    /// Times that the user knows better.
    pub(crate) costs: Option<&'a dyn OwnCosts>,
}

/// The fabric under one group.
struct Fabrics {
    /// Members where it was recorded.
    recorded: u32,
    from: Option<Fabric>,
    to: Option<Fabric>,
}

impl Machines<'_> {
    /// Time of every recorded communication node with `replicas` replicas.
    pub(crate) fn costs(&self, graph: &StepGraph, replicas: u32) -> Result<Costs> {
        let mut fabrics: FxHashMap<Option<GroupId>, Fabrics> = FxHashMap::default();
        let mut costs = Vec::new();
        for node in collectives(graph) {
            let fabrics = match fabrics.entry(node.group) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(self.fabrics(graph, &node, replicas)?),
            };
            costs.push((node.id, self.cost(&node, fabrics)));
        }
        Ok(costs)
    }

    /// Measured first: on the fabric it was measured on a transfer keeps its time, on another it
    /// is scaled by the model's ratio; only where neither is possible does the model speak alone.
    fn cost(&self, node: &CollectiveNode, fabrics: &Fabrics) -> Cost {
        let transfer = self.transfers.of(node.id, node.work);
        let wait = (node.work - transfer).clamp_positive();
        let transfer = transfer.scale(self.alone.get(&node.id).copied().unwrap_or(1.0));
        let ranks = fabrics.to.as_ref().map_or(0, |to| to.ranks);
        if ranks == 1 {
            // A group of one member neither moves data nor waits.
            let time = Estimate::exact(Nanos::ZERO);
            let links = LinkUse::default();
            return Cost { time, wait: Nanos::ZERO, ratio: 0.0, ranks, links, host: 0.0 };
        }
        let call = call(node);
        let links = match (&call, &fabrics.to) {
            (Some(call), Some(to)) => LinkUse::of(call, to),
            _ => LinkUse::default(),
        };
        let (mut time, ratio) = match (&call, &fabrics.from, &fabrics.to) {
            (Some(call), Some(from), Some(to)) => {
                let Rescaled { time, ratio, .. } = rescale(transfer, call, from, to);
                (time, ratio)
            }
            // Where it was recorded is not known, so its time says nothing about this cluster.
            (Some(call), None, Some(to)) => (collective_time(call, to).time, 1.0),
            _ => (Estimate::with_relative_spread(transfer, 0.3), 1.0),
        };
        if let (Some(call), Some(to)) = (&call, &fabrics.to) {
            time = with_latency(time, call, to, self.latency);
            time = owned(time, call, to, self.costs).unwrap_or(time);
        }
        let host = match (&call, &fabrics.to, fabrics.recorded_host(call.as_ref()), self.cores) {
            (Some(call), Some(to), Some(known), Some(cores)) => {
                host_use(host_time(call, to) - known, time.value, cores)
            }
            _ => 0.0,
        };
        Cost { time, wait, ratio, ranks, links, host }
    }

    /// What each communication node took of its rank's links where it was recorded, if that is
    /// known.
    pub(crate) fn recorded_uses(&self, graph: &StepGraph) -> Result<FxHashMap<NodeId, LinkUse>> {
        let mut fabrics: FxHashMap<GroupId, Fabric> = FxHashMap::default();
        let mut uses = FxHashMap::default();
        for node in collectives(graph) {
            let (Some(from), Some(group), Some(call)) = (self.from, node.group, call(&node)) else {
                continue;
            };
            let fabric = match fabrics.entry(group) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    let (recorded, _) = self.layout.placements(graph, group.index(), 1);
                    new.insert(Fabric::for_group(from, &recorded)?)
                }
            };
            uses.insert(node.id, LinkUse::of(&call, fabric));
        }
        Ok(uses)
    }

    fn fabrics(&self, graph: &StepGraph, node: &CollectiveNode, replicas: u32) -> Result<Fabrics> {
        let Some(group) = node.group else {
            return Ok(Fabrics { recorded: 0, from: None, to: None });
        };
        let (recorded, scaled) = self.layout.placements(graph, group.index(), replicas);
        let from = self.from.map(|from| Fabric::for_group(from, &recorded)).transpose()?;
        let to = Fabric::for_group(self.to, &scaled)?;
        Ok(Fabrics { recorded: recorded.ranks(), from, to: Some(to) })
    }

    /// The communication of a step, equal operations together, the most expensive first.
    pub(crate) fn summary(
        &self,
        graph: &StepGraph,
        costs: &[(NodeId, Cost)],
    ) -> Vec<ScaledCollective> {
        let mut found: Vec<ScaledCollective> = Vec::new();
        for (id, cost) in costs {
            let node = graph.node(*id);
            let kind = node.collective.unwrap_or(CollectiveKind::Unknown);
            let group = node.group.map(GroupId::index);
            let name = group.map_or("", |g| graph.groups[g].name.as_str());
            let like = found
                .iter_mut()
                .find(|c| c.kind == kind && c.group == name && c.bytes == node.bytes);
            match like {
                Some(like) => like.count += 1,
                None => found.push(ScaledCollective {
                    kind,
                    group: name.to_owned(),
                    role: self.role_of(group).as_str(),
                    ranks: cost.ranks,
                    bytes: node.bytes,
                    count: 1,
                    each: cost.time,
                }),
            }
        }
        found.sort_by_key(|c| std::cmp::Reverse(c.each.value.nanos() * c.count as i64));
        found
    }

    /// Groups beyond the recorded ones were inserted, to synchronise replicas.
    fn role_of(&self, group: Option<usize>) -> Role {
        match group {
            Some(group) if group < self.layout.roles.len() => self.layout.role(group),
            Some(_) => Role::DataParallel,
            None => Role::Unknown,
        }
    }
}

impl Fabrics {
    /// Processor time that a call took where it was recorded; `None` if that is not known.
    fn recorded_host(&self, call: Option<&CollectiveCall>) -> Option<Nanos> {
        match (self.recorded, call, &self.from) {
            (1, _, _) => Some(Nanos::ZERO),
            (_, Some(call), Some(from)) => Some(host_time(call, from)),
            _ => None,
        }
    }
}

/// How far a time of the user's own may be off, as far as nobody says.
const OWN_SPREAD: f64 = 0.05;

/// The user's own time of `call`, which takes `modelled` otherwise.
pub(crate) fn owned(
    modelled: Estimate<Nanos>,
    call: &CollectiveCall,
    fabric: &Fabric,
    costs: Option<&dyn OwnCosts>,
) -> Option<Estimate<Nanos>> {
    let own = costs?.collective(call, fabric, modelled.value)?;
    Some(Estimate::with_relative_spread(own.clamp_positive(), OWN_SPREAD))
}

/// A time of `call` whose latency takes `factor` times as long: launch and hops, by their share in
/// the model.
pub(crate) fn with_latency(
    time: Estimate<Nanos>,
    call: &CollectiveCall,
    fabric: &Fabric,
    factor: f64,
) -> Estimate<Nanos> {
    if factor == 1.0 {
        return time;
    }
    let modelled = collective_time(call, fabric);
    let total = modelled.time.value.nanos().max(1) as f64;
    let share = (modelled.terms.launch + modelled.terms.propagation).nanos() as f64 / total;
    let whole = 1.0 + (factor - 1.0) * share.clamp(0.0, 1.0);
    time.map(|nanos| nanos * whole)
}

pub(crate) fn call(node: &CollectiveNode) -> Option<CollectiveCall> {
    node.bytes.map(|bytes| CollectiveCall { kind: node.kind, bytes, dtype: node.dtype })
}
