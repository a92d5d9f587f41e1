//! Input data: how long the step waits for it, and how many workers fetch it.

use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::{Edge, EdgeKind, Node, NodeId, NodeKind, QueueKind};

use crate::whatif::sketch::Sketch;

/// Batches that each worker of PyTorch's loader fetches ahead.
const PREFETCH: u32 = 2;
/// How uncertain a modelled loader's saving is.
const SPREAD: f64 = 0.15;
/// How PyTorch names a loader without workers.
const IN_PROCESS: &str = "SingleProcess";

/// Multiplies the waits for input.
pub(super) fn scale(sketch: &mut Sketch<'_>, factor: f64) -> Result<()> {
    check(sketch)?;
    for class in sketch.classes() {
        let loads = loads(sketch, class);
        sketch.rework(class, loads, |_, work| work.scale(factor));
    }
    Ok(())
}

/// Fetches with `to` workers.
///
/// A loader is a queue beside the step: a batch takes one worker `p`, so `n` of them deliver one
/// every `p / n`, up to two per worker ahead, and the step waits only if it is faster than that.
/// Without workers the step itself spends `p`: what it was recorded to spend on input. With `n`
/// recorded workers that kept the step waiting, `p` is `n` steps; that is also the most it can be.
pub(super) fn workers(sketch: &mut Sketch<'_>, from: Option<u32>, to: u32) -> Result<()> {
    check(sketch)?;
    if !sketch.repeats() {
        return Err(InputError::new(
            "the graph holds one pass, which does not show what a loader does between steps",
        )
        .hint("record several steps in one trace, or scale the wait: `input x0.5`"));
    }
    for class in sketch.classes() {
        let loads = loads(sketch, class);
        let recorded = recorded_workers(sketch, class, &loads, from)?;
        let spent: Nanos = loads.iter().map(|id| sketch.work[class][id.index()]).sum();
        let batch = match recorded {
            0 => spent,
            n => sketch.base.recorded.step_time.scale(f64::from(n)),
        };
        let share = |id: NodeId| {
            let own = sketch.work[class][id.index()].nanos() as f64;
            if spent == Nanos::ZERO { 0.0 } else { own / spent.nanos() as f64 }
        };
        let each: Vec<(NodeId, Nanos)> =
            loads.iter().map(|&id| (id, batch.scale(share(id)))).collect();
        if to == 0 {
            for (id, work) in each {
                sketch.work[class][id.index()] = work;
            }
        } else {
            fetch_beside(sketch, class, &each, to);
        }
    }
    sketch.spread = sketch.spread.max(SPREAD);
    Ok(())
}

/// Puts a loader beside the step.
fn fetch_beside(sketch: &mut Sketch<'_>, class: usize, batches: &[(NodeId, Nanos)], workers: u32) {
    let ahead = u16::try_from(workers.saturating_mul(PREFETCH)).unwrap_or(u16::MAX);
    let graph = &mut sketch.job_mut().classes[class].graph;
    let queue = graph.add_queue("input workers", QueueKind::Other);
    let name = graph.names.intern("input workers");
    let mut fetches: Vec<(NodeId, Nanos)> = Vec::new();
    for &(wait, batch) in batches {
        // A mark: what the workers do costs the step nothing but the wait.
        let fetch = graph.add_node(Node::new(NodeKind::Mark, name, queue, Nanos::ZERO));
        graph.add_edge(Edge::new(fetch, wait, EdgeKind::Data).inferred());
        graph.add_edge(Edge::new(wait, fetch, EdgeKind::Data).with_distance(ahead).inferred());
        if let Some(&(before, _)) = fetches.last() {
            graph.add_edge(Edge::new(before, fetch, EdgeKind::ThreadOrder).inferred());
        }
        fetches.push((fetch, batch.scale(1.0 / f64::from(workers))));
    }
    if let (Some(&(first, _)), Some(&(last, _))) = (fetches.first(), fetches.last()) {
        graph.add_edge(Edge::new(last, first, EdgeKind::ThreadOrder).with_distance(1).inferred());
    }
    sketch.rework(class, batches.iter().map(|(wait, _)| *wait), |_, _| Nanos::ZERO);
    sketch.work[class].extend(fetches.iter().map(|(_, work)| *work));
}

fn recorded_workers(
    sketch: &Sketch<'_>,
    class: usize,
    loads: &[NodeId],
    given: Option<u32>,
) -> Result<u32> {
    let graph = sketch.graph(class);
    let in_process = loads.iter().all(|&id| graph.name(id).contains(IN_PROCESS));
    match given {
        Some(workers) => Ok(workers),
        None if in_process => Ok(0),
        None => {
            Err(InputError::new("the recording does not tell how many workers loaded its input")
                .hint("say it, as in `loader-workers=2->8`; 0 is loading in the training process"))
        }
    }
}

fn loads(sketch: &Sketch<'_>, class: usize) -> Vec<NodeId> {
    sketch.own_work(class, |_, kind| kind == NodeKind::DataLoad)
}

fn check(sketch: &Sketch<'_>) -> Result<()> {
    if sketch.classes().any(|class| !loads(sketch, class).is_empty()) {
        return Ok(());
    }
    Err(InputError::new("the step shows no wait for input data").hint(
        "PyTorch's DataLoader marks its waits; another loader's are host work: `name:*load* x0`",
    ))
}
