//! How answers look: terminal tables, JSON with a schema, timelines for Perfetto.
//!
//! [`text`] writes for people, [`json`] for programs, [`svg`] draws. All take the plain data of
//! `foretrain-predict` and `foretrain-plan` and add nothing to it: a number that stands in one stands in the other.
//!
//! *Architecture invariant:* nothing here computes an answer, reads an input file or asks the
//! terminal anything; whoever calls says how wide it is and whether it has colours.

pub mod json;
pub mod perfetto;
pub mod svg;
pub mod text;

pub use text::TextStyle;
