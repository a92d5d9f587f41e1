//! `NeuSight`'s measurements of whole models in f32, on one device and on four.

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::Result;
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_plan::software::Fusion;
use foretrain_plan::{Layout, Precision, Software, Training};
use foretrain_workload::model::{Block, Elementwise, Layer, Model, Op, OpKind};

use super::case::{Case, Quantity};
use super::held_out::Constants;
use super::machines;
use super::models::Models;
use super::runs::{Read, Reasons, Runs, left_out, read_lines};
use crate::validate::ValidationSet;
use crate::validate::columns::{Line, table};
use crate::validate::corpus::Corpus;
use crate::validate::report::{Row, SetOutcome, Skipped};
use crate::validate::roots::Root;

/// All of them, in the order of the report.
pub(super) const SETS: &[&dyn ValidationSet] = &[&ONE, &FromOne];

const FILE: &str = "measured/e2e_neusight_label_vs_pred.csv";

const ONE: Runs = Runs::new(
    "e2e-neusight",
    "Passes of models of Hugging Face in f32 on one device, beside what NeuSight predicts of them: forward \
     for inference, forward and backward for training, no update and no loss. Given: model, batch, sequence, \
     device. Assumed: every operator a kernel of its own, attention written out, products in f32 (not TF32); \
     fused variants as a compiler fuses them. Devices that the catalogue does not hold and models whose \
     dimensions are not stated are left out. Nothing is fitted to these rows.",
    on_one_device,
)
.against("NeuSight");

/// Models as the authors' operator lists show them.
fn model(name: &str, models: &mut Models) -> Result<Arc<Model>> {
    match name {
        "bert_large" => models.described(
            "[transformer]\nstyle = \"bert\"\nlayers = 24\nhidden = 1024\nheads = 16\n\
             vocabulary = 30522\npositions = 512\nhead = \"masked\"\n",
            "bert-large",
        ),
        "gpt2_large" => models.named("gpt-2-large"),
        "gpt3_xl" => models.described(
            "[transformer]\nlayers = 24\nhidden = 3072\nheads = 24\nvocabulary = 50257\n\
             positions = 2048\n",
            "gpt3-xl",
        ),
        "gpt3_27" => models.named("gpt-3-2.7b"),
        "opt_13" => models.named("opt-1.3b"),
        other => Err(left_out(format!("the dimensions of \"{other}\" are not stated"))),
    }
}

/// The same model without its loss, and without dropout for inference.
fn without_loss(whole: &Model, infers: bool) -> Result<Model> {
    let kept = |op: &Op| match &op.kind {
        OpKind::CrossEntropy { .. } => None,
        OpKind::Elementwise { what: Elementwise::Dropout, .. } if infers => None,
        OpKind::Elementwise { what: Elementwise::DropoutResidual, width } if infers => {
            let kind = OpKind::Elementwise { what: Elementwise::Residual, width: *width };
            Some(Op { kind, ..op.clone() })
        }
        _ => Some(op.clone()),
    };
    let blocks = whole.blocks.iter().map(|block| Block {
        layer: Arc::new(Layer {
            ops: block.layer.ops.iter().filter_map(kept).collect(),
            ..(*block.layer).clone()
        }),
        repeat: block.repeat,
    });
    Model::new(&*whole.name, &*whole.family, whole.sample, blocks.collect())
}

/// A node that holds the device, for runs on one.
fn holding(product: &str) -> Result<Arc<Cluster>> {
    let device = match product {
        "NVIDIA_H100_80GB_HBM3" => "h100-sxm5-80gb",
        "NVIDIA_A100-PCIE-40GB" => "a100-pcie-40gb",
        "NVIDIA_A100_80GB_PCIe" => "a100-pcie-80gb",
        "NVIDIA_A100-SXM4-40GB" => "a100-sxm4-40gb",
        "NVIDIA_L4" => "l4",
        "Tesla_V100-PCIE-32GB" => "v100-pcie-32gb",
        "Tesla_P100-PCIE-16GB" => "p100-pcie-16gb",
        "Tesla_T4" => "t4",
        other => return Err(left_out(format!("the catalogue does not hold a {other}"))),
    };
    let catalogue = Catalogue::builtin();
    let mut cluster = catalogue.cluster("pcie-8x-a100")?;
    cluster.node.device = catalogue.device(device)?.clone();
    Ok(Arc::new(cluster))
}

fn software(fused: bool) -> Result<Software> {
    let fusion = if fused { Fusion::Compiled } else { Fusion::Eager };
    Ok(Software { attention: None, fusion, ..Software::named("pytorch")? })
}

/// A pass of a row's model by one replica.
fn pass(line: Line<'_>, samples: u64, models: &mut Models) -> Result<Case> {
    let (name, infers) = (line.text("model"), line.text("mode") == "inf");
    let whole = model(name, models)?;
    let key = format!("{name} without loss, {infers}");
    let model = models.of(key, || without_loss(&whole, infers))?;
    let sequence = line.whole("seq_len").ok_or_else(|| left_out("the row gives no sequence"))?;
    let milliseconds = line.number("measured_e2e_ms");
    let reference = line.number("pred_neusight_ms").map(|milliseconds| milliseconds / 1e3);
    let fused = line.text("variant") == "fusion";
    let kind = match (infers, fused) {
        (true, true) => "inference, fused",
        (true, false) => "inference",
        (false, _) => "training",
    };
    Ok(Case {
        group: format!("{} ({kind})", line.text("gpu")),
        what: format!("{name}, {samples} x {sequence}"),
        model,
        training: Training { precision: Precision::F32, ..Training::of(samples, sequence) },
        software: software(fused)?,
        cluster: holding(line.text("gpu"))?,
        layout: Layout { micro_batch: samples, ..Layout::default() },
        quantity: if infers { Quantity::Forward } else { Quantity::Passes },
        measured: milliseconds.ok_or_else(|| left_out("the row gives no time"))? / 1e3,
        reference,
    })
}

