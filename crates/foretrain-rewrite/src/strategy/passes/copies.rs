//! DDP's copies of gradients into its buckets and back.

use foretrain_core::{Bytes, Nanos, Result};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{Edge, EdgeKind, Node, NodeId, NodeKind};

use crate::strategy::draft::{Draft, Gradient};
use crate::strategy::lower::LAUNCH_LATENCY;
use crate::strategy::pass::{Pass, PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "copies",
    stage: Stage::Step,
    about: "Copies each gradient into its bucket as soon as it is ready, which delays what computes behind it, and back when the bucket has come round, which the optimiser waits for.",
    source: "PyTorch DDP without gradient_as_bucket_view",
    parameters: &[],
    build: &|_| Ok(Box::new(Copies)),
};

struct Copies;

impl Pass for Copies {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        if draft.costs.replicas() < 2 {
            return Ok(());
        }
        let gradients: Vec<(Gradient, NodeId, Option<NodeId>)> = draft
            .last_gradients()
            .iter()
            .filter_map(|one| {
                let of = |kind| one.ready.iter().find(|a| a.kind == kind).map(|a| a.node);
                Some((one.clone(), of(EdgeKind::Launch)?, of(EdgeKind::EventWait)))
            })
            .collect();
        let on_device = draft.on_device;
        let name = draft.graph.names.intern("copy of a gradient into its bucket");
        let mut places = Vec::new();
        for (gradient, host, device) in &gradients {
            let behind = device.unwrap_or(*host);
            // On a device the copy is a kernel like any other.
            let kind = if device.is_some() { NodeKind::Kernel } else { NodeKind::Copy };
            let work = draft.costs.copy(gradient.bytes).value;
            let copy = Node {
                phase: draft.graph.node(*host).phase,
                bytes: Some(gradient.bytes),
                ..Node::new(kind, name, draft.graph.queue(behind), work)
            };
            places.push((behind, copy));
        }
        let order = if on_device { EdgeKind::StreamOrder } else { EdgeKind::ThreadOrder };
        let copies = draft.graph.insert_after_each(&places, order);
        for ((gradient, host, device), copy) in gradients.iter().zip(copies) {
            if device.is_some() {
                let launch = Edge::new(*host, copy, EdgeKind::Launch);
                draft.graph.add_edge(launch.with_lag(LAUNCH_LATENCY).inferred());
            } else {
                move_ready_point(draft, *host, copy, gradient.bytes, gradient.at);
            }
        }
        draft.find()?;
        for exchange in &mut draft.exchanges {
            exchange.copied = true;
        }
        Ok(())
    }
}

/// On the host a gradient is ready when its copy has ended, not before.
fn move_ready_point(draft: &mut Draft<'_>, from: NodeId, to: NodeId, bytes: Bytes, at: Nanos) {
    let attributes = &mut draft.graph.node_attributes;
    if let Some(mut column) = attributes.remove_column(well_known::GRADIENT_BYTES) {
        column.clear(from.index());
        attributes.insert_column(well_known::GRADIENT_BYTES, column);
    }
    let bytes = i64::try_from(bytes.get()).unwrap_or(i64::MAX);
    attributes.set_i64(well_known::GRADIENT_BYTES, to.index(), bytes);
    attributes.set_i64(well_known::RECORDED_START, to.index(), at.nanos());
    attributes.set_i64(well_known::RECORDED_DURATION, to.index(), 0);
}
