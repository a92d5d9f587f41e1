//! Gradient accumulation.

use foretrain_core::{InputError, Result};
use foretrain_graph::{NodeId, NodeKind, NodeSet, Phase};

use crate::strategy::draft::{Draft, Exchange};
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{Pass, PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "accumulate",
    stage: Stage::Step,
    about: "Runs forward and backward several times before the optimiser. Gradients are exchanged after the last micro-batch, or after each.",
    source: "PyTorch DDP with and without no_sync",
    parameters: &[
        Parameter::new(
            "micro-batches",
            Kind::Count,
            "2",
            "How many per step, of the recorded size each.",
        ),
        Parameter::new("deferred", Kind::Flag, "true", "Exchange after the last only (no_sync)."),
    ],
    build: &|values| {
        let times = values.count("micro-batches").unwrap_or(1);
        match u32::try_from(times) {
            Ok(times) if (1..=4_096).contains(&times) => {
                Ok(Box::new(Accumulate { times, deferred: values.flag("deferred") }))
            }
            _ => Err(InputError::new(format!(
                "micro-batches = {times}: expected a number from 1 to 4096"
            ))),
        }
    },
};

struct Accumulate {
    times: u32,
    deferred: bool,
}

impl Pass for Accumulate {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        let graph = &*draft.graph;
        let repeated = |phase| matches!(phase, Phase::Input | Phase::Forward | Phase::Backward);
        let part = NodeSet::from_fn(graph.node_count(), |row| {
            let node = graph.node(NodeId::from_index(row));
            // Messages carry activations, whatever phase either end gives them.
            repeated(node.phase) || node.kind == NodeKind::PointToPoint
        });
        draft.repeat(&part, self.times)?;
        draft.batches *= self.times;
        if !self.deferred {
            each_micro_step(draft);
        }
        Ok(())
    }
}

/// Plans the last micro-batch's exchanges for every micro-batch.
pub(super) fn each_micro_step(draft: &mut Draft<'_>) {
    let last = draft.micro_steps() - 1;
    let planned: Vec<Exchange> =
        draft.exchanges.iter().filter(|one| one.micro_step == last).cloned().collect();
    let mut all = Vec::new();
    for micro_step in 0..last {
        let before = draft.waiting_for(micro_step);
        for one in &planned {
            let last = one.gradients.end.checked_sub(1);
            let Some(ready) = last.and_then(|last| draft.gradients[micro_step].get(last)) else {
                continue;
            };
            let (after, before) = (ready.ready.clone(), before.clone());
            all.push(Exchange { micro_step, after, before, ..one.clone() });
        }
    }
    all.extend(planned);
    draft.exchanges = all;
}
