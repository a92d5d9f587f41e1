//! The operations of attention with its projections.

use super::shape::{Attention, Latent, Norms, QueryKeyNorm};
use crate::model::{Elementwise, Norm, Op, OpKind, SelfAttention, Split};

/// What surrounds an attention in its layer.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// How the operations' names begin.
    pub(super) prefix: &'static str,
    /// Width of the residual stream.
    pub(super) hidden: u64,
    pub(super) window: Option<u64>,
    /// Keys and values come from the source sequence.
    pub(super) cross: bool,
    pub(super) norms: Norms,
}

impl Attention {
    /// From the normalised stream to what is added to it.
    pub(super) fn ops(&self, place: Place) -> Vec<Op> {
        let mut ops = match self.latent {
            Some(latent) => self.latent_projections(latent, place),
            None => self.projections(place),
        };
        let named = |part: &str| format!("{}.{part}", place.prefix);
        ops.extend(self.norms_of_heads(place));
        // The up-projected keys and values are packed anew: each head's key ends in the rotated part
        // that all share.
        let rotated = self.latent.map_or((self.heads + self.kv_heads) * self.rotary, |latent| {
            self.heads * (latent.rotated + latent.plain + latent.value)
        });
        if rotated > 0 {
            let kind = OpKind::Elementwise { what: Elementwise::Rotary, width: rotated };
            ops.push(Op::new(named("rotary"), kind, Split::Inner));
        }
        let shape = SelfAttention {
            heads: self.heads,
            kv_heads: if self.latent.is_some() { self.heads } else { self.kv_heads },
            head_dim: self.score_dim(),
            value_dim: self.value_dim(),
            causal: self.causal && !place.cross,
            window: place.window,
            cross: place.cross,
        };
        let mut core = Op::new(named("core"), OpKind::Attention(shape), Split::Inner);
        if self.sinks {
            core = core.with("sinks", self.heads, true);
        }
        ops.push(core);
        let inputs = self.heads * self.value_dim();
        let kind = OpKind::Linear { inputs, outputs: place.hidden };
        let out = Op::new(named("out"), kind, Split::Rows);
        let out = out.with("weight", inputs * place.hidden, true);
        ops.push(if self.output_bias { out.with("bias", place.hidden, false) } else { out });
        ops
    }

    /// Queries, keys and values in one product; queries by themselves where the sources differ.
    fn projections(&self, place: Place) -> Vec<Op> {
        let (queries, keys) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let inputs = place.hidden;
        let product = |part: &str, outputs: u64, tensors: &[(&'static str, &'static str, u64)]| {
            let name = format!("{}.{part}", place.prefix);
            let op = Op::new(name, OpKind::Linear { inputs, outputs }, Split::Columns);
            tensors.iter().fold(op, |op, &(weight, bias, outputs)| {
                let op = op.with(weight, inputs * outputs, true);
                if self.input_bias { op.with(bias, outputs, true) } else { op }
            })
        };
        let query = ("query.weight", "query.bias", queries);
        let [key, value] = [("key.weight", "key.bias", keys), ("value.weight", "value.bias", keys)];
        if place.cross {
            let mut key_value = product("kv", 2 * keys, &[key, value]);
            // The source is kept once for all layers.
            key_value.keeps_input = false;
            key_value.on_source = true;
            return vec![product("q", queries, &[query]), key_value];
        }
        vec![product("qkv", queries + 2 * keys, &[query, key, value])]
    }

    fn latent_projections(&self, latent: Latent, place: Place) -> Vec<Op> {
        let named = |part: &str| format!("{}.{part}", place.prefix);
        let product = |part: &str, inputs: u64, outputs: u64, split| {
            Op::new(named(part), OpKind::Linear { inputs, outputs }, split).with(
                "weight",
                inputs * outputs,
                split == Split::Columns,
            )
        };
        let norm = |part: &str, width| {
            Op::new(named(part), OpKind::Norm { norm: Norm::Rms, width }, Split::Whole)
                .with("weight", width, false)
        };
        let queries = self.heads * self.score_dim();
        let mut ops = Vec::new();
        match latent.query_rank {
            Some(rank) => ops.extend([
                product("q_a", place.hidden, rank, Split::Whole),
                norm("q_norm", rank),
                product("q_b", rank, queries, Split::Columns),
            ]),
            None => ops.push(product("q", place.hidden, queries, Split::Columns)),
        }
        let rank = latent.key_value_rank;
        let mut down = product("kv_a", place.hidden, rank + latent.rotated, Split::Whole);
        // The queries' product keeps the same input.
        down.keeps_input = false;
        let outputs = self.heads * (latent.plain + latent.value);
        ops.extend([down, norm("kv_norm", rank), product("kv_b", rank, outputs, Split::Columns)]);
        ops
    }

    fn norms_of_heads(&self, place: Place) -> Vec<Op> {
        let (queries, keys) = (self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let each = match self.query_key_norm {
            QueryKeyNorm::None => return Vec::new(),
            QueryKeyNorm::Weightless => (0, 0, false),
            QueryKeyNorm::PerHead => (self.head_dim, self.head_dim, false),
            QueryKeyNorm::Full => (queries, keys, true),
        };
        let norm = |part: &str, width, weights, divided| {
            let kind = OpKind::Norm { norm: place.norms.norm, width };
            let op = Op::new(format!("{}.{part}", place.prefix), kind, Split::Inner);
            if weights == 0 {
                return op;
            }
            let op = op.with("weight", weights, divided);
            if place.norms.tensors > 1 { op.with("bias", weights, divided) } else { op }
        };
        vec![norm("q_norm", queries, each.0, each.2), norm("k_norm", keys, each.1, each.2)]
    }
}
