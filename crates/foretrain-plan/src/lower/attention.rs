//! Attention between the projections, and what dividing sequences costs it.

use foretrain_core::Bytes;
use foretrain_cost::kernels::{Attention, Gemm, MemoryKind, Operation, Pass};
use foretrain_graph::CollectiveKind;
use foretrain_workload::model::{SelfAttention, Tokens};

use super::slice::Slice;
use super::work::{Comm, Group, Lowered, Owner, Work, kernel, memory};
use crate::layout::ContextMethod;
use crate::software::Fusion;

pub(super) fn attention(
    shape: SelfAttention,
    tokens: Tokens,
    drops: bool,
    slice: &Slice,
    out: &mut Lowered,
) {
    let source = if shape.cross { Tokens::Sequence } else { tokens };
    let ulysses = slice.context > 1 && slice.context_method == ContextMethod::Ulysses;
    let head_ranks = slice.tensor * if ulysses { slice.context } else { 1 };
    let heads = shape.heads.div_ceil(head_ranks);
    let kv_heads = shape.kv_heads.div_ceil(head_ranks).min(heads);
    let queries = if ulysses { slice.length(tokens) } else { slice.part(tokens) };
    let keys = slice.length(source);
    // Ranks that take pieces from both ends of a sequence see the mean; else the last decides.
    let divided = slice.context > 1 && !ulysses && !matches!(tokens, Tokens::Fixed(_));
    let (causal, window) = if divided && shape.causal {
        let width = if slice.balanced_context {
            mean_width(keys, shape.window)
        } else {
            let last = (keys - queries.min(keys)) + queries.div_ceil(2);
            shape.window.map_or(last, |window| window.min(last)).max(1)
        };
        (false, Some(width))
    } else {
        (shape.causal, shape.window)
    };
    let fused = Attention {
        batch: slice.samples,
        heads,
        kv_heads,
        queries,
        keys,
        head_dim: shape.head_dim,
        value_dim: shape.value_dim,
        causal,
        window,
        dtype: slice.precision.unquantised(),
        pass: Pass::Forward,
        kernel: slice.attention.unwrap_or_default(),
    };
    let rows = slice.samples * queries;
    let kept = rows * (heads * shape.head_dim)
        + slice.samples * slice.part(source) * kv_heads * (shape.head_dim + shape.value_dim);
    out.keep(slice.activation_bytes(kept));

    let core = if slice.attention.is_some() {
        out.keep(Bytes::new(4 * rows * heads));
        Core::fused(fused)
    } else {
        let core = Core::written_out(fused, drops, slice);
        out.keep(core.kept);
        out.kept_core += core.kept;
        out.core.extend(core.forward.iter().cloned());
        core
    };
    if slice.context > 1 && !matches!(tokens, Tokens::Fixed(_)) {
        let exchange = Exchange { shape, slice, kv_heads, heads, part: slice.part(source) };
        exchange.around(core, out);
    } else {
        out.forward.extend(core.forward);
        out.before(core.backward);
    }
}

/// The longest rows that the merged softmax takes.
const MERGED_SOFTMAX_KEYS: u64 = 16_384;

/// Keys that a query sees on average.
fn mean_width(keys: u64, window: Option<u64>) -> u64 {
    let window = window.unwrap_or(keys).min(keys).max(1);
    // The first `window` queries see 1 to `window` keys, the others `window`.
    let pairs = window * (window + 1) / 2 + keys.saturating_sub(window) * window;
    pairs.div_ceil(keys.max(1)).max(1)
}

struct Core {
    forward: Vec<Work>,
    backward: Vec<Work>,
    kept: Bytes,
}

impl Core {
    fn fused(attention: Attention) -> Self {
        let backward = Attention { pass: Pass::Backward, ..attention };
        Self {
            forward: vec![kernel(Operation::Attention(attention), Owner::Attention)],
            // The row sums of gradient and result come first, in a small kernel of their own.
            backward: vec![Work::Kernel {
                operation: Operation::Attention(backward),
                owner: Owner::Attention,
                launches: 2,
                times: 1,
            }],
            kept: Bytes::ZERO,
        }
    }

