//! A machine's times brought in line with steps that were measured on it.
//!
//! [`read_steps`] reads what was measured, [`fit`] finds factors on the machine's times, and
//! [`Calibrated`] holds them with how sure they make other layouts.

mod certainty;
mod fit;
mod measured;
mod table;

pub use certainty::{Calibrated, MeasuredRow, Run};
pub use fit::{Fitted, fit};
pub use measured::{MeasuredStep, MeasuredSteps, read_steps};
