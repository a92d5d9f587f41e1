//! Reading JSON that may be gigabytes long, broken off, or not quite JSON.
//!
//! [`Document`] walks a profiler document event by event over a buffer of a few megabytes.
//! Each event is read by [`scan_event`], a strict one-pass scanner that notes where the fields
//! lie and copies nothing. Text that provably is not JSON goes through [`repair()`], and what
//! cannot be mended is skipped up to the next event.

pub mod document;
pub mod event;
pub mod number;
pub mod repair;
mod resync;
pub mod scan;
pub mod text;

pub use document::{Damage, DamageKind, Document, Limits, Sink};
pub use event::{Arg, Field, RawEvent, scan_event};
pub use repair::{Mending, repair};
pub use scan::{Kind, ScanError, Scanner, Value};
