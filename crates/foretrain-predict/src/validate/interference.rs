//! Slow-down of kernels beside communication and of jobs beside jobs, against measurements.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use foretrain_core::{InputError, Nanos, Result};
use foretrain_cost::interference::colocation::{Sharing, fit};
use foretrain_hardware::Catalogue;
use rayon::prelude::*;

use super::corpus::{Corpus, analyse};
use super::report::{Row, SetOutcome, Skipped};
use super::{ValidationSet, guarded};
use crate::interference::accuracy::{Accuracy, Timed, by_other_runs};
use crate::interference::alone::Alone;
use crate::interference::calibrate::{
    CONSTANT, Predicted, leave_family_out, leave_one_out, with_loads,
};
use crate::interference::pairs::{Job, Pairs};
use crate::interference::{Samples, samples};

const PAIRS: &str = "fleet/colocation_pairs.csv";
const GAVEL: &str = "fleet/stanford-futuredata__gavel/scheduler/simulation_throughputs.json.gz";
const ALNAIR: &str = "fleet/CentaurusInfra__alnair/mps_interference_transcribed.csv";

/// Jobs in slices of time, a model family left out.
pub(super) struct Gavel;

impl ValidationSet for Gavel {
    fn name(&self) -> &'static str {
        "interference-gavel"
    }

    fn about(&self) -> &'static str {
        "The slow-down of one training job by another on the same GPU, as Gavel measured it on K80, \
         P100 and V100. The model is fitted to all pairs in which the slowed job's model family has \
         no part. Utilisation is not in the table; it is estimated from how a family's step grows \
         with its batch. Rows clamped to the speed alone are fitted as such and not scored. The \
         reference is a slow-down of 1.3 throughout."
    }

    fn unit(&self) -> &'static str {
        "times"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        scored(corpus, |outcome| {
            let Some((pairs, alone)) = gavel(corpus)? else { return Ok(()) };
            let (rows, unknown) = with_loads(&pairs, &alone);
            left_out(outcome, &pairs, unknown);
            let mut clamped = 0;
            for (row, measured, model) in leave_family_out(&rows)? {
                if row.clamped {
                    clamped += 1;
                    continue;
                }
                let others = std::slice::from_ref(&measured.other);
                let predicted = model.slowdown(&measured.victim, others, Sharing::TimeSliced);
                outcome.rows.push(Row {
                    group: format!("gavel {}", row.gpu),
                    what: format!("{} beside {}", row.victim, row.other),
                    predicted,
                    measured: row.slowdown,
                    reference: Some(1.3),
                    ..Row::default()
                });
            }
            outcome.rows.sort_by(|a, b| a.group.cmp(&b.group));
            outcome.reference = Some("constant 1.3".into());
            skip(outcome, clamped, "clamped to the speed alone");
            Ok(())
        })
    }
}

/// Jobs under MPS, from a model of another data set.
pub(super) struct Alnair;

impl ValidationSet for Alnair {
    fn name(&self) -> &'static str {
        "interference-alnair"
    }

    fn about(&self) -> &'static str {
        "The slow-down of one job by another under MPS, as Alnair measured it. Nothing is fitted to \
         it: what a turn of busy jobs costs comes from Gavel's pairs, and that turns are single \
         kernels from how MPS queues them. Utilisation and step times alone are Alnair's; the least \
         step of a model over its batches counts its launches. The reference is the sum of both \
         utilisations, at least 1."
    }

    fn unit(&self) -> &'static str {
        "times"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        scored(corpus, |outcome| {
            let Some((gavel_pairs, gavel_alone)) = gavel(corpus)? else { return Ok(()) };
            let root = corpus.root();
            let (Some(table), Some(alone)) = (root.text(PAIRS)?, root.text(ALNAIR)?) else {
                return Ok(());
            };
            let (rows, _) = with_loads(&gavel_pairs, &gavel_alone);
            let model = fit(&rows.iter().map(|(_, measured)| *measured).collect::<Vec<_>>())?;
            let pairs = Pairs::read(&table, "alnair")?;
            let gpu = pairs.rows.first().map_or(String::new(), |row| row.gpu.clone());
            let (rows, unknown) = with_loads(&pairs, &alnair_alone(&alone, &gpu)?);
            left_out(outcome, &pairs, unknown);
            let mut seen = BTreeSet::new();
            for (row, measured) in rows {
                // Two jobs of one kind are one measurement, written on both sides.
                if !seen.insert((row.victim.clone(), row.other.clone())) {
                    continue;
                }
                let others = std::slice::from_ref(&measured.other);
                outcome.rows.push(Row {
                    group: format!("alnair {}", row.victim.model),
                    what: format!("{} beside {}", row.victim, row.other),
                    predicted: model.slowdown(&measured.victim, others, Sharing::Mps),
                    measured: row.slowdown,
                    reference: Some((measured.victim.busy + measured.other.busy).max(1.0)),
                    ..Row::default()
                });
            }
            outcome.rows.sort_by(|a, b| a.group.cmp(&b.group));
            outcome.reference = Some("sum of utilisations".into());
            Ok(())
        })
    }
}

