//! NeMo's summaries of 2024: the performance page and the launcher's README.

use foretrain_core::Result;
use foretrain_plan::training::Lora;

use super::super::case::Case;
use super::super::machines;
use super::super::models::Models;
use super::super::runs::{Read, Runs, left_out, together};
use super::{Described, megatron_wish, nvidia_recipe, precision, read, training, whole};
use crate::validate::columns::Line;
use crate::validate::roots::Root;

pub(super) const SET: Runs = Runs::new(
    "e2e-llm-nemo",
    "Rates that NeMo published in 2024 for DGX H100 in FP8: pre-training, fine-tuning and low-rank \
     adaptation. Given: model, layout, batch, number format. Assumed: sequences of 4,096 for fine-tuning (as \
     the launcher's table says of the same runs), distributed optimiser, no recomputation, adapters of rank \
     32 on attention. Rows that name neither model nor sequence are left out. Nothing is fitted to these \
     rows.",
    cases,
);

fn cases(root: &Root) -> Result<Option<Read>> {
    Ok(together(
        read(root, "NVIDIA NeMo performance summary", case)?,
        read(root, "NeMo Framework Launcher", case)?,
    ))
}

/// Two sizes of NeMo's GPT that the library does not list.
const GPT_5B: &str =
    "[transformer]\nlayers = 24\nhidden = 4096\nheads = 32\nvocabulary = 51200\npositions = 2048\n";
const GPT_20B: &str =
    "[transformer]\nlayers = 44\nhidden = 6144\nheads = 48\nvocabulary = 51200\npositions = 2048\n";

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let model = match line.text("model") {
        "GPT3-5B" => models.described(GPT_5B, "nemo-gpt-5b")?,
        "GPT3-20B" => models.described(GPT_20B, "nemo-gpt-20b")?,
        "LLAMA2-13B" => models.named("llama-2-13b")?,
        "LLAMA2-70B" => models.named("llama-2-70b")?,
        "LLAMA3-70B" => models.named("llama-3-70b")?,
        "Nemotron-340B" => models.named("nemotron-4-340b")?,
        "Long Input Sequences" => {
            return Err(left_out("the row names neither a model nor a sequence length"));
        }
        other => return Err(super::unknown_model(other)),
    };
    let (task, notes) = (line.text("task"), line.text("notes"));
    let tuned = matches!(task, "finetune" | "SFT" | "LoRA");
    let sequence = match line.whole("seq_len") {
        None if tuned => 4096,
        _ => whole(line, "seq_len")?,
    };
    let batch = whole(line, "global_batch")?;
    let mut training = training(batch, sequence, precision(line.text("precision"))?);
    if task == "LoRA" || notes.contains("LoRA") {
        training.lora = Some(Lora { rank: 32, attention_only: true });
    }
    let wish = megatron_wish(line);
    let software = nvidia_recipe(&wish, &model);
    let cluster = machines::nvidia("H100")?;
    Described { model, cluster, training, software, wish }.case(line)
}
