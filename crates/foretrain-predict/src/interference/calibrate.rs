//! Fitting interference models, and how far they can be trusted where they were not fitted.

use foretrain_core::stats::mean;
use foretrain_core::{InputError, Nanos, Result};
use foretrain_cost::interference::colocation::{ColocationModel, Measured, Sharing, fit};
use foretrain_cost::interference::{
    Analytic, Domain, Learned, ModelFile, OverlapModel, OverlapSample, TrainedOn,
};

use super::accuracy::{Accuracy, Timed};
use super::alone::Alone;
use super::pairs::{PairRow, Pairs};
use super::samples::{Sample, Samples};

/// What every comparison stands beside: as if nothing slowed down, and a constant factor.
pub(crate) const CONSTANT: f64 = 1.3;
/// Fewer samples are not worth trees.
const FEWEST_SAMPLES: usize = 40;
/// Launch delays that are tried: so many steps of so much.
const DELAYS: u32 = 20;
const DELAY: Nanos = Nanos::from_nanos(250);

/// Mean absolute errors in percent of the measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// As if nothing slowed down.
    pub none: f64,
    /// With the constant factor 1.3.
    pub constant: f64,
    /// With the formula, its constants from the other groups.
    pub formula: f64,
    /// With trees fitted to the other groups; the formula's where there are too few samples.
    pub learned: f64,
}

/// The score of one file, device or model family that was left out of fitting.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldOut {
    /// What was left out.
    pub group: String,
    /// Rows of it.
    pub rows: usize,
    /// Errors on them.
    pub errors: Errors,
}

/// What a calibration says.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// Of what: "kernels beside communication" or "jobs beside jobs".
    pub domain: &'static str,
    /// Held-out scores by group; empty for fewer than two groups.
    pub held_out: Vec<HeldOut>,
    /// Over all rows, each once.
    pub overall: Option<HeldOut>,
    /// What was left out, lowercase fragments with their source.
    pub notes: Vec<String>,
    /// The model to keep.
    pub file: ModelFile,
}

/// One held-out prediction.
#[derive(Clone, Copy, Debug)]
pub struct Predicted<'a> {
    /// The recording's position.
    pub recording: usize,
    /// What was predicted.
    pub sample: &'a Sample,
    /// With the formula, its constants from the other recordings.
    pub formula: Nanos,
    /// With trees fitted to the other recordings.
    pub learned: Nanos,
}

/// Fits the overlap model to recordings.
///
/// # Errors
/// If no recording holds a kernel both alone and beside communication.
pub fn calibrate_overlap(recordings: &[Samples], licence: &str) -> Result<Calibration> {
    let used: Vec<&Samples> = recordings.iter().filter(|r| !r.samples.is_empty()).collect();
    if used.is_empty() {
        return Err(nothing_overlaps(recordings));
    }
    let predicted = leave_one_out(&used);
    let errors = |rows: &[&Predicted<'_>]| {
        let off = |time: fn(&Predicted<'_>) -> Nanos| {
            let each = rows.iter().map(|row| error(time(row), row.sample.overlap.recorded));
            mean(&each.collect::<Vec<f64>>()).unwrap_or(0.0)
        };
        Errors {
            none: off(|row| row.sample.overlap.kernel.alone),
            constant: off(|row| row.sample.overlap.time_at(CONSTANT)),
            formula: off(|row| row.formula),
            learned: off(|row| row.learned),
        }
    };
    let group = |(at, recording): (usize, &&Samples)| {
        let rows: Vec<&Predicted<'_>> = predicted.iter().filter(|p| p.recording == at).collect();
        HeldOut { group: recording.source.clone(), rows: rows.len(), errors: errors(&rows) }
    };
    let several = used.len() > 1;
    let all: Vec<&Predicted<'_>> = predicted.iter().collect();
    let overall =
        several.then(|| HeldOut { group: "all".into(), rows: all.len(), errors: errors(&all) });
    let everything: Vec<usize> = (0..used.len()).collect();
    let model = fit_learned(&used, &everything);
    let trained_on = TrainedOn {
        rows: predicted.len(),
        sources: used.iter().map(|recording| recording.source.clone()).collect(),
        licence: licence.to_owned(),
        held_out_mape: overall.as_ref().map(|overall| overall.errors.learned),
    };
    let notes = recordings.iter().flat_map(|recording| {
        let left = (recording.samples.is_empty() && recording.notes.is_empty())
            .then(|| "holds no kernel both alone and beside communication".to_owned());
        recording
            .notes
            .iter()
            .cloned()
            .chain(left)
            .map(|note| format!("{}: {note}", recording.source))
    });
    Ok(Calibration {
        domain: "kernels beside communication",
        held_out: if several { used.iter().enumerate().map(group).collect() } else { Vec::new() },
        overall,
        notes: notes.collect(),
        file: ModelFile::new(Some(Domain { trained_on, model }), None),
    })
}