/// Kernels of traces, a file left out.
pub(super) struct Traces;

impl ValidationSet for Traces {
    fn name(&self) -> &'static str {
        "interference-traces"
    }

    fn about(&self) -> &'static str {
        "The time of kernels that ran beside communication, from their time alone in the same \
         recording: same name, grid, block and shapes at the same place of the step, with at least \
         two isolated runs that agree within 30 %. The model is fitted to the other files. One file \
         is one group; a recording that lies in several places counts once. The reference is no \
         slow-down at all. Which causes the formula knows and that its delay is fitted to sums over \
         equal kernels were chosen with these errors in view; its constant never is."
    }

    fn unit(&self) -> &'static str {
        "us"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        scored(corpus, |outcome| {
            let found = trace_samples(corpus);
            for (name, samples) in &found {
                let notes = samples.notes.iter().cloned();
                outcome.skipped.extend(notes.map(|why| Skipped { what: name.clone(), why }));
            }
            let used: Vec<&Samples> = found.iter().map(|(_, samples)| samples).collect();
            if used.len() < 2 {
                return Ok(());
            }
            let predicted = leave_one_out(&used);
            for row in &predicted {
                let overlap = &row.sample.overlap;
                outcome.rows.push(Row {
                    group: found[row.recording].0.clone(),
                    what: row.sample.what.clone(),
                    predicted: row.learned.micros_f64(),
                    measured: overlap.recorded.micros_f64(),
                    reference: Some(overlap.kernel.alone.micros_f64()),
                    ..Row::default()
                });
            }
            outcome.notes = in_sums(&predicted);
            outcome.notes.extend(floor(&used));
            outcome.reference = Some("no slow-down".into());
            Ok(())
        })
    }
}

