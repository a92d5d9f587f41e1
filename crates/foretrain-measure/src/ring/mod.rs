//! Collectives of plain processes over TCP, in rings: what CPU libraries do, without any library.
//!
//! ```text
//!              coordinator
//!         control  │  connections
//!      ┌───────────┼───────────┐
//!    rank 0 ───▶ rank 1 ───▶ rank 2 ───▶ (rank 0)     data, one connection each
//! ```
//!
//! The coordinator measures nothing itself: it tells ranks with whom to form a ring and what to run, and
//! gathers their times. Ranks are processes of this machine and, if asked for, of others that connect.

mod algorithms;
mod control;
mod coordinator;
mod machines;
mod neighbours;
mod rank;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::time::Duration;

use foretrain_core::{Bytes, Nanos};

pub use coordinator::measure_ring;
pub use machines::help_ring;
pub use rank::join_ring;

/// An operation among ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingOperation {
    /// Sums on all ranks, by a reduce-scatter and an all-gather.
    AllReduce,
    /// Each rank's part of the sums.
    ReduceScatter,
    /// All parts on all ranks.
    AllGather,
    /// From the first rank from neighbour to neighbour, in segments.
    Broadcast,
    /// There and back between two ranks; timed one way.
    SendRecv,
}

impl RingOperation {
    /// All there are, in the order in which they are measured.
    pub const ALL: [Self; 5] =
        [Self::AllReduce, Self::ReduceScatter, Self::AllGather, Self::Broadcast, Self::SendRecv];

    /// The name in tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AllReduce => "all_reduce",
            Self::ReduceScatter => "reduce_scatter",
            Self::AllGather => "all_gather",
            Self::Broadcast => "broadcast",
            Self::SendRecv => "sendrecv",
        }
    }

    /// The operation of a name, written with `-` or `_`.
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.replace('-', "_");
        Self::ALL.into_iter().find(|operation| operation.as_str() == name)
    }

    /// Whether it takes part among so many ranks.
    fn suits(self, ranks: u32) -> bool {
        ranks == 2 || self != Self::SendRecv
    }
}

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingOptions {
    /// Numbers of ranks, two at least.
    pub ranks: Vec<u32>,
    /// Of the larger of a rank's input and output.
    pub sizes: Vec<Bytes>,
    /// What to measure of each.
    pub operations: Vec<RingOperation>,
    /// About how long to measure in all.
    pub budget: Duration,
    /// Where other machines may connect, and how many machines there are with this one; on this
    /// machine alone if `None`.
    pub machines: Option<(SocketAddr, u32)>,
}

/// A measured point; of several ranks the slowest counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingPoint {
    /// What.
    pub operation: RingOperation,
    /// Ranks.
    pub ranks: u32,
    /// Machines that they are on.
    pub nodes: u32,
    /// The exact size.
    pub bytes: Bytes,
    /// Calls back to back: median, p10 and p90.
    pub back_to_back: [Nanos; 3],
    /// The same of single calls after a barrier.
    pub barriered: [Nanos; 3],
    /// Calls back to back.
    pub calls: u64,
    /// Processor time of a rank per call.
    pub processor: Nanos,
}
