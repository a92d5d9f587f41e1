//! Kernels that a recording holds both alone and beside communication.
//!
//! Two runs of a kernel are the same work if name, grid, block and input shapes agree and, where
//! several steps were recorded, if they are the same kernel of the step, counted in launch order:
//! without shapes a name and a grid do not tell how much there is to do. Runs beside kernels of
//! other streams are left out, and so is all whose isolated runs differ among themselves.

use std::collections::BTreeMap;

use foretrain_core::Nanos;
use foretrain_core::stats::median;
use foretrain_cost::interference::{DeviceLimits, KernelLoad, OverlapSample, TransferLoad};
use foretrain_cost::{CollectiveCall, Fabric, GroupPlacement, collective_time};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{CollectiveKind, NodeId, NodeKind, QueueId, QueueKind, StepGraph};
use foretrain_hardware::{Catalogue, Cluster};
use rustc_hash::FxHashMap;

use super::loads::{device_limits, kernel_load, transfer_load};
use crate::Recording;
use crate::devices::recorded_cluster;
use crate::scale::Origin;

/// A kernel with what it met.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Step and kernel, for people.
    pub what: String,
    /// Which kernel of the recording it is: runs of one name, grid, block and shapes, at whatever
    /// place of a step, have the same number.
    pub kernel: usize,
    /// Its times and features.
    pub overlap: OverlapSample,
}

/// The samples of one recording.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// The recording's file.
    pub source: String,
    /// Runs of one kernel at one place of the step together.
    pub samples: Vec<Sample>,
    /// Why there are none, or what was left out; lowercase fragments.
    pub notes: Vec<String>,
}

/// From this part of its time on a kernel counts as overlapped.
const OVERLAPPED: f64 = 0.5;
/// Isolated runs agree if the longest takes at most so many times the shortest.
const AGREE: f64 = 1.3;
/// A time of fewer clock ticks tells too little.
const FEWEST_TICKS: i64 = 5;

/// A run of a kernel.
struct Run {
    step: usize,
    node: NodeId,
    time: Nanos,
    /// Part of its time beside communication.
    overlapped: f64,
    beside: Option<TransferLoad>,
}

/// One piece of communication.
struct Comm {
    from: Nanos,
    /// From when on it moves data.
    moves: Nanos,
    to: Nanos,
    load: TransferLoad,
}

/// The samples of a recording whose graphs were built.
pub fn samples(recording: &Recording, catalogue: &Catalogue) -> Samples {
    let source = recording.trace.meta.path.clone();
    let mut found = Samples { source, ..Samples::default() };
    let origin = Origin::of_recording(recording);
    let device = device_limits(catalogue.device_by_product_name(&origin.device));
    let cluster = recorded_cluster(catalogue, &origin, &mut Vec::new(), &mut Vec::new());
    let transfers = Transfers::new(recording, cluster.as_ref());
    let several = recording.graphs.len() > 1;
    let mut runs: BTreeMap<(String, usize), Vec<Run>> = BTreeMap::new();
    for (step, graph) in recording.graphs.iter().enumerate() {
        let comms = transfers.of_step(graph);
        let mut nth: FxHashMap<String, usize> = FxHashMap::default();
        let others = kernels(graph);
        for (at, &(from, to, node)) in others.iter().enumerate() {
            let same = signature(graph, node);
            let place = nth.entry(same.clone()).or_insert(0);
            let key = (same, if several { *place } else { 0 });
            *place += 1;
            if graph.is_carried_in(node) || meets_another(&others, at, graph) {
                continue;
            }
            let (overlapped, beside) = beside(from, to, &comms);
            let time = to - from;
            runs.entry(key).or_default().push(Run { step, node, time, overlapped, beside });
        }
    }
    let tick = tick(recording);
    let (mut spread, mut short) = (0, 0);
    let mut numbers: FxHashMap<String, usize> = FxHashMap::default();
    for ((same, _), runs) in runs {
        let next = numbers.len();
        let number = *numbers.entry(same).or_insert(next);
        let alone: Vec<f64> = runs
            .iter()
            .filter(|run| run.overlapped == 0.0)
            .map(|run| run.time.nanos() as f64)
            .collect();
        let beside = || runs.iter().filter(|run| run.overlapped >= OVERLAPPED);
        let needed = if several { 2 } else { 3 };
        let Some(usual) = median(&alone).filter(|_| alone.len() >= needed) else { continue };
        let (least, most) = alone.iter().fold((f64::MAX, 0.0), |(least, most), &time| {
            (f64::min(least, time), f64::max(most, time))
        });
        if most > AGREE * least {
            spread += beside().count();
            continue;
        }
        if usual < (FEWEST_TICKS * tick.nanos()) as f64 {
            short += beside().count();
            continue;
        }
        for run in beside() {
            let graph = &recording.graphs[run.step];
            let Some(transfer) = run.beside else { continue };
            let kernel = kernel_load(graph, run.node, Nanos::from_nanos_f64(usual));
            found.samples.push(sample(recording, run, number, device, kernel, transfer));
        }
    }
    let mut note = |count: usize, why: &str| {
        if count > 0 {
            found.notes.push(format!("{count} overlapped runs left out: {why}"));
        }
    };
    note(spread, "the isolated runs of the kernel differ by more than 30 %");
    note(short, "the kernel takes less than 5 ticks of the recording's clock");
    found
}