/// Errors of the model beside those of the constant models, by run and of sums.
fn in_sums(predicted: &[Predicted<'_>]) -> Vec<String> {
    let accuracy = |time: fn(&Predicted<'_>) -> Nanos| {
        let timed = predicted.iter().map(|row| Timed::new(row.recording, row.sample, time(row)));
        Accuracy::of(&timed.collect::<Vec<_>>())
    };
    let models = [
        accuracy(|row| row.learned),
        accuracy(|row| row.sample.overlap.kernel.alone),
        accuracy(|row| row.sample.overlap.time_at(CONSTANT)),
    ];
    let [Some(model), Some(none), Some(constant)] = models else { return Vec::new() };
    let line = |what: &str, error: fn(&Accuracy) -> f64| {
        let [model, none, constant] = [model, none, constant].map(|accuracy| error(&accuracy));
        format!(
            "{what}: {model:.2} %; no slow-down {none:.2} %, constant {CONSTANT} {constant:.2} %"
        )
    };
    vec![
        line("MAPE by run", |accuracy| accuracy.by_run),
        line(
            "error of the time that equal kernels of a file take together, weighted by that time",
            |accuracy| accuracy.by_kernel,
        ),
        line(
            "error of the time that all overlapped runs of a file take together, mean over files",
            |accuracy| accuracy.by_recording,
        ),
    ]
}

/// What chance alone makes of the errors.
fn floor(used: &[&Samples]) -> Option<String> {
    let told = by_other_runs(used);
    let alone: Vec<Timed<'_>> = told
        .iter()
        .map(|row| Timed::new(row.recording, row.sample, row.sample.overlap.kernel.alone))
        .collect();
    let (floor, none) = (Accuracy::of(&told)?, Accuracy::of(&alone)?);
    Some(format!(
        "floor: a run told from the other overlapped runs of the same kernel beside the same kind of \
         communication in the same file is {:.2} % off, over {} runs that have any (no slow-down \
         {:.2} %); of equal kernels together {:.2} % ({:.2} %)",
        floor.by_run, floor.runs, none.by_run, floor.by_kernel, none.by_kernel
    ))
}

/// Samples of every recording that has some, by file name; each recording once.
fn trace_samples(corpus: &Corpus<'_>) -> Vec<(String, Samples)> {
    let (done, total) = (AtomicUsize::new(0), corpus.candidates().len());
    let catalogue = Catalogue::builtin();
    let mut found: Vec<(String, (i64, u32), Samples)> = corpus
        .candidates()
        .par_iter()
        .filter_map(|candidate| {
            let one = guarded(|| {
                analyse(candidate).ok().map(|recording| {
                    let identity = (recording.trace.meta.base_nanos, recording.rank());
                    let mut samples = samples(&recording, catalogue);
                    samples.source.clone_from(&candidate.name);
                    (candidate.name.clone(), identity, samples)
                })
            });
            corpus.report("overlapped kernels", done.fetch_add(1, Ordering::Relaxed) + 1, total);
            one.ok().flatten().filter(|(_, _, samples)| !samples.samples.is_empty())
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let mut seen = BTreeSet::new();
    let fresh = found.into_iter().filter(|(_, identity, samples)| {
        let first = samples.samples.first().map(|sample| sample.overlap.recorded);
        seen.insert((*identity, samples.samples.len(), first))
    });
    fresh.map(|(name, _, samples)| (name, samples)).collect()
}

fn scored(corpus: &Corpus<'_>, score: impl FnOnce(&mut SetOutcome) -> Result<()>) -> SetOutcome {
    let mut outcome = SetOutcome::default();
    if let Err(error) = score(&mut outcome) {
        let what = corpus.root().label().to_owned();
        outcome.skipped.push(Skipped { what, why: error.to_string() });
    }
    outcome
}

fn gavel(corpus: &Corpus<'_>) -> Result<Option<(Pairs, Alone)>> {
    let root = corpus.root();
    let (Some(pairs), Some(alone)) = (root.text(PAIRS)?, root.text(GAVEL)?) else {
        return Ok(None);
    };
    Ok(Some((Pairs::read(&pairs, "gavel")?, Alone::read(&alone)?)))
}

/// Alnair's times of ten steps alone.
fn alnair_alone(text: &str, gpu: &str) -> Result<Alone> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let mut alone = Alone::default();
    for row in reader.deserialize::<BTreeMap<String, String>>() {
        let row = row.map_err(|error| InputError::new(error.to_string()).in_file(ALNAIR))?;
        let figure = |name: &str| row.get(name).and_then(|text| text.parse::<f64>().ok());
        let (Some(job), Some(ten)) = (row.get("job_a"), figure("iso_us_per_10steps_a")) else {
            return Err(InputError::new("no job or no time of ten steps").in_file(ALNAIR));
        };
        alone.insert(gpu, Job::new(job, figure("batch_a")), Nanos::from_nanos_f64(ten * 100.0));
    }
    Ok(alone)
}

fn left_out(outcome: &mut SetOutcome, pairs: &Pairs, unknown: usize) {
    for (why, &count) in &pairs.left_out {
        skip(outcome, count, why);
    }
    skip(outcome, unknown, "a job's step time alone is not known");
}

fn skip(outcome: &mut SetOutcome, count: usize, why: &str) {
    if count > 0 {
        outcome.skipped.push(Skipped { what: format!("{PAIRS}: {count} rows"), why: why.into() });
    }
}
