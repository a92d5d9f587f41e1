//! GPT-2, its relatives with learned positions, and decoders whose halves run side by side.

use foretrain_core::Result;

use super::config::Config;
use super::{head_dim, sequence};
use crate::architecture::Architecture;
use crate::architecture::transformer::{
    Arrangement, Embedding, Head, Norms, Perceptron, QueryKeyNorm, Transformer,
};
use crate::limits;

const LAYERS: [&str; 4] = ["num_hidden_layers", "n_layer", "num_layers", "n_layers"];
const HEADS: [&str; 4] = ["num_attention_heads", "n_head", "num_heads", "n_heads"];
const HIDDEN: [&str; 3] = ["hidden_size", "n_embd", "d_model"];

/// GPT-2's form at the sizes of the config.
fn base(config: &Config<'_>, positions: u64, inner: Option<&str>) -> Result<Transformer> {
    let layers = config.need(&LAYERS, limits::LAYERS)?;
    let hidden = config.need(&HIDDEN, limits::WIDTH)?;
    let heads = config.need(&HEADS, limits::PARTS)?;
    let vocabulary = config.need(&["vocab_size"], limits::ROWS)?;
    let mut model = Transformer::gpt(layers, hidden, heads, vocabulary, positions);
    model.stack.attention.head_dim = head_dim(config, hidden, heads)?;
    if let Some(key) = inner
        && let Some(inner) = config.count(key, limits::WIDTH)?
    {
        model.stack.perceptron.inner = limits::within(key, inner, 1, limits::WIDTH)?;
    }
    Ok(model)
}

fn set_dropout(model: &mut Transformer, dropout: bool) {
    model.stack.dropout = dropout;
    model.embedding.dropout = dropout;
}

pub(super) fn gpt2(config: &Config<'_>) -> Result<Architecture> {
    let positions = config.need(&["n_positions", "max_position_embeddings"], limits::POSITIONS)?;
    let mut model = base(config, positions, Some("n_inner"))?;
    set_dropout(&mut model, config.is_positive("resid_pdrop", true));
    let tied = config.flag("tie_word_embeddings", true)?;
    model.head = Head::Language { tied, bias: false, soft_cap: false };
    Ok(model.into())
}

pub(super) fn gpt_neo(config: &Config<'_>) -> Result<Architecture> {
    let positions = config.need(&["max_position_embeddings"], limits::POSITIONS)?;
    let mut model = base(config, positions, Some("intermediate_size"))?;
    model.stack.attention.input_bias = false;
    set_dropout(&mut model, config.is_positive("resid_dropout", false));
    let window = config.or("window_size", 256, limits::POSITIONS)?;
    config.assume("global and local layers take turns");
    model.stack.windows = vec![None, Some(window)];
    Ok(model.into())
}

pub(super) fn gptj(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, 0, Some("n_inner"))?;
    model.stack.arrangement = Arrangement::Parallel { shared_norm: true };
    model.stack.attention.input_bias = false;
    model.stack.attention.output_bias = false;
    model.stack.attention.rotary = config.or("rotary_dim", 64, limits::WIDTH)?;
    set_dropout(&mut model, config.is_positive("resid_pdrop", false));
    model.head = Head::Language {
        tied: config.flag("tie_word_embeddings", false)?,
        bias: true,
        soft_cap: false,
    };
    model.sequence = sequence(config, &["n_positions"])?;
    Ok(model.into())
}

pub(super) fn gpt_neox(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, 0, Some("intermediate_size"))?;
    if config.flag("use_parallel_residual", true)? {
        model.stack.arrangement = Arrangement::Parallel { shared_norm: false };
    }
    let bias = config.flag("attention_bias", true)?;
    let attention = &mut model.stack.attention;
    (attention.input_bias, attention.output_bias) = (bias, bias);
    attention.rotary = (attention.head_dim as f64 * config.share("rotary_pct", 0.25)?) as u64;
    set_dropout(&mut model, config.is_positive("hidden_dropout", false));
    let tied = config.flag("tie_word_embeddings", false)?;
    model.head = Head::Language { tied, bias: false, soft_cap: false };
    model.sequence = sequence(config, &["max_position_embeddings"])?;
    Ok(model.into())
}

