//! Columnar profiler events of one rank, and what they mean.
//!
//! [`Trace`] is the table that every reader in `foretrain-ingest` fills. The other modules turn
//! traces into step graphs: they recognise collectives, find steps, align the clocks of ranks,
//! and apply the fidelity rules that make a replay of the graph reproduce the recording.
//!
//! *Architecture invariant:* nothing here knows a file format, and nothing is dropped without a
//! line in the ledger.

pub mod align;
pub mod build;
pub mod capture;
pub mod category;
pub mod collectives;
pub mod index;
pub mod steps;
pub mod table;

pub use capture::Capture;
pub use category::Category;
pub use table::{
    CommArgs, CopyArgs, DeviceInfo, Flow, LaunchArgs, ProcessGroup, SyncArgs, Trace, TraceMeta,
    Track, TrackId,
};
