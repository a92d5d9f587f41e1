//! Long sequences on one node, before and after an upgrade.

use foretrain_core::{DType, Result};
use foretrain_cost::kernels::AttentionKernel;
use foretrain_plan::{Precision, Recompute, Sharding, Software, Wish};

use super::super::case::{Case, Quantity};
use super::super::machines;
use super::super::models::Models;
use super::super::runs::{Read, Runs, left_out};
use super::{devices, read, training, whole};
use crate::validate::columns::Line;
use crate::validate::roots::Root;

pub(super) const SET: Runs = Runs::new(
    "e2e-llm-stas",
    "Rates of Llama 3.1 8B at sequences of 8 to 256 thousand tokens on eight H200 and B200 (DeepSpeed ZeRO-3, \
     optimiser on the host, layers recomputed). Given: sequence, one sample per device. The rows state \
     operations per second; they are turned into times by the convention they name: six per parameter and \
     token, attention's half for the causal mask, nothing for recomputation. Nothing is fitted to these \
     rows.",
    cases,
);

fn cases(root: &Root) -> Result<Option<Read>> {
    read(root, "stas00 ml-engineering", case)
}

fn case(line: Line<'_>, models: &mut Models) -> Result<Case> {
    if line.text("model") != "Llama-3.1-8B" {
        return Err(super::unknown_model(line.text("model")));
    }
    let model = models.named("llama-3-8b")?;
    let devices = devices(line)?;
    let (sequence, micro_batch) = (whole(line, "seq_len")?, whole(line, "micro_batch")?);
    let rate = line.number("tflops_per_gpu").ok_or_else(|| left_out("the row gives no rate"))?;
    // 6 per parameter; forward, causal: 2 s d per layer, and twice that backward.
    let per_token = 6.0 * model.parameters() as f64
        + 6.0 * f64::from(model.body_layers()) * sequence as f64 * 4096.0;
    let wish = Wish {
        micro_batch: Some(micro_batch),
        sharding: Some(Sharding::Parameters),
        recompute: Some(Recompute::Full),
        offload_optimiser: Some(true),
        ..Wish::default()
    };
    let cluster = machines::nvidia(line.text("gpu"))?;
    let layout = wish.complete(devices)?;
    let precision = Precision { gradients: DType::Bf16, ..Precision::BF16 };
    Ok(Case {
        group: format!("{} on {}", model.name, cluster.node.device.name),
        what: format!("{}, sequences of {sequence}, {layout}", line.text("row_id")),
        training: training(micro_batch * u64::from(layout.data), sequence, precision),
        software: Software {
            attention: Some(AttentionKernel::Tuned),
            ..Software::named("deepspeed")?
        },
        measured: per_token * (micro_batch * sequence) as f64 / (rate * 1e12),
        model,
        cluster,
        layout,
        quantity: Quantity::Step,
        reference: None,
    })
}
