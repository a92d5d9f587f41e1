//! The graph of a characterised step.

use foretrain_core::{Bytes, Nanos};
use foretrain_fleet::pai::{Step, Work};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{NodeKind, Phase, StepGraph};
use foretrain_workload::line::{StepLine, Task};

/// Pieces of each pass: a row does not tell the layers, and gradients that become ready at a few even
/// distances overlap with the rest as those of layers do.
const PIECES: u64 = 16;
/// A backward pass does twice the work of a forward pass.
const PARTS: u64 = 3;

/// The step of one replica. Parts take `scale` times the characterised time.
pub(super) fn graph(work: &Work, step: &Step, scale: f64, gradients: Option<Bytes>) -> StepGraph {
    let mut line = StepLine::new();
    line.launch(&Task {
        kind: NodeKind::Copy,
        bytes: Some(work.input),
        ..Task::kernel("Memcpy HtoD: input", Phase::Forward, step.input.scale(scale))
    });
    let all = PARTS * PIECES;
    let mut compute = Dealt::new(step.flops.scale(scale), all);
    // The update is a piece of its own: it is what waits for an exchange.
    let mut memory = Dealt::new(step.memory.scale(scale), all + 1);
    let mut moved = Whole::new(work.memory_access.get(), all + 1);
    let mut ready = Whole::new(gradients.map_or(0, Bytes::get), PIECES);
    let flops = work.flops.get() / all as f64;
    for piece in 0..all {
        let phase = if piece < PIECES { Phase::Forward } else { Phase::Backward };
        line.launch(&Task::kernel("compute-bound", phase, compute.next()));
        if let Some((id, graph)) = line.last() {
            graph.node_attributes.set_f64(well_known::FLOPS, id.index(), flops);
        }
        // Two pieces of the backward pass make the gradients of one.
        let completes = phase == Phase::Backward && (piece - PIECES) % 2 == 1;
        let gradient = (completes && gradients.is_some()).then(|| Bytes::new(ready.next()));
        let task = Task::kernel("memory-bound", phase, memory.next());
        moves(&mut line, &Task { gradient, ..task }, moved.next());
    }
    let update = Task::kernel("memory-bound: update", Phase::Optimizer, memory.next());
    moves(&mut line, &update, moved.next());
    line.close()
}

fn moves(line: &mut StepLine, task: &Task<'_>, bytes: u64) {
    line.launch(task);
    if let Some((id, graph)) = line.last() {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        graph.node_attributes.set_i64(well_known::BYTES_MOVED, id.index(), bytes);
    }
}

/// A whole number in equal parts, of which none is lost.
struct Whole {
    total: u64,
    parts: u64,
    dealt: u64,
}

impl Whole {
    const fn new(total: u64, parts: u64) -> Self {
        Self { total, parts, dealt: 0 }
    }

    fn next(&mut self) -> u64 {
        let upto = |parts: u64| {
            let product = u128::from(self.total) * u128::from(parts.min(self.parts));
            (product / u128::from(self.parts)) as u64
        };
        let part = upto(self.dealt + 1) - upto(self.dealt);
        self.dealt += 1;
        part
    }
}

/// The same of a time.
struct Dealt(Whole);

impl Dealt {
    fn new(time: Nanos, parts: u64) -> Self {
        Self(Whole::new(u64::try_from(time.nanos()).unwrap_or(0), parts))
    }

    fn next(&mut self) -> Nanos {
        Nanos::from_nanos(i64::try_from(self.0.next()).unwrap_or(i64::MAX))
    }
}
