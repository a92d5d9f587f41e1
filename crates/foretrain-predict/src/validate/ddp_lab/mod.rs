//! Predicting data-parallel runs from one process and the machine's own all-reduce times.

mod machine;

use std::collections::BTreeMap;

use foretrain_core::{Bytes, Nanos, Result};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::{Catalogue, Cluster};
use rayon::prelude::*;

use super::corpus::{Corpus, analyse};
use super::extrapolate::unprofiled_step;
use super::lab::{MeasuredRun, RecordedRun, measured_runs, recorded_runs};
use super::report::{Row, SetOutcome, Skipped};
use super::roots::Candidate;
use super::{ValidationSet, guarded};
use crate::{BucketCopies, PredictOptions, Recording, SizePrediction, predict};
use machine::{Machine, buffer_bytes, copy_rate};

/// DDP runs of the lab of one kind.
pub(super) struct DdpLab {
    pub(super) name: &'static str,
    /// World, link rate in Mbit/s and share of a core; every run if `None`.
    pub(super) only: Option<(u32, u32, &'static str)>,
}

impl ValidationSet for DdpLab {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        if self.only.is_some() {
            return "The part of ddp-lab-all with this number of processes (w) on links of this many \
             Mbit/s, a whole core per process with 2 and half a core with 4.";
        }
        "The profile of one process without DDP predicts the un-profiled step times of DDP runs with \
         2, 4 and 8 processes. Given are the trace; the un-profiled step time of that process and how \
         it spreads (--step-time, --step-spread); the machine's all-reduce times at the same link \
         rate and share of a core, back to back, calibrated from; the rate of bucket copies as the \
         step of one process under DDP less that without shows it (--bucket-copies); the model's buffers \
         (--buffer-bytes); the share of a core (--cores). Nothing of a run with several processes is \
         used, nor runs under no_sync. Runs with less than a core per process, with two processes \
         per core (4 and 8) or without shaping carry noise of 10 % from other work on the machine."
    }

    fn unit(&self) -> &'static str {
        "ms"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        let mut outcome = SetOutcome::default();
        match self.scored(corpus) {
            Ok(Some(scored)) => scored.fill(&mut outcome),
            Ok(None) => {}
            Err(error) => {
                outcome.skipped.push(Skipped { what: "lab".into(), why: error.to_string() });
            }
        }
        outcome
    }
}

impl DdpLab {
    fn asks(&self, run: &MeasuredRun) -> bool {
        let setting = (run.world, run.mbit, run.workload.cpu_share.as_str());
        let wanted = |(world, mbit, share)| setting == (world, Some(mbit), share);
        run.kind == "ddp" && run.world > 1 && self.only.is_none_or(wanted)
    }

    /// Predicts everything that is asked; `None` without the lab's tables.
    fn scored<'a>(&self, corpus: &'a Corpus<'_>) -> Result<Option<Scored<'a>>> {
        let (measured, machine) = (measured_runs(corpus.root())?, Machine::read(corpus.root())?);
        let (Some(measured), Some(machine)) = (measured, machine) else { return Ok(None) };
        let asked = latest(measured.iter().filter(|run| self.asks(run)));
        let settings = asked.iter().map(|run| (run.mbit, run.workload.cpu_share.as_str()));
        let mut clusters: BTreeMap<_, _> = settings.map(|setting| (setting, None)).collect();
        clusters.par_iter_mut().for_each(|(&(mbit, share), cluster)| {
            *cluster = Some(machine.cluster(mbit, share).map_err(|error| error.to_string()));
        });
        let sources: Vec<_> = recorded_runs(corpus.candidates().iter())
            .into_iter()
            .filter(|(run, _)| run.kind == "plain")
            .collect();
        let score = |(run, files): &(RecordedRun, Vec<&'a Candidate>)| {
            let source = Source::new(run, files[0], &measured)?;
            let targets = asked.iter().filter(|target| target.workload == run.workload);
            let answers = targets.map(|target| {
                let setting = (target.mbit, target.workload.cpu_share.as_str());
                let answer = match clusters.get(&setting) {
                    Some(Some(Ok((catalogue, cluster)))) => {
                        guarded(|| source.predict(target, catalogue, cluster)).and_then(|a| a)
                    }
                    Some(Some(Err(why))) => Err(why.clone()),
                    _ => Err("no all-reduce was measured at this setting".into()),
                };
                ((*target).clone(), answer)
            });
            Ok(answers.collect())
        };
        let answers = sources.par_iter().map(|source| (source.1[0], score(source)));
        Ok(Some(Scored { asked: asked.len(), answers: answers.collect() }))
    }
}

/// Of runs that were measured again the latest.
fn latest<'a>(runs: impl Iterator<Item = &'a MeasuredRun>) -> Vec<&'a MeasuredRun> {
    let mut latest: Vec<&MeasuredRun> = Vec::new();
    for run in runs {
        let setting = |run: &MeasuredRun| {
            (run.workload.clone(), run.world, run.mbit, run.batch, run.bucket.clone())
        };
        match latest.iter_mut().find(|known| setting(known) == setting(run)) {
            Some(known) => *known = run,
            None => latest.push(run),
        }
    }
    latest
}

/// A recorded process and what else is known of it.
struct Source {
    recording: Recording,
    known: PredictOptions,
}

