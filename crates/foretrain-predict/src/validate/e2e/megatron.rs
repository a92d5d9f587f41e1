//! Megatron-LM's functional tests: small models, every parallel feature.

use std::sync::Arc;

use foretrain_core::{InputError, Result};
use foretrain_cost::kernels::AttentionKernel;
use foretrain_plan::{Precision, Recompute, Sharding, Software, Training, Wish};
use foretrain_workload::model::Model;

use super::case::{Case, Quantity};
use super::machines;
use super::models::Models;
use super::runs::{Read, Runs, left_out, read_lines};
use crate::validate::ValidationSet;
use crate::validate::columns::Line;
use crate::validate::roots::Root;

/// All of them, in the order of the report.
pub(super) const SETS: &[&dyn ValidationSet] = &[&STEPS, &MEMORY];

/// Where constants may be learnt from.
pub(super) const SOURCES: &[&Runs] = &[&STEPS];

const FILE: &str = "measured/e2e_megatron_functional_tests.csv.gz";

const STEPS: Runs = Runs::new(
    "e2e-megatron",
    "Steps of the GPT and mixture-of-experts models of Megatron-LM's functional tests, mostly 12 layers of 512 \
     on one node of eight A100 or H100: their host's launches take longer than their kernels. Given: layout, \
     dimensions, batch, switches of the test. Assumed: GPT-2's vocabulary where none is given, eight devices \
     where none are, attention written out in tests without Transformer Engine and in deterministic ones that \
     do not resume (their configurations ask for it). What the tests log each step (norms, counts of zeros) is \
     not modelled. Tests of other families, releases of unknown size and features that cannot be described \
     are left out. The pace of `megatron`'s host is the one at which these rows have no bias, so this set \
     shows what one pace for all tests leaves.",
    |root| read(root, seconds, Quantity::Step),
);

const MEMORY: Runs = Runs::new(
    "memory-megatron",
    "The most that PyTorch's allocator handed out in the tests of `e2e-megatron`, against the allocated bytes of \
     the last stage, whose rank writes Megatron's logs. Tests that resume are left out: loading a checkpoint \
     may set their peak. Given and assumed: as there. Nothing is fitted to these rows.",
    |root| read(root, gigabytes, Quantity::MemoryOfLastStage),
)
.of_memory();

fn read(
    root: &Root,
    measured: fn(Line<'_>) -> Result<f64>,
    quantity: Quantity,
) -> Result<Option<Read>> {
    let what = |line: Line<'_>| line.text("family").to_owned();
    read_lines(
        root,
        FILE,
        |_| true,
        what,
        |line, models| {
            let measured = measured(line)?;
            Ok(Case { quantity, measured, ..case(line, models)? })
        },
    )
}

fn seconds(line: Line<'_>) -> Result<f64> {
    line.number("median_iter_time_s").ok_or_else(|| left_out("the row gives no time"))
}

/// In GiB; the table's unit is 1e9 bytes.
fn gigabytes(line: Line<'_>) -> Result<f64> {
    if line.text("test_case").contains("resume") {
        return Err(left_out("loading a checkpoint may set the peak"));
    }
    let stated = line.number("max_mem_alloc_gb");
    let stated = stated.ok_or_else(|| left_out("the row gives no memory"))?;
    Ok(stated * 1e9 / f64::from(1_u32 << 30))
}

/// Words in names of tests whose feature cannot be described.
const STRANGE: [&str; 8] =
    ["mla", "mtp", "grpo", "fsdp", "frozen", "offloading", "_gb200", "multi_dist_optimizer"];

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    let (name, family) = (line.text("test_case"), line.text("family"));
    if !matches!(family, "gpt" | "moe") {
        return Err(left_out("models of this family are not described by the row"));
    }
    if let Some(word) = STRANGE.iter().find(|word| name.contains(**word)) {
        return Err(left_out(format!("tests of \"{word}\" cannot be described")));
    }
    if !line.text("fsdp").is_empty() {
        return Err(left_out("tests of \"fsdp\" cannot be described"));
    }
    let nodes = line.degree("nodes");
    if nodes.is_none() && name.contains("release") {
        return Err(left_out("the row does not say how many devices it had"));
    }
    let devices = nodes.unwrap_or(1) * line.degree("gpus_per_node").unwrap_or(8);
    let wish = wish(line)?;
    let layout = wish.complete(devices)?;
    let batch = line.whole("global_batch").ok_or_else(|| left_out("the row gives no batch"))?;
    let sequence = line.whole("seq_len").ok_or_else(|| left_out("the row gives no sequence"))?;
    let cluster = machines::nvidia(line.text("gpu"))?;
    let device = &cluster.node.device.name;
    Ok(Case {
        group: format!("{family} on {device}"),
        what: format!("{name} ({}), {devices} devices, {layout}", line.text("platform")),
        model: model(line, name, sequence, layout.tensor, models)?,
        training: Training { precision: precision(line)?, ..Training::of(batch, sequence) },
        software: software(line),
        cluster,
        layout,
        quantity: Quantity::Step,
        measured: 0.0,
        reference: None,
    })
}

