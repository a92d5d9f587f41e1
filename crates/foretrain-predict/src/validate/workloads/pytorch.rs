//! PyTorch's own DDP benchmark: two nodes from one.

use foretrain_core::Nanos;
use foretrain_workload::{StepTimes, named};

use super::super::ValidationSet;
use super::super::corpus::Corpus;
use super::super::report::{Row, SetOutcome, Skipped};
use super::network::Network;
use super::{on_table, step_ms};

/// A DGX-1: rings over NVLink, four NICs of 100 Gbit/s; nine tenths of what is nominal.
const WITHIN: f64 = 110e9;
const BETWEEN: f64 = 45e9;
const PER_NODE: u32 = 8;

/// The set.
pub(in super::super) struct PytorchBenchmark;

impl ValidationSet for PytorchBenchmark {
    fn name(&self) -> &'static str {
        "ddp-pytorch"
    }

    fn about(&self) -> &'static str {
        "PyTorch's DDP benchmark (ResNets on DGX-1 V100): 16 GPUs on two nodes from the median step on \
         eight GPUs of one node. The growth is the difference of two simulated steps built from the \
         model's layers; rates are nine tenths of what the machine's links have nominally. Everything \
         is hidden behind the backward pass here, so this set tests that nothing is added."
    }

    fn unit(&self) -> &'static str {
        "ms"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        on_table(corpus, "ddp_scaling_pytorch_ddp_benchmark.csv", |rows, outcome| {
            for row in rows.iter().filter(|row| row.count("n_gpus") == Some(16)) {
                let name = row.text("model");
                let group = format!("{name}, {}", series(row.text("mode")));
                let given = rows.iter().find(|other| {
                    other.text("model") == name
                        && other.count("n_gpus") == Some(PER_NODE)
                        && series(other.text("mode")) == series(row.text("mode"))
                });
                let (Some(profile), Some(given), Some(measured)) = (
                    named(name).ok().map(|model| model.profile(None)),
                    given.and_then(|given| given.ms("p50_sec_per_iter", 1e3)),
                    row.ms("p50_sec_per_iter", 1e3),
                ) else {
                    let why = "no layers of this model, or no row of eight GPUs".into();
                    outcome.skipped.push(Skipped { what: row.place.clone(), why });
                    continue;
                };
                let times = StepTimes::of_step(given);
                let of = |gpus| {
                    let network = Network::new(gpus, PER_NODE, WITHIN, BETWEEN);
                    step_ms(&profile, &times, &network, "ddp")
                };
                let growth = Nanos::from_micros_f64((of(16)? - of(PER_NODE)?) * 1e3);
                outcome.rows.push(Row {
                    group,
                    what: "16 GPUs".into(),
                    predicted: (given + growth).millis_f64(),
                    measured: measured.millis_f64(),
                    ..Row::default()
                });
            }
            Ok(())
        })
    }
}

/// The rows of one run: the benchmark, or the example of a comparison.
fn series(mode: &str) -> &'static str {
    if mode.contains("diff") { "comparison" } else { "benchmark" }
}
