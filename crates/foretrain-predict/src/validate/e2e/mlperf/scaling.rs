//! How the data-parallel benchmarks of MLPerf scale from a submitter's smallest system to the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::stats::{median, quantile};
use foretrain_core::{Bytes, Nanos, Result};
use foretrain_cost::GroupPlacement;
use foretrain_cost::kernels::KernelModel;
use foretrain_graph::CollectiveKind;
use foretrain_plan::times::Machine;
use foretrain_plan::{Layout, Precision, Software, Training};
use rayon::prelude::*;

use super::super::case::{Case, Quantity};
use super::super::held_out::Constants;
use super::super::models::Models;
use super::super::runs::{Reasons, left_out};
use super::super::sources;
use super::submission::Submission;
use super::{SOURCE, results};
use crate::validate::ValidationSet;
use crate::validate::columns::Table;
use crate::validate::corpus::Corpus;
use crate::validate::report::{Row, SetOutcome};

/// One benchmark.
pub(super) struct Scaling {
    name: &'static str,
    benchmark: &'static str,
    about: &'static str,
    workload: Workload,
}

/// What is known of the model.
#[derive(Clone, Copy)]
enum Workload {
    /// All of its layers.
    Library { model: &'static str, sequence: u64 },
    /// What replicas exchange, in 16 bits each.
    Exchanged {
        /// Gradients per step, beside the backward pass.
        gradients: u64,
        /// Numbers that travel per sample between devices that divide the embeddings, forward and as
        /// much backward.
        embeddings: u64,
    },
}

const WITH_MODEL: &str = "Steps of a submitter's larger systems from that of its smallest one with the same \
    accelerator in the same round: its measured step times the ratio of two estimates of the whole model, which \
    differ in devices, batch per device and network. Assumed: fp16, plain data parallelism, gradients beside \
    the backward pass, InfiniBand of 8 x 200 (A100) or 8 x 400 Gbit/s (H100) per node. Groups tell rows of the \
    same batch per device from others.";

const WITH_GRADIENTS: &str = "Steps of a submitter's larger systems from that of its smallest one with the same \
    accelerator in the same round: computation in proportion to the batch per device, and of the gradients' \
    exchange (two bytes each) what two thirds of the computation cannot hide. Assumed: plain data parallelism, \
    InfiniBand of 8 x 200 (A100) or 8 x 400 Gbit/s (H100) per node. Groups tell rows of the same batch per \
    device from others, of which computation is not in proportion.";

const WITH_EMBEDDINGS: &str = "Steps of a submitter's larger systems from that of its smallest one with the same \
    accelerator in the same round: computation in proportion to the batch per device, all-to-all exchange of \
    26 embeddings of 128 numbers per sample, forward and backward, beside nothing, and gradients of the dense \
    part. Assumed: embeddings divided among all devices, 16 bits, InfiniBand as for the other benchmarks.";

const fn of_model(
    name: &'static str,
    benchmark: &'static str,
    model: &'static str,
    sequence: u64,
) -> Scaling {
    Scaling { name, benchmark, about: WITH_MODEL, workload: Workload::Library { model, sequence } }
}

const fn of_gradients(name: &'static str, benchmark: &'static str, gradients: u64) -> Scaling {
    let workload = Workload::Exchanged { gradients, embeddings: 0 };
    Scaling { name, benchmark, about: WITH_GRADIENTS, workload }
}

const fn of_embeddings(name: &'static str, benchmark: &'static str) -> Scaling {
    // Two perceptrons of some 2.4 million weights.
    let workload = Workload::Exchanged { gradients: 2_400_000, embeddings: 26 * 128 };
    Scaling { name, benchmark, about: WITH_EMBEDDINGS, workload }
}

pub(super) const BERT: Scaling = of_model("e2e-mlperf-bert", "bert", "bert-large-pretraining", 512);
pub(super) const RESNET: Scaling = of_model("e2e-mlperf-resnet", "resnet", "resnet-50", 0);
// Sizes of the reference implementations.
pub(super) const SSD: Scaling = of_gradients("e2e-mlperf-ssd", "ssd", 38_000_000);
pub(super) const RETINANET: Scaling = of_gradients("e2e-mlperf-retinanet", "retinanet", 38_000_000);
pub(super) const MASK_RCNN: Scaling = of_gradients("e2e-mlperf-maskrcnn", "maskrcnn", 44_000_000);
pub(super) const UNET3D: Scaling = of_gradients("e2e-mlperf-unet3d", "unet3d", 31_000_000);
pub(super) const RNNT: Scaling = of_gradients("e2e-mlperf-rnnt", "rnnt", 49_000_000);
pub(super) const STABLE_DIFFUSION: Scaling =
    of_gradients("e2e-mlperf-stable-diffusion", "stable_diffusion", 866_000_000);
pub(super) const DLRM: Scaling = of_embeddings("e2e-mlperf-dlrm", "dlrm");
pub(super) const DLRM_DCNV2: Scaling = of_embeddings("e2e-mlperf-dlrm-dcnv2", "dlrm_dcnv2");

/// Benchmarks of which only what they exchange is known.
const EXCHANGED: [&Scaling; 8] =
    [&SSD, &RETINANET, &MASK_RCNN, &UNET3D, &RNNT, &STABLE_DIFFUSION, &DLRM, &DLRM_DCNV2];

/// A step to predict from another.
struct Pair {
    key: String,
    from: Submission,
    to: Submission,
}

impl ValidationSet for Scaling {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
    fn unit(&self) -> &'static str {
        "s"
    }
    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        SetOutcome::of(self.name, results(corpus.root()), |table| self.scale(&table, corpus))
    }
}

