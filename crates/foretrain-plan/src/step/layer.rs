//! One layer's passes on one rank.

use foretrain_core::{Bytes, DType, Nanos, Result};
use foretrain_cost::kernels::{Memory, MemoryKind, Operation};
use foretrain_graph::CollectiveKind;
use foretrain_workload::model::{Layer, Role};

use super::shares::Shares;
use crate::layout::{Layout, Ranks, Recompute, Sharding};
use crate::lower::{Lowered, Owner, Slice, Work, lower};
use crate::software::Software;
use crate::times::{Machine, PassTime};
use crate::training::{Precision, Training};

/// What a layer costs a rank in one micro-batch.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerCost {
    /// Forward.
    pub forward: PassTime,
    /// Backward, both gradients, nothing formed again.
    pub backward: PassTime,
    /// Backward, gradients of the inputs.
    pub inputs: PassTime,
    /// Backward, gradients of the weights.
    pub weights: PassTime,
    /// What selective recomputation forms again.
    pub core: PassTime,
    /// Numbers it holds.
    pub shares: Shares,
    /// Numbers it trains.
    pub trained: Shares,
    /// Kept between the passes.
    pub kept: Bytes,
    /// The part of it that selective recomputation does not keep.
    pub kept_core: Bytes,
    /// What enters it (and what full recomputation keeps): the output of a layer like it.
    pub boundary: Bytes,
    /// Buffers within one operation.
    pub transient: Bytes,
    /// Gathering its parameters, if they are divided.
    pub gather: Nanos,
    /// Reducing its gradients to their parts after each micro-batch, if they are divided.
    pub scatter: Nanos,
    /// Copies between flat buffers and tensors where parameters are divided: after a gather, forward
    /// and backward, and before a reduction.
    pub copies: [Option<Work>; 3],
    /// Where it stands.
    pub role: Role,
}

impl LayerCost {
    /// Lowers `layer` and times it.
    pub fn of(
        layer: &Layer,
        slice: &Slice,
        layout: &Layout,
        training: &Training,
        machine: &Machine<'_>,
    ) -> Result<Self> {
        let ranks = Ranks::of(layout);
        let mut lowered = lower(layer, slice);
        let shares = Shares::of(layer, layout);
        let copies = flat_copies(shares, layout, &training.precision);
        lowered.forward.extend(copies[0].clone());
        lowered.backward.extend(copies[1..].iter().flatten().cloned());
        lowered.inputs.extend(copies[1].clone());
        lowered.weights.extend(copies[2].clone());
        let Lowered { forward, backward, inputs, weights, core, .. } = &lowered;
        let trained = match training.lora {
            Some(lora) => Shares { dense: lora.parameters(layer, layout), ..Shares::default() },
            None => shares,
        };
        let (gather, scatter) =
            divided(shares, trained, layout, &training.precision, machine, &ranks)?;
        Ok(Self {
            forward: machine.pass(forward, &ranks)?,
            backward: machine.pass(backward, &ranks)?,
            inputs: machine.pass(inputs, &ranks)?,
            weights: machine.pass(weights, &ranks)?,
            core: machine.pass(core, &ranks)?,
            shares,
            trained,
            kept: lowered.kept,
            kept_core: lowered.kept_core,
            boundary: lowered.output,
            transient: lowered.transient,
            gather,
            scatter,
            copies,
            role: layer.role,
        })
    }

    /// What is formed again in the backward pass of this layer.
    pub fn again(&self, recompute: Recompute, nth: u32) -> PassTime {
        match recompute {
            Recompute::Selective => self.core,
            _ if self.is_formed_again(recompute, nth) => self.forward,
            _ => PassTime::default(),
        }
    }

    /// Whether it is formed again as a whole.
    pub fn is_formed_again(&self, recompute: Recompute, nth: u32) -> bool {
        self.role == Role::Body
            && match recompute {
                Recompute::None | Recompute::Selective => false,
                Recompute::Full => true,
                Recompute::Layers(layers) => nth < layers,
            }
    }

    /// What is kept of it between the passes.
    pub fn kept(&self, recompute: Recompute, nth: u32) -> Bytes {
        match recompute {
            Recompute::Selective => self.kept - self.kept_core,
            _ if self.is_formed_again(recompute, nth) => self.boundary,
            _ => self.kept,
        }
    }
}

/// Gathered parameters are copied from one flat buffer into tensors, gradients from tensors into one.
fn flat_copies(shares: Shares, layout: &Layout, precision: &Precision) -> [Option<Work>; 3] {
    if layout.sharding != Sharding::Parameters {
        return [None, None, None];
    }
    let size = |dtype: DType| Bytes::new(dtype.bytes_of(shares.total()));
    let copy = |read, written| {
        let operation = Operation::Memory(Memory { kind: MemoryKind::Copy, read, written });
        Some(Work::Kernel { operation, owner: Owner::Elementwise, launches: 1, times: 1 })
    };
    let out = copy(size(precision.weights), size(precision.weights));
    [out.clone(), out, copy(size(precision.activations), size(precision.gradients))]
}

/// Gathering a layer's divided parameters, and reducing its gradients to their parts.
fn divided(
    shares: Shares,
    trained: Shares,
    layout: &Layout,
    precision: &Precision,
    machine: &Machine<'_>,
    ranks: &Ranks,
) -> Result<(Nanos, Nanos)> {
    if layout.sharding < Sharding::Gradients {
        return Ok((Nanos::ZERO, Nanos::ZERO));
    }
    let gathers = layout.sharding == Sharding::Parameters;
    let size = |dtype: DType, numbers| Bytes::new(dtype.bytes_of(numbers));
    let within = ranks.shard();
    let weights = size(precision.weights, shares.dense);
    let mut gather = Nanos::ZERO;
    if gathers {
        gather = machine.collective(CollectiveKind::AllGather, weights, &within)?.time;
    }
    let gradients = size(precision.gradients, trained.dense);
    let mut scatter = machine.collective(CollectiveKind::ReduceScatter, gradients, &within)?.time;
    let across = ranks.across_shards();
    let part = Bytes::new(gradients.get() / u64::from(within.ranks().max(1)));
    scatter += machine.collective(CollectiveKind::AllReduce, part, &across)?.time;
    if shares.expert > 0 {
        let group = ranks.expert_data();
        let weights = size(precision.weights, shares.expert);
        if gathers {
            gather += machine.collective(CollectiveKind::AllGather, weights, &group)?.time;
        }
        let gradients = size(precision.gradients, trained.expert);
        scatter += machine.collective(CollectiveKind::ReduceScatter, gradients, &group)?.time;
    }
    Ok((gather, scatter))
}

/// Host time from launch to launch, and per pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) forward: Nanos,
    pub(super) backward: Nanos,
    pub(super) per_pass: Nanos,
    pub(super) per_checkpoint: Nanos,
}

impl Pace {
    pub(super) fn of(software: &Software, factor: f64) -> Self {
        Self {
            forward: software.host_forward.scale(factor),
            backward: software.host_backward.scale(factor),
            per_pass: software.host_per_pass.scale(factor),
            per_checkpoint: software.host_per_checkpoint.scale(factor),
        }
    }
}
