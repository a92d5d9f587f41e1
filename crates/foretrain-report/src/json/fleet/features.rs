//! The JSON of `fleet features`.

use foretrain_predict::jobs::{Cell, JobFeatures, Value};
use schemars::JsonSchema;
use serde::Serialize;

/// Jobs as rows of the feature table, every figure with what it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetFeaturesReport {
    /// `foretrain/fleet-features/1`.
    pub schema: String,
    /// The jobs, in the order in which they were named.
    pub jobs: Vec<FleetFeaturesJobReport>,
}

/// One job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetFeaturesJobReport {
    /// What identifies it.
    pub job: String,
    /// What it was read from: `recording`, `graph` or `model`.
    pub source: String,
    /// The model it trains, empty if not known.
    pub model: String,
    /// Its figures, per step and replica, in the order of the table.
    pub figures: Vec<FleetFigureReport>,
    /// What else a reader must know.
    pub notes: Vec<String>,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetFigureReport {
    /// The column's title, which names the unit.
    pub column: String,
    /// The value, if it is a number that was found.
    pub value: Option<f64>,
    /// The value, if it is a word that was found.
    pub word: Option<String>,
    /// `given`, `measured`, `counted`, `model`, `inferred`, `estimated`, `assumed` or `missing`.
    pub basis: String,
    /// How it was found, or why it was not.
    pub how: String,
}

impl FleetFeaturesReport {
    /// Of rows.
    pub fn new(rows: &[JobFeatures]) -> Self {
        Self {
            schema: "foretrain/fleet-features/1".into(),
            jobs: rows.iter().map(FleetFeaturesJobReport::new).collect(),
        }
    }
}

impl FleetFeaturesJobReport {
    fn new(row: &JobFeatures) -> Self {
        const NAMES: [&str; 3] = ["job_id", "model", "source"];
        let cells = row.cells();
        let figures = cells.iter().filter(|cell| !NAMES.contains(&cell.column));
        Self {
            job: row.id.clone(),
            source: row.origin.as_str().into(),
            model: row.model.clone(),
            figures: figures.map(FleetFigureReport::new).collect(),
            notes: row.notes.clone(),
        }
    }
}

impl FleetFigureReport {
    fn new(cell: &Cell<'_>) -> Self {
        let (value, word) = match &cell.value {
            Value::Number(number) => (Some(*number), None),
            Value::Text(text) => (None, Some(text.clone())),
            Value::Empty => (None, None),
        };
        Self {
            column: cell.column.into(),
            value,
            word,
            basis: cell.basis.as_str().into(),
            how: cell.how.into(),
        }
    }
}
