//! Readers of the files people have: Kineto traces, PyTorch execution traces, Chakra, and logs of
//! collective benchmarks.
//!
//! [`read_trace`] reads one profiler trace into a columnar [`foretrain_trace::Trace`],
//! [`read_ranks`] those of a whole job, [`load()`] those or the step graphs of a job, whatever its
//! files hold, and [`load_each`] one trace after the other, for what needs no two at once. Next to every result stands a
//! [`Ledger`](foretrain_core::Ledger) of what was mended, inferred or left out. [`sniff()`] tells
//! what a file is, [`discover()`] finds traces in directories. [`collective_log`] reads what nccl-tests
//! and rccl-tests print, [`primitive_table`] measured synchronisation primitives.
//!
//! *Architecture invariant:* bytes become tables here and nowhere else; no input panics, and
//! memory grows with the table, never with the file.

mod budget;
pub mod capture;
pub mod chakra;
pub mod collective_log;
pub mod execution_trace;
mod gate;
mod graph_file;
pub mod json;
mod kineto;
mod load;
mod options;
pub mod primitive_table;
mod read;
pub mod source;

pub use gate::Hold;
pub use graph_file::{GraphFile, ReadGraph, StatedRank, read_operators};
pub use load::{Loaded, load, load_each};
pub use options::{Cancel, ReadOptions};
pub use read::{Progress, read_ranks, read_trace, read_trace_bytes};
pub use source::{FileKind, TraceFile, discover, kind_of, sniff};
