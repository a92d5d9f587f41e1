//! Models from the `config.json` that Hugging Face's `transformers` writes.
//!
//! A family of models is a function from the config's keys to an architecture; `FAMILIES` names
//! them all.

mod config;
mod encoders;
mod gpt;
mod latent;
mod llama;
mod mixture;

use foretrain_core::{InputError, Result, suggest};
use serde_json::{Map, Value};

use crate::architecture::Architecture;
use crate::limits;
use crate::model::Model;
use config::Config;

type Reader = fn(&Config<'_>) -> Result<Architecture>;

/// `model_type` -> its reader.
const FAMILIES: [(&str, Reader); 41] = [
    ("baichuan", llama::baichuan),
    ("bert", encoders::bert),
    ("bloom", gpt::bloom),
    ("chatglm", llama::chatglm),
    ("deepseek_v2", latent::deepseek),
    ("deepseek_v3", latent::deepseek),
    ("falcon", gpt::falcon),
    ("gemma", llama::gemma),
    ("gemma2", llama::gemma),
    ("gemma3", llama::gemma),
    ("gemma3_text", llama::gemma),
    ("glm", llama::glm),
    ("glm4", llama::glm),
    ("gpt2", gpt::gpt2),
    ("gpt_neo", gpt::gpt_neo),
    ("gpt_neox", gpt::gpt_neox),
    ("gpt_oss", mixture::gpt_oss),
    ("gptj", gpt::gptj),
    ("internlm2", llama::internlm2),
    ("llama", llama::llama),
    ("llama4", mixture::llama4),
    ("llama4_text", mixture::llama4),
    ("mistral", llama::mistral),
    ("mixtral", mixture::mixtral),
    ("mpt", gpt::mpt),
    ("olmo2", llama::olmo2),
    ("opt", gpt::opt),
    ("phi", gpt::phi),
    ("phi3", llama::phi3),
    ("qwen", llama::qwen),
    ("qwen2", llama::qwen2),
    ("qwen2_moe", mixture::qwen_moe),
    ("qwen3", llama::qwen3),
    ("qwen3_moe", mixture::qwen_moe),
    ("roberta", encoders::bert),
    ("stablelm", llama::stablelm),
    ("starcoder2", llama::starcoder2),
    ("t5", encoders::t5),
    ("vit", encoders::vit),
    ("xlm-roberta", encoders::bert),
    ("yi", llama::llama),
];

/// The model of a config's text.
///
/// # Errors
/// If it is no JSON, of no known family, incomplete, or its sizes are no model's.
pub fn parse(text: &str) -> Result<Model> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        InputError::new(format!("not valid JSON: {error}")).at(format!(
            "line {}, column {}",
            error.line(),
            error.column()
        ))
    })?;
    let Value::Object(table) = &value else {
        return Err(InputError::new("expected a table of keys, as in a model's config.json"));
    };
    model(table)
}

/// The model of a config's keys.
///
/// # Errors
/// As [`parse`].
pub(crate) fn model(table: &Map<String, Value>) -> Result<Model> {
    let config = Config::new(table);
    let family = config.text("model_type")?.ok_or_else(|| {
        InputError::new("the key model_type is missing").hint("is this a model's config.json?")
    })?;
    let Ok(at) = FAMILIES.binary_search_by(|(name, _)| (*name).cmp(family)) else {
        return Err(unknown(family));
    };
    let architecture = (FAMILIES[at].1)(&config)?;
    let name = config.text("_name_or_path")?.filter(|name| !name.is_empty()).unwrap_or(family);
    let mut model = architecture.model(name, family)?;
    model.source = "config.json of Hugging Face".into();
    model.assumptions = config.assumptions();
    Ok(model)
}

fn unknown(family: &str) -> InputError {
    let names = FAMILIES.map(|(name, _)| name);
    let shown: String = family.chars().take(60).collect();
    let error = InputError::new(format!("the model_type {shown:?} is not known")).at("model_type");
    let error = match suggest::nearest(family, names) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    };
    error
        .hint(format!("known are {}", names.join(", ")))
        .hint("any other model can be written in TOML; see docs/models.md")
}

/// Dimensions under the names that most families use.
struct Dimensions {
    layers: u64,
    hidden: u64,
    heads: u64,
    vocabulary: u64,
    inner: u64,
}

impl Dimensions {
    fn of(config: &Config<'_>) -> Result<Self> {
        Ok(Self {
            layers: config.need(&["num_hidden_layers", "num_layers"], limits::LAYERS)?,
            hidden: config.need(&["hidden_size"], limits::WIDTH)?,
            heads: config.need(&["num_attention_heads"], limits::PARTS)?,
            vocabulary: config.need(&["vocab_size", "padded_vocab_size"], limits::ROWS)?,
            inner: config.need(&["intermediate_size", "ffn_hidden_size"], limits::WIDTH)?,
        })
    }
}

/// The width of a head: given, or the stream shared out.
fn head_dim(config: &Config<'_>, hidden: u64, heads: u64) -> Result<u64> {
    match config.count("head_dim", limits::WIDTH)? {
        Some(width) => limits::within("head_dim", width, 1, limits::WIDTH),
        None => limits::divided("hidden_size", hidden, "num_attention_heads", heads),
    }
}

/// The usual length in training: the longest that is known, but not that of a long-context
/// extension.
fn sequence(config: &Config<'_>, keys: &[&str]) -> Result<u64> {
    const USUAL: u64 = 4096;
    for key in keys {
        if let Some(longest) = config.count(key, limits::POSITIONS)?.filter(|longest| *longest > 0)
        {
            if longest > USUAL {
                config.assume(format!(
                    "samples of {USUAL} tokens unless a length is given ({key} is {longest})"
                ));
            }
            return Ok(longest.min(USUAL));
        }
    }
    config.assume(format!("samples of {USUAL} tokens unless a length is given"));
    Ok(USUAL)
}

#[cfg(test)]
mod tests;