fn batch(line: Line<'_>) -> Result<u64> {
    line.whole("batch").ok_or_else(|| left_out("the row gives no batch"))
}

fn what(line: Line<'_>) -> String {
    format!("{} on {}", line.text("model"), line.text("gpu"))
}

fn on_one_device(root: &Root) -> Result<Option<Read>> {
    let on_one = |line: Line<'_>| line.text("n_gpus") == "1";
    read_lines(root, FILE, on_one, what, |line, models| pass(line, batch(line)?, models))
}

/// Four devices from one.
struct FromOne;

impl ValidationSet for FromOne {
    fn name(&self) -> &'static str {
        "e2e-neusight-4gpu"
    }
    fn about(&self) -> &'static str {
        "Training passes on four H100 or A100 with NVLink, divided by data (dp4), width (tp4) or depth (pp4, \
         one micro-batch): the measured time on one device (of the nearest batch; for A100 SXM that of an A100 \
         PCIe) times the ratio of two estimates. Beside it what NeuSight predicts. Assumed: as for \
         `e2e-neusight`; nothing but gradients overlaps. Nothing is fitted to these rows."
    }
    fn unit(&self) -> &'static str {
        "s"
    }
    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        on_four_devices(corpus.root()).unwrap_or_else(|error| SetOutcome {
            skipped: vec![Skipped { what: FILE.into(), why: error.to_string() }],
            ..SetOutcome::default()
        })
    }
}

fn on_four_devices(root: &Root) -> Result<SetOutcome> {
    let mut outcome = SetOutcome { reference: Some("NeuSight".into()), ..SetOutcome::default() };
    let Some(table) = table(root, FILE)? else { return Ok(outcome) };
    let mut models = Models::default();
    let mut reasons = Reasons::default();
    // Training on one device by model and kind of device.
    let mut alone = BTreeMap::<(String, bool), Vec<Case>>::new();
    let hopper = |line: Line<'_>| line.text("gpu").contains("H100");
    for line in table.lines().filter(|line| line.text("n_gpus") == "1") {
        let usable = hopper(line) || line.text("gpu") == "NVIDIA_A100_80GB_PCIe";
        if !usable || line.text("mode") != "train" {
            continue;
        }
        if let Ok(case) = batch(line).and_then(|samples| pass(line, samples, &mut models)) {
            alone.entry((line.text("model").into(), hopper(line))).or_default().push(case);
        }
    }
    for line in table.lines().filter(|line| line.text("n_gpus") == "4") {
        let key = (line.text("model").to_owned(), hopper(line));
        let base = alone.get(&key).map_or(&[][..], Vec::as_slice);
        match on_four(line, base, &mut models) {
            Ok(row) => outcome.rows.push(row),
            Err(error) => reasons.add(what(line), &error),
        }
    }
    outcome.rows.sort_by(|a, b| a.group.cmp(&b.group));
    outcome.skipped = reasons.into_skipped();
    Ok(outcome)
}

fn on_four(line: Line<'_>, alone: &[Case], models: &mut Models) -> Result<Row> {
    let whole = batch(line)?;
    let variant = line.text("variant");
    let divided = match variant {
        "dp4" => Layout { data: 4, ..Layout::default() },
        "tp4" => Layout { tensor: 4, ..Layout::default() },
        "pp4_1" => Layout { pipeline: 4, ..Layout::default() },
        other => return Err(left_out(format!("the division \"{other}\" is not known"))),
    };
    let samples = whole / u64::from(divided.data);
    let nearest = alone.iter().min_by_key(|case| case.layout.micro_batch.abs_diff(samples));
    let nearest = nearest.ok_or_else(|| left_out("nothing was measured on one device"))?;
    let mut case = pass(line, samples, models)?;
    case.training.global_batch = whole;
    case.layout = Layout { micro_batch: samples, ..divided };
    let hopper = line.text("gpu").contains("H100");
    case.cluster = machines::named(if hopper { "dgx-h100" } else { "dgx-a100-40gb" })?;
    let constants = &Constants::shipped();
    let (on_four, on_one) = (case.predict(constants)?, nearest.predict(constants)?);
    let factor = nearest.measured / on_one.value;
    Ok(Row {
        group: format!("{} x4", line.text("gpu")),
        what: format!("{} {variant}, batch {whole}, from {}", line.text("model"), nearest.what),
        predicted: on_four.value * factor,
        measured: case.measured,
        low: Some(on_four.low * factor),
        high: Some(on_four.high * factor),
        reference: case.reference,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_is_left_of_a_model() {
        let whole = foretrain_workload::load("gpt-2-large").unwrap();
        let left = |infers| without_loss(&whole, infers).unwrap();
        let count = |model: &Model, wanted: fn(&OpKind) -> bool| {
            model.layers().flat_map(|layer| &layer.ops).filter(|op| wanted(&op.kind)).count()
        };
        let loss = |kind: &OpKind| matches!(kind, OpKind::CrossEntropy { .. });
        let dropped = |kind: &OpKind| {
            use Elementwise::{Dropout, DropoutResidual};
            matches!(kind, OpKind::Elementwise { what: Dropout | DropoutResidual, .. })
        };
        assert_eq!(count(&whole, loss), 1);
        assert_eq!((count(&left(false), loss), count(&left(true), loss)), (0, 0));
        assert!(count(&left(false), dropped) > 0 && count(&left(true), dropped) == 0);
        assert_eq!(left(true).parameters(), whole.parameters());
    }
}