    /// Scores are formed whole, whatever the mask: two products, softmax and, where there is any,
    /// dropout.
    fn written_out(attention: Attention, drops: bool, slice: &Slice) -> Self {
        let Attention { batch, heads, queries, keys, head_dim, value_dim, dtype, .. } = attention;
        let batch = batch * heads;
        let product = |m, n, k| {
            let gemm = Gemm { batch, m, n, k, dtype, output: slice.precision.activations };
            kernel(Operation::Gemm(gemm), Owner::Attention)
        };
        let scores = batch * queries * keys;
        let size = slice.activation_bytes(scores);
        let twice = size + size;
        // The merged kernel takes four rows of scores at a time, of at most so many keys
        // (Megatron-LM); otherwise scale, mask, cast and softmax are kernels of their own.
        let merged = batch.is_multiple_of(4) && (16..=MERGED_SOFTMAX_KEYS).contains(&keys);
        let eager = slice.fusion == Fusion::Eager || !merged;
        let launches = if eager { 6 } else { 1 };
        let softmax = |read: Bytes, written: Bytes| {
            memory(MemoryKind::Softmax, (read, written), Owner::Attention, launches)
        };
        let dropout = |read: Bytes, written: Bytes| {
            memory(MemoryKind::Elementwise, (read, written), Owner::Attention, 1)
        };
        let mask = Bytes::new(scores);
        let extra = if eager { twice } else { Bytes::ZERO };
        let mut forward =
            vec![product(queries, keys, head_dim), softmax(size + extra, size + extra)];
        let mut backward =
            vec![product(queries, keys, value_dim), product(keys, value_dim, queries)];
        if drops {
            forward.push(dropout(size, size + mask));
            backward.push(dropout(size + mask, size));
        }
        forward.push(product(queries, value_dim, keys));
        backward.extend([
            softmax(twice + extra, size + extra),
            product(queries, head_dim, keys),
            product(keys, head_dim, queries),
        ]);
        Self { forward, backward, kept: if drops { twice + mask } else { size } }
    }
}

/// How ranks that divide a sequence get at each other's keys and values.
struct Exchange<'a> {
    shape: SelfAttention,
    slice: &'a Slice,
    heads: u64,
    kv_heads: u64,
    /// Positions of this rank's keys.
    part: u64,
}

impl Exchange<'_> {
    fn around(&self, core: Core, out: &mut Lowered) {
        match self.slice.context_method {
            ContextMethod::Ring => self.ring(core, out),
            ContextMethod::AllGather => self.gather(core, out),
            ContextMethod::Ulysses => self.exchange_heads(core, out),
        }
    }

    fn keys_and_values(&self) -> u64 {
        let width = self.kv_heads * (self.shape.head_dim + self.shape.value_dim);
        self.slice.samples * self.part * width
    }

    /// Blocks travel while the block before is worked on. The bytes of all but the own block pass
    /// each link once forward, and with their gradients twice backward.
    fn ring(&self, core: Core, out: &mut Lowered) {
        let others = self.keys_and_values() * (self.slice.context - 1);
        let comm = |numbers| Comm {
            kind: CollectiveKind::SendRecv,
            bytes: self.slice.activation_bytes(numbers),
            group: Group::Context,
            copies: 1,
        };
        let pieces = u32::try_from(self.slice.context).unwrap_or(u32::MAX);
        out.forward.push(beside(comm(others), core.forward, pieces));
        out.before([beside(comm(2 * others), core.backward, pieces)]);
    }

    fn gather(&self, core: Core, out: &mut Lowered) {
        let bytes = self.slice.activation_bytes(self.keys_and_values() * self.slice.context);
        let comm = |kind| Work::Comm(Comm { kind, bytes, group: Group::Context, copies: 1 });
        out.forward.push(comm(CollectiveKind::AllGather));
        out.forward.extend(core.forward);
        let mut backward = vec![comm(CollectiveKind::AllGather)];
        backward.extend(core.backward);
        backward.push(comm(CollectiveKind::ReduceScatter));
        out.before(backward);
        out.need(bytes);
    }

    /// All-to-all before attention (queries, keys, values) and after it (the result).
    fn exchange_heads(&self, core: Core, out: &mut Lowered) {
        let rows = self.slice.samples * self.part;
        let ranks = self.slice.context;
        let entering = rows
            * ranks
            * (self.heads * self.shape.head_dim
                + self.kv_heads * (self.shape.head_dim + self.shape.value_dim));
        let leaving = rows * ranks * self.heads * self.shape.value_dim;
        let comm = |numbers| {
            Work::Comm(Comm {
                kind: CollectiveKind::AllToAll,
                bytes: self.slice.activation_bytes(numbers),
                group: Group::Context,
                copies: 1,
            })
        };
        out.forward.push(comm(entering));
        out.forward.extend(core.forward);
        out.forward.push(comm(leaving));
        let mut backward = vec![comm(leaving)];
        backward.extend(core.backward);
        backward.push(comm(entering));
        out.before(backward);
    }
}

fn beside(comm: Comm, work: Vec<Work>, pieces: u32) -> Work {
    let kernels = work.into_iter().filter_map(|work| match work {
        Work::Kernel { operation, owner, .. } => Some((operation, owner)),
        _ => None,
    });
    Work::Beside { comm, kernels: kernels.collect(), pieces }
}
