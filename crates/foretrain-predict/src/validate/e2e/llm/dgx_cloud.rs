//! NVIDIA's DGX Cloud benchmarking collection.

use foretrain_core::Result;
use foretrain_plan::{Recompute, Sharding, Software, Wish};

use super::super::case::Case;
use super::super::machines;
use super::super::models::Models;
use super::super::runs::{Read, Runs, left_out};
use super::{
    Described, devices, megatron_wish, number_after, nvidia_recipe, precision, read, training,
    whole,
};
use crate::validate::columns::Line;
use crate::validate::roots::Root;

pub(super) const SET: Runs = Runs::new(
    "e2e-llm-dgx-cloud",
    "Step times of NVIDIA's DGX Cloud benchmarks (NeMo and MaxText) on 8 to 2,304 H100. Given: model (with \
     fewer layers where the row says so), layout, batch, sequence, number format. Assumed: DGX H100 nodes, \
     distributed optimiser, sequence-parallel, no recomputation, tensor-parallel communication \
     overlapped by dense models; MaxText recomputes each layer. Rows without a layout are left out. \
     Nothing is fitted to these rows.",
    cases,
);

fn cases(root: &Root) -> Result<Option<Read>> {
    read(root, "NVIDIA DGX Cloud Benchmarking", case)
}

fn library_name(text: &str) -> Result<&'static str> {
    let text = text.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().all(|word| text.contains(word));
    Ok(if has(&["grok"]) {
        "grok-1"
    } else if has(&["llama", "405b"]) {
        "llama-3.1-405b"
    } else if has(&["llama3", "70b"]) || has(&["llama 3", "70b"]) {
        "llama-3-70b"
    } else if has(&["llama3", "8b"]) || has(&["llama 3", "8b"]) {
        "llama-3-8b"
    } else if has(&["llama2", "70b"]) {
        "llama-2-70b"
    } else if has(&["mistral", "7b"]) {
        "mistral-7b"
    } else if has(&["maverick"]) {
        "llama-4-maverick"
    } else if has(&["nemotron-h"]) {
        return Err(left_out("its state-space layers cannot be described"));
    } else if has(&["nemotron", "340b"]) {
        "nemotron-4-340b"
    } else if has(&["nemotron", "15b"]) {
        "nemotron-4-15b"
    } else if has(&["deepseek", "v3"]) {
        "deepseek-v3"
    } else if has(&["gpt", "175b"]) {
        "gpt-3-175b"
    } else {
        return Err(super::unknown_model(&text));
    })
}

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let name = library_name(line.text("model"))?;
    let model = match line.degree("layers") {
        Some(layers) => models.with_layers(name, layers)?,
        None => models.named(name)?,
    };
    let training = training(
        whole(line, "global_batch")?,
        whole(line, "seq_len")?,
        precision(line.text("precision"))?,
    );
    let cluster = machines::nvidia(line.text("gpu"))?;
    if let Some(group) = number_after(line.text("sharding"), "FSDP=") {
        let wish = Wish {
            micro_batch: line.whole("micro_batch"),
            shard_group: Some(group).filter(|&group| Some(group) < line.degree("n_gpus")),
            sharding: Some(Sharding::Parameters),
            recompute: Some(Recompute::Full),
            ..Wish::default()
        };
        let software = Software::named("xla")?;
        return Described { model, cluster, training, software, wish }.case(line);
    }
    if line.text("tp").is_empty() || line.text("pp").is_empty() {
        return Err(left_out("the row gives no layout"));
    }
    let mut wish = megatron_wish(line);
    // Fine-tuning of a single stage: the table's batch per pass is one sequence.
    wish.micro_batch = wish.micro_batch.or(Some(1));
    if name == "grok-1" {
        // NeMo of 2024 divides each expert's width as it divides all else.
        wish.expert_tensor = wish.tensor;
    }
    if wish.pipeline > Some(devices(line)?) {
        return Err(left_out("the row gives more stages than devices"));
    }
    let software = nvidia_recipe(&wish, &model);
    Described { model, cluster, training, software, wish }.case(line)
}
