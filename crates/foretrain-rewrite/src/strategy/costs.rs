//! What a strategy asks of the machines it runs on.

use foretrain_core::{Bytes, Estimate, Nanos};
use foretrain_cost::Method;
use foretrain_cost::primitives::Primitives;
use foretrain_graph::CollectiveKind;

/// Which replicas take part: `size` of them, `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// How many.
    pub size: u32,
    /// How far apart in the order of replicas.
    pub stride: u32,
}

impl Scope {
    /// Neighbours.
    pub const fn contiguous(size: u32) -> Self {
        Self { size, stride: 1 }
    }
}

/// One operation between replicas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// Which.
    pub kind: CollectiveKind,
    /// The larger of a replica's input and output.
    pub bytes: Bytes,
    /// Among whom.
    pub scope: Scope,
    /// The algorithm, where the strategy prescribes it.
    pub method: Option<Method>,
}

/// A transfer's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// From start to end.
    pub whole: Estimate<Nanos>,
    /// The part in which no bytes move: launch and hops. Other transfers can use the link then.
    pub latency: Nanos,
}

impl Cost {
    /// Work without latency.
    pub const fn work(whole: Estimate<Nanos>) -> Self {
        Self { whole, latency: Nanos::ZERO }
    }
}

/// Costs of synchronisation, answered by whoever knows the cluster.
pub trait SyncCosts {
    /// Model replicas in the job, at least 1.
    fn replicas(&self) -> u32;
    /// Replicas on one machine, at least 1.
    fn replicas_per_node(&self) -> u32;
    /// How long an operation takes, from when the last member arrives.
    fn collective(&self, call: &Call) -> Cost;
    /// How long a machine needs to send (or receive) so many bytes on all its NICs.
    fn wire(&self, bytes: Bytes) -> Cost;
    /// What summing, copying, encoding and decoding cost.
    fn primitives(&self) -> &Primitives;

    /// Machines that hold the replicas.
    fn nodes(&self) -> u32 {
        self.replicas().div_ceil(self.replicas_per_node().max(1)).max(1)
    }
    /// All replicas.
    fn everyone(&self) -> Scope {
        Scope::contiguous(self.replicas())
    }
}
