//! From work to time on one machine.

mod machine;
mod pass;

pub(crate) use machine::exposed;
pub use machine::{CommTime, Machine};
pub use pass::{Part, Parts, PassTime};