fn is_on(line: Line<'_>, column: &str) -> bool {
    line.text(column) == "True"
}

fn precision(line: Line<'_>) -> Result<Precision> {
    if line.text("fp8") == "hybrid" {
        Ok(Precision::F8)
    } else if is_on(line, "bf16") {
        Ok(Precision::BF16)
    } else {
        Err(left_out("the row gives no number format"))
    }
}

fn wish(line: Line<'_>) -> Result<Wish> {
    let degree = |column| line.degree(column);
    let (tensor, pipeline) = (degree("tp").unwrap_or(1), degree("pp").unwrap_or(1));
    let layers = degree("layers").ok_or_else(|| left_out("the row gives no layers"))?;
    // The table counts the layers of a chunk.
    let chunks = degree("vp_layers").map(|each| layers / (pipeline * each).max(1));
    let expert = degree("ep").filter(|&expert| expert > 1);
    Ok(Wish {
        tensor: Some(tensor),
        pipeline: Some(pipeline),
        context: degree("cp"),
        expert,
        // Megatron divides experts as it divides all else unless told otherwise.
        expert_tensor: expert.map(|_| degree("etp").unwrap_or(tensor)),
        virtual_stages: chunks.filter(|&chunks| chunks > 1 && pipeline > 1),
        sequence_parallel: Some(is_on(line, "seq_parallel") && tensor > 1),
        sharding: is_on(line, "dist_optimizer").then_some(Sharding::Optimiser),
        micro_batch: line.whole("micro_batch"),
        recompute: match line.text("recompute") {
            "full" => Some(Recompute::Full),
            "selective" => Some(Recompute::Selective),
            _ => None,
        },
        ..Wish::default()
    })
}

/// Tests without Transformer Engine; and those of GPT-3 that must repeat bit by bit, do not resume and
/// leave sequences whole, whose configurations ask for it.
fn writes_out_attention(line: Line<'_>) -> bool {
    let name = line.text("test_case");
    let deterministic = name.starts_with("gpt3_mcore")
        && !["resume", "nondeterministic", "memory_speed"].iter().any(|word| name.contains(word))
        && line.degree("cp").is_none_or(|ranks| ranks == 1);
    line.text("transformer_impl") == "local" || deterministic
}

fn software(line: Line<'_>) -> Software {
    Software {
        attention: (!writes_out_attention(line)).then_some(AttentionKernel::Tuned),
        overlap_gradients: is_on(line, "overlap_grad_reduce"),
        overlap_parameters: is_on(line, "overlap_param_gather"),
        overlap_pipeline: false,
        ..Software::megatron()
    }
}

/// GPT-2's vocabulary, padded as Megatron pads it.
fn vocabulary(line: Line<'_>, tensor: u32) -> u64 {
    let given = line.text("vocab").parse::<u64>().ok().filter(|&size| size > 1);
    given.unwrap_or(50257).next_multiple_of(128 * u64::from(tensor))
}

fn model(
    line: Line<'_>,
    name: &str,
    sequence: u64,
    tensor: u32,
    models: &mut Models,
) -> Result<Arc<Model>> {
    let want = |column: &str| -> std::result::Result<u64, InputError> {
        line.whole(column).ok_or_else(|| left_out(format!("the row gives no {column}")))
    };
    let (layers, hidden, heads) = (want("layers")?, want("hidden")?, want("heads")?);
    let inner = line.whole("ffn_hidden").unwrap_or(4 * hidden);
    let (gated, tied) = (name.contains("swiglu"), !name.contains("untie"));
    let mut text = format!(
        "[transformer]\nlayers = {layers}\nhidden = {hidden}\nheads = {heads}\ninner = {inner}\n\
         vocabulary = {}\npositions = {sequence}\ngated = {gated}\ntied = {tied}\n",
        vocabulary(line, tensor)
    );
    if let Some(groups) = line.whole("query_groups") {
        text += &format!("kv_heads = {groups}\n");
    }
    if let Some(experts) = line.whole("num_experts") {
        let chosen = line.whole("topk").unwrap_or(1);
        text += &format!(
            "[transformer.experts]\ncount = {experts}\ntop_k = {chosen}\ninner = {inner}\ngated = {gated}\n"
        );
    }
    models.described(&text, &format!("gpt-h{hidden}-l{layers}"))
}
