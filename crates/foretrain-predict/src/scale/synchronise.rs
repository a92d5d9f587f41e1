//! Gradient synchronisation that was not in the recording: a strategy applied to a rank's step.

use std::cell::RefCell;
use std::sync::Arc;

use foretrain_core::stats::median;
use foretrain_core::{Bytes, Estimate, InputError, Nanos, Result};
use foretrain_cost::{
    CollectiveCall, Fabric, GroupPlacement, Primitives, collective_time, host_time,
};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{CollectiveKind, GroupId, NodeId, NodeKind, Phase, StepGraph};
use foretrain_rewrite::strategy::SyncCosts;
use foretrain_rewrite::strategy::{Applied, Call, Cost as SyncCost, Registry, Scope, Strategy};
use rustc_hash::FxHashMap;

use super::PredictOptions;
use super::base::Base;
use super::contention::host_use;
use super::copies::one_way;
use super::cost::{Cost, Costs, owned, with_latency};
use super::links::LinkUse;
use super::ranks::Class;
use super::strip::{strip_synchronisation, synchronising};

impl Base<'_> {
    /// Applies the strategy to a rank's step where the recording has one replica and the size asked
    /// for more; a strategy that was asked for also takes the place of a recorded one.
    pub(super) fn synchronise(
        &self,
        class: &Class,
        graph: &mut StepGraph,
        replicas: u32,
        options: &PredictOptions,
    ) -> Result<Applied> {
        let nothing = Applied { steps: 1, batches: 1, ..Applied::default() };
        let replaces = options.strategy.is_some() && class.layout.synchronises();
        if !(class.layout.lacks_synchronisation() || replaces) || !has_backward(graph) {
            return Ok(nothing);
        }
        let by_bucket = replaces && strip_synchronisation(graph, &class.layout);
        if replicas <= 1 && options.strategy.is_none() {
            return Ok(nothing);
        }
        if let Some(bytes) = options.gradient_bytes {
            spread_gradients(graph, bytes);
        }
        let costs = self.sync_costs(class, replicas, options);
        let strategy = match &options.strategy {
            Some(strategy) => strategy.clone(),
            None => Arc::new(ddp(options, costs.copies.is_some())?),
        };
        let applied = strategy.apply(graph, &costs, &self.part(class));
        if let Some(error) = costs.failed.into_inner() {
            return Err(error);
        }
        let mut applied = applied?;
        if by_bucket && options.gradient_bytes.is_none() {
            applied.notes.push("the recording shows no gradient sizes: its buckets count as gradients, so none gets smaller".into());
        }
        Ok(applied)
    }

    /// Each rank of a replica synchronises its own part of the model.
    fn part(&self, class: &Class) -> String {
        let size = class.layout.replica_size;
        if self.ranks.classes.len() < 2 || size < 2 {
            return String::new();
        }
        format!("of rank {} of each", class.origin.rank % size)
    }

    /// What a strategy's nodes cost on this cluster.
    pub(super) fn synchronised_costs(
        &self,
        class: &Class,
        applied: &Applied,
        replicas: u32,
    ) -> Result<Costs> {
        if applied.placed.is_empty() {
            return Ok(Costs::new());
        }
        let mut fabrics = Fabrics::new(self, class);
        let measured = self.measured_over_modelled(class);
        let mut costs = Costs::new();
        for placed in &applied.placed {
            let cost = match &placed.call {
                Some(call) => {
                    let fabric = fabrics.under(call.scope)?;
                    let asked = CollectiveCall::new(call.kind, call.bytes);
                    let time = self.timed(call, fabric, measured).map(|ns| ns * placed.held);
                    let busy = host_time(&asked, fabric);
                    let host = self.cores.map(|cores| host_use(busy, time.value, cores));
                    Cost {
                        time,
                        wait: Nanos::ZERO,
                        ratio: 1.0,
                        ranks: call.scope.size,
                        links: LinkUse::of(&asked, fabric),
                        host: host.unwrap_or(0.0),
                    }
                }
                None => Cost {
                    time: placed.time,
                    wait: Nanos::ZERO,
                    ratio: 1.0,
                    ranks: replicas,
                    links: LinkUse::default(),
                    host: 0.0,
                },
            };
            costs.push((placed.id, cost));
        }
        Ok(costs)
    }

    /// A collective's time, as the user knows it or as the model has it times what recorded ones took
    /// over their models.
    fn timed(&self, call: &Call, fabric: &Fabric, measured: f64) -> Estimate<Nanos> {
        let time = timed(call, fabric, self.latency).map(|ns| ns * measured);
        let asked = CollectiveCall::new(call.kind, call.bytes);
        owned(time, &asked, fabric, self.costs.as_deref()).unwrap_or(time)
    }

    /// The fabric under all replicas of a rank.
    pub(crate) fn gradient_fabric(&self, class: &Class, replicas: u32) -> Result<Fabric> {
        let placement = GroupPlacement::strided(replicas, class.layout.replica_size);
        Fabric::for_group(self.cluster, &placement)
    }

    /// Measured first: what takes the place of recorded synchronisation is as much slower or faster
    /// than modelled as that was, in the median of its collectives; 1 where none was recorded or
    /// the machine of the recording is not known.
    fn measured_over_modelled(&self, class: &Class) -> f64 {
        let graph = &class.graph;
        let Some(from) = self.from.as_ref().filter(|_| class.layout.synchronises()) else {
            return 1.0;
        };
        let mut fabrics: FxHashMap<GroupId, Option<Fabric>> = FxHashMap::default();
        let mut ratio = |id: NodeId| {
            let node = graph.node(id);
            let call =
                CollectiveCall { kind: node.collective?, bytes: node.bytes?, dtype: node.dtype };
            let group = node.group?;
            let fabric = fabrics.entry(group).or_insert_with(|| {
                let (placed, _) = class.layout.placements(graph, group.index(), 1);
                Fabric::for_group(from, &placed).ok()
            });
            let modelled = collective_time(&call, fabric.as_ref()?).time.value.nanos();
            let alone = class.alone.get(&id).copied().unwrap_or(1.0);
            let taken = class.transfers.of(id, node.work).scale(alone).nanos();
            (modelled > 0 && taken > 0).then(|| (taken as f64 / modelled as f64).ln())
        };
        let ratios: Vec<f64> =
            synchronising(graph, &class.layout).into_iter().filter_map(&mut ratio).collect();
        median(&ratios).map_or(1.0, f64::exp)
    }

    fn sync_costs<'a>(
        &'a self,
        class: &'a Class,
        replicas: u32,
        options: &PredictOptions,
    ) -> ClusterCosts<'a> {
        let size = class.layout.replica_size.max(1);
        let devices = self.cluster.node.devices.max(1);
        ClusterCosts {
            base: self,
            replicas,
            replicas_per_node: (devices / size).clamp(1, replicas.max(1)),
            // Ranks of a replica send side by side.
            beside: size.min(devices),
            primitives: options.primitives.clone().unwrap_or_else(Primitives::assumed),
            // A recording of synchronised replicas holds its copies.
            copies: match class.layout.synchronises() {
                true => None,
                false => options.bucket_copies.rate(self.cluster),
            },
            measured: self.measured_over_modelled(class),
            fabrics: RefCell::new(Fabrics::new(self, class)),
            failed: RefCell::new(None),
        }
    }
}

