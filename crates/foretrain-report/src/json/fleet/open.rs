//! The JSON of `fleet open`.

use foretrain_predict::jobs::open::Opened;
use schemars::JsonSchema;
use serde::Serialize;

/// A row of a table as the step of one replica.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetOpenReport {
    /// `foretrain/fleet-open/1`.
    pub schema: String,
    /// What identifies the job.
    pub job: String,
    /// Its class.
    pub class: String,
    /// Its replicas.
    pub cnodes: u32,
    /// The model that features are of which the row lacks; `null` if it lacks none.
    pub model: Option<String>,
    /// The parts of the step, in their order.
    pub parts: Vec<FleetOpenPartReport>,
    /// The step without any exchange.
    pub step_ns: i64,
    /// The row's over the characterised time of the whole step, by which all parts are scaled; `null`
    /// if the row holds no step time. A table does not say whether its time was measured.
    pub scale: Option<f64>,
    /// Gradients of a replica; `null` if nothing tells.
    pub gradient_bytes: Option<u64>,
    /// What the gradients rest on, or why they are not known.
    pub gradients_how: String,
    /// Figures of the row that cannot be.
    pub warnings: Vec<String>,
    /// Nodes of the graph.
    pub nodes: usize,
    /// Its edges.
    pub edges: usize,
}

/// A part of the step.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetOpenPartReport {
    /// `input`, `compute` or `memory`.
    pub part: String,
    /// What is moved; `null` of compute-bound work.
    pub bytes: Option<u64>,
    /// What is computed; `null` of what is moved.
    pub flop: Option<f64>,
    /// How long it takes.
    pub time_ns: i64,
}

impl FleetOpenReport {
    /// Of an opened row.
    pub fn new(opened: &Opened) -> Self {
        let (work, step) = (&opened.work, &opened.step);
        let scale = opened.scale.unwrap_or(1.0);
        let parts = [
            ("input", Some(work.input.get()), None, step.input),
            ("compute", None, Some(work.flops.get()), step.flops),
            ("memory", Some(work.memory_access.get()), None, step.memory),
        ];
        let parts = parts.map(|(part, bytes, flop, time)| FleetOpenPartReport {
            part: part.into(),
            bytes,
            flop,
            time_ns: time.scale(scale).nanos(),
        });
        Self {
            schema: "foretrain/fleet-open/1".into(),
            job: opened.id.clone(),
            class: work.class.name().into(),
            cnodes: work.cnodes,
            model: opened.model.clone(),
            parts: parts.into(),
            step_ns: opened.time.nanos(),
            scale: opened.scale,
            gradient_bytes: opened.gradients.value.map(foretrain_core::Bytes::get),
            gradients_how: opened.gradients.how.clone(),
            warnings: opened.warnings.clone(),
            nodes: opened.graph.node_count(),
            edges: opened.graph.edges().len(),
        }
    }
}
