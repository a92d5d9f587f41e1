//! A step's graph from a profile and measured times.

use foretrain_core::{Bytes, DType, InputError, Nanos, Result};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{
    Edge, EdgeKind, Node, NodeId, NodeKind, Phase, QueueId, QueueKind, StepGraph,
};

use crate::profile::Profile;

/// Times of a step without synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTimes {
    /// Forward pass.
    pub forward: Nanos,
    /// Backward pass.
    pub backward: Nanos,
    /// Parameter update; may be zero.
    pub optimiser: Nanos,
}

impl StepTimes {
    /// A step of which nothing but its whole time is known: a backward pass does twice the work of a
    /// forward pass.
    pub fn of_step(step: Nanos) -> Self {
        let forward = step.scale(1.0 / 3.0);
        Self { forward, backward: step - forward, optimiser: Nanos::ZERO }
    }
}

/// The graph of one training step on one device: a stream that runs the layers forward, then backward,
/// then the update, and a host thread that launches them and takes no time. Passes take the times in
/// proportion to the layers' work. Each tensor's gradient is ready when its layer's backward pass has
/// ended.
///
/// # Errors
/// If the profile has no work to share the times out by, or a time is negative.
pub fn step_graph(profile: &Profile, times: &StepTimes, dtype: DType) -> Result<StepGraph> {
    let work = profile.forward().get();
    if work <= 0.0 || profile.parameters() == 0 {
        return Err(InputError::new(format!("\"{}\" has no layers with work", profile.name)));
    }
    if [times.forward, times.backward, times.optimiser].iter().any(|time| *time < Nanos::ZERO) {
        return Err(InputError::new("a pass cannot take negative time"));
    }
    let mut line = Line::new();
    let mut shares = Shares::new(times.forward, work);
    for layer in &profile.layers {
        let time = shares.next(layer.forward.get());
        line.launch(&layer.name, Phase::Forward, time, None);
    }
    let mut shares = Shares::new(times.backward, work);
    for layer in profile.layers.iter().rev() {
        let mut time = shares.next(layer.forward.get());
        for tensor in layer.tensors.iter().rev() {
            let bytes = Bytes::new(dtype.bytes_of(tensor.elements));
            line.launch(&layer.name, Phase::Backward, std::mem::take(&mut time), Some(bytes));
        }
        if time > Nanos::ZERO {
            line.launch(&layer.name, Phase::Backward, time, None);
        }
    }
    if times.optimiser > Nanos::ZERO {
        line.launch("optimiser", Phase::Optimizer, times.optimiser, None);
    }
    Ok(line.close())
}

/// Shares a time out without losing nanoseconds.
struct Shares {
    time: Nanos,
    work: f64,
    done: f64,
    spent: Nanos,
}

impl Shares {
    fn new(time: Nanos, work: f64) -> Self {
        Self { time, work, done: 0.0, spent: Nanos::ZERO }
    }
    fn next(&mut self, work: f64) -> Nanos {
        self.done += work;
        let until = self.time.scale((self.done / self.work).min(1.0));
        let own = until - self.spent;
        self.spent = until;
        own
    }
}

/// Kernels one after the other, and the calls that launch them.
struct Line {
    graph: StepGraph,
    thread: QueueId,
    stream: QueueId,
    at: Nanos,
    ends: Option<(Pair, Pair)>,
}

/// A call and its kernel.
#[derive(Clone, Copy)]
struct Pair {
    call: NodeId,
    kernel: NodeId,
}

impl Line {
    fn new() -> Self {
        let mut graph = StepGraph::new();
        let thread = graph.add_queue("main", QueueKind::Thread);
        let stream = graph.add_queue("stream", QueueKind::Stream);
        Self { graph, thread, stream, at: Nanos::ZERO, ends: None }
    }

    /// As if the host waited for each kernel in the recording: a gradient's call ends when the
    /// gradient is ready.
    fn launch(&mut self, layer: &str, phase: Phase, time: Nanos, gradient: Option<Bytes>) {
        let name = self.graph.names.intern(layer);
        let start = self.at;
        self.at += time;
        let module = if phase == Phase::Optimizer { foretrain_core::NameId::EMPTY } else { name };
        let of = |kind, queue, work| Node { phase, module, ..Node::new(kind, name, queue, work) };
        let call = self.graph.add_node(of(NodeKind::HostSegment, self.thread, Nanos::ZERO));
        let kernel = self.graph.add_node(of(NodeKind::Kernel, self.stream, time));
        let recorded = [(call, self.at, Nanos::ZERO), (kernel, start, time)];
        let attributes = &mut self.graph.node_attributes;
        for (id, start, time) in recorded {
            attributes.set_i64(well_known::RECORDED_START, id.index(), start.nanos());
            attributes.set_i64(well_known::RECORDED_DURATION, id.index(), time.nanos());
        }
        if let Some(bytes) = gradient {
            let bytes = i64::try_from(bytes.get()).unwrap_or(i64::MAX);
            attributes.set_i64(well_known::GRADIENT_BYTES, call.index(), bytes);
        }
        self.graph.add_edge(Edge::new(call, kernel, EdgeKind::Launch));
        let pair = Pair { call, kernel };
        let first = match self.ends {
            Some((first, last)) => {
                self.follow(last, pair, 0);
                first
            }
            None => pair,
        };
        self.ends = Some((first, pair));
    }

    fn follow(&mut self, before: Pair, after: Pair, distance: u16) {
        let calls = Edge::new(before.call, after.call, EdgeKind::ThreadOrder);
        let kernels = Edge::new(before.kernel, after.kernel, EdgeKind::StreamOrder);
        for edge in [calls, kernels] {
            self.graph.add_edge(edge.with_distance(distance));
        }
    }

    fn close(mut self) -> StepGraph {
        if let Some((first, last)) = self.ends {
            self.follow(last, first, 1);
        }
        self.graph
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(name: &str) -> Profile {
        crate::named(name).unwrap().profile(None)
    }

    #[test]
    fn a_step_takes_its_time_and_shows_every_gradient() {
        let times = StepTimes::of_step(Nanos::from_millis(300));
        let graph = step_graph(&profile("resnet-50"), &times, DType::F32).unwrap();
        let total: Nanos = graph.node_ids().map(|id| graph.node(id).work).sum();
        assert_eq!(total, Nanos::from_millis(300));
        let bytes =
            |id: NodeId| graph.node_attributes.get_i64(well_known::GRADIENT_BYTES, id.index());
        assert_eq!(graph.node_ids().filter_map(bytes).sum::<i64>(), 4 * 25_557_032);
        assert_eq!(foretrain_rewrite::backward_passes(&graph), 1);
    }

    #[test]
    fn nonsense_is_refused() {
        let times = StepTimes::of_step(Nanos::from_millis(1));
        let empty = Profile { name: "nothing".into(), layers: Vec::new() };
        assert!(step_graph(&empty, &times, DType::F32).is_err());
        let backwards = StepTimes { forward: Nanos::from_nanos(-1), ..times };
        assert!(step_graph(&profile("resnet-18"), &backwards, DType::F32).is_err());
    }
}
