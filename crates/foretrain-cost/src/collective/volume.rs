//! Bytes that synchronising one training step sends, by strategy: closed forms.
//!
//! With a flat ring over `n` replicas an all-gather or reduce-scatter of `M` bytes sends
//! `(n-1)/n M` over each rank's link in one direction and an all-reduce twice that; a ring enters
//! and leaves every node once, so the same crosses a node's NICs in one direction, however many
//! replicas the node holds. Frozen parameters are gathered but never reduced.

use foretrain_core::{Bytes, InputError, Result, suggest};
use foretrain_graph::CollectiveKind;

use super::conventions::bus_factor;

/// How replicas keep their states together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Synchronisation {
    /// An all-reduce of gradients, in buckets or not, overlapped or not: `ddp`, `wfbp`, `bsp`, `mg-wfbp`.
    AllReduce,
    /// Optimiser states sharded: gradients reduce-scattered and parameters gathered once per step.
    Zero1,
    /// Gradients sharded too: reduce-scattered in every micro-batch.
    Zero2,
    /// Parameters sharded too: gathered for forward and backward of every micro-batch.
    Zero3,
    /// As ZeRO-3 within each node; shards of gradients all-reduced between nodes.
    Hybrid,
    /// Parameter servers, one shard on each node; replicas of a node sum up first.
    Servers,
}

impl Synchronisation {
    /// All, from the simplest to the most sharded.
    pub const ALL: [Self; 6] =
        [Self::AllReduce, Self::Zero1, Self::Zero2, Self::Zero3, Self::Hybrid, Self::Servers];

    /// The name of the strategy preset that does so.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AllReduce => "ddp",
            Self::Zero1 => "zero-1",
            Self::Zero2 => "zero-2",
            Self::Zero3 => "zero-3",
            Self::Hybrid => "hsdp",
            Self::Servers => "ps",
        }
    }

    /// The form behind a strategy's name: a preset, or how people call it (`ZeRO-3`, `zero_2`,
    /// `horovod`, `FSDP`).
    ///
    /// # Errors
    /// If the name is none of them.
    pub fn parse(name: &str) -> Result<Self> {
        const NAMES: [(&str, Synchronisation); 19] = [
            ("ddp", Synchronisation::AllReduce),
            ("wfbp", Synchronisation::AllReduce),
            ("bsp", Synchronisation::AllReduce),
            ("mgwfbp", Synchronisation::AllReduce),
            ("bytescheduler", Synchronisation::AllReduce),
            ("horovod", Synchronisation::AllReduce),
            ("allreduce", Synchronisation::AllReduce),
            ("zero0", Synchronisation::AllReduce),
            ("zero1", Synchronisation::Zero1),
            ("zero2", Synchronisation::Zero2),
            ("zero3", Synchronisation::Zero3),
            ("fsdp", Synchronisation::Zero3),
            ("fullyshard", Synchronisation::Zero3),
            ("hsdp", Synchronisation::Hybrid),
            ("hybrid", Synchronisation::Hybrid),
            ("ps", Synchronisation::Servers),
            ("servers", Synchronisation::Servers),
            ("p3", Synchronisation::Servers),
            ("byteps", Synchronisation::Servers),
        ];
        let plain: String =
            name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
        if let Some((_, found)) = NAMES.iter().find(|(known, _)| *known == plain) {
            return Ok(*found);
        }
        let error = InputError::new(format!("unknown strategy \"{name}\""));
        Err(match suggest::nearest(&plain, NAMES.iter().map(|(known, _)| *known)) {
            Some(near) => error.hint(format!("did you mean \"{near}\"?")),
            None => error.hint("write ddp, zero-1, zero-2, zero-3, fsdp, hsdp or ps"),
        })
    }

    /// Whether gradients cross the network once per step, however many micro-batches it has (with
    /// deferred synchronisation), so that accumulation amortises them.
    pub const fn synchronises_once(self) -> bool {
        matches!(self, Self::AllReduce | Self::Zero1 | Self::Servers)
    }
}

/// What is synchronised, and among how many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SynchronisedStep {
    /// How.
    pub way: Synchronisation,
    /// All parameters, as they are gathered.
    pub parameters: Bytes,
    /// Gradients of the trainable ones, as they are reduced.
    pub gradients: Bytes,
    /// Replicas, at least 1.
    pub replicas: u32,
    /// Replicas on one node, at least 1.
    pub per_node: u32,
    /// Micro-batches per step, at least 1.
    pub micro_batches: u32,
    /// Gradients cross once per step where the strategy allows it (`no_sync`); else in every
    /// micro-batch.
    pub deferred: bool,
}

/// Bytes in one direction, per step, by the part of the step that needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Volume {
    /// Before or during forward passes.
    pub forward: f64,
    /// During or after backward passes.
    pub backward: f64,
    /// After the update.
    pub update: f64,
}

impl Volume {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.forward + self.backward + self.update
    }
}

impl SynchronisedStep {
    /// Nodes that hold the replicas.
    pub fn nodes(&self) -> u32 {
        self.replicas.div_ceil(self.per_node.max(1)).max(1)
    }