/// PyTorch's DDP as the options have it.
fn ddp(options: &PredictOptions, copies: bool) -> Result<Strategy> {
    let (first, other) = (options.buckets.first.get(), options.buckets.other.get());
    let copies = if copies { "copies | " } else { "" };
    let buffers =
        options.buffer_bytes.map_or_else(String::new, |b| format!(" | buffers({}B)", b.get()));
    Registry::builtin().parse(&format!("{copies}fuse({other}B, first={first}B){buffers}"))
}

/// The fabrics under groups of replicas.
struct Fabrics<'a> {
    base: &'a Base<'a>,
    replica_size: u32,
    known: FxHashMap<Scope, Fabric>,
}

impl<'a> Fabrics<'a> {
    fn new(base: &'a Base<'_>, class: &Class) -> Self {
        Self { base, replica_size: class.layout.replica_size.max(1), known: FxHashMap::default() }
    }

    fn under(&mut self, scope: Scope) -> Result<&Fabric> {
        if !self.known.contains_key(&scope) {
            let stride = scope.stride.max(1).saturating_mul(self.replica_size);
            let placement = GroupPlacement::strided(scope.size, stride);
            let fabric = Fabric::for_group(self.base.cluster, &placement)?;
            self.known.insert(scope, fabric);
        }
        Ok(&self.known[&scope])
    }
}

