//! What would make a layout fit.

use foretrain_core::{Bytes, Estimate, Nanos};
use serde::Serialize;

use crate::check::check_layout;
use crate::layout::{Layout, Recompute, Sharding};
use crate::memory::{Fit, StageMemory};
use crate::plan::{Question, Space};
use crate::step::Job;

/// One change, and what comes of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// For people: `recompute all layers`.
    pub change: String,
    /// The changed layout.
    pub layout: Layout,
    /// Its step time.
    pub time: Estimate<Nanos>,
    /// Most likely use of its fullest device.
    pub memory: Bytes,
    /// How it fits.
    pub fit: Fit,
}

/// Single changes to a layout after which it fits, fastest first.
pub fn advice(question: &Question<'_>, job: &Job<'_>, layout: &Layout) -> Vec<Advice> {
    let mut all: Vec<Advice> = changes(job, layout)
        .into_iter()
        .filter_map(|(change, layout)| judge(question, job, change, layout))
        .filter(|advice| advice.fit != Fit::No)
        .collect();
    all.sort_by_key(|advice| (advice.time.value, advice.memory));
    all
}

fn judge(question: &Question<'_>, job: &Job<'_>, change: String, layout: Layout) -> Option<Advice> {
    let cluster = job.machine.cluster();
    check_layout(&layout, job.model, job.training, cluster).ok()?;
    let laid = job.lay(&layout).ok()?;
    let memory = laid.memory().ok()?;
    let fullest = memory.iter().max_by_key(|stage| stage.used.value)?;
    let fit = memory.iter().map(StageMemory::fits).max()?;
    let (time, memory) = (question.time(&laid.step().ok()?), fullest.used.value);
    drop(laid);
    Some(Advice { change, time, memory, fit, layout })
}

/// Every change that may save memory, whether it goes with the model or not.
fn changes(job: &Job<'_>, layout: &Layout) -> Vec<(String, Layout)> {
    let mut all: Vec<(String, Layout)> = Vec::new();
    let with = |change: &dyn Fn(&mut Layout)| {
        let mut layout = layout.clone();
        change(&mut layout);
        layout
    };
    if layout.recompute != Recompute::Full {
        if job.software.attention.is_none() && layout.recompute == Recompute::None {
            let changed = with(&|layout| layout.recompute = Recompute::Selective);
            all.push(("recompute attention".into(), changed));
        }
        // So many of each chunk, as layouts count them.
        let chunks = layout.pipeline.max(1).saturating_mul(layout.virtual_stages.max(1));
        let half = job.model.body_layers() / chunks / 2;
        if layout.recompute == Recompute::None && half > 0 {
            let changed = with(&|layout| layout.recompute = Recompute::Layers(half));
            let of = if layout.virtual_stages > 1 { "virtual stage" } else { "stage" };
            all.push((format!("recompute {half} layers of each {of}"), changed));
        }
        let changed = with(&|layout| layout.recompute = Recompute::Full);
        all.push(("recompute all layers".into(), changed));
    }
    if layout.gradient_ranks() > 1 {
        let offered = Space::of(job.software, crate::Wish::default()).shardings;
        for sharding in offered.into_iter().filter(|&sharding| sharding > layout.sharding) {
            let what = match sharding {
                Sharding::None => continue,
                Sharding::Optimiser => "optimiser states",
                Sharding::Gradients => "optimiser states and gradients",
                Sharding::Parameters => "states, gradients and parameters",
            };
            let changed = with(&|layout| layout.sharding = sharding);
            all.push((format!("divide {what} among replicas"), changed));
        }
    }
    if layout.micro_batch.is_multiple_of(2) {
        all.push(("halve the micro-batch".into(), with(&|layout| layout.micro_batch /= 2)));
    }
    if layout.tensor > 1 && !layout.sequence_parallel {
        all.push(("sequence parallelism".into(), with(&|layout| layout.sequence_parallel = true)));
    }
    if layout.data.is_multiple_of(2) {
        all.push((
            "twice the tensor parallelism, half the replicas".into(),
            with(&|layout| {
                layout.data /= 2;
                if layout.expert == 1 {
                    layout.expert_tensor *= 2;
                }
                layout.tensor *= 2;
            }),
        ));
        all.push((
            "twice the stages, half the replicas".into(),
            with(&|layout| {
                layout.data /= 2;
                layout.pipeline *= 2;
                layout.stage_layers = None;
            }),
        ));
        all.push((
            "twice the context parallelism, half the replicas".into(),
            with(&|layout| {
                layout.data /= 2;
                layout.context *= 2;
            }),
        ));
    }
    if !layout.offload_optimiser {
        let changed = with(&|layout| layout.offload_optimiser = true);
        all.push(("keep and update optimiser states on the host".into(), changed));
    }
    if !layout.offload_activations {
        let changed = with(&|layout| layout.offload_activations = true);
        all.push(("copy activations to the host between passes".into(), changed));
    }
    all
}
