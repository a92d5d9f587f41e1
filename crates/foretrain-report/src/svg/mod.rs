//! Answers as pictures: SVG that stands alone, reads in light and dark surroundings and to a screen
//! reader, and needs neither fonts nor scripts.
//!
//! It is written by hand because the charting crates paint fixed colours and have no place for titles
//! and descriptions.

mod axis;
mod chart;
mod collectives;
mod element;
mod schedule;

pub use collectives::collectives;
pub use schedule::fleet_schedule;
