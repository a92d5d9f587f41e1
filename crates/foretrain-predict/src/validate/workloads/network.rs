//! What synchronisation costs on a network of which two rates are known.

use foretrain_core::{Bytes, Estimate, Nanos};
use foretrain_cost::bus_factor;
use foretrain_cost::primitives::{LinearCost, Primitives};
use foretrain_rewrite::strategy::{Call, Cost, SyncCosts};

/// From the call to a collective's first byte; a round figure.
const LAUNCH_US: f64 = 20.0;

/// Replicas on nodes, rates in bytes per second and latencies per hop in microseconds.
#[derive(Clone, Debug)]
pub(super) struct Network {
    pub(super) replicas: u32,
    pub(super) per_node: u32,
    /// What a ring reaches within a node.
    pub(super) within: f64,
    /// What a ring reaches between nodes.
    pub(super) between: f64,
    /// What a node reaches to and from servers.
    pub(super) to_servers: f64,
    pub(super) hop_within_us: f64,
    pub(super) hop_between_us: f64,
    pub(super) primitives: Primitives,
}

impl Network {
    pub(super) fn new(replicas: u32, per_node: u32, within: f64, between: f64) -> Self {
        Self {
            replicas,
            per_node,
            within,
            between,
            to_servers: between,
            hop_within_us: 5.0,
            hop_between_us: 5.0,
            primitives: Primitives {
                aggregate: LinearCost::new(1_000.0, 0.05),
                ..Primitives::assumed()
            },
        }
    }

    /// The rate of a ring over all replicas as a share of that within a node.
    pub(super) fn intensity(&self) -> f64 {
        let leaves = self.replicas > self.per_node;
        if leaves { (self.between / self.within).min(1.0) } else { 1.0 }
    }

    fn cost(latency_us: f64, seconds: f64) -> Cost {
        let latency = Nanos::from_micros_f64(latency_us);
        Cost { whole: Estimate::exact(latency + Nanos::from_secs_f64(seconds)), latency }
    }

    /// Latency of a ring's steps over `n` ranks and of their bytes.
    pub(super) fn ring_latency_us(&self, n: u32, steps_per_hop: f64) -> f64 {
        let nodes = f64::from(n.div_ceil(self.per_node.max(1)));
        let hops = f64::from(n.saturating_sub(1));
        let between = if nodes > 1.0 { nodes - 1.0 } else { 0.0 };
        let within = (hops - between).max(0.0);
        LAUNCH_US + steps_per_hop * (within * self.hop_within_us + between * self.hop_between_us)
    }
}

impl SyncCosts for Network {
    fn replicas(&self) -> u32 {
        self.replicas
    }
    fn replicas_per_node(&self) -> u32 {
        self.per_node
    }
    fn collective(&self, call: &Call) -> Cost {
        let n = call.scope.size;
        let leaves = call.scope.stride > 1 || n > self.per_node;
        let rate = if leaves { self.between.min(self.within) } else { self.within };
        let factor = bus_factor(call.kind, n);
        let steps = if factor > 1.0 { 2.0 } else { 1.0 };
        let latency = self.ring_latency_us(n, steps);
        Self::cost(latency, factor * call.bytes.as_f64() / rate)
    }
    fn wire(&self, bytes: Bytes) -> Cost {
        Self::cost(self.hop_between_us, bytes.as_f64() / self.to_servers)
    }
    fn primitives(&self) -> &Primitives {
        &self.primitives
    }
}