/// A collective's time on a fabric, by the algorithm that the strategy prescribes.
fn timed(call: &Call, fabric: &Fabric, latency: f64) -> Estimate<Nanos> {
    let asked = CollectiveCall::new(call.kind, call.bytes);
    if call.method.is_none() {
        let time = collective_time(&asked, fabric).time;
        return with_latency(time, &asked, fabric, latency);
    }
    let forced = Fabric { forced: call.method, ..fabric.clone() };
    with_latency(collective_time(&asked, &forced).time, &asked, &forced, latency)
}

/// A cluster that answers what synchronisation costs.
struct ClusterCosts<'a> {
    base: &'a Base<'a>,
    replicas: u32,
    replicas_per_node: u32,
    beside: u32,
    primitives: Primitives,
    /// Gradient bytes over the time of copying them into buckets and back.
    copies: Option<foretrain_core::Bandwidth>,
    /// What recorded synchronisation took over what the model says of it.
    measured: f64,
    fabrics: RefCell<Fabrics<'a>>,
    /// The first group that the cluster cannot hold.
    failed: RefCell<Option<InputError>>,
}

impl ClusterCosts<'_> {
    fn on<T>(&self, scope: Scope, ask: impl FnOnce(&Fabric) -> T) -> Option<T> {
        match self.fabrics.borrow_mut().under(scope) {
            Ok(fabric) => Some(ask(fabric)),
            Err(error) => {
                self.failed.borrow_mut().get_or_insert(error);
                None
            }
        }
    }

    fn cost(&self, call: &Call, fabric: &Fabric) -> SyncCost {
        let asked = CollectiveCall::new(call.kind, call.bytes);
        let terms = collective_time(&asked, fabric).terms;
        let latency = (terms.launch + terms.propagation).scale(self.base.latency);
        let whole = self.base.timed(call, fabric, self.measured);
        SyncCost { whole, latency: latency.scale(self.measured).min(whole.value) }
    }
}

const NO_COST: SyncCost = SyncCost {
    whole: Estimate { value: Nanos::ZERO, low: Nanos::ZERO, high: Nanos::ZERO },
    latency: Nanos::ZERO,
};

impl SyncCosts for ClusterCosts<'_> {
    fn replicas(&self) -> u32 {
        self.replicas
    }

    fn replicas_per_node(&self) -> u32 {
        self.replicas_per_node
    }

    fn collective(&self, call: &Call) -> SyncCost {
        self.on(call.scope, |fabric| self.cost(call, fabric)).unwrap_or(NO_COST)
    }

    fn wire(&self, bytes: Bytes) -> SyncCost {
        let nodes = self.nodes();
        let scope = Scope { size: 2, stride: if nodes > 1 { self.replicas_per_node } else { 1 } };
        let call = Call { kind: CollectiveKind::SendRecv, bytes, scope, method: None };
        let node = &self.base.cluster.node;
        let all = node.nic_bandwidth * node.nic_efficiency * f64::from(node.nics.max(1));
        let machine = |fabric: &Fabric| {
            let mut fabric = fabric.clone();
            if fabric.nodes > 1 {
                // All its NICs, not those nearest to one device.
                fabric.inter.bandwidth = all / f64::from(self.beside.max(1));
            }
            self.cost(&call, &fabric)
        };
        self.on(scope, machine).unwrap_or(NO_COST)
    }

    fn copy(&self, bytes: Bytes) -> Estimate<Nanos> {
        match self.copies {
            Some(rate) => Estimate::exact(one_way(bytes, rate)),
            None => Estimate::exact(Nanos::ZERO),
        }
    }

    fn primitives(&self) -> &Primitives {
        &self.primitives
    }
}

/// Whether a step has a backward pass to synchronise.
pub(crate) fn has_backward(graph: &StepGraph) -> bool {
    graph.node_ids().any(|id| {
        let node = graph.node(id);
        node.phase == Phase::Backward
            && matches!(node.kind, NodeKind::HostSegment | NodeKind::Kernel)
    })
}

/// Spreads gradient bytes of unknown position evenly over the backward pass.
fn spread_gradients(graph: &mut StepGraph, bytes: Bytes) {
    let points: Vec<NodeId> = graph
        .node_ids()
        .filter(|&id| {
            let node = graph.node(id);
            node.phase == Phase::Backward && node.kind == NodeKind::HostSegment
        })
        .collect();
    let count = points.len().max(1) as u64;
    for (i, id) in points.into_iter().enumerate() {
        let share = bytes.get() / count + u64::from((i as u64) < bytes.get() % count);
        let share = i64::try_from(share).unwrap_or(i64::MAX);
        graph.node_attributes.set_i64(well_known::GRADIENT_BYTES, id.index(), share);
    }
}
