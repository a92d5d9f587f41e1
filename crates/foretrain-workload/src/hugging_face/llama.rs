//! Llama and the families that differ from it in a few points.

use foretrain_core::Result;

use super::config::Config;
use super::{Dimensions, head_dim, sequence};
use crate::architecture::Architecture;
use crate::architecture::transformer::{
    Arrangement, Head, Norms, Perceptron, QueryKeyNorm, Transformer,
};
use crate::limits;

/// Llama's form with the keys that its relatives share.
pub(super) fn base(config: &Config<'_>, kv_heads: Option<u64>) -> Result<Transformer> {
    let size = Dimensions::of(config)?;
    let mut model =
        Transformer::llama(size.layers, size.hidden, size.heads, size.vocabulary, size.inner);
    let attention = &mut model.stack.attention;
    attention.head_dim = head_dim(config, size.hidden, size.heads)?;
    let kv_heads = kv_heads.unwrap_or(size.heads);
    attention.kv_heads = config.or("num_key_value_heads", kv_heads, limits::PARTS)?;
    let share = config.share("partial_rotary_factor", 1.0)?;
    attention.rotary = (attention.head_dim as f64 * share) as u64;
    set_head(&mut model, config.flag("tie_word_embeddings", false)?);
    model.sequence = sequence(config, &["max_position_embeddings"])?;
    Ok(model)
}

pub(super) fn set_head(model: &mut Transformer, tied: bool) {
    model.head = Head::Language { tied, bias: false, soft_cap: false };
}

/// A window for every layer if the config has one.
fn window(config: &Config<'_>, default: Option<u64>) -> Result<Vec<Option<u64>>> {
    let window = if config.is_null("sliding_window") {
        None
    } else {
        config.count("sliding_window", limits::POSITIONS)?.or(default)
    };
    Ok(window.map(|window| vec![Some(window)]).unwrap_or_default())
}

/// Local and global layers: as listed, else every so manieth global.
pub(super) fn pattern(config: &Config<'_>, window: u64, period: u64) -> Result<Vec<Option<u64>>> {
    if let Some(kinds) = config.texts("layer_types")? {
        let windows = kinds.iter().map(|kind| (*kind == "sliding_attention").then_some(window));
        return Ok(windows.collect());
    }
    let period = limits::within("sliding_window_pattern", period, 1, limits::LAYERS)?;
    Ok((1..=period).map(|layer| (layer != period).then_some(window)).collect())
}

pub(super) fn llama(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, None)?;
    let bias = config.flag("attention_bias", false)?;
    model.stack.attention.input_bias = bias;
    model.stack.attention.output_bias = bias;
    model.stack.perceptron.bias = config.flag("mlp_bias", false)?;
    Ok(model.into())
}

pub(super) fn mistral(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, Some(8))?;
    model.stack.windows = window(config, Some(4096))?;
    Ok(model.into())
}

pub(super) fn phi3(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, None)?;
    model.stack.windows = window(config, None)?;
    Ok(model.into())
}

pub(super) fn qwen2(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, None)?;
    model.stack.attention.input_bias = true;
    if config.flag("use_sliding_window", false)? {
        let full = config.count_or("max_window_layers", 28, limits::LAYERS)?;
        let window = config.or("sliding_window", 4096, limits::POSITIONS)?;
        let layers = 0..model.stack.layers;
        model.stack.windows = layers.map(|layer| (layer >= full).then_some(window)).collect();
    }
    Ok(model.into())
}

pub(super) fn qwen3(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, None)?;
    if config.count("head_dim", limits::WIDTH)?.is_none() {
        config.assume("head_dim is not given: 128, as in Hugging Face's class");
        model.stack.attention.head_dim = 128;
        model.stack.attention.rotary = 128;
    }
    let bias = config.flag("attention_bias", false)?;
    model.stack.attention.input_bias = bias;
    model.stack.attention.output_bias = bias;
    model.stack.attention.query_key_norm = QueryKeyNorm::PerHead;
    Ok(model.into())
}

/// The first Qwen: its inner width counts both halves of the gated perceptron.
pub(super) fn qwen(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, None)?;
    model.stack.attention.input_bias = true;
    model.stack.perceptron.inner /= 2;
    Ok(model.into())
}

