//! The feature table of the characterisation: what one step of a replica computes and moves.

use super::{Kind, Schema, also, needed};
use crate::jobs::field::{Field, Unit};

pub(in crate::jobs) static FEATURES: Schema = Schema {
    name: "features",
    about: "what one step of each job computes and moves (docs/fleet.md)",
    kind: Kind::Jobs,
    columns: &[
        needed("class", Field::Class, Unit::ONE),
        needed("flops", Field::Flops, Unit::ONE),
        needed("memory_access_bytes", Field::MemoryAccess, Unit::BYTES),
        also("job_id", Field::Id, Unit::ONE),
        also("cnodes", Field::CNodes, Unit::ONE),
        also("batch", Field::Batch, Unit::ONE),
        also("input_bytes", Field::Input, Unit::BYTES),
        also("weight_traffic_bytes", Field::Traffic, Unit::BYTES),
        also("traffic_counts", Field::TrafficCounts, Unit::ONE),
        also("dense_weight_bytes", Field::DenseWeights, Unit::BYTES),
        also("embedding_weight_bytes", Field::EmbeddingWeights, Unit::BYTES),
        also("embedding_touched_bytes", Field::EmbeddingTouched, Unit::BYTES),
        also("gradient_bytes", Field::Gradients, Unit::BYTES),
        also("medium", Field::Medium, Unit::ONE),
        also("model", Field::Model, Unit::ONE),
        also("user", Field::User, Unit::ONE),
        // Where a row is from: a drawn one says that it is synthetic.
        also("source", Field::Queue, Unit::ONE),
        also("gpus", Field::Gpus, Unit::ONE),
        also("steps", Field::Steps, Unit::ONE),
        also("step_time_ms", Field::StepTime, Unit::MILLIS),
        also("utilisation", Field::Utilisation, Unit::ONE),
        also("gpu_memory_bytes", Field::GpuMemory, Unit::BYTES),
    ],
    headerless: None,
    complete: None,
};