    /// What one rank sends per step, on all its links.
    pub fn per_rank(&self) -> Volume {
        let (n, nodes) = (self.replicas.max(1), self.nodes());
        match self.way {
            Synchronisation::Hybrid => {
                let local = self.per_node.clamp(1, n);
                let between = bus_factor(CollectiveKind::AllReduce, nodes) / f64::from(local);
                let mut volume = self.sharded(local);
                volume.backward += self.micro() * between * self.gradients.as_f64();
                volume
            }
            Synchronisation::Servers => {
                let local = self.per_node.clamp(1, n);
                let within = 2.0 * bus_factor(CollectiveKind::ReduceScatter, local);
                let between = bus_factor(CollectiveKind::AllReduce, nodes) / f64::from(local);
                self.once((within + between) * self.gradients.as_f64())
            }
            _ => self.sharded(n),
        }
    }

    /// What crosses a node's NICs outwards per step; nothing on one node.
    pub fn per_node(&self) -> Volume {
        let nodes = self.nodes();
        if nodes <= 1 {
            return Volume::default();
        }
        let all_reduced = bus_factor(CollectiveKind::AllReduce, nodes) * self.gradients.as_f64();
        match self.way {
            // Each of the node's replicas exchanges its shard with those of other nodes.
            Synchronisation::Hybrid => {
                Volume { backward: self.micro() * all_reduced, ..Volume::default() }
            }
            Synchronisation::Servers => self.once(all_reduced),
            _ => self.sharded(self.replicas),
        }
    }

    /// One flat group of `n`.
    fn sharded(&self, n: u32) -> Volume {
        let share = bus_factor(CollectiveKind::AllGather, n);
        let (p, g) = (share * self.parameters.as_f64(), share * self.gradients.as_f64());
        let micro = self.micro();
        match self.way {
            Synchronisation::AllReduce | Synchronisation::Servers => self.once(2.0 * g),
            // Only what was updated has to be gathered.
            Synchronisation::Zero1 => Volume { update: g, ..self.once(g) },
            Synchronisation::Zero2 => Volume { backward: micro * g, update: g, forward: 0.0 },
            Synchronisation::Zero3 | Synchronisation::Hybrid => {
                Volume { forward: micro * p, backward: micro * (p + g), update: 0.0 }
            }
        }
    }

    fn once(&self, bytes: f64) -> Volume {
        let times = if self.deferred { 1.0 } else { self.micro() };
        Volume { backward: times * bytes, ..Volume::default() }
    }

    fn micro(&self) -> f64 {
        f64::from(self.micro_batches.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(way: Synchronisation, replicas: u32, per_node: u32) -> SynchronisedStep {
        let bytes = Bytes::new(16_000_000_000);
        SynchronisedStep {
            way,
            parameters: bytes,
            gradients: bytes,
            replicas,
            per_node,
            micro_batches: 1,
            deferred: true,
        }
    }

    #[test]
    fn all_reduces_of_a_ring() {
        let ddp = SynchronisedStep {
            gradients: Bytes::new(500_000_000),
            ..step(Synchronisation::AllReduce, 16, 8)
        };
        assert_eq!(ddp.per_rank().total(), 937.5e6);
        assert_eq!(ddp.per_node(), ddp.per_rank());
        let alone = SynchronisedStep { replicas: 8, ..ddp };
        assert_eq!(alone.per_node().total(), 0.0);
        let each = SynchronisedStep { micro_batches: 4, deferred: false, ..ddp };
        assert_eq!(each.per_rank().total(), 4.0 * 937.5e6);
    }

    #[test]
    fn frozen_parameters_are_gathered_but_not_reduced() {
        let lora = SynchronisedStep {
            gradients: Bytes::new(40_000_000),
            ..step(Synchronisation::Zero3, 16, 8)
        };
        let volume = lora.per_node();
        assert_eq!(volume.forward, 15e9);
        assert_eq!(volume.backward, 15e9 + 37.5e6);
        let ddp = SynchronisedStep { way: Synchronisation::AllReduce, ..lora };
        assert_eq!(ddp.per_node().total(), 75e6);
    }

    #[test]
    fn stage_2_reduces_every_micro_batch() {
        let of = |way| SynchronisedStep { micro_batches: 8, ..step(way, 36, 4) }.per_node().total();
        let ratio = of(Synchronisation::Zero2) / of(Synchronisation::Zero1);
        assert!((ratio - 4.5).abs() < 1e-12, "{ratio}");
    }

    #[test]
    fn hybrid_sharding_keeps_gathers_within_nodes() {
        let hybrid = step(Synchronisation::Hybrid, 16, 8);
        assert_eq!(hybrid.per_node().total(), 16e9);
        assert_eq!(hybrid.per_node().forward, 0.0);
        assert_eq!(hybrid.per_rank().total(), 3.0 * 14e9 + 2e9);
    }

    #[test]
    fn names_as_people_write_them() {
        for way in Synchronisation::ALL {
            assert_eq!(Synchronisation::parse(way.as_str()).unwrap(), way);
        }
        assert_eq!(Synchronisation::parse("ZeRO-3").unwrap(), Synchronisation::Zero3);
        assert_eq!(Synchronisation::parse("zero_2").unwrap(), Synchronisation::Zero2);
        let error = Synchronisation::parse("zeero-3").unwrap_err();
        assert!(error.hints()[0].contains("zero3"), "{error:?}");
    }
}
