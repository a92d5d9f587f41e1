//! A row of the feature table, every figure with its grounds.

use foretrain_core::words::escaped;
use foretrain_core::{Bytes, Flops, Nanos};
use foretrain_fleet::jobs::{Class, Features, Job, TrafficCounts};

use super::figure::{Basis, Figure};

/// Where a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Profiler traces.
    Recording,
    /// Step graphs.
    Graph,
    /// The description of a model.
    Model,
}

impl Origin {
    /// The word in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Recording => "recording",
            Self::Graph => "graph",
            Self::Model => "model",
        }
    }
}

/// What one step of one replica of a job computes and moves.
///
/// Weight traffic counts what a replica sends and what it receives.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFeatures {
    /// What identifies the job.
    pub id: String,
    /// What it was read from.
    pub origin: Origin,
    /// The model it trains, empty if not known.
    pub model: String,
    /// How it is spread.
    pub class: Figure<Class>,
    /// GPUs that hold a replica, or a part of one.
    pub cnodes: Figure<u32>,
    /// Samples of a replica's step.
    pub batch: Figure<u64>,
    /// Matrix products, convolutions and attention, forward and backward.
    pub flops: Figure<Flops>,
    /// Bytes that memory-bound operations move.
    pub memory_access: Figure<Bytes>,
    /// Input copied to the device.
    pub input: Figure<Bytes>,
    /// Weights and gradients, sent and received.
    pub traffic: Figure<Bytes>,
    /// Dense weights with the optimiser's state.
    pub dense_weights: Figure<Bytes>,
    /// Embedding tables with the optimiser's state.
    pub embedding_weights: Figure<Bytes>,
    /// Embedding rows that a step looks up.
    pub embedding_touched: Figure<Bytes>,
    /// Gradients of dense weights.
    pub gradients: Figure<Bytes>,
    /// Steps that the job runs.
    pub steps: Figure<u64>,
    /// How long a step takes.
    pub step_time: Figure<Nanos>,
    /// Part of the step in which the device is busy.
    pub utilisation: Figure<f64>,
    /// Memory taken on each GPU.
    pub gpu_memory: Figure<Bytes>,
    /// What else a reader must know.
    pub notes: Vec<String>,
}

/// What a cell holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Words.
    Text(String),
    /// A number in the unit of the column's title.
    Number(f64),
    /// Nothing.
    Empty,
}

/// A cell of the table.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell<'a> {
    /// The column's title.
    pub column: &'static str,
    /// What it holds.
    pub value: Value,
    /// What it rests on.
    pub basis: Basis,
    /// How it was found, or why not.
    pub how: &'a str,
}

impl Cell<'_> {
    /// As it stands in a CSV file. Numbers are whole where they are large, and never in exponents
    /// that lose digits.
    pub fn text(&self) -> String {
        match &self.value {
            Value::Text(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Empty => String::new(),
        }
    }
}

