//! Tables of jobs, whoever wrote them.
//!
//! A file goes through four steps, each a module: `read` gives rows of cells (CSV, JSON, Parquet),
//! `schema` and `recognise` tell which table it is, `bind` says which column holds what in which
//! unit, and `decode` and `settle` turn cells into a [`Job`], counting every [`Fault`]. A new source
//! is a new module of `schema`, registered in its list.
//!
//! ```
//! use foretrain_fleet::jobs::{Table, TableOptions};
//!
//! let text = "job_id,submit_time,duration_ms,gpus\na,0,60000,1\nb,10,-5,8\n";
//! let table = Table::from_bytes("jobs.csv", text.into(), &TableOptions::default())?;
//! let mut gpus = 0.0;
//! let read = table.for_each(|job| gpus += job.gpus.unwrap_or(0.0));
//! assert_eq!((gpus, read.rows), (9.0, 2));
//! assert_eq!(read.faults.count(foretrain_fleet::jobs::Fault::NegativeSpan), 1);
//! # Ok::<(), foretrain_core::InputError>(())
//! ```

mod attempt;
mod bind;
mod decode;
mod fault;
mod features;
mod field;
mod gpus;
mod instant;
mod job;
mod layout;
mod listing;
mod places;
mod read;
mod recognise;
mod samples;
mod schema;
mod settle;
mod slice;
mod span;
mod steps;
mod style;
mod table;
mod titles;
mod tres;
mod units;
mod value;

#[cfg(test)]
mod tests;

pub use attempt::{Attempt, Holding};
pub use bind::{Binding, UnitFrom};
pub use fault::{Fault, Faults};
pub use features::{Class, Features, Medium, TrafficCounts};
pub use field::{ColumnHint, Dimension, Field, Unit};
pub use job::{Job, Placement, Status};
pub use listing::{Listed, MachineList};
pub use samples::{Named, Sample, SamplesRead};
pub use schema::{ALL as SCHEMAS, Kind, Schema};
pub use slice::slice_of;
pub use table::{Table, TableOptions, TableRead};
