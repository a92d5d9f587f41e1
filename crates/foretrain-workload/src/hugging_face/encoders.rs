//! Encoders: BERT, RoBERTa, ViT; and T5 with its decoder.

use foretrain_core::Result;

use super::config::Config;
use super::{Dimensions, head_dim};
use crate::architecture::Architecture;
use crate::architecture::transformer::{
    Arrangement, Attention, Embedding, EncoderDecoder, Head, Norms, Perceptron, Stack, Transformer,
    VisionTransformer,
};
use crate::limits;

/// BERT, RoBERTa, XLM-R: the config's `architectures` says which head is trained.
pub(super) fn bert(config: &Config<'_>) -> Result<Architecture> {
    let size = Dimensions::of(config)?;
    let positions = config.need(&["max_position_embeddings"], limits::POSITIONS)?;
    let mut model =
        Transformer::bert(size.layers, size.hidden, size.heads, size.vocabulary, positions);
    model.stack.attention.head_dim = head_dim(config, size.hidden, size.heads)?;
    model.stack.perceptron.inner = size.inner;
    model.embedding.types = config.count_or("type_vocab_size", 2, limits::PARTS)?;
    let dropout = config.is_positive("hidden_dropout_prob", true);
    model.stack.dropout = dropout;
    model.embedding.dropout = dropout;
    let is_bert = config.text("model_type")? == Some("bert");
    if !is_bert {
        // Two rows of the table stand for padding.
        model.sequence = positions.saturating_sub(2).max(1);
    }
    let class = config.texts("architectures")?.and_then(|list| list.first().copied());
    model.head = match class {
        Some(class) if class.ends_with("ForPreTraining") => Head::Masked { pooler: true },
        Some(class) if class.ends_with("ForMaskedLM") => Head::Masked { pooler: false },
        Some(class) if class.ends_with("Model") => Head::Pooler,
        Some(class) => {
            config.assume(format!("the head of {class} is taken to be a pooler"));
            Head::Pooler
        }
        None => {
            config
                .assume("architectures is not given: the encoder with its pooler, without a task");
            Head::Pooler
        }
    };
    Ok(model.into())
}

pub(super) fn t5(config: &Config<'_>) -> Result<Architecture> {
    let layers = config.need(&["num_layers"], limits::LAYERS)?;
    let decoder_layers = config.count_or("num_decoder_layers", layers, limits::LAYERS)?;
    let hidden = config.need(&["d_model"], limits::WIDTH)?;
    let heads = config.need(&["num_heads"], limits::PARTS)?;
    let inner = config.need(&["d_ff"], limits::WIDTH)?;
    let activation = match config.text("feed_forward_proj")? {
        Some(text) => text,
        None => {
            config.assume("feed_forward_proj is not given: relu, as in Hugging Face's class");
            "relu"
        }
    };
    let attention = Attention {
        input_bias: false,
        output_bias: false,
        ..Attention::plain(heads, config.or("d_kv", 64, limits::WIDTH)?)
    };
    let decoder = Stack {
        layers: decoder_layers,
        hidden,
        attention,
        windows: Vec::new(),
        perceptron: Perceptron {
            inner,
            gated: activation.starts_with("gated"),
            relu: activation == "relu",
            bias: false,
        },
        experts: None,
        norms: Norms::rms(),
        arrangement: Arrangement::PreNorm,
        dropout: config.is_positive("dropout_rate", true),
    };
    let mut encoder = Stack { layers, ..decoder.clone() };
    encoder.attention.causal = false;
    config.assume("512 tokens of source and 114 of target (pre-training on spans) unless given");
    Ok(EncoderDecoder {
        embedding: Embedding {
            dropout: decoder.dropout,
            ..Embedding::of(config.need(&["vocab_size"], limits::ROWS)?, hidden)
        },
        encoder,
        decoder,
        distances: config.or("relative_attention_num_buckets", 32, limits::PARTS)?,
        final_norms: true,
        tied: config.flag("tie_word_embeddings", true)?,
        source: 512,
        target: 114,
    }
    .into())
}

pub(super) fn vit(config: &Config<'_>) -> Result<Architecture> {
    let hidden = config.need(&["hidden_size"], limits::WIDTH)?;
    let heads = config.need(&["num_attention_heads"], limits::PARTS)?;
    let layers = config.need(&["num_hidden_layers"], limits::LAYERS)?;
    let mut stack = Transformer::gpt(layers, hidden, heads, 1, 0).stack;
    stack.attention.head_dim = head_dim(config, hidden, heads)?;
    stack.attention.causal = false;
    stack.attention.input_bias = config.flag("qkv_bias", true)?;
    stack.perceptron.inner = config.need(&["intermediate_size"], limits::WIDTH)?;
    stack.dropout = config.is_positive("hidden_dropout_prob", false);
    // Configs list the classes only by name.
    let classes = config.count_or("num_labels", config.entries("id2label"), limits::WIDTH)?;
    Ok(VisionTransformer {
        stack,
        image: config.or("image_size", 224, limits::PARTS)?,
        patch: config.or("patch_size", 16, limits::PARTS)?,
        channels: config.or("num_channels", 3, limits::PARTS)?,
        classes,
    }
    .into())
}
