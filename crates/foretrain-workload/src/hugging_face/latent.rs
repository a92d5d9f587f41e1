//! DeepSeek V2 and V3: latent attention, many small experts.

use foretrain_core::Result;

use super::config::Config;
use super::llama::set_head;
use super::{Dimensions, sequence};
use crate::architecture::Architecture;
use crate::architecture::transformer::{Latent, MixtureOfExperts, Transformer};
use crate::limits;

pub(super) fn deepseek(config: &Config<'_>) -> Result<Architecture> {
    let size = Dimensions::of(config)?;
    let mut model =
        Transformer::llama(size.layers, size.hidden, size.heads, size.vocabulary, size.inner);
    let latent = Latent {
        query_rank: config.count("q_lora_rank", limits::WIDTH)?,
        key_value_rank: config.need(&["kv_lora_rank"], limits::WIDTH)?,
        plain: config.need(&["qk_nope_head_dim"], limits::WIDTH)?,
        rotated: config.need(&["qk_rope_head_dim"], limits::WIDTH)?,
        value: config.need(&["v_head_dim"], limits::WIDTH)?,
    };
    model.stack.attention.latent = Some(latent);
    model.stack.attention.rotary = latent.rotated;
    if let Some(experts) = config.count("n_routed_experts", limits::PARTS)? {
        let inner = config.need(&["moe_intermediate_size"], limits::WIDTH)?;
        let top_k = config.need(&["num_experts_per_tok"], limits::PARTS)?;
        let shared = config.count_or("n_shared_experts", 0, limits::PARTS)?;
        // The scores' correction of V3 is moved by the balance of load, not by a gradient.
        model.stack.experts = Some(MixtureOfExperts {
            shared: limits::within("the shared experts' width", shared * inner, 0, limits::WIDTH)?,
            dense_first: config.count_or("first_k_dense_replace", 0, limits::LAYERS)?,
            every: config.or("moe_layer_freq", 1, limits::LAYERS)?,
            ..MixtureOfExperts::of(experts, top_k, inner)
        });
    }
    if config.count_or("num_nextn_predict_layers", 0, limits::LAYERS)? > 0 {
        config.assume(
            "the layers that predict further tokens (num_nextn_predict_layers) are left out",
        );
    }
    set_head(&mut model, config.flag("tie_word_embeddings", false)?);
    model.sequence = sequence(config, &["max_position_embeddings"])?;
    Ok(model.into())
}
