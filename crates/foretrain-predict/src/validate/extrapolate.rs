//! Predicting runs with more ranks or another network from recordings of smaller ones.

use std::sync::atomic::{AtomicUsize, Ordering};

use foretrain_core::{Bytes, Nanos};
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_rewrite::BucketCaps;
use rayon::prelude::*;

use super::corpus::{Corpus, analyse};
use super::lab::{MeasuredRun, RecordedRun, measured_runs, recorded_runs};
use super::report::{Row, SetOutcome, Skipped};
use super::roots::Candidate;
use super::{ValidationSet, guarded};
use crate::{PredictOptions, Recording, predict};

/// From one rank without communication.
pub(super) struct FromOneRank {
    /// Whether it is also given how long the rank's step takes without the profiler.
    pub(super) timed: bool,
}

/// From all ranks of a recorded data-parallel run.
pub(super) struct FromAllRanks;

impl ValidationSet for FromOneRank {
    fn name(&self) -> &'static str {
        if self.timed { "extrapolate-one-timed-rank" } else { "extrapolate-one-rank" }
    }

    fn about(&self) -> &'static str {
        if self.timed {
            return "The same, given also the un-profiled step time of the one recorded process (--step-time), \
         so that what the profiler cost is taken out. No run with several processes is used.";
        }
        "The profile of one process without DDP predicts the un-profiled step times of DDP runs \
         with 2, 4 and 8 processes on links of 50, 200 and 1000 Mbit/s and several bucket sizes. \
         Given are the trace, the link's rate and the bucket cap; all-reduce times are \
         uncalibrated priors. Where ranks had less than a whole core each (c0.5, c0.25), the \
         scheduler's quota delays another rank in every step, which the trace of one process \
         cannot show: those runs come out too short."
    }

    fn unit(&self) -> &'static str {
        "ms"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        score(corpus, self.timed, |run| run.kind == "plain", |_, _| true)
    }
}

impl ValidationSet for FromAllRanks {
    fn name(&self) -> &'static str {
        "extrapolate-all-ranks"
    }

    fn about(&self) -> &'static str {
        "Profiles of all ranks of a DDP run predict the un-profiled step times of runs with as \
         many or more processes or on a link of another rate, with the same buckets. The recorded \
         collectives are scaled by the model's ratio of the two networks. All recordings are from \
         200 Mbit/s, where driving the network took as much of the core as the model did; at 1000 \
         Mbit/s it does not, so those runs come out too long: how computing and communication slow \
         each other down is not modelled yet."
    }

    fn unit(&self) -> &'static str {
        "ms"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        let scored = |run: &RecordedRun| run.kind == "ddp" && run.world > 1 && run.mbit.is_some();
        score(corpus, false, scored, |run, target| {
            let same_buckets = run.bucket_mb.map(|mb| mb.to_string());
            let same_run = (run.world, run.mbit) == (target.world, target.mbit);
            same_buckets.as_deref() == Some(target.bucket.as_str())
                && target.world >= run.world
                && !same_run
        })
    }
}

fn score(
    corpus: &Corpus<'_>,
    timed: bool,
    is_source: impl Fn(&RecordedRun) -> bool,
    is_target: impl Fn(&RecordedRun, &MeasuredRun) -> bool + Sync,
) -> SetOutcome {
    let mut outcome = SetOutcome::default();
    let measured = match measured_runs(corpus.root()) {
        Ok(Some(measured)) => measured,
        Ok(None) => return outcome,
        Err(error) => {
            outcome.skipped.push(Skipped { what: "lab".into(), why: error.to_string() });
            return outcome;
        }
    };
    let candidates = corpus.candidates().iter();
    let runs: Vec<_> =
        recorded_runs(candidates).into_iter().filter(|(run, _)| is_source(run)).collect();
    let done = AtomicUsize::new(0);
    let parts: Vec<SetOutcome> = runs
        .par_iter()
        .map(|(run, files)| {
            let targets = targets(run, &measured, &is_target);
            let unprofiled = timed.then(|| unprofiled_step(run, &measured)).flatten();
            let score = || score_run(run, files, unprofiled, &targets);
            let part = guarded(score).unwrap_or_else(|why| {
                let what = files[0].name.clone();
                SetOutcome { skipped: vec![Skipped { what, why }], ..SetOutcome::default() }
            });
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            corpus.report("extrapolating", count, runs.len());
            part
        })
        .collect();
    for part in parts {
        outcome.rows.extend(part.rows);
        outcome.skipped.extend(part.skipped);
    }
    let unshaped = measured.iter().filter(|m| m.kind == "ddp" && m.world > 1 && m.mbit.is_none());
    outcome.skipped.push(Skipped {
        what: format!("lab: {} runs over links without shaping", unshaped.count()),
        why: "their rate is not known, so no cluster can be described".into(),
    });
    outcome
}

