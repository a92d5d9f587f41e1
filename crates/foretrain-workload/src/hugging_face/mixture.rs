//! Mixtures of experts on Llama's form.

use foretrain_core::Result;

use super::config::Config;
use super::llama::{base, pattern};
use crate::architecture::Architecture;
use crate::architecture::transformer::{MixtureOfExperts, QueryKeyNorm};
use crate::limits;

pub(super) fn mixtral(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, Some(8))?;
    let experts = config.or("num_local_experts", 8, limits::PARTS)?;
    let top_k = config.or("num_experts_per_tok", 2, limits::PARTS)?;
    model.stack.experts = Some(MixtureOfExperts::of(experts, top_k, model.stack.perceptron.inner));
    if let Some(window) = config.count("sliding_window", limits::POSITIONS)? {
        model.stack.windows = vec![Some(window)];
    }
    Ok(model.into())
}

/// Qwen2-MoE (biases, a shared expert with a gate) and Qwen3-MoE (norms of queries and keys).
pub(super) fn qwen_moe(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, None)?;
    let is_third = config.text("model_type")? == Some("qwen3_moe");
    let (experts, top_k, inner) = if is_third { (128, 8, 768) } else { (60, 4, 1408) };
    let experts = match config.count("num_local_experts", limits::PARTS)? {
        Some(experts) => experts,
        None => config.or("num_experts", experts, limits::PARTS)?,
    };
    let top_k = config.or("num_experts_per_tok", top_k, limits::PARTS)?;
    let inner = config.or("moe_intermediate_size", inner, limits::WIDTH)?;
    let mut mixture = MixtureOfExperts::of(experts, top_k, inner);
    mixture.every = config.count_or("decoder_sparse_step", 1, limits::LAYERS)?;
    if config.is_given("mlp_only_layers") {
        config.assume("mlp_only_layers is not read: all layers are taken to have experts");
    }
    if is_third {
        model.stack.attention.query_key_norm = QueryKeyNorm::PerHead;
        let bias = config.flag("attention_bias", false)?;
        model.stack.attention.input_bias = bias;
        model.stack.attention.output_bias = bias;
    } else {
        model.stack.attention.input_bias = true;
        mixture.shared = config.or("shared_expert_intermediate_size", 5632, limits::WIDTH)?;
        mixture.shared_gate = true;
    }
    model.stack.experts = Some(mixture);
    Ok(model.into())
}

/// Llama 4's language model.
pub(super) fn llama4(config: &Config<'_>) -> Result<Architecture> {
    let nested = config.nested("text_config")?;
    if nested.is_some() {
        config.assume("only the language model; the vision tower is left out");
    }
    let config = nested.as_ref().unwrap_or(config);
    let mut model = base(config, Some(8))?;
    let inner = model.stack.perceptron.inner;
    let experts = config.or("num_local_experts", 16, limits::PARTS)?;
    let top_k = config.or("num_experts_per_tok", 1, limits::PARTS)?;
    let every = config.or("interleave_moe_layer_step", 1, limits::LAYERS)?;
    let mixture =
        MixtureOfExperts { shared: inner, every, ..MixtureOfExperts::of(experts, top_k, inner) };
    model.stack.experts = Some(mixture);
    model.stack.perceptron.inner = config.or("intermediate_size_mlp", 16_384, limits::WIDTH)?;
    if config.flag("use_qk_norm", true)? {
        model.stack.attention.query_key_norm = QueryKeyNorm::Weightless;
    }
    // Three of four layers attend within chunks; the fourth, which has no positions, to all.
    if let Some(chunk) = config.count("attention_chunk_size", limits::POSITIONS)? {
        config.assume("attention in chunks is counted as a sliding window of the same length");
        model.stack.windows = match config.texts("layer_types")? {
            Some(kinds) => {
                kinds.iter().map(|kind| (*kind == "chunked_attention").then_some(chunk)).collect()
            }
            None => vec![Some(chunk), Some(chunk), Some(chunk), None],
        };
    }
    Ok(model.into())
}

pub(super) fn gpt_oss(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, Some(8))?;
    if config.count("head_dim", limits::WIDTH)?.is_none() {
        config.assume("head_dim is not given: 64, as in Hugging Face's class");
        model.stack.attention.head_dim = 64;
        model.stack.attention.rotary = 64;
    }
    let bias = config.flag("attention_bias", true)?;
    model.stack.attention.input_bias = bias;
    model.stack.attention.output_bias = bias;
    model.stack.attention.sinks = true;
    let experts = config.or("num_local_experts", 128, limits::PARTS)?;
    let top_k = match config.count("experts_per_token", limits::PARTS)? {
        Some(top_k) => top_k,
        None => config.or("num_experts_per_tok", 4, limits::PARTS)?,
    };
    model.stack.experts = Some(MixtureOfExperts {
        bias: true,
        router_bias: 1,
        ..MixtureOfExperts::of(experts, top_k, model.stack.perceptron.inner)
    });
    let window = config.or("sliding_window", 128, limits::POSITIONS)?;
    model.stack.windows = pattern(config, window, 2)?;
    Ok(model.into())
}
