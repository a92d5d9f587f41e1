//! `FlagPerf`'s runs of Llama, GPT-3 and Qwen on eight devices and more, several layouts of each.

use std::sync::Arc;

use foretrain_core::Result;
use foretrain_hardware::Cluster;
use foretrain_plan::{Precision, Recompute, Sharding, Software, Training, Wish};

use super::case::{Case, Quantity};
use super::machines;
use super::models::Models;
use super::runs::{Read, Runs, left_out, read_lines};
use crate::validate::ValidationSet;
use crate::validate::columns::Line;
use crate::validate::roots::Root;

/// All of them, in the order of the report.
pub(super) const SETS: &[&dyn ValidationSet] = &[&STEPS];

/// Where constants may be learnt from.
pub(super) const SOURCES: &[&Runs] = &[&STEPS];
pub(super) const SOURCE: &str = STEPS.source;

const STEPS: Runs = Runs::new(
    "e2e-flagperf",
    "Steps of Llama, GPT-3, Mixtral and Qwen models under FlagPerf on 8 to 440 A100, A800 and H100. Given: \
     layout, batch, sequence, number format, recomputation where the row states it. Assumed: Megatron with \
     fused attention and sequence-parallel, attention's core recomputed for Llama 3 as the environment says, \
     Paddle's sharding stage 1 and 2 as optimiser states and gradients. Nothing is fitted to these rows.",
    cases,
);

pub(super) fn cases(root: &Root) -> Result<Option<Read>> {
    let of_source = |line: Line<'_>| line.text("group") == "FlagPerf";
    let what = |line: Line<'_>| format!("{} on {}", line.text("model"), line.text("accelerator"));
    read_lines(root, "measured/e2e_misc_small.csv", of_source, what, case)
}

fn library_name(text: &str) -> Result<&'static str> {
    Ok(match text {
        "Llama3-8B" => "llama-3-8b",
        "Llama3-70B" => "llama-3-70b",
        "Llama2-7B" => "llama-2-7b",
        "Llama2-70B" => "llama-2-70b",
        "LLaMA-7B" => "llama-7b",
        "LLaMA-13B" => "llama-13b",
        "GPT3-6.7B" => "gpt-3-6.7b",
        "GPT3-13B" => "gpt-3-13b",
        "Mixtral-8x7B" => "mixtral-8x7b",
        "Qwen1.5-MoE" => "qwen-1.5-moe-a2.7b",
        other => return Err(left_out(format!("the dimensions of \"{other}\" are not known"))),
    })
}

/// The number behind a key: `TP2` as well as `TP=2`.
fn degree(text: &str, key: &str) -> Option<u32> {
    let rest = text[text.find(key)? + key.len()..].trim_start_matches('=');
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn cluster(line: Line<'_>) -> Result<Arc<Cluster>> {
    // The environment of Llama 3 says that its A100 are A800.
    let is_a800 = line.text("notes").contains("A800") || line.text("accelerator").contains("A800");
    match line.text("accelerator") {
        _ if is_a800 => machines::named("hgx-a800"),
        text if text.contains("H800") => machines::named("hgx-h800"),
        text => machines::nvidia(text),
    }
}

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let model = models.named(library_name(line.text("model"))?)?;
    let (parallel, variant) = (line.text("parallelism"), line.text("variant"));
    let devices = line.degree("n_gpus").ok_or_else(|| left_out("the row gives no devices"))?;
    let sequence = line.whole("seq_len").ok_or_else(|| left_out("the row gives no sequence"))?;
    let stated = line.whole("global_batch");
    let stated = stated.or_else(|| degree(variant, "GBS=").map(u64::from));
    let batch = stated.ok_or_else(|| left_out("the row gives no batch"))?;
    let rate = line.number("value").ok_or_else(|| left_out("the row gives no rate"))?;
    let per_step = match line.text("unit") {
        "tokens/s/GPU" => (batch * sequence) as f64 / f64::from(devices),
        unit if unit.starts_with("samples/s") => batch as f64,
        other => return Err(left_out(format!("rates in {other} are not known"))),
    };
    let sharding = match degree(parallel, "sharding_stage") {
        Some(2) => Sharding::Gradients,
        _ => Sharding::Optimiser,
    };
    let megatron = degree(parallel, "sharding_stage").is_none();
    let tensor = degree(parallel, "TP").unwrap_or(1);
    let recompute =
        if variant.contains("recompute=True") { Recompute::Full } else { Recompute::Selective };
    let wish = Wish {
        tensor: Some(tensor),
        pipeline: degree(parallel, "PP"),
        micro_batch: line.whole("micro_batch"),
        sequence_parallel: Some(megatron && tensor > 1),
        sharding: Some(sharding),
        recompute: Some(recompute),
        ..Wish::default()
    };
    let layout = wish.complete(devices)?;
    let cluster = cluster(line)?;
    let device = &cluster.node.device.name;
    Ok(Case {
        group: format!("{} on {device}", model.name),
        what: format!("{devices} devices, {}, batch {batch}, {layout}", line.text("precision")),
        model,
        training: Training {
            precision: precision(line.text("precision"))?,
            ..Training::of(batch, sequence)
        },
        software: Software { overlap_pipeline: false, ..Software::megatron() },
        cluster,
        layout,
        quantity: Quantity::Step,
        measured: per_step / rate,
        reference: None,
    })
}

fn precision(text: &str) -> Result<Precision> {
    match text {
        text if text.contains("fp8") => Ok(Precision::F8),
        text if text.contains("bf16") => Ok(Precision::BF16),
        text if text.contains("fp16") || text == "amp" => Ok(Precision::F16),
        "fp32" => Ok(Precision::TF32),
        other => Err(left_out(format!("the number format \"{other}\" is not known"))),
    }
}

#[cfg(test)]
mod tests {
    use super::degree;

    #[test]
    fn degrees_are_read_in_both_spellings() {
        assert_eq!(degree("PP1DP220TP2", "DP"), Some(220));
        assert_eq!(degree("TP=2 PP=4 sharding_stage=1 sharding_degree=1", "PP"), Some(4));
        assert_eq!(degree("DP8", "TP"), None);
        assert_eq!(degree("GAS=128(GBS=1024=4M tokens)", "GBS="), Some(1024));
    }
}