/// Predictions of every recording's samples by models that never saw the recording. With one
/// recording nothing is held out, and there are none.
pub fn leave_one_out<'a>(recordings: &[&'a Samples]) -> Vec<Predicted<'a>> {
    let mut predicted = Vec::new();
    for (recording, left_out) in recordings.iter().enumerate() {
        let others: Vec<usize> = (0..recordings.len()).filter(|&at| at != recording).collect();
        let model = fit_learned(recordings, &others);
        let formula = OverlapModel::Analytic(model.formula());
        let model = OverlapModel::Learned(model);
        predicted.extend(left_out.samples.iter().map(|sample| Predicted {
            recording,
            sample,
            formula: sample.overlap.predict(&formula),
            learned: sample.overlap.predict(&model),
        }));
    }
    predicted
}

/// The formula, and trees if they do better than it where they were not fitted: with few
/// recordings they often learn what is peculiar to one.
fn fit_learned(recordings: &[&Samples], which: &[usize]) -> Learned {
    let formula = fit_formula(recordings, which);
    let without = Learned::fit(formula, &[], &[]);
    let (mut by_formula, mut by_trees) = (0.0, 0.0);
    for &left_out in which {
        let others: Vec<usize> = which.iter().copied().filter(|&at| at != left_out).collect();
        let formula = fit_formula(recordings, &others);
        let trees = OverlapModel::Learned(fit_trees(formula, recordings, &others));
        by_formula += loss(recordings[left_out], &OverlapModel::Analytic(formula));
        by_trees += loss(recordings[left_out], &trees);
    }
    let count: usize = which.iter().map(|&at| recordings[at].samples.len()).sum();
    if count < FEWEST_SAMPLES || by_trees >= by_formula {
        return without;
    }
    fit_trees(formula, recordings, which)
}

fn fit_trees(formula: Analytic, recordings: &[&Samples], which: &[usize]) -> Learned {
    let (mut samples, mut weights): (Vec<OverlapSample>, Vec<f64>) = (Vec::new(), Vec::new());
    let total: usize = which.iter().map(|&at| recordings[at].samples.len()).sum();
    for &at in which {
        let own = &recordings[at].samples;
        let each = total as f64 * voice(recordings[at]) / (which.len() * own.len().max(1)) as f64;
        samples.extend(own.iter().map(|sample| sample.overlap));
        weights.extend(std::iter::repeat_n(each, own.len()));
    }
    Learned::fit(formula, &samples, &weights)
}

/// The launch delay of the least error.
fn fit_formula(recordings: &[&Samples], which: &[usize]) -> Analytic {
    let default = Analytic::default();
    let candidates =
        (0..=DELAYS).map(|step| default.with_launch_delay(DELAY.scale(f64::from(step))));
    let scored = candidates.map(|formula| {
        let model = OverlapModel::Analytic(formula);
        (which.iter().map(|&at| loss(recordings[at], &model)).sum::<f64>(), formula)
    });
    let best = scored.min_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|_| !which.is_empty()).map_or(default, |(_, formula)| formula)
}

/// A model's error on a recording's kernels, by how much the recording has to say. Equal kernels are
/// summed: steps depend on sums, and single runs of short kernels on what they chance to meet.
fn loss(recording: &Samples, model: &OverlapModel) -> f64 {
    let rows: Vec<Timed<'_>> = recording
        .samples
        .iter()
        .map(|sample| Timed::new(0, sample, sample.overlap.predict(model)))
        .collect();
    voice(recording) * Accuracy::of(&rows).map_or(0.0, |accuracy| accuracy.by_kernel)
}

/// Each recording counts as much as any other, however many kernels it has, unless it has few.
fn voice(recording: &Samples) -> f64 {
    const ENOUGH: f64 = 20.0;
    (recording.samples.len() as f64 / ENOUGH).min(1.0)
}

