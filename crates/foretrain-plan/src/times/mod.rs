//! From work to time on one machine.

mod machine;
mod pass;

pub use machine::Machine;
pub use pass::{Part, Parts, PassTime};
