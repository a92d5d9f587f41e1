//! Outcomes of retraining as a table, measured or expected.

use foretrain_core::{InputError, Result};
use serde::Deserialize;

use super::{AccuracyOracle, Trial, checked, draw};

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
struct Row {
    /// The layer as reports spell it; `*` for any.
    layer: String,
    /// The model's name; `*` for any.
    model: String,
    /// Fits trials of at most so many layers.
    #[serde(default)]
    layers: Option<usize>,
    /// That the accuracy is kept: 1 and 0 are measured outcomes.
    probability: f64,
    /// Epochs of a success.
    #[serde(default)]
    epochs: Option<u32>,
}

/// More rows are no table of trials.
const MOST: usize = 1_000_000;

impl Table {
    /// A table in CSV with the columns `layer`, `model`, `probability` and, if wanted, `layers` and
    /// `epochs`. Successes without epochs of their own take `epochs`.
    ///
    /// # Errors
    /// If it is no such table, or a row holds no probability; the error names the line.
    pub fn parse(text: &str, epochs: u32, seed: u64) -> Result<Self> {
        let mut reader =
            csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let mut rows = Vec::new();
        for row in reader.deserialize::<Row>() {
            let row = row.map_err(|error| wrong(&error))?;
            let line = rows.len() + 2;
            checked(row.probability).map_err(|error| error.at(format!("row {line}")))?;
            if rows.len() >= MOST {
                return Err(InputError::new(format!("more than {MOST} rows")));
            }
            rows.push(row);
        }
        if rows.is_empty() {
            let error = InputError::new("a table of outcomes without rows");
            return Err(error.hint(COLUMNS));
        }
        Ok(Self { rows, epochs, seed })
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
