//! Overlap and bucket sizes on two GPUs, from the step without overlap and a table of all-reduces.

use foretrain_core::{Nanos, Result};
use foretrain_workload::architecture::Transformer;
use foretrain_workload::{Profile, StepTimes};

use super::super::ValidationSet;
use super::super::corpus::Corpus;
use super::super::report::{Row, SetOutcome, Skipped};
use super::network::Network;
use super::{Record, on_table, records, step_ms};

/// The set.
pub(in super::super) struct SmallScale;

impl ValidationSet for SmallScale {
    fn name(&self) -> &'static str {
        "ddp-overlap-small"
    }

    fn about(&self) -> &'static str {
        "Two GPUs without a fast link, transformers of 2.0 and 3.4 billion parameters: a single \
         all-reduce, overlap per parameter, and buckets of 1 to 1,000 MB, predicted from the rows with \
         one all-reduce per parameter after the backward pass and a table of all-reduces of that \
         machine. Where passes were not timed, what does not grow with tokens (by the given rows) counts as \
         the update. Sharded rows are left out: their variants copy and broadcast in ways of their own."
    }

    fn unit(&self) -> &'static str {
        "ms"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        let Some(path) = corpus.root().file(&["measured/collectives_misc_small.csv"]) else {
            return SetOutcome::default();
        };
        let sweeps = std::fs::read_to_string(&path)
            .map_err(|error| foretrain_core::InputError::io(&error, &path))
            .and_then(|text| records(&text));
        on_table(corpus, "ddp_overlap_small_scale.csv", |rows, outcome| {
            let sweeps = sweeps?;
            for bench in BENCHES {
                bench.score(rows, &sweeps, outcome)?;
            }
            Ok(())
        })
    }
}

/// A machine and its model.
struct Bench {
    case: &'static str,
    /// How its sweep's system begins.
    sweep: &'static str,
    layers: u64,
    hidden: u64,
    inner: u64,
}

/// The tables do not say; tensors and their work do not depend on it.
const HEADS: u64 = 32;

const BENCHES: [Bench; 2] = [
    Bench { case: "damek_cs336", sweep: "damek", layers: 48, hidden: 1600, inner: 6400 },
    Bench {
        case: "enzoding_cs336",
        sweep: "4x RTX PRO 6000",
        layers: 32,
        hidden: 2560,
        inner: 10_240,
    },
];

impl Bench {
    fn profile(&self, sequence: u64) -> Result<Profile> {
        let model = Transformer::llama(self.layers, self.hidden, HEADS, 10_000, self.inner);
        Ok(model.model(self.case, "llama")?.profile(Some(sequence)))
    }

    /// A line through the largest and the smallest size of the sweep of two ranks.
    fn network(&self, sweeps: &[Record]) -> Option<Network> {
        let mut points: Vec<(f64, f64)> = sweeps
            .iter()
            .filter(|row| row.text("system").starts_with(self.sweep))
            .filter(|row| row.count("n_ranks") == Some(2) && row.text("collective") == "all_reduce")
            .filter_map(|row| Some((row.number("size_bytes")?, row.number("time_us")?)))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (small, large) = (points.first()?, points.last()?);
        let us_per_byte = (large.1 - small.1) / (large.0 - small.0);
        if !us_per_byte.is_finite() || us_per_byte <= 0.0 {
            return None;
        }
        let mut network = Network::new(2, 2, 1e6 / us_per_byte, 1e6 / us_per_byte);
        let latency = small.1 - us_per_byte * small.0;
        network.hop_within_us = ((latency - network.ring_latency_us(1, 0.0)) / 2.0).max(0.0);
        Some(network)
    }

    fn score(&self, rows: &[Record], sweeps: &[Record], outcome: &mut SetOutcome) -> Result<()> {
        let own: Vec<&Record> = rows
            .iter()
            .filter(|row| row.text("case") == self.case && row.count("n_gpus") == Some(2))
            .collect();
        let Some(network) = self.network(sweeps) else {
            let why = "no all-reduces of this machine".into();
            outcome.skipped.push(Skipped { what: self.case.into(), why });
            return Ok(());
        };
        let given: Vec<&Record> =
            own.iter().filter(|row| row.text("strategy").starts_with("naive")).copied().collect();
        for row in own.iter().filter(|row| !row.text("strategy").starts_with("naive")) {
            let (strategy, key) = (row.text("strategy"), shape(row));
            let what = format!("{strategy} {}, {key}", row.text("bucket_mb"));
            let naive = given.iter().find(|other| shape(other) == key);
            let skip =
                |why: &str| Skipped { what: format!("{}: {what}", row.place), why: why.into() };
            let Some(passes) = passes(row) else {
                outcome.skipped.push(skip("not a variant of plain data parallelism"));
                continue;
            };
            let (Some(times), Some(measured)) =
                (naive.and_then(|naive| times(naive, &given)), row.ms("step_s", 1e3))
            else {
                outcome.skipped.push(skip("no row without overlap at this batch"));
                continue;
            };
            let sequence = row.count("seq").unwrap_or(128);
            let predicted =
                step_ms(&self.profile(u64::from(sequence))?, &times, &network, &passes)?;
            outcome.rows.push(Row {
                group: self.case.into(),
                what,
                predicted,
                measured: measured.millis_f64(),
                ..Row::default()
            });
        }
        Ok(())
    }
}

fn shape(row: &Record) -> String {
    format!("batch {} x {}", row.text("local_batch"), row.text("seq"))
}

fn tokens(row: &Record) -> Option<f64> {
    Some(row.number("local_batch")? * row.number("seq")?)
}

fn passes(row: &Record) -> Option<String> {
    let strategy = row.text("strategy");
    if strategy.starts_with("flat") {
        return Some("bsp".into());
    }
    match row.number("bucket_mb") {
        Some(mb) if strategy == "overlap + buckets" => Some(format!("fuse({mb}MB)")),
        _ if strategy.starts_with("overlap: ") => Some("wfbp".into()),
        _ if strategy.contains("per-parameter hooks") => Some("wfbp".into()),
        _ => None,
    }
}

/// Times of a step without synchronisation, by the row that synchronises after it.
fn times(naive: &Record, given: &[&Record]) -> Option<StepTimes> {
    let ms = |row: &Record, column| row.ms(column, 1e3);
    if let (Some(forward), Some(backward), Some(optimiser)) =
        (ms(naive, "forward_s"), ms(naive, "backward_s"), ms(naive, "optimizer_s"))
    {
        return Some(StepTimes { forward, backward, optimiser });
    }
    let alone = |row: &Record| Some(ms(row, "step_s")? - ms(row, "grad_sync_s")?);
    // The line through the rows of most and of second most tokens: fewer leave the GPU half idle.
    let mut points: Vec<(f64, Nanos)> =
        given.iter().filter_map(|row| Some((tokens(row)?, alone(row)?))).collect();
    points.sort_by(|a, b| b.0.total_cmp(&a.0));
    let most = *points.first()?;
    let second = *points.iter().find(|point| point.0 < most.0)?;
    let slope = (most.1 - second.1).secs_f64() / (most.0 - second.0);
    let step = alone(naive)?;
    let optimiser = Nanos::from_secs_f64(most.1.secs_f64() - slope * most.0);
    let optimiser = optimiser.clamp_positive().min(step);
    Some(StepTimes { optimiser, ..StepTimes::of_step(step - optimiser) })
}