fn sample(
    recording: &Recording,
    run: &Run,
    number: usize,
    device: DeviceLimits,
    kernel: KernelLoad,
    beside: TransferLoad,
) -> Sample {
    let graph = &recording.graphs[run.step];
    let name: String = graph.name(run.node).chars().take(60).collect();
    let step = recording.steps.steps.get(run.step).map_or("step", |step| step.name.as_str());
    let overlapped = run.overlapped.min(1.0);
    let overlap = OverlapSample { device, kernel, beside, overlapped, recorded: run.time };
    Sample { what: format!("{step}: {name}"), kernel: number, overlap }
}

/// When a node occupied its device.
fn recorded(graph: &StepGraph, id: NodeId) -> Option<(Nanos, Nanos)> {
    let get = |name| graph.node_attributes.get_i64(name, id.index()).map(Nanos::from_nanos);
    let from = get(well_known::RECORDED_START)?;
    Some((from, from + get(well_known::RECORDED_DURATION)?))
}

/// Kernels by start.
fn kernels(graph: &StepGraph) -> Vec<(Nanos, Nanos, NodeId)> {
    let kernels = graph.node_ids().filter(|&id| graph.kind(id) == NodeKind::Kernel);
    let timed = |id| recorded(graph, id).map(|(from, to)| (from, to, id));
    let mut found: Vec<_> = kernels.filter_map(timed).filter(|&(from, to, _)| from < to).collect();
    found.sort_unstable_by_key(|&(from, to, id)| (from, to, id.index()));
    found
}

/// Whether a kernel of another stream ran at the same time. Looks as far as neighbours go: two
/// streams of kernels that interleave show within a few of them.
fn meets_another(kernels: &[(Nanos, Nanos, NodeId)], at: usize, graph: &StepGraph) -> bool {
    const NEAR: usize = 16;
    let (from, to, node) = kernels[at];
    let own: QueueId = graph.queue(node);
    let near = &kernels[at.saturating_sub(NEAR)..(at + NEAR).min(kernels.len())];
    near.iter().any(|&(f, t, other)| f < to && t > from && graph.queue(other) != own)
}

/// What makes two kernels the same work.
fn signature(graph: &StepGraph, id: NodeId) -> String {
    let get = |name| graph.node_attributes.get_str(name, id.index()).unwrap_or_default();
    let (grid, block) = (get(well_known::GRID), get(well_known::BLOCK));
    format!("{}|{grid}|{block}|{}", graph.name(id), get(well_known::SHAPES))
}

/// Which part of a kernel's time communication ran beside it, and the one that did for longest,
/// its `moving` being the part of that in which it moved data.
fn beside(from: Nanos, to: Nanos, comms: &[Comm]) -> (f64, Option<TransferLoad>) {
    let shared = |a: Nanos, b: Nanos| (b.min(to) - a.max(from)).clamp_positive().nanos();
    let mut met: Vec<(i64, &Comm)> = Vec::new();
    for comm in comms {
        let time = shared(comm.from, comm.to);
        if time > 0 {
            met.push((time, comm));
        }
    }
    let Some(&(time, longest)) = met.iter().max_by_key(|&&(time, comm)| (time, comm.from)) else {
        return (0.0, None);
    };
    let all: i64 = met.iter().map(|&(time, _)| time).sum();
    let moving = shared(longest.moves, longest.to) as f64 / time as f64;
    let overlapped = all as f64 / (to - from).nanos().max(1) as f64;
    (overlapped.min(1.0), Some(TransferLoad { moving, ..longest.load }))
}

