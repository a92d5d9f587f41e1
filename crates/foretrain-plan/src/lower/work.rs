//! What a pass consists of.

use foretrain_core::Bytes;
use foretrain_cost::kernels::{Memory, MemoryKind, Operation};
use foretrain_graph::CollectiveKind;
use serde::Serialize;

/// Whom a millisecond belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owner {
    /// Matrix products of linear layers.
    Gemm,
    /// Attention.
    Attention,
    /// Routed experts: their products and moving tokens about.
    Expert,
    /// Convolutions and recurrent layers.
    Convolution,
    /// Norms, activations, dropout, sums.
    Elementwise,
    /// Embedding and loss.
    Vocabulary,
}

/// Who takes part in a communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// Ranks that divide a layer's width.
    Tensor,
    /// Ranks that divide a sequence.
    Context,
    /// Ranks that divide the experts.
    Expert,
    /// Ranks that divide an expert's width.
    ExpertTensor,
}

/// A collective or exchange of one group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Comm {
    /// Which.
    pub kind: CollectiveKind,
    /// The larger of a rank's input and output.
    pub bytes: Bytes,
    /// Who takes part.
    pub group: Group,
    /// So many copies of each token are among the bytes, of which one per node suffices; 1 where
    /// all bytes differ.
    pub copies: u32,
}

/// A piece of a pass; pieces run one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// A kernel (launched as so many) on the device.
    Kernel {
        /// What it does.
        operation: Operation,
        /// Whose it is.
        owner: Owner,
        /// Launches that one takes.
        launches: u32,
        /// So many, one after the other.
        times: u32,
    },
    /// Communication that everything waits for.
    Comm(Comm),
    /// Communication beside kernels; both end before the next piece.
    Beside {
        /// The communication.
        comm: Comm,
        /// Kernels meanwhile.
        kernels: Vec<(Operation, Owner)>,
        /// The communication is cut into so many pieces, of which one cannot be hidden; 1 where
        /// it does not depend on the kernels.
        pieces: u32,
    },
}

/// What a rank runs of a layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lowered {
    /// Forward.
    pub forward: Vec<Work>,
    /// Backward, both gradients together.
    pub backward: Vec<Work>,
    /// Backward, gradients of the inputs alone.
    pub inputs: Vec<Work>,
    /// Backward, gradients of the weights alone: no other stage waits for them.
    pub weights: Vec<Work>,
    /// The part of `forward` that is the core of attention: what selective recomputation forms
    /// again.
    pub core: Vec<Work>,
    /// Kept from the forward to the backward pass.
    pub kept: Bytes,
    /// The part of `kept` that the core of attention keeps.
    pub kept_core: Bytes,
    /// What enters the next layer.
    pub output: Bytes,
    /// The largest buffers that live within one operation only.
    pub transient: Bytes,
}

impl Lowered {
    pub(super) fn keep(&mut self, bytes: Bytes) {
        self.kept += bytes;
    }
    pub(super) fn need(&mut self, bytes: Bytes) {
        self.transient = self.transient.max(bytes);
    }
    /// Work of the backward pass that other stages wait for. Lists are filled in forward order and
    /// each operation's backward work is put in front of what is there.
    pub(super) fn before(&mut self, work: impl IntoIterator<Item = Work>) {
        let work: Vec<Work> = work.into_iter().collect();
        self.backward.splice(0..0, work.iter().cloned());
        self.inputs.splice(0..0, work);
    }
}

pub(super) const fn kernel(operation: Operation, owner: Owner) -> Work {
    Work::Kernel { operation, owner, launches: 1, times: 1 }
}

/// A memory-bound kernel launched as `launches`.
pub(super) const fn memory(
    kind: MemoryKind,
    (read, written): (Bytes, Bytes),
    owner: Owner,
    launches: u32,
) -> Work {
    let operation = Operation::Memory(Memory { kind, read, written });
    Work::Kernel { operation, owner, launches, times: 1 }
}

pub(super) const fn comm(kind: CollectiveKind, bytes: Bytes, group: Group) -> Work {
    Work::Comm(Comm { kind, bytes, group, copies: 1 })
}
