//! From work to time on one machine.

mod factors;
mod machine;
mod pass;

pub use factors::Factors;
pub(crate) use machine::exposed;
pub use machine::{CommTime, Machine};
pub use pass::{Part, Parts, PassTime};