/// The clock's resolution: a microsecond in traces of older profilers.
fn tick(recording: &Recording) -> Nanos {
    let micro = Nanos::from_micros(1);
    let times = recording.graphs.iter().flat_map(kernels);
    let whole = |(from, to, _): (Nanos, Nanos, NodeId)| (to - from).nanos() % micro.nanos() == 0;
    if times.take(1_000).all(whole) { micro } else { Nanos::from_nanos(1) }
}

/// How long equal operations took at least, and what a model says.
struct Transfers<'a> {
    shortest: FxHashMap<Operation, Nanos>,
    cluster: Option<&'a Cluster>,
}

type Operation = (Option<CollectiveKind>, String, Option<u64>);

impl<'a> Transfers<'a> {
    fn new(recording: &Recording, cluster: Option<&'a Cluster>) -> Self {
        let mut shortest: FxHashMap<Operation, Nanos> = FxHashMap::default();
        for graph in &recording.graphs {
            for (id, from, to) in communication(graph) {
                let least = shortest.entry(operation(graph, id)).or_insert(to - from);
                *least = (*least).min(to - from);
            }
        }
        Self { shortest, cluster }
    }

    /// A collective moves data at its end: for as long as the shortest of its kind took, or as the
    /// model of its fabric says if that is less (all of them may have waited).
    fn of_step(&self, graph: &StepGraph) -> Vec<Comm> {
        let comm = |(id, from, to): (NodeId, Nanos, Nanos)| {
            let whole = to - from;
            // Of unknown size, operations cannot be told to be equal.
            let equal = graph.node(id).bytes.and(self.shortest.get(&operation(graph, id)));
            let shortest = equal.copied().unwrap_or(whole);
            let time = self.modelled(graph, id).map_or(shortest, |model| model.min(shortest));
            let share = time.nanos() as f64 / whole.nanos().max(1) as f64;
            let load = transfer_load(graph, id, time, share.min(1.0));
            Comm { from, moves: to - time.min(whole), to, load }
        };
        communication(graph).map(comm).collect()
    }

    fn modelled(&self, graph: &StepGraph, id: NodeId) -> Option<Nanos> {
        let node = graph.node(id);
        // Exchanges between pairs differ in size from peer to peer, so one buffer's size does not
        // tell how long they take.
        let is_uniform = matches!(
            node.collective,
            Some(
                CollectiveKind::AllReduce
                    | CollectiveKind::ReduceScatter
                    | CollectiveKind::AllGather
                    | CollectiveKind::Broadcast
            )
        );
        if !is_uniform {
            return None;
        }
        let size = graph.groups[node.group?.index()].size;
        let fabric = Fabric::for_group(self.cluster?, &GroupPlacement::contiguous(size)).ok()?;
        let call = CollectiveCall { kind: node.collective?, bytes: node.bytes?, dtype: node.dtype };
        Some(collective_time(&call, &fabric).time.value)
    }
}

fn operation(graph: &StepGraph, id: NodeId) -> Operation {
    let node = graph.node(id);
    let group = node.group.map_or(String::new(), |g| graph.groups[g.index()].name.clone());
    (node.collective, group, node.bytes.map(foretrain_core::Bytes::get))
}

fn communication(graph: &StepGraph) -> impl Iterator<Item = (NodeId, Nanos, Nanos)> + '_ {
    let is_comm = |id: &NodeId| graph.kind(*id).communicates();
    let on_device = |id: &NodeId| graph.queues[graph.queue(*id).index()].kind == QueueKind::Stream;
    graph
        .node_ids()
        .filter(is_comm)
        .filter(on_device)
        .filter_map(|id| recorded(graph, id).map(|(from, to)| (id, from, to)))
        .filter(|&(_, from, to)| from < to)
}