impl JobFeatures {
    /// The cells in the order of the table.
    pub fn cells(&self) -> Vec<Cell<'_>> {
        let bytes = |column, figure: &'_ Figure<Bytes>| {
            (column, figure.value.map(|bytes| bytes.get() as f64), figure.basis)
        };
        let named = [("job_id", &self.id), ("model", &self.model)].map(|(column, text)| Cell {
            column,
            value: Value::Text(text.clone()),
            basis: Basis::Given,
            how: "",
        });
        let origin = Cell {
            column: "source",
            value: Value::Text(self.origin.as_str().into()),
            basis: Basis::Given,
            how: "",
        };
        let class = Cell {
            column: "class",
            value: self.class.value.map_or(Value::Empty, |class| Value::Text(class.name().into())),
            basis: self.class.basis,
            how: &self.class.how,
        };
        let traffic = bytes("weight_traffic_bytes", &self.traffic);
        let counts = Cell {
            column: "traffic_counts",
            value: Value::Text(TrafficCounts::SentAndReceived.name().into()),
            basis: Basis::Given,
            how: "what a replica sends and what it receives, added up",
        };
        let cnodes = self.cnodes.value.map(f64::from);
        let numbers = [
            (("cnodes", cnodes, self.cnodes.basis), &self.cnodes.how),
            (("batch", self.batch.value.map(|n| n as f64), self.batch.basis), &self.batch.how),
            (
                ("flops", self.flops.value.map(|f| f.get().round()), self.flops.basis),
                &self.flops.how,
            ),
            (bytes("memory_access_bytes", &self.memory_access), &self.memory_access.how),
            (bytes("input_bytes", &self.input), &self.input.how),
            (traffic, &self.traffic.how),
            (bytes("dense_weight_bytes", &self.dense_weights), &self.dense_weights.how),
            (bytes("embedding_weight_bytes", &self.embedding_weights), &self.embedding_weights.how),
            (
                bytes("embedding_touched_bytes", &self.embedding_touched),
                &self.embedding_touched.how,
            ),
            (bytes("gradient_bytes", &self.gradients), &self.gradients.how),
            (("gpus", cnodes, self.cnodes.basis), &self.cnodes.how),
            (("steps", self.steps.value.map(|n| n as f64), self.steps.basis), &self.steps.how),
            (
                (
                    "step_time_ms",
                    self.step_time.value.map(|t| t.nanos() as f64 / 1e6),
                    self.step_time.basis,
                ),
                &self.step_time.how,
            ),
            (
                (
                    "utilisation",
                    self.utilisation.value.map(|u| (u * 1e4).round() / 1e4),
                    self.utilisation.basis,
                ),
                &self.utilisation.how,
            ),
            (bytes("gpu_memory_bytes", &self.gpu_memory), &self.gpu_memory.how),
        ];
        let mut cells = Vec::from(named);
        cells.extend([origin, class]);
        for ((column, value, basis), how) in numbers {
            cells.push(Cell {
                column,
                value: value.map_or(Value::Empty, Value::Number),
                basis,
                how,
            });
            if column == "weight_traffic_bytes" {
                cells.push(counts.clone());
            }
        }
        cells
    }

    /// What tables of jobs hold of it.
    pub fn features(&self) -> Features {
        Features {
            class: self.class.value,
            medium: None,
            cnodes: self.cnodes.value,
            flops: self.flops.value,
            memory_access: self.memory_access.value,
            input: self.input.value,
            traffic: self.traffic.value,
            traffic_counts: Some(TrafficCounts::SentAndReceived),
            dense_weights: self.dense_weights.value,
            embedding_weights: self.embedding_weights.value,
            embedding_touched: self.embedding_touched.value,
            gradients: self.gradients.value,
        }
    }

    /// As a row of a table.
    pub fn job(&self) -> Job {
        Job {
            id: self.id.clone(),
            model: self.model.clone(),
            batch: self.batch.value.map(|batch| batch as f64),
            gpus: self.cnodes.value.map(f64::from),
            steps: self.steps.value.map(|steps| steps as f64),
            step_time: self.step_time.value,
            utilisation: self.utilisation.value,
            gpu_memory: self.gpu_memory.value,
            features: self.features(),
            ..Job::default()
        }
    }
}

/// Rows as CSV, titles first unless they stand already where the rows go.
///
/// # Errors
/// Never for rows as they are made here.
pub fn to_csv(rows: &[JobFeatures], titled: bool) -> foretrain_core::Result<String> {
    let refused = |error: String| foretrain_core::InputError::new(format!("no CSV: {error}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    for (number, row) in rows.iter().enumerate() {
        let cells = row.cells();
        if titled && number == 0 {
            let titles = cells.iter().map(|cell| cell.column);
            writer.write_record(titles).map_err(|error| refused(error.to_string()))?;
        }
        let texts = cells.iter().map(|cell| escaped(&cell.text()).into_owned());
        writer.write_record(texts).map_err(|error| refused(error.to_string()))?;
    }
    let bytes = writer.into_inner().map_err(|error| refused(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| refused(error.to_string()))
}
