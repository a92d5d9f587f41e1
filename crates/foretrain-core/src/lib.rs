//! The ground floor of Foretrain: quantities with their units in the type, typed ids, interned
//! names, estimates that carry an interval and their evidence, and the error and diagnostic
//! types that every reader reports through.
//!
//! *Architecture invariant:* this crate performs no IO, reads no clock and depends on no other
//! Foretrain crate.

pub mod diagnostics;
pub mod dtype;
pub mod error;
pub mod estimate;
pub mod ids;
pub mod names;
mod quantity;
pub mod stats;
pub mod suggest;
pub mod units;
pub mod words;

pub use diagnostics::{Diagnostic, Ledger, Severity};
pub use dtype::DType;
pub use error::{InputError, Result};
pub use estimate::{Estimate, Evidence, EvidenceKind};
pub use names::{NameId, Names};
pub use units::{Bandwidth, Bytes, FlopRate, Flops, Nanos, Quantity};
