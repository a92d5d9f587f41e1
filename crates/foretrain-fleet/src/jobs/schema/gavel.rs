//! Gavel's traces (stanford-futuredata/gavel, `.trace`): tabs, no header, steps in place of
//! durations.

use csv::ByteRecord;

use super::{Headerless, Kind, Schema, needed, numeric};
use crate::jobs::field::{Field, Unit};
use crate::jobs::job::Job;
use crate::jobs::value;

fn has_batch(row: &ByteRecord) -> bool {
    let first = row.get(0).unwrap_or_default();
    first.windows(12).any(|window| window == b"(batch size ")
}

/// `ResNet-50 (batch size 64)` names a model and its batch.
fn split_model(job: &mut Job) {
    let Some((model, batch)) = job.model.split_once(" (batch size ") else { return };
    job.batch = value::number(batch.trim_end_matches(')').as_bytes());
    let length = model.len();
    job.model.truncate(length);
}

const COLUMNS: &[super::Column] = &[
    needed("job_type", Field::Model, Unit::ONE),
    needed("total_steps", Field::Steps, Unit::ONE),
    needed("scale_factor", Field::Gpus, Unit::ONE),
    needed("arrival_time", Field::Submit, Unit::SECONDS),
];

/// Traces in which the arrival comes before the size.
pub(super) static CONTINUOUS: Schema = Schema {
    name: "gavel",
    about: "Gavel, continuous traces of seven columns",
    kind: Kind::Jobs,
    columns: COLUMNS,
    headerless: Some(Headerless {
        file: None,
        titles: &[
            "job_type",
            "command",
            "steps_argument",
            "needs_data",
            "total_steps",
            "arrival_time",
            "scale_factor",
        ],
        tells: |row| has_batch(row) && (3..7).all(|column| numeric(row, column)),
    }),
    complete: Some(split_model),
};

/// Traces with directory, priority and deadline; the arrival is last.
pub(super) static PHYSICAL: Schema = Schema {
    name: "gavel-physical",
    about: "Gavel, traces of the physical cluster of ten columns",
    kind: Kind::Jobs,
    columns: &[
        COLUMNS[0],
        COLUMNS[1],
        COLUMNS[2],
        COLUMNS[3],
        needed("priority_weight", Field::Priority, Unit::ONE),
    ],
    headerless: Some(Headerless {
        file: None,
        titles: &[
            "job_type",
            "command",
            "directory",
            "steps_argument",
            "needs_data",
            "total_steps",
            "scale_factor",
            "priority_weight",
            "deadline",
            "arrival_time",
        ],
        tells: |row| has_batch(row) && (4..10).all(|column| numeric(row, column)),
    }),
    complete: Some(split_model),
};
