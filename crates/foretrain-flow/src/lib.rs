//! Flows over shared links: max-min fair rates, and when each flow ends.
//!
//! A *link* has a capacity. A *flow* uses every link of its path at once, each with a *share* of
//! its rate (1 on a single path, 1/4 on each of four equal ones). Rates are max-min fair: no flow
//! can be faster without slowing one down that is no faster than it.
//!
//! - [`max_min`] and [`Solver`] set rates once; the unit is the caller's.
//! - [`simulate()`] runs flows that start and end at times of their own.
//!
//! ```
//! use foretrain_core::{Bandwidth, Nanos};
//! use foretrain_flow::{Flow, Flows, simulate};
//!
//! // Two flows of 1 MB over one link of 1 GB/s, the second half a millisecond later.
//! let mut flows = Flows::new();
//! flows.push(Flow::new(1e6), &[(0, 1.0)]);
//! flows.push(Flow { start: Nanos::from_micros(500), ..Flow::new(1e6) }, &[(0, 1.0)]);
//! let ends = simulate(&[Bandwidth::from_gb_per_sec(1.0)], &flows, 0.0).ends;
//! assert_eq!(ends, [Nanos::from_micros(1500), Nanos::from_micros(2000)]);
//! ```
//!
//! # Cost
//!
//! Setting rates takes time proportional to the length of all paths together, times the logarithm
//! of the number of links. A simulation sets them anew where something started or ended: for the
//! flows that are connected to it by links, and once for all that starts or ends in the same
//! nanosecond.
//!
//! *Architecture invariant:* this crate performs no IO, reads no clock and draws no random
//! numbers; equal input gives equal bytes.

mod flows;
mod max_min;
mod paths;
mod simulate;

pub use flows::{Flow, Flows};
pub use max_min::{Demand, Fair, Solver, max_min};
pub use paths::Paths;
pub use simulate::{Outcome, simulate};
