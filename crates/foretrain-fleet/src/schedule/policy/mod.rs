//! Who runs where: the policies, and what one has to be.

mod elastic;
mod fairness;
mod gandiva;
mod groups;
mod horus;
mod interleave;
mod las;
mod marginal;
mod named;
mod packer;
mod place;
mod queue;
mod ranked;

use foretrain_core::Nanos;

use super::board::Board;
use super::job::JobId;

pub use elastic::Goodput;
pub use gandiva::Gandiva;
pub use horus::Horus;
pub use interleave::Interleave;
pub use las::{LeastAttained, Moving, USUAL_LIMITS};
pub use marginal::MarginalGain;
pub use named::{Make, Named, POLICIES, Rules};
pub use packer::{Packer, PackingCost};
pub use place::Placer;
pub use queue::{Order, Queue};
pub use ranked::{Rank, Ranked};

/// When a policy is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rhythm {
    /// Whenever a job arrives, ends or loses its machine.
    Events,
    /// At every multiple of an interval, and at no other time.
    Every(Nanos),
}

/// Decides which jobs run where.
///
/// A policy must be deterministic: equal boards in equal order give equal decisions.
pub trait Policy {
    /// For tables.
    fn name(&self) -> String;

    /// When it is to be asked.
    fn rhythm(&self) -> Rhythm {
        Rhythm::Events
    }

    /// A job has been submitted, or lost its machine, and waits.
    fn arrived(&mut self, board: &Board<'_>, id: JobId) {
        let _ = (board, id);
    }

    /// A job has finished.
    fn left(&mut self, id: JobId) {
        let _ = id;
    }

    /// A machine has failed or come back. The jobs of one that failed have arrived anew before.
    fn machines_changed(&mut self) {}

    /// Starts and stops jobs.
    fn decide(&mut self, board: &mut Board<'_>);
}
