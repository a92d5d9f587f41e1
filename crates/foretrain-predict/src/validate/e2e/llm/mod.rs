//! Language models: the table that gathers step times and rates of many sources.

mod dgx_cloud;
mod fms_fsdp;
mod llm_foundry;
mod maxtext;
mod megatron_bridge;
mod megatron_lm;
mod nemo;
mod primus;
mod sequence_parallel;
mod simumax;
mod stas;
mod torchtitan;

use std::sync::Arc;

use foretrain_core::{InputError, Result};
use foretrain_hardware::Cluster;
use foretrain_plan::{Precision, Sharding, Software, Training, Wish};
use foretrain_workload::model::Model;

use super::case::{Case, Quantity};
use super::models::Models;
use super::runs::{Read, Runs, left_out, read_lines};
use crate::validate::ValidationSet;
use crate::validate::columns::Line;
use crate::validate::roots::Root;

/// Sets of this table, in the order of the report.
pub(super) const SETS: &[&dyn ValidationSet] = &[
    &sequence_parallel::SET,
    &dgx_cloud::SET,
    &dgx_cloud::SET.calibrated("e2e-llm-dgx-cloud-calibrated"),
    &megatron_bridge::SET,
    &megatron_bridge::SET.calibrated("e2e-llm-megatron-bridge-calibrated"),
    &nemo::SET,
    &nemo::SET.calibrated("e2e-llm-nemo-calibrated"),
    &megatron_lm::SET,
    &llm_foundry::SET,
    &llm_foundry::SET.calibrated("e2e-llm-llm-foundry-calibrated"),
    &torchtitan::SET,
    &torchtitan::SET.calibrated("e2e-llm-torchtitan-calibrated"),
    &fms_fsdp::SET,
    &maxtext::SET,
    &primus::SET,
    &primus::SET.calibrated("e2e-llm-primus-calibrated"),
    &stas::SET,
    &stas::SET.calibrated("e2e-llm-stas-calibrated"),
    &simumax::STEPS,
    &simumax::STEPS.calibrated("e2e-simumax-calibrated"),
    &simumax::MEMORY,
    &simumax::MEMORY.calibrated("memory-simumax-calibrated"),
];

/// Where constants may be learnt from.
pub(super) const SOURCES: &[&Runs] = &[
    &sequence_parallel::SET,
    &dgx_cloud::SET,
    &megatron_bridge::SET,
    &nemo::SET,
    &megatron_lm::SET,
    &llm_foundry::SET,
    &torchtitan::SET,
    &fms_fsdp::SET,
    &maxtext::SET,
    &primus::SET,
    &stas::SET,
    &simumax::STEPS,
];

const FILE: &str = "measured/e2e_llm_training.csv.gz";

/// Measured rows of a source.
fn read(
    root: &Root,
    source: &str,
    case: impl FnMut(Line<'_>, &mut Models) -> Result<Case>,
) -> Result<Option<Read>> {
    let is_of_source =
        |line: Line<'_>| line.text("kind") == "measured" && line.text("source").starts_with(source);
    let what = |line: Line<'_>| format!("{} on {}", line.text("model"), line.text("gpu"));
    read_lines(root, FILE, is_of_source, what, case)
}

/// A whole number that a row must give.
fn whole(line: Line<'_>, column: &str) -> Result<u64> {
    line.whole(column).ok_or_else(|| left_out(format!("the row gives no {column}")))
}

fn devices(line: Line<'_>) -> Result<u32> {
    line.degree("n_gpus").ok_or_else(|| left_out("the row gives no n_gpus"))
}

/// From step to step, from whichever of its columns the row has.
fn seconds(line: Line<'_>, training: &Training) -> Result<f64> {
    let samples = training.global_batch as f64;
    let tokens = samples * training.sequence as f64;
    let per_device = || Some(line.number("tokens_per_s_per_gpu")? * line.number("n_gpus")?);
    let time = line.number("step_time_s");
    let time = time.or_else(|| Some(tokens / line.number("tokens_per_s")?));
    let time = time.or_else(|| Some(tokens / per_device()?));
    let time = time.or_else(|| Some(samples / line.number("samples_per_s")?));
    time.ok_or_else(|| left_out("the row gives neither a time nor a rate"))
}

fn training(global_batch: u64, sequence: u64, precision: Precision) -> Training {
    Training { precision, ..Training::of(global_batch, sequence) }
}

/// Number formats by the words of the table.
fn precision(text: &str) -> Result<Precision> {
    let text = text.to_ascii_lowercase();
    let has = |word: &str| text.contains(word);
    if has("fp4") {
        Ok(Precision::F4)
    } else if has("fp8") || has("float8") {
        Ok(Precision::F8)
    } else if has("bf16") || has("bfloat16") {
        Ok(Precision::BF16)
    } else if has("fp16") || has("float16") {
        Ok(Precision::F16)
    } else {
        Err(left_out("the row gives no number format"))
    }
}

/// What is common to the cases of this table.
struct Described {
    model: Arc<Model>,
    cluster: Arc<Cluster>,
    training: Training,
    software: Software,
    wish: Wish,
}

impl Described {
    fn case(self, line: Line<'_>) -> Result<Case> {
        let devices = devices(line)?;
        self.case_on(devices, line)
    }

    fn case_on(self, devices: u32, line: Line<'_>) -> Result<Case> {
        let layout = self.wish.complete(devices)?;
        let device = &self.cluster.node.device.name;
        let id = line.text("row_id");
        let precision = line.text("precision");
        Ok(Case {
            group: format!("{} on {device}", self.model.name),
            what: format!("{id}, {devices} devices, {precision}, {layout}"),
            measured: seconds(line, &self.training)?,
            model: self.model,
            training: self.training,
            software: self.software,
            cluster: self.cluster,
            layout,
            quantity: Quantity::Step,
            reference: None,
        })
    }
}

/// The layout of a row as Megatron runs it: positions divided among tensor-parallel ranks, optimiser
/// states among replicas.
fn megatron_wish(line: Line<'_>) -> Wish {
    let degree = |column| line.degree(column);
    let tensor = degree("tp");
    let pipeline = degree("pp");
    Wish {
        tensor,
        pipeline,
        context: degree("cp"),
        expert: degree("ep").filter(|&expert| expert > 1),
        virtual_stages: degree("vpp").filter(|_| pipeline.is_some_and(|stages| stages > 1)),
        micro_batch: line.whole("micro_batch"),
        sequence_parallel: Some(tensor.is_some_and(|tensor| tensor > 1)),
        sharding: Some(Sharding::Optimiser),
        ..Wish::default()
    }
}

/// Megatron-Core as NVIDIA's published recipes set it: gradients are reduced in the activations'
/// type, and dense models overlap tensor-parallel communication.
fn nvidia_recipe(wish: &Wish, model: &Model) -> Software {
    use foretrain_workload::model::OpKind;
    let is_experts = |kind: &OpKind| matches!(kind, OpKind::Experts(_));
    let routed = model.layers().any(|layer| layer.ops.iter().any(|op| is_experts(&op.kind)));
    let stages_alternate = wish.virtual_stages.is_some_and(|chunks| chunks > 1);
    Software {
        overlap_tensor: !routed,
        overlap_pipeline: stages_alternate,
        reduce_in_activations: true,
        ..Software::megatron()
    }
}

/// The number after `key` in a text such as "FSDP=32, TP=8".
fn number_after(text: &str, key: &str) -> Option<u32> {
    let rest = &text[text.find(key)? + key.len()..];
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn unknown_model(name: &str) -> InputError {
    left_out(format!("the dimensions of \"{name}\" are not known"))
}
