//! What a step graph tells of a job: its copies, collectives, gradients and times, and what nodes say
//! of their work.

use foretrain_core::words::{counted, of_number};
use foretrain_core::{Bytes, Flops, Nanos};
use foretrain_cost::bus_factor;
use foretrain_graph::attributes::well_known;
use foretrain_graph::{CollectiveKind, NodeId, NodeKind, StepGraph};

use super::figure::{Basis, Figure, Tally};
use super::operators::{Tables, is_compute_bound};
use crate::inspect_graph::has_duration;
use crate::roles::Role;
use crate::scale::Layout;

/// What was read.
pub(super) struct Read {
    pub(super) world_size: u32,
    pub(super) flops: Figure<Flops>,
    pub(super) memory_access: Figure<Bytes>,
    pub(super) input: Figure<Bytes>,
    /// Sent and received.
    pub(super) traffic: Figure<Bytes>,
    /// Of all weights that one GPU holds.
    pub(super) gradients: Figure<Bytes>,
    pub(super) step_time: Figure<Nanos>,
    pub(super) utilisation: Figure<f64>,
    /// Embedding tables that were looked up.
    pub(super) tables: Tables,
    /// GPUs that hold one replica.
    pub(super) replica_size: u32,
    pub(super) notes: Vec<String>,
}

/// FLOPs per byte from which on a node of an unknown name is compute-bound.
const MANY_PER_BYTE: f64 = 10.0;

impl Read {
    pub(super) fn of(graph: &StepGraph) -> Self {
        let layout = Layout::new(graph.meta.world_size.max(1), graph, &[]);
        let (flops, memory_access) = work(graph);
        let mut notes = Vec::new();
        if layout.replica_size > 1 {
            notes.push(format!(
                "a replica takes {} GPUs: figures are of one GPU and its part of the model",
                layout.replica_size
            ));
        }
        let (traffic, other) = traffic(graph, &layout);
        if other > Bytes::ZERO {
            notes.push(format!(
                "{other} a step that ranks exchange within a replica, or for an unknown purpose, are no weight traffic"
            ));
        }
        Self {
            world_size: layout.world_size,
            flops,
            memory_access,
            input: input(graph),
            gradients: gradients(graph, &layout),
            traffic,
            step_time: step_time(graph),
            utilisation: Figure::missing("a graph does not tell when its device is idle"),
            tables: Tables::default(),
            replica_size: layout.replica_size,
            notes,
        }
    }
}

/// FLOPs of compute-bound nodes and bytes of the others, where nodes say them.
fn work(graph: &StepGraph) -> (Figure<Flops>, Figure<Bytes>) {
    let (mut compute, mut memory) = (Tally::default(), Tally::default());
    for id in graph.node_ids().filter(|&id| graph.kind(id) == NodeKind::Kernel) {
        let nanos = graph.work(id).nanos().max(1) as f64;
        let flops = graph.node_attributes.get_f64(well_known::FLOPS, id.index());
        let flops = flops.filter(|flops| flops.is_finite() && *flops > 0.0);
        let bytes = graph.node_attributes.get_i64(well_known::BYTES_MOVED, id.index());
        let bytes = bytes.filter(|bytes| *bytes > 0).map(|bytes| bytes as f64);
        let many = flops.is_some_and(|flops| bytes.is_none_or(|b| flops / b >= MANY_PER_BYTE));
        let (tally, amount) = match is_compute_bound(graph.name(id)) || many {
            true => (&mut compute, flops),
            false => (&mut memory, bytes),
        };
        match amount {
            Some(amount) => tally.add(amount, nanos),
            None => tally.lack(nanos),
        }
    }
    let unknown = "the graph does not tell their work";
    (
        compute.figure("compute-bound kernels", unknown).map(Flops::new),
        memory.figure("memory-bound kernels", unknown).map(Bytes::from_f64),
    )
}

/// `Memcpy HtoD (Pageable -> Device)`, `CopyHostToDevice`.
fn from_host(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("htod") || name.contains("hosttodevice")
}

