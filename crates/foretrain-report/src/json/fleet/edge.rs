//! The JSON of `fleet edge`.

use foretrain_fleet::sharing::edge::{Compared, Edge, Memory};
use schemars::JsonSchema;
use serde::Serialize;

/// A device that serves models by turns, with and without shared layers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetEdgeReport {
    /// `foretrain/fleet-edge/1`.
    pub schema: String,
    /// The models, in the order of their turns.
    pub models: Vec<String>,
    /// Pairs that share layers.
    pub shared_pairs: usize,
    /// Frames per second of each stream.
    pub frames_per_second: f64,
    /// A frame is worth nothing so long after it came.
    pub deadline_ns: i64,
    /// Frames of each stream.
    pub frames: u32,
    /// The least memory in which every model can run with one of its batches.
    pub least_memory_bytes: u64,
    /// Runs, each with its best batches.
    pub runs: Vec<FleetEdgeRunReport>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetEdgeRunReport {
    /// Part of the way from the least memory to what keeps all models in memory; `null` if the
    /// memory was given or is unlimited.
    pub level: Option<f64>,
    /// Memory of the device; `null` if all models stay in memory.
    pub memory_bytes: Option<u64>,
    /// Whether layers are shared.
    pub shared: bool,
    /// Whether any choice of batches fits; if not, what follows is empty.
    pub fits: bool,
    /// Choices of batches that were played.
    pub choices: usize,
    /// Those that do not fit.
    pub too_large: usize,
    /// What became of each model's frames.
    pub served: Vec<FleetEdgeServedReport>,
    /// Part of the time in which the device waited for a model to load; `null` if nothing fits.
    pub loading_fraction: Option<f64>,
    /// Times that a model was put out of memory.
    pub evictions: u64,
    /// Time from the first frame to the last run's end; `null` if nothing fits.
    pub time_ns: Option<i64>,
}

/// A stream's frames.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetEdgeServedReport {
    /// The model.
    pub model: String,
    /// Frames of a run.
    pub batch: u32,
    /// Frames processed.
    pub processed: u32,
    /// Frames passed over.
    pub skipped: u32,
    /// Part of the frames that was processed.
    pub processed_fraction: f64,
}

impl FleetEdgeReport {
    /// Of a device and what was compared.
    pub fn new(edge: &Edge, compared: &[Compared]) -> Self {
        let models: Vec<String> = edge.models.iter().map(|model| model.name.clone()).collect();
        Self {
            schema: "foretrain/fleet-edge/1".into(),
            runs: compared.iter().map(|one| FleetEdgeRunReport::new(one, &models)).collect(),
            models,
            shared_pairs: edge.shared.len(),
            frames_per_second: edge.rate,
            deadline_ns: edge.deadline.nanos(),
            frames: edge.frames,
            least_memory_bytes: edge.least_memory().get(),
        }
    }
}

impl FleetEdgeRunReport {
    fn new(one: &Compared, models: &[String]) -> Self {
        let outcome = one.best.as_ref().map(|best| &best.outcome);
        let served = outcome.into_iter().flat_map(|outcome| {
            let streams = models.iter().zip(&outcome.batches).zip(&outcome.served);
            streams.map(|((model, &batch), served)| FleetEdgeServedReport {
                model: model.clone(),
                batch,
                processed: served.processed,
                skipped: served.skipped,
                processed_fraction: served.share(),
            })
        });
        Self {
            level: match one.wanted {
                Memory::Level(level) => Some(level),
                Memory::Given(_) | Memory::Unlimited => None,
            },
            memory_bytes: one.memory.map(foretrain_core::Bytes::get),
            shared: one.shared,
            fits: outcome.is_some(),
            choices: one.best.as_ref().map_or(0, |best| best.tried),
            too_large: one.best.as_ref().map_or(0, |best| best.too_large),
            served: served.collect(),
            loading_fraction: outcome.map(|outcome| outcome.loading),
            evictions: outcome.map_or(0, |outcome| outcome.evictions),
            time_ns: outcome.map(|outcome| outcome.time.nanos()),
        }
    }
}