/// Runs that a recording can be asked about: of the same work per rank, on a link of known rate.
fn targets<'a>(
    run: &RecordedRun,
    measured: &'a [MeasuredRun],
    is_target: &impl Fn(&RecordedRun, &MeasuredRun) -> bool,
) -> Vec<&'a MeasuredRun> {
    // Recordings were made with the batch of the runs on one rank.
    let of_work = |m: &&MeasuredRun| m.workload == run.workload;
    let batch = measured.iter().filter(of_work).find(|m| m.kind == "plain").map(|m| m.batch);
    measured
        .iter()
        .filter(of_work)
        .filter(|m| m.kind == "ddp" && m.world > 1 && m.mbit.is_some())
        .filter(|m| Some(m.batch) == batch && is_target(run, m))
        .collect()
}

/// Step time of the recorded run itself without the profiler.
fn unprofiled_step(run: &RecordedRun, measured: &[MeasuredRun]) -> Option<Nanos> {
    let same = |m: &&MeasuredRun| {
        (&m.workload, m.kind.as_str(), m.world) == (&run.workload, run.kind.as_str(), run.world)
    };
    measured.iter().find(same).map(|m| Nanos::from_nanos_f64(m.step_ms * 1e6))
}

fn score_run(
    run: &RecordedRun,
    files: &[&Candidate],
    unprofiled: Option<Nanos>,
    targets: &[&MeasuredRun],
) -> SetOutcome {
    let mut outcome = SetOutcome::default();
    let recordings: Result<Vec<Recording>, String> = files.iter().map(|f| analyse(f)).collect();
    let recordings = match recordings {
        Ok(recordings) => recordings,
        Err(why) => {
            outcome.skipped.push(Skipped { what: files[0].name.clone(), why });
            return outcome;
        }
    };
    for target in targets {
        match predict_run(run, &recordings, unprofiled, target) {
            Ok(row) => outcome.rows.push(Row { group: files[0].name.clone(), ..row }),
            Err(why) => outcome
                .skipped
                .push(Skipped { what: format!("{}: {}", files[0].name, target.describe()), why }),
        }
    }
    outcome
}

fn predict_run(
    run: &RecordedRun,
    recordings: &[Recording],
    unprofiled: Option<Nanos>,
    target: &MeasuredRun,
) -> Result<Row, String> {
    let words = |error: foretrain_core::InputError| error.to_string();
    let rate = target.mbit.ok_or("link of unknown rate")?;
    let (catalogue, cluster) = lab_cluster(rate).map_err(words)?;
    let (_, recorded_on) = lab_cluster(run.mbit.unwrap_or(rate)).map_err(words)?;
    let buckets = match target.bucket.parse() {
        Ok(mib) => BucketCaps::uniform(Bytes::from_mib(mib)),
        Err(_) => BucketCaps::default(),
    };
    let options = PredictOptions {
        recorded_on: Some(recorded_on),
        unprofiled_step: unprofiled,
        gpus: vec![target.world],
        replica_batch: None,
        buckets,
        gradient_bytes: None,
        roles: Vec::new(),
        interference: None,
    };
    let prediction = predict(recordings, &cluster, &catalogue, &options).map_err(words)?;
    let step = prediction.sizes.first().ok_or("no size was predicted")?.step_time;
    Ok(Row {
        what: target.describe(),
        predicted: step.value.millis_f64(),
        measured: target.step_ms,
        low: Some(step.low.millis_f64()),
        high: Some(step.high.millis_f64()),
        ..Row::default()
    })
}

/// One process per node, nodes on one switch at the given rate: what the lab emulated. Compute
/// keeps its recorded time, so the core's own figures do not matter.
fn lab_cluster(mbit: u32) -> foretrain_core::Result<(Catalogue, Cluster)> {
    let text = format!(
        r#"
        [devices.lab-core]
        kind = "cpu"
        vendor = "other"
        memory = "8 GiB"
        memory_bandwidth = "10 GB/s"
        peak = {{ f32 = "50 GFLOP/s" }}
        source = "one core of the lab's machine"

        [nodes.lab]
        device = "lab-core"
        devices = 1
        nics = 1
        nic = "ethernet"
        nic_bandwidth = "{mbit} Mbit/s"
        source = "emulated link of the lab"
        "#
    );
    let mut catalogue = Catalogue::builtin().clone();
    catalogue.load_str(&text, "lab.toml")?;
    let cluster = catalogue.cluster("lab")?;
    Ok((catalogue, cluster))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lab_is_a_cluster_of_single_processes() {
        let (_, cluster) = lab_cluster(200).expect("valid hardware");
        assert_eq!(cluster.devices_per_node(), 1);
        assert!((cluster.node_bandwidth().gb_per_sec() - 0.025).abs() < 1e-6);
        assert!(cluster.nodes_for(8).is_ok());
    }
}