pub(super) fn phi(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, 0, Some("intermediate_size"))?;
    model.stack.arrangement = Arrangement::Parallel { shared_norm: true };
    let attention = &mut model.stack.attention;
    attention.kv_heads = config.count_or("num_key_value_heads", attention.heads, limits::PARTS)?;
    let share = config.share("partial_rotary_factor", 0.5)?;
    attention.rotary = (attention.head_dim as f64 * share) as u64;
    set_dropout(&mut model, config.is_positive("resid_pdrop", false));
    let tied = config.flag("tie_word_embeddings", false)?;
    model.head = Head::Language { tied, bias: true, soft_cap: false };
    model.sequence = sequence(config, &["max_position_embeddings"])?;
    Ok(model.into())
}

pub(super) fn opt(config: &Config<'_>) -> Result<Architecture> {
    // The table of positions begins two rows before the first.
    let positions = config.need(&["max_position_embeddings"], limits::POSITIONS)? + 2;
    let mut model = base(config, positions, Some("ffn_dim"))?;
    model.stack.perceptron.relu = config.text("activation_function")?.unwrap_or("relu") == "relu";
    model.sequence = positions - 2;
    set_dropout(&mut model, config.is_positive("dropout", true));
    if let Some(width) = config.count("word_embed_proj_dim", limits::WIDTH)? {
        model.embedding.width = width;
    }
    let first = config.flag("do_layer_norm_before", true)?;
    if !first {
        model.stack.arrangement = Arrangement::PostNorm;
    }
    model.final_norm = first && !config.flag("_remove_final_layer_norm", false)?;
    if !config.flag("enable_bias", true)? {
        model.stack.attention.input_bias = false;
        model.stack.attention.output_bias = false;
        model.stack.perceptron.bias = false;
    }
    Ok(model.into())
}

pub(super) fn bloom(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, 0, None)?;
    model.embedding.norm = true;
    set_dropout(&mut model, config.is_positive("hidden_dropout", false));
    model.sequence = sequence(config, &["seq_length"])?;
    Ok(model.into())
}

/// All biases of layers and norms at once.
fn without_biases(model: &mut Transformer) {
    model.stack.attention.input_bias = false;
    model.stack.attention.output_bias = false;
    model.stack.perceptron.bias = false;
}

pub(super) fn falcon(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, 0, Some("ffn_hidden_size"))?;
    if !config.flag("bias", false)? {
        without_biases(&mut model);
    }
    let is_new = config.flag("new_decoder_architecture", false)?;
    let attention = &mut model.stack.attention;
    if is_new {
        attention.kv_heads = config.or("num_kv_heads", attention.heads, limits::PARTS)?;
    } else if config.flag("multi_query", true)? {
        attention.kv_heads = 1;
    }
    if !config.flag("alibi", false)? {
        attention.rotary = attention.head_dim;
    }
    if is_new || config.flag("parallel_attn", true)? {
        let norms = config.count_or("num_ln_in_parallel_attn", if is_new { 2 } else { 1 }, 2)?;
        model.stack.arrangement = Arrangement::Parallel { shared_norm: norms < 2 };
    }
    set_dropout(&mut model, config.is_positive("hidden_dropout", false));
    let tied = config.flag("tie_word_embeddings", true)?;
    model.head = Head::Language { tied, bias: false, soft_cap: false };
    model.sequence = sequence(config, &["max_position_embeddings"])?.min(2048);
    Ok(model.into())
}

pub(super) fn mpt(config: &Config<'_>) -> Result<Architecture> {
    let attention = config.nested("attn_config")?;
    let of_attention =
        |key, default| attention.as_ref().map_or(Ok(default), |table| table.flag(key, default));
    let longest = config.or("max_seq_len", 2048, limits::POSITIONS)?;
    let learned = config.flag("learned_pos_emb", true)? && !of_attention("alibi", false)?;
    let mut model = base(config, if learned { longest } else { 0 }, None)?;
    let ratio = config.or("expansion_ratio", 4, limits::PARTS)?;
    let hidden = model.stack.hidden;
    model.stack.perceptron = Perceptron::plain(hidden.saturating_mul(ratio));
    if config.flag("no_bias", true)? {
        without_biases(&mut model);
        model.stack.norms = Norms { tensors: 1, ..Norms::layer() };
    }
    if of_attention("qk_ln", false)? {
        model.stack.attention.query_key_norm = QueryKeyNorm::Full;
    }
    if let Some(table) = &attention
        && let Some(kv_heads) = table.count("kv_n_heads", limits::PARTS)?
    {
        model.stack.attention.kv_heads = kv_heads;
    }
    let positions = model.embedding.positions;
    model.embedding = Embedding { positions, ..Embedding::of(model.embedding.vocabulary, hidden) };
    set_dropout(&mut model, config.is_positive("resid_pdrop", false));
    model.sequence = longest;
    Ok(model.into())
}
