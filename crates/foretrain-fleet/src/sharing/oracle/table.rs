//! Outcomes of retraining as a table, measured or expected.

use foretrain_core::{InputError, Result};
use serde::Deserialize;

use super::known::Known;
use super::{AccuracyOracle, Trial, checked, draw};
use crate::sharing::Workload;

/// Rows of a table, the first that fits answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    rows: Vec<Row>,
    epochs: u32,
    seed: u64,
}

/// `layer,model,layers,probability,epochs`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    /// The layer as reports spell it; `*` for any.
    pub(super) layer: String,
    /// The model's name; `*` for any.
    pub(super) model: String,
    /// Fits trials of at most so many layers.
    #[serde(default)]
    layers: Option<usize>,
    /// That the accuracy is kept: 1 and 0 are measured outcomes.
    probability: f64,
    /// Epochs of a success.
    #[serde(default)]
    epochs: Option<u32>,
    /// Where it stands in the file.
    #[serde(skip)]
    pub(super) line: u64,
}

/// More rows are no table of trials.
const MOST: usize = 1_000_000;

impl Table {
    /// A table in CSV with the columns `layer`, `model`, `probability` and, if wanted, `layers` and
    /// `epochs`. Successes without epochs of their own take `epochs`, the most that a retraining
    /// may.
    ///
    /// # Errors
    /// If it is no such table, or a row holds no probability or impossible epochs; the error names the
    /// line.
    pub fn parse(text: &str, epochs: u32, seed: u64) -> Result<Self> {
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let mut rows = Vec::new();
        let titles = reader.headers().map_err(|error| wrong(&error))?.clone();
        for record in reader.records() {
            let record = record.map_err(|error| wrong(&error))?;
            let line = record.position().map_or(0, csv::Position::line);
            let row: Row = record.deserialize(Some(&titles)).map_err(|error| wrong(&error))?;
            if rows.len() >= MOST {
                return Err(InputError::new(format!("more than {MOST} rows")));
            }
            rows.push(
                Row { line, ..row }
                    .checked(epochs)
                    .map_err(|error| error.at(format!("line {line}")))?,
            );
        }
        if rows.is_empty() {
            let error = InputError::new("a table of outcomes without rows");
            return Err(error.hint(COLUMNS));
        }
        Ok(Self { rows, epochs, seed })
    }

    /// Refuses rows of layers or models that the workload does not have: a name with a slip would
    /// match nothing. Answers what is odd without being wrong, as sentences: rows whose layer their
    /// model shares with no other.
    ///
    /// # Errors
    /// Names the line, the name and the nearest one that there is.
    pub fn check(&self, workload: &Workload) -> Result<Vec<String>> {
        let known = Known::of(workload);
        let checked = self.rows.iter().map(|row| known.check(row));
        let odd = checked.collect::<Result<Vec<Option<String>>>>()?;
        Ok(odd.into_iter().flatten().collect())
    }

    /// The same table with other luck.
    pub fn with_seed(&self, seed: u64) -> Self {
        Self { seed, ..self.clone() }
    }

    /// Whether luck plays a part: some outcome is neither certain nor excluded.
    pub fn is_random(&self) -> bool {
        self.rows.iter().any(|row| row.probability > 0.0 && row.probability < 1.0)
    }
}

impl Row {
    fn checked(self, most: u32) -> Result<Self> {
        checked(self.probability)?;
        if let Some(epochs) = self.epochs.filter(|epochs| !(1..=most).contains(epochs)) {
            let error = InputError::new(format!("a success after {epochs} epochs"));
            return Err(error.hint(match epochs {
                0 => "a retraining takes 1 epoch or more".into(),
                _ => format!(
                    "retraining ends after {most} (--epochs): raise it, or give probability 0"
                ),
            }));
        }
        if self.layers == Some(0) {
            let error = InputError::new("a row of at most 0 layers fits no trial");
            return Err(error.hint("leave the cell empty for any number"));
        }
        Ok(self)
    }
}

const COLUMNS: &str = "columns are layer, model, probability and, if wanted, layers and epochs";

fn wrong(error: &csv::Error) -> InputError {
    let found = match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => err.to_string(),
        _ => error.to_string(),
    };
    let place = error.position().map_or(0, csv::Position::line);
    InputError::new(format!("a row that cannot be read: {found}"))
        .at(format!("line {place}"))
        .hint(COLUMNS)
}

impl AccuracyOracle for Table {
    /// A trial that no row fits fails.
    fn retrain(&mut self, trial: &Trial<'_>) -> Option<u32> {
        let name = trial.signature.to_string();
        let fits = |row: &&Row| {
            (row.layer == "*" || row.layer == name)
                && (row.model == "*" || row.model == trial.model)
                && row.layers.is_none_or(|most| trial.layers <= most)
        };
        let row = self.rows.iter().find(fits)?;
        let met = draw(trial, self.seed) < row.probability;
        met.then(|| row.epochs.unwrap_or(self.epochs))
    }
}