impl Scaling {
    fn scale(&self, table: &Table, corpus: &Corpus<'_>) -> SetOutcome {
        let mut reasons = Reasons::default();
        let constants = &sources(corpus).without(Some(SOURCE)).constants;
        let rows = self.rows(table, constants, &mut reasons);
        let mut outcome = SetOutcome { rows, ..SetOutcome::default() };
        if let (false, Workload::Exchanged { .. }) = (outcome.rows.is_empty(), self.workload) {
            let spread = self.by_others(table, constants);
            for row in &mut outcome.rows {
                row.low = Some(row.predicted / (1.0 + spread));
                row.high = Some(row.predicted * (1.0 + spread));
            }
            outcome.notes.push(format!(
                "half-width of the 80 % interval: {:.0} %, the median over the other benchmarks that \
                 are described by what they exchange",
                100.0 * spread
            ));
        }
        outcome.skipped = reasons.into_skipped();
        outcome
    }
}

/// From the first system of the fewest devices to all that have more.
fn pairs(key: &str, mut all: Vec<Submission>) -> Vec<Pair> {
    all.sort_by_key(|submission| submission.devices);
    let Some(from) = all.first().cloned() else { return Vec::new() };
    let larger = all.into_iter().filter(|to| to.devices > from.devices);
    larger.map(|to| Pair { key: key.to_owned(), from: from.clone(), to }).collect()
}

impl Scaling {
    fn rows(&self, table: &Table, constants: &Constants, reasons: &mut Reasons) -> Vec<Row> {
        let mut families = BTreeMap::<String, Vec<Submission>>::new();
        for line in table.lines().filter(|line| line.text("benchmark") == self.benchmark) {
            let column = |name| line.text(name);
            let key = format!("{} {} {}", column("round"), column("org"), column("accelerator"));
            match Submission::of(line) {
                Ok(submission) => families.entry(key).or_default().push(submission),
                Err(error) => reasons.add(line.text("accelerator").to_owned(), &error),
            }
        }
        let pairs: Vec<Pair> =
            families.into_iter().flat_map(|(key, all)| pairs(&key, all)).collect();
        let scored: Vec<Result<Row>> =
            pairs.par_iter().map(|pair| self.row(pair, constants)).collect();
        let mut rows = Vec::new();
        for (pair, row) in pairs.iter().zip(scored) {
            match row {
                Ok(row) => rows.push(row),
                Err(error) => reasons.add(pair.key.clone(), &error),
            }
        }
        rows.sort_by(|a, b| a.group.cmp(&b.group));
        rows
    }

    /// Half of an 80 % interval where little is known of the model, by the errors of the other
    /// benchmarks of which no more is known: of each what holds 80 % of its errors, the median.
    fn by_others(&self, table: &Table, constants: &Constants) -> f64 {
        let others = EXCHANGED.into_iter().filter(|other| other.benchmark != self.benchmark);
        let each: Vec<f64> = others
            .filter_map(|other| {
                let rows = other.rows(table, constants, &mut Reasons::default());
                let off = |row: &Row| (row.measured / row.predicted).ln().abs();
                let off: Vec<f64> = rows.iter().map(off).filter(|off| off.is_finite()).collect();
                quantile(&off, 0.8).map(f64::exp_m1)
            })
            .collect();
        median(&each).unwrap_or(EXCHANGED_SPREAD)
    }

