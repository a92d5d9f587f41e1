//! Scoring the model of collectives on measured tables that others collected.
//!
//! A set splits the rows of a table into those that are given and those that are asked; no row is
//! both. What is given calibrates a cluster as `foretrain calibrate collectives` does, and what is
//! asked is predicted as `foretrain collectives` does. Where the built-in constants were fitted to
//! a row that is asked, the fit starts from values common to all interconnects instead.

mod from_fewer;
mod given;
mod held_out;
mod tables;
mod zero_shot;

use std::sync::Arc;

use foretrain_core::{Bytes, Result};
use foretrain_cost::calibrate::calibrate_from;
use foretrain_cost::{CollectiveCall, Observation, collective_time};
use foretrain_hardware::collectives::common_prior;
use foretrain_hardware::{Catalogue, Cluster};

pub(super) use from_fewer::{Echo, EightFromFour, RackToRacks, ScaleUp};
pub(super) use held_out::SingleNode;
pub(super) use tables::Measured;
use tables::MeasuredRow;
pub(super) use zero_shot::{UnseenGpu, ZeroShot};

use super::corpus::Corpus;
use super::report::{Row, SetOutcome, Skipped};
use crate::collectives::fabric_of;

/// From here on transfers count more than latency.
const LARGE: Bytes = Bytes::from_mib(1);

/// Scores on the tables under a corpus's root; nothing without them.
fn on_tables(
    corpus: &Corpus<'_>,
    score: impl FnOnce(&Measured, &mut SetOutcome) -> Result<()>,
) -> SetOutcome {
    let mut outcome = SetOutcome::default();
    if let Some(directory) = corpus.root().directory("measured") {
        let tables = corpus.collectives(|| tables::read(&directory));
        if let Err(error) = tables.and_then(|measured| score(&measured, &mut outcome)) {
            let why = error.to_string();
            outcome.skipped.push(Skipped { what: "measured".into(), why });
        }
    }
    outcome
}

/// One split of rows of one machine.
struct Split<'a> {
    /// What the report calls it.
    group: String,
    cluster: &'static str,
    given: Vec<&'a MeasuredRow>,
    asked: Vec<&'a MeasuredRow>,
}

impl Split<'_> {
    /// Calibrates on what is given and predicts what is asked.
    fn score(&self, outcome: &mut SetOutcome) {
        if self.asked.is_empty() {
            return;
        }
        let both =
            self.given.iter().find(|given| self.asked.iter().any(|a| std::ptr::eq(*a, **given)));
        assert!(both.is_none(), "{}: a row is given and asked: {both:?}", self.group);
        match self.calibrated() {
            Ok(cluster) => ask(&cluster, &self.group, &self.asked, outcome),
            Err(error) => {
                outcome.skipped.push(Skipped { what: self.group.clone(), why: error.to_string() });
            }
        }
    }

    fn calibrated(&self) -> Result<Cluster> {
        let mut cluster = Catalogue::builtin().cluster(self.cluster)?;
        let observations = observations(&cluster, &self.given)?;
        // Where built-in constants were fitted to rows that are asked, they must not help.
        let seen = self.asked.iter().any(|row| given::is_given(row));
        let prior = seen.then(common_prior);
        let logs = vec!["what was given".into()];
        let (calibration, _) = calibrate_from(prior, &observations, logs)?;
        cluster.collectives = Some(Arc::new(calibration));
        Ok(cluster)
    }
}

fn observations(cluster: &Cluster, rows: &[&MeasuredRow]) -> Result<Vec<Observation>> {
    let observed = rows.iter().map(|row| {
        let fabric = fabric_of(cluster, row.ranks, row.nodes)?;
        Ok(Observation::new(call(row), fabric, row.time))
    });
    Ok(observed.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn call(row: &MeasuredRow) -> CollectiveCall {
    CollectiveCall { dtype: row.dtype, ..CollectiveCall::new(row.kind, row.bytes) }
}

/// Predicts rows on a cluster. Small and large sizes are groups of their own, because the errors
/// differ and users care for one or the other.
fn ask(cluster: &Cluster, group: &str, rows: &[&MeasuredRow], outcome: &mut SetOutcome) {
    for (large, sizes) in [(false, "below 1 MiB"), (true, "from 1 MiB")] {
        for row in rows.iter().filter(|row| (row.bytes >= LARGE) == large) {
            let what = format!("{}, {} ranks, {}", row.kind, row.ranks, row.bytes);
            match fabric_of(cluster, row.ranks, row.nodes) {
                Ok(fabric) => {
                    let time = collective_time(&call(row), &fabric).time;
                    outcome.rows.push(Row {
                        group: format!("{group}, {sizes}"),
                        what,
                        predicted: time.value.micros_f64(),
                        measured: row.time.micros_f64(),
                        low: Some(time.low.micros_f64()),
                        high: Some(time.high.micros_f64()),
                        reference: None,
                    });
                }
                Err(error) => outcome
                    .skipped
                    .push(Skipped { what: format!("{group}: {what}"), why: error.to_string() }),
            }
        }
    }
}

/// Rows that may be scored: on a machine of the catalogue, unflagged, of a size that matters.
fn usable(row: &&MeasuredRow) -> bool {
    const LEAST: Bytes = Bytes::from_kib(1);
    row.cluster.is_some() && row.flag.is_none() && row.bytes >= LEAST
}