impl Source {
    fn new(
        run: &RecordedRun,
        file: &Candidate,
        measured: &[MeasuredRun],
    ) -> std::result::Result<Self, String> {
        let share: f64 = run.workload.cpu_share.parse().map_err(|_| "share of a core unknown")?;
        let model = &run.workload.model;
        let itself = measured.iter().find(|m| m.workload == run.workload && m.kind == "plain");
        // Copying takes processor time, of which the process has its share only.
        let copies = copy_rate(measured, model).map(|rate| BucketCopies::At(rate * share));
        let known = PredictOptions {
            unprofiled_step: unprofiled_step(run, measured),
            step_spread: itself.and_then(|m| m.spread),
            bucket_copies: copies.unwrap_or_default(),
            buffer_bytes: buffer_bytes(model),
            cores: Some(share),
            ..PredictOptions::default()
        };
        Ok(Self { recording: analyse(file)?, known })
    }

    fn predict(
        &self,
        target: &MeasuredRun,
        catalogue: &Catalogue,
        cluster: &Cluster,
    ) -> std::result::Result<Answer, String> {
        let options = PredictOptions {
            recorded_on: Some(cluster.clone()),
            gpus: vec![target.world],
            buckets: target.bucket_caps(),
            ..self.known.clone()
        };
        let recordings = std::slice::from_ref(&self.recording);
        let prediction = predict(recordings, cluster, catalogue, &options);
        let prediction = prediction.map_err(|error| error.to_string())?;
        let size = prediction.sizes.into_iter().next().ok_or("no size was predicted")?;
        Ok(Answer { buckets: buckets(&size), size })
    }
}

/// What was predicted of a run.
struct Answer {
    size: SizePrediction,
    /// Sorted.
    buckets: Vec<Bytes>,
}

impl Answer {
    fn step(&self) -> Nanos {
        self.size.step_time.value
    }
}

fn buckets(size: &SizePrediction) -> Vec<Bytes> {
    let reduces = size.collectives.iter().filter(|c| c.kind == CollectiveKind::AllReduce);
    let all = reduces.flat_map(|c| std::iter::repeat_n(c.bytes.unwrap_or(Bytes::ZERO), c.count));
    let mut buckets: Vec<Bytes> = all.collect();
    buckets.sort_unstable();
    buckets
}

type Answered = (MeasuredRun, std::result::Result<Answer, String>);

/// All answers by the recording that they start from.
struct Scored<'a> {
    asked: usize,
    answers: Vec<(&'a Candidate, std::result::Result<Vec<Answered>, String>)>,
}

impl Scored<'_> {
    fn fill(self, outcome: &mut SetOutcome) {
        let mut good: Vec<(MeasuredRun, Answer)> = Vec::new();
        for (file, answers) in self.answers {
            let answers = answers.unwrap_or_else(|why| {
                outcome.skipped.push(Skipped { what: file.name.clone(), why });
                Vec::new()
            });
            for (run, answer) in answers {
                match answer {
                    Ok(answer) => {
                        outcome.rows.push(row(file, &run, &answer));
                        good.push((run, answer));
                    }
                    Err(why) => {
                        let what = format!("{}: {}", file.name, run.describe());
                        outcome.skipped.push(Skipped { what, why });
                    }
                }
            }
        }
        let exact = good.iter().filter(|(run, answer)| {
            let mut measured = run.buckets.clone();
            measured.sort_unstable();
            measured == answer.buckets
        });
        outcome.notes.push(format!(
            "buckets exactly as DDP's in {} of {} runs",
            exact.count(),
            self.asked
        ));
        let (right, pairs) = better_buckets(&good);
        outcome.notes.push(format!(
            "the better buckets named in {right} of {pairs} pairs of runs that differ in nothing else and \
             by more than 5 %"
        ));
    }
}

fn row(file: &Candidate, run: &MeasuredRun, answer: &Answer) -> Row {
    let step = &answer.size.step_time;
    Row {
        group: file.name.clone(),
        what: run.describe(),
        predicted: step.value.millis_f64(),
        measured: run.step_ms,
        low: Some(step.low.millis_f64()),
        high: Some(step.high.millis_f64()),
        ..Row::default()
    }
}

/// Pairs of runs that differ in their buckets only and in time by more than 5 %: in how many the
/// quicker one was predicted to be quicker, and how many there are.
fn better_buckets(runs: &[(MeasuredRun, Answer)]) -> (usize, usize) {
    const MATTERS: f64 = 1.05;
    let differ_in_buckets = |a: &MeasuredRun, b: &MeasuredRun| {
        let setting = |run: &MeasuredRun| (run.workload.clone(), run.world, run.mbit, run.batch);
        setting(a) == setting(b) && a.buckets != b.buckets
    };
    let (mut right, mut pairs) = (0, 0);
    for (i, (a, of_a)) in runs.iter().enumerate() {
        for (b, of_b) in runs[i + 1..].iter().filter(|(b, _)| differ_in_buckets(a, b)) {
            let ratio = a.step_ms / b.step_ms;
            if ratio.max(1.0 / ratio) > MATTERS {
                pairs += 1;
                let predicted = of_a.step().cmp(&of_b.step());
                right += usize::from(predicted == a.step_ms.total_cmp(&b.step_ms));
            }
        }
    }
    (right, pairs)
}
