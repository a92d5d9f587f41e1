//! More or fewer samples per replica and step.

use foretrain_core::{Nanos, Result};
use foretrain_graph::{NodeKind, Phase};

use super::precision::resize;
use crate::roles::Role;
use crate::whatif::sketch::Sketch;

/// Part of every kernel that does not grow with its work: filling and draining the device.
const FIXED: Nanos = Nanos::from_micros(2);
/// How uncertain the change is: larger kernels fill a device better, smaller ones worse.
const SPREAD: f64 = 0.15;

/// Kernels and copies of the forward and backward pass grow in proportion beyond a fixed part of
/// 2 us, waits for input in proportion, and so do the messages that carry activations (tensor-,
/// pipeline- and expert-parallel groups). Optimiser, gradient synchronisation and host work stay.
pub(super) fn scale(sketch: &mut Sketch<'_>, factor: f64) -> Result<()> {
    for class in sketch.classes() {
        let graph = sketch.graph(class);
        let grows = sketch.own_work(class, |id, kind| {
            let phase = graph.node(id).phase;
            matches!(kind, NodeKind::Kernel | NodeKind::Copy)
                && !matches!(phase, Phase::Optimizer | Phase::Sync)
        });
        let loads = sketch.own_work(class, |_, kind| kind == NodeKind::DataLoad);
        sketch.rework(class, grows, |_, work| {
            let fixed = work.min(FIXED);
            fixed + (work - fixed).scale(factor)
        });
        sketch.rework(class, loads, |_, work| work.scale(factor));
        let splits_the_model = |role: Role| {
            matches!(role, Role::TensorParallel | Role::PipelineParallel | Role::ExpertParallel)
        };
        resize(sketch, class, |node, role| {
            (splits_the_model(role) && node.phase != Phase::Optimizer).then_some(factor)
        })?;
    }
    sketch.batch *= factor;
    sketch.spread = sketch.spread.max(SPREAD);
    Ok(())
}