fn input(graph: &StepGraph) -> Figure<Bytes> {
    let copies: Vec<NodeId> = graph
        .node_ids()
        .filter(|&id| graph.kind(id) == NodeKind::Copy && from_host(graph.name(id)))
        .collect();
    let sizes: Option<Vec<Bytes>> = copies.iter().map(|&id| graph.node(id).bytes).collect();
    match sizes {
        _ if copies.is_empty() => {
            Figure::missing("no copies from the host were recorded in a step")
        }
        None => Figure::missing("copies from the host were recorded without their size"),
        Some(sizes) => {
            let how = format!("copies from the host: {}", sizes.len());
            Figure::new(sizes.into_iter().sum(), Basis::Measured, how)
        }
    }
}

/// Collectives, and what each is for.
fn collectives<'a>(
    graph: &'a StepGraph,
    layout: &'a Layout,
) -> impl Iterator<Item = (NodeId, CollectiveKind, Role, u32)> + 'a {
    graph.node_ids().filter_map(|id| {
        let node = graph.node(id);
        let (kind, group) = (node.collective?, node.group?);
        let moves = !matches!(kind, CollectiveKind::Barrier);
        moves.then(|| (id, kind, layout.role(group.index()), layout.size(group.index())))
    })
}

/// Bytes that a rank sends and receives among replicas; and otherwise.
fn traffic(graph: &StepGraph, layout: &Layout) -> (Figure<Bytes>, Bytes) {
    let (mut among, mut other, mut operations, mut unsized_) = (Bytes::ZERO, Bytes::ZERO, 0, 0);
    for (id, kind, role, ranks) in collectives(graph, layout) {
        let one_way = matches!(kind, CollectiveKind::Send | CollectiveKind::Recv);
        let directions = if one_way { 1.0 } else { 2.0 };
        let bytes = graph
            .node(id)
            .bytes
            .map(|bytes| Bytes::from_f64(bytes.as_f64() * bus_factor(kind, ranks) * directions));
        if !role.grows() {
            other += bytes.unwrap_or_default();
            continue;
        }
        operations += 1;
        match bytes {
            Some(bytes) => among += bytes,
            None => unsized_ += 1,
        }
    }
    let figure = if operations == 0 && layout.world_size <= layout.replica_size {
        Figure::new(Bytes::ZERO, Basis::Measured, "one replica exchanges nothing")
    } else if operations == 0 {
        Figure::missing("no communication among replicas was recognised")
    } else if unsized_ > 0 {
        Figure::missing(format!(
            "{unsized_} of {} {} no recorded size",
            counted(operations, "collective"),
            of_number(unsized_, "has", "have")
        ))
    } else {
        let how = format!(
            "collectives among replicas: {operations}; all-reduces count 2 (n-1)/n of their size sent, and received"
        );
        Figure::new(among, Basis::Measured, how)
    };
    (figure, other)
}

/// Gradients by the nodes that complete them, or by what replicas reduce.
fn gradients(graph: &StepGraph, layout: &Layout) -> Figure<Bytes> {
    let known = |id: NodeId| {
        let bytes = graph.node_attributes.get_i64(well_known::GRADIENT_BYTES, id.index())?;
        u64::try_from(bytes).ok()
    };
    let total = graph.node_ids().filter_map(known).reduce(u64::saturating_add);
    if let Some(total) = total.filter(|total| *total > 0) {
        return Figure::new(Bytes::new(total), Basis::Measured, "gradients as accumulated");
    }
    let reduces = |kind| matches!(kind, CollectiveKind::AllReduce | CollectiveKind::ReduceScatter);
    let reduced: Bytes = collectives(graph, layout)
        .filter(|(_, kind, role, _)| *role == Role::DataParallel && reduces(*kind))
        .filter_map(|(id, ..)| graph.node(id).bytes)
        .sum();
    if reduced > Bytes::ZERO {
        return Figure::new(reduced, Basis::Inferred, "what replicas reduce in a step");
    }
    Figure::missing("no gradients were recorded")
}

fn step_time(graph: &StepGraph) -> Figure<Nanos> {
    if let Some(time) = graph.meta.recorded_step {
        return Figure::new(time, Basis::Measured, "step of the recording");
    }
    let timed = graph.node_ids().filter(|&id| has_duration(graph, id)).count();
    let path = graph.longest_path().ok().map(|path| path.length);
    match path.filter(|length| timed > 0 && *length > Nanos::ZERO) {
        Some(length) => Figure::new(length, Basis::Inferred, "longest chain of the graph"),
        None => Figure::missing("the graph holds no durations"),
    }
}