/// Fits the co-location model to a table of pairs; groups are model families.
///
/// # Errors
/// If there are too few pairs whose jobs are known alone.
pub fn calibrate_colocation(
    pairs: &Pairs,
    alone: &Alone,
    source: &str,
    licence: &str,
) -> Result<Calibration> {
    let (rows, unknown) = with_loads(pairs, alone);
    let measured: Vec<Measured> = rows.iter().map(|(_, measured)| *measured).collect();
    let model = fit(&measured)?;
    let mut scored: Vec<(&PairRow, Errors)> = Vec::new();
    for (row, measured, model) in leave_family_out(&rows)? {
        if row.clamped {
            continue;
        }
        let others = std::slice::from_ref(&measured.other);
        let off = |predicted: f64| 100.0 * (predicted / row.slowdown - 1.0).abs();
        let formula = model.by_formula(&measured.victim, others, Sharing::TimeSliced);
        let learned = model.slowdown(&measured.victim, others, Sharing::TimeSliced);
        let errors = Errors {
            none: off(1.0),
            constant: off(CONSTANT),
            formula: off(formula),
            learned: off(learned),
        };
        scored.push((row, errors));
    }
    let mut gpus: Vec<&str> = rows.iter().map(|(row, _)| row.gpu.as_str()).collect();
    gpus.sort_unstable();
    gpus.dedup();
    let average = |group: &str, keep: &dyn Fn(&PairRow) -> bool| {
        let kept: Vec<Errors> =
            scored.iter().filter(|(row, _)| keep(row)).map(|&(_, errors)| errors).collect();
        let over = |error: fn(&Errors) -> f64| {
            mean(&kept.iter().map(error).collect::<Vec<f64>>()).unwrap_or(0.0)
        };
        let errors = Errors {
            none: over(|e| e.none),
            constant: over(|e| e.constant),
            formula: over(|e| e.formula),
            learned: over(|e| e.learned),
        };
        HeldOut { group: group.to_owned(), rows: kept.len(), errors }
    };
    let overall = average("all", &|_| true);
    let trained_on = TrainedOn {
        rows: measured.len(),
        sources: vec![source.to_owned()],
        licence: licence.to_owned(),
        held_out_mape: Some(overall.errors.learned),
    };
    let mut notes: Vec<String> =
        pairs.left_out.iter().map(|(why, count)| format!("{count} rows left out: {why}")).collect();
    if unknown > 0 {
        notes.push(format!("{unknown} rows left out: a job's step time alone is not known"));
    }
    Ok(Calibration {
        domain: "jobs beside jobs",
        held_out: gpus.iter().map(|gpu| average(gpu, &|row| row.gpu == *gpu)).collect(),
        overall: Some(overall),
        notes,
        file: ModelFile::new(None, Some(Domain { trained_on, model })),
    })
}

/// Rows whose jobs are both known alone, and how many are not.
pub fn with_loads<'a>(pairs: &'a Pairs, alone: &Alone) -> (Vec<(&'a PairRow, Measured)>, usize) {
    let mut loads = std::collections::BTreeMap::new();
    let (mut rows, mut unknown) = (Vec::new(), 0);
    for row in &pairs.rows {
        let loads = loads.entry(row.gpu.as_str()).or_insert_with(|| alone.loads(&row.gpu));
        match row.measured(loads) {
            Some(measured) => rows.push((row, measured)),
            None => unknown += 1,
        }
    }
    (rows, unknown)
}

/// A row of a pair, its loads, and the model that saw no pair with the row's victim's family.
pub type HeldOutPair<'a> = (&'a PairRow, Measured, std::sync::Arc<ColocationModel>);

/// Each row with a model fitted to the pairs in which the victim's family has no part.
///
/// # Errors
/// If too few pairs are left.
pub fn leave_family_out<'a>(rows: &[(&'a PairRow, Measured)]) -> Result<Vec<HeldOutPair<'a>>> {
    let mut families: Vec<&str> = rows.iter().map(|(row, _)| row.victim.model.as_str()).collect();
    families.sort_unstable();
    families.dedup();
    let mut held_out = Vec::new();
    for family in families {
        let has_part = |row: &PairRow| row.victim.model == family || row.other.model == family;
        let others: Vec<Measured> =
            rows.iter().filter(|(row, _)| !has_part(row)).map(|(_, measured)| *measured).collect();
        let model = std::sync::Arc::new(fit(&others)?);
        let own = rows.iter().filter(|(row, _)| row.victim.model == family);
        held_out.extend(own.map(|&(row, measured)| (row, measured, model.clone())));
    }
    held_out.sort_by_key(|(row, ..)| (row.line, row.victim.clone()));
    Ok(held_out)
}

fn error(predicted: Nanos, measured: Nanos) -> f64 {
    let measured = measured.nanos().max(1) as f64;
    100.0 * (predicted.nanos() as f64 / measured - 1.0).abs()
}

fn nothing_overlaps(recordings: &[Samples]) -> InputError {
    let error = InputError::new(
        "no kernel was recorded both alone and beside communication, so nothing can be fitted",
    )
    .hint("record at least three steps on a device, with record_shapes=True");
    let first = recordings.iter().find_map(|r| r.notes.first().map(|note| (r, note)));
    match (first, recordings.first()) {
        (Some((recording, note)), _) => error.in_file(&recording.source).hint(note.clone()),
        (None, Some(recording)) => error.in_file(&recording.source),
        (None, None) => error,
    }
}
