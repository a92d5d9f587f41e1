//! Synchronisation primitives: what sending, receiving, summing, encoding, decoding and copying a
//! buffer costs on one machine, and what exchanges built of them cost on many.
//!
//! Each primitive is a line with a floor ([`LinearCost`]), fitted to measurements of one machine.
//! The same form is used by the public cost model of HiPress (SeCoPa), whose figures are the
//! built-in defaults for encoding on a device.

mod codec;
mod exchange;
mod linear;
mod measured;
mod set;

pub use codec::{Codec, Scheme};
pub use exchange::{Choice, ExchangeCosts, ExchangeKind, Priced};
pub use linear::{LinearCost, LinearFit};
pub use measured::{FittedLine, FittedPrimitives, Measured, Point, Unfitted};
pub use set::{CodecCost, Operation, Primitives};
