//! `SimuMax`'s runs on eight B200, with its own predictions.

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::Result;
use foretrain_plan::layout::ContextMethod;
use foretrain_plan::{Precision, Software, Wish};
use foretrain_workload::load;
use foretrain_workload::model::Model;

use super::super::case::{Case, Quantity};
use super::super::machines;
use super::super::models::{Models, recut};
use super::super::runs::{Read, Runs, left_out};
use super::{Described, FILE, megatron_wish, read, training, whole};
use crate::validate::columns::{Line, table};
use crate::validate::roots::Root;

pub(super) const STEPS: Runs = Runs::new(
    "e2e-simumax",
    "Step times of Llama 3 and DeepSeek with 4 or 12 layers under Megatron-Core on eight B200, beside what \
     SimuMax predicts of the same runs (its kernel efficiencies were measured on that machine). Given: model, \
     layout, micro-batches. Assumed, as its authors describe the runs: nothing overlaps, \
     cross-entropy fused, context parallelism by exchange of heads, one dense layer before those \
     with experts. Nothing is fitted to these rows.",
    steps,
)
.against("SimuMax");

pub(super) const MEMORY: Runs = Runs::new(
    "memory-simumax",
    "The most that PyTorch's allocator handed out on any rank in the runs of `e2e-simumax`, against the \
     fullest stage's allocated bytes. Given and assumed: as there. Nothing is fitted to these rows.",
    memory,
)
.of_memory();

const SOURCE: &str = "SimuMax B200";

fn steps(root: &Root) -> Result<Option<Read>> {
    let Some(table) = table(root, FILE)? else { return Ok(None) };
    let predicted = table.lines().filter(|line| line.text("kind") == "predicted by SimuMax");
    let predicted: BTreeMap<String, f64> = predicted
        .filter_map(|line| Some((case_name(line)?.to_owned(), line.number("step_time_s")?)))
        .collect();
    read(root, SOURCE, |line, models| {
        let mut case = case(line, models)?;
        case.reference = case_name(line).and_then(|name| predicted.get(name).copied());
        Ok(case)
    })
}

fn memory(root: &Root) -> Result<Option<Read>> {
    read(root, SOURCE, |line, models| {
        let stated = line.text("notes").split_once("real alloc GiB ");
        let stated = stated.and_then(|(_, rest)| rest.split(';').next()?.trim().parse().ok());
        let measured = stated.ok_or_else(|| left_out("the row gives no memory"))?;
        Ok(Case { quantity: Quantity::Memory, measured, ..case(line, models)? })
    })
}

/// `llama3_70b_l12_tp4_pp1_dp2_mbc4_cef`.
fn case_name(line: Line<'_>) -> Option<&str> {
    line.text("notes").strip_prefix("case ")?.split([';', ' ']).next()
}

fn model(name: &str, layers: u32, models: &mut Models) -> Result<Arc<Model>> {
    match name {
        "llama3_70b" => models.with_layers("llama-3-70b", layers),
        "llama3_405b" => models.with_layers("llama-3.1-405b", layers),
        "deepseekv2" => with_one_dense("deepseek-v2", layers, models),
        "deepseekv3" => with_one_dense("deepseek-v3", layers, models),
        other => Err(super::unknown_model(other)),
    }
}

fn with_one_dense(name: &str, layers: u32, models: &mut Models) -> Result<Arc<Model>> {
    let key = format!("{name} with one dense of {layers} layers");
    models.of(key, || recut(&load(name)?, 1, layers))
}

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let layers = line.degree("layers").ok_or_else(|| left_out("the row gives no layers"))?;
    let model = model(line.text("model"), layers, models)?;
    let (passes, samples) = (whole(line, "grad_acc")?, whole(line, "micro_batch")?);
    let replicas = whole(line, "dp")?;
    let wish = Wish { context_method: Some(ContextMethod::Ulysses), ..megatron_wish(line) };
    let software = Software {
        overlap_gradients: false,
        overlap_parameters: false,
        overlap_pipeline: false,
        // `cef` in the case's name.
        fused_loss: true,
        ..Software::megatron()
    };
    let batch = passes * samples * replicas;
    let described = Described {
        model,
        cluster: machines::named("dgx-b200")?,
        training: training(batch, whole(line, "seq_len")?, Precision::BF16),
        software,
        wish,
    };
    described.case(line)
}
