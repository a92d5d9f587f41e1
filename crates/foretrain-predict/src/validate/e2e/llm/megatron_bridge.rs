//! The performance summaries of NeMo's Megatron-Bridge.

use foretrain_core::Result;

use super::super::case::Case;
use super::super::machines;
use super::super::models::Models;
use super::super::runs::{Read, Runs, left_out};
use super::{
    Described, megatron_wish, number_after, nvidia_recipe, precision, read, training, whole,
};
use crate::validate::columns::Line;
use crate::validate::roots::Root;

pub(super) const SET: Runs = Runs::new(
    "e2e-llm-megatron-bridge",
    "Rates that NVIDIA publishes for Megatron-Bridge on H100, B200, GB200, B300 and GB300. Given: model, \
     layout, batch, sequence, number format. Assumed: DGX nodes, of racks of 72 the 64 that such jobs take, \
     distributed optimiser, no recomputation, tokens spread evenly over experts, expert communication not \
     overlapped. State-space models and rows without a number format are left out. Nothing is fitted to \
     these rows.",
    cases,
);

fn cases(root: &Root) -> Result<Option<Read>> {
    read(root, "NVIDIA NeMo / Megatron-Bridge", case)
}

fn library_name(text: &str) -> Result<&'static str> {
    let text = text.to_ascii_lowercase().replace(['_', ' '], "-");
    let has = |word: &str| text.contains(word);
    Ok(if has("405b") {
        "llama-3.1-405b"
    } else if has("llama3-70b") {
        "llama-3-70b"
    } else if has("llama3-8b") {
        "llama-3-8b"
    } else if has("deepseekv3") {
        "deepseek-v3"
    } else if has("oss-120b") {
        "gpt-oss-120b"
    } else if has("qwen3-30b") {
        "qwen-3-30b-a3b"
    } else if has("qwen3-235b") {
        "qwen-3-235b-a22b"
    } else if has("nemotron-3") {
        return Err(left_out("its state-space layers cannot be described"));
    } else {
        return Err(super::unknown_model(&text));
    })
}

/// The system that a row's heading names last: the column repeats the page's first one.
fn system(line: Line<'_>) -> &str {
    let headings = line.text("notes").split('>').map(str::trim);
    let mut named = headings.filter_map(|heading| heading.strip_prefix("System:"));
    named.next_back().map_or(line.text("gpu"), str::trim)
}

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    if line.text("model").contains("w/ MTP") {
        return Err(left_out("the library's model predicts one token"));
    }
    let model = models.named(library_name(line.text("model"))?)?;
    let training = training(
        whole(line, "global_batch")?,
        whole(line, "seq_len")?,
        precision(line.text("precision"))?,
    );
    let mut wish = megatron_wish(line);
    let sharded = number_after(line.text("sharding"), "FSDP=").is_some_and(|ranks| ranks > 0);
    if sharded {
        wish.sharding = Some(foretrain_plan::Sharding::Parameters);
    }
    let software = nvidia_recipe(&wish, &model);
    let cluster = machines::nvidia(system(line))?;
    Described { model, cluster, training, software, wish }.case(line)
}