    fn row(&self, pair: &Pair, constants: &Constants) -> Result<Row> {
        let Pair { key, from, to } = pair;
        if from.each().min(to.each()) < 1.0 {
            return Err(left_out("devices divide a sample between them, in a way not described"));
        }
        let (predicted, spread) = match self.workload {
            Workload::Library { model, sequence } => {
                let estimate = |submission| case(model, sequence, submission)?.predict(constants);
                let (small, large) = (estimate(from)?, estimate(to)?);
                (from.seconds * large.value / small.value, large.relative_half_width())
            }
            Workload::Exchanged { gradients, embeddings } => {
                let exchange = |submission| Exchange::of(submission, gradients, embeddings);
                (scaled(from, exchange(from)?, to, exchange(to)?), EXCHANGED_SPREAD)
            }
        };
        let equal = (to.each() / from.each() - 1.0).abs() < 0.01;
        let group = if equal { "the same batch per device" } else { "another batch per device" };
        Ok(Row {
            group: group.into(),
            what: format!(
                "{key} {}: {} devices, batch {}, from {} with {}",
                to.system, to.devices, to.batch, from.devices, from.batch
            ),
            predicted,
            measured: to.seconds,
            low: Some(predicted / (1.0 + spread)),
            high: Some(predicted * (1.0 + spread)),
            reference: None,
        })
    }
}

/// Half of an 80 % interval where little is known of the model and no other benchmark tells.
const EXCHANGED_SPREAD: f64 = 0.25;

fn case(model: &str, sequence: u64, submission: &Submission) -> Result<Case> {
    let Submission { devices, batch, .. } = *submission;
    if !batch.is_multiple_of(u64::from(devices)) {
        return Err(left_out("the batch cannot be dealt out evenly"));
    }
    Ok(Case {
        group: String::new(),
        what: String::new(),
        model: Models::default().named(model)?,
        training: Training { precision: Precision::F16, ..Training::of(batch, sequence) },
        software: Software::named("pytorch")?,
        cluster: Arc::clone(&submission.cluster),
        layout: Layout {
            data: devices,
            micro_batch: batch / u64::from(devices),
            ..Layout::default()
        },
        quantity: Quantity::Step,
        measured: submission.seconds,
        reference: None,
    })
}

/// What a step exchanges.
#[derive(Clone, Copy)]
struct Exchange {
    /// Beside the backward pass.
    gradients: Nanos,
    /// Beside nothing.
    embeddings: Nanos,
}

impl Exchange {
    fn of(submission: &Submission, gradients: u64, embeddings: u64) -> Result<Self> {
        let cluster = &submission.cluster;
        let machine = Machine::new(cluster, KernelModel::for_device(&cluster.node.device));
        let all = GroupPlacement::strided(submission.devices, 1);
        let time = |kind, numbers: u64| -> Result<Nanos> {
            Ok(machine.collective(kind, Bytes::new(2 * numbers), &all)?.time)
        };
        let samples = submission.batch.div_ceil(u64::from(submission.devices.max(1)));
        Ok(Self {
            gradients: time(CollectiveKind::AllReduce, gradients)?,
            embeddings: time(CollectiveKind::AllToAll, embeddings * samples)?.scale(2.0),
        })
    }

    /// What of it adds to so much computation, two thirds of which are backward.
    fn exposed(self, computed: f64) -> f64 {
        let gradients = (self.gradients.secs_f64() - computed * 2.0 / 3.0).max(0.0);
        gradients + self.embeddings.secs_f64()
    }
}

/// The step on the larger system, seconds: computation goes with the batch per device.
fn scaled(from: &Submission, at_from: Exchange, to: &Submission, at_to: Exchange) -> f64 {
    // A step that is nearly all exchange is not taken apart further than to a tenth.
    let computed = (from.seconds - at_from.exposed(from.seconds)).max(0.1 * from.seconds);
    let computed = computed * to.each() / from.each();
    computed + at_to.exposed(computed)
}

#[cfg(test)]
mod tests {
    use super::super::super::machines;
    use super::*;

    fn submission(devices: u32, batch: u64, seconds: f64) -> Submission {
        let cluster = machines::named("dgx-a100").unwrap();
        Submission { devices, batch, seconds, system: String::new(), cluster }
    }

    #[test]
    fn what_the_backward_pass_hides_costs_nothing() {
        let (from, to) = (submission(8, 64, 0.3), submission(64, 512, 0.0));
        let none = Exchange::of(&from, 0, 0).unwrap();
        let some = Exchange::of(&to, 40_000_000, 0).unwrap();
        assert!((scaled(&from, none, &to, some) - 0.3).abs() < 1e-9);
        // Half the batch per device, half the time.
        let less = submission(64, 256, 0.0);
        assert!((scaled(&from, none, &less, none) - 0.15).abs() < 1e-9);
        // Embeddings are hidden by nothing.
        let moved = Exchange::of(&to, 0, 26 * 128).unwrap();
        assert!(scaled(&from, none, &to, moved) > 0.3);
    }

    #[test]
    fn the_smallest_system_is_predicted_from_not_for() {
        let all = vec![submission(64, 512, 1.0), submission(8, 64, 1.0), submission(8, 64, 1.1)];
        let pairs = pairs("", all);
        assert_eq!(pairs.len(), 1);
        assert_eq!((pairs[0].from.devices, pairs[0].to.devices), (8, 64));
    }
}
