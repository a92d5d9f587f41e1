//! MLPerf Training results: language models from their configuration, and how the other benchmarks
//! scale.

mod configurations;
mod language;
mod scaling;
mod submission;

use foretrain_core::Result;

use super::runs::{Runs, left_out};
use crate::validate::ValidationSet;
use crate::validate::columns::{Line, Table, table};
use crate::validate::roots::Root;

/// Sets of this table, in the order of the report.
pub(super) const SETS: &[&dyn ValidationSet] = &[
    &language::GPT3,
    &language::GPT3.calibrated("e2e-mlperf-gpt3-calibrated"),
    &language::LLAMA_405B,
    &language::LLAMA_405B.calibrated("e2e-mlperf-llama31-405b-calibrated"),
    &language::LLAMA_8B,
    &language::LORA,
    &language::LORA.calibrated("e2e-mlperf-llama2-70b-lora-calibrated"),
    &scaling::BERT,
    &scaling::RESNET,
    &scaling::SSD,
    &scaling::RETINANET,
    &scaling::MASK_RCNN,
    &scaling::UNET3D,
    &scaling::RNNT,
    &scaling::DLRM,
    &scaling::DLRM_DCNV2,
    &scaling::STABLE_DIFFUSION,
];

/// Where constants may be learnt from.
pub(super) const SOURCES: &[&Runs] =
    &[&language::GPT3, &language::LLAMA_405B, &language::LLAMA_8B, &language::LORA];

/// All benchmarks ran on much the same machines: they are one source.
const SOURCE: &str = "mlperf";

fn results(root: &Root) -> Result<Option<Table>> {
    table(root, "measured/e2e_mlperf_training.csv.gz")
}

/// Seconds per step, unless the row is marked as no measurement.
fn step_seconds(line: Line<'_>) -> Result<f64> {
    if line.text("flag").starts_with("IMPLAUSIBLE") {
        return Err(left_out("the table marks the row as implausible"));
    }
    let logged = line.number("logged_step_time_s");
    let time = logged.or_else(|| line.number("step_time_s_derived"));
    time.ok_or_else(|| left_out("the row gives no throughput"))
}