/// Gemma 1 to 3; of the multimodal ones the language model.
pub(super) fn gemma(config: &Config<'_>) -> Result<Architecture> {
    let nested = config.nested("text_config")?;
    if nested.is_some() {
        config.assume("only the language model; the vision tower is left out");
    }
    let config = nested.as_ref().unwrap_or(config);
    let version = match config.text("model_type")?.unwrap_or_default() {
        "gemma" => 1,
        "gemma2" => 2,
        _ => 3,
    };
    let mut model = base(config, None)?;
    if config.count("head_dim", limits::WIDTH)?.is_none() {
        config.assume("head_dim is not given: 256, as in Hugging Face's class");
        model.stack.attention.head_dim = 256;
        model.stack.attention.rotary = 256;
    }
    model.embedding.scaled = true;
    let tied =
        config.is_missing("tie_word_embeddings") || config.flag("tie_word_embeddings", true)?;
    let soft_cap = version == 2 && !config.is_null("final_logit_softcapping");
    model.head = Head::Language { tied, bias: false, soft_cap };
    if version > 1 {
        model.stack.arrangement = Arrangement::Sandwich;
        let (window, period) = if version == 2 { (4096, 2) } else { (4096, 6) };
        let window = config.or("sliding_window", window, limits::POSITIONS)?;
        let period = config.count_or("sliding_window_pattern", period, limits::LAYERS)?;
        model.stack.windows = pattern(config, window, period)?;
    }
    if version == 3 {
        model.stack.attention.query_key_norm = QueryKeyNorm::PerHead;
    }
    Ok(model.into())
}

pub(super) fn olmo2(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, None)?;
    model.stack.arrangement = Arrangement::ResultNorm;
    model.stack.attention.query_key_norm = QueryKeyNorm::Full;
    Ok(model.into())
}

pub(super) fn internlm2(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, None)?;
    let bias = config.flag("bias", true)?;
    model.stack.attention.input_bias = bias;
    model.stack.attention.output_bias = bias;
    Ok(model.into())
}

/// Positions by rotation (7B) or by a bias (13B); the latter has 40 layers and says `model_max_length`.
pub(super) fn baichuan(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, None)?;
    if config.is_given("model_max_length") && !config.is_given("max_position_embeddings") {
        model.stack.attention.rotary = 0;
        model.sequence = sequence(config, &["model_max_length"])?;
    }
    Ok(model.into())
}

pub(super) fn starcoder2(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, Some(2))?;
    let bias = config.flag("use_bias", true)?;
    model.stack.attention.input_bias = bias;
    model.stack.attention.output_bias = bias;
    model.stack.perceptron = Perceptron { bias, ..Perceptron::plain(model.stack.perceptron.inner) };
    model.stack.norms = Norms::layer();
    model.stack.windows = window(config, None)?;
    set_head(&mut model, config.flag("tie_word_embeddings", true)?);
    Ok(model.into())
}

pub(super) fn stablelm(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, None)?;
    model.stack.norms = Norms::layer();
    model.stack.attention.input_bias = config.flag("use_qkv_bias", false)?;
    if config.is_missing("partial_rotary_factor") {
        model.stack.attention.rotary = model.stack.attention.head_dim / 4;
    }
    if config.flag("use_parallel_residual", false)? {
        model.stack.arrangement = Arrangement::Parallel { shared_norm: true };
    }
    Ok(model.into())
}

/// ChatGLM 2, 3 and GLM-4 with keys of their own.
pub(super) fn chatglm(config: &Config<'_>) -> Result<Architecture> {
    let size = Dimensions::of(config)?;
    let mut model =
        Transformer::llama(size.layers, size.hidden, size.heads, size.vocabulary, size.inner);
    let attention = &mut model.stack.attention;
    attention.head_dim = match config.count("kv_channels", limits::WIDTH)? {
        Some(width) => width,
        None => head_dim(config, size.hidden, size.heads)?,
    };
    attention.rotary = attention.head_dim / 2;
    if config.flag("multi_query_attention", false)? {
        attention.kv_heads = config.or("multi_query_group_num", 1, limits::PARTS)?;
    }
    let bias = config.flag("add_bias_linear", false)?;
    attention.input_bias = bias || config.flag("add_qkv_bias", false)?;
    attention.output_bias = bias;
    model.stack.perceptron.bias = bias;
    model.final_norm = config.flag("post_layer_norm", true)?;
    model.sequence = sequence(config, &["seq_length"])?;
    Ok(model.into())
}

pub(super) fn glm(config: &Config<'_>) -> Result<Architecture> {
    let mut model = base(config, Some(2))?;
    model.stack.attention.input_bias = config.flag("attention_bias", false)?;
    if config.is_missing("partial_rotary_factor") {
        model.stack.attention.rotary = model.stack.attention.head_dim / 2;
    }
    if config.text("model_type")? == Some("glm4") {
        model.stack.arrangement = Arrangement::Sandwich;
    }
    Ok(model.into())
}
