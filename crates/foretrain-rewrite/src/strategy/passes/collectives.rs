//! Topologies of the collective library.

use foretrain_core::Result;

use crate::strategy::draft::{Draft, Way};
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{Pass, PassKind, Stage};

pub(super) const LIBRARY: PassKind = PassKind {
    name: "library",
    stage: Stage::Topology,
    about: "Leaves the algorithm to the collective library, as does a strategy without a topology.",
    source: "the collective model, docs/collectives.md",
    parameters: &[],
    build: &|_| Ok(Box::new(Topology(Way::Library))),
};

pub(super) const RING: PassKind = PassKind {
    name: "ring",
    stage: Stage::Topology,
    about: "A ring over all replicas: 2(n-1) steps of 1/n of the buffer.",
    source: "t = 2(n-1)M/(nB) + 2(n-1) alpha",
    parameters: &[Parameter::new(
        "unrolled",
        Kind::Flag,
        "false",
        "Every step is a message of its own, with a sum behind it; machines with one replica each.",
    )],
    build: &|values| Ok(Box::new(Topology(Way::Ring { unrolled: values.flag("unrolled") }))),
};

pub(super) const TREE: PassKind = PassKind {
    name: "tree",
    stage: Stage::Topology,
    about: "A double binary tree between machines, a chain within.",
    source: "NCCL's tree algorithm",
    parameters: &[],
    build: &|_| Ok(Box::new(Topology(Way::Tree))),
};

pub(super) const HIERARCHICAL: PassKind = PassKind {
    name: "hierarchical",
    stage: Stage::Topology,
    about: "Reduce-scatter within each machine, an all-reduce of each shard between machines, all-gather within. Links within and between machines work on different gradients at once.",
    source: "NCCL's and Horovod's hierarchical all-reduce",
    parameters: &[],
    build: &|_| Ok(Box::new(Topology(Way::Hierarchical))),
};

pub(super) struct Topology(pub(super) Way);

impl Pass for Topology {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        for exchange in &mut draft.exchanges {
            exchange.way = self.0;
        }
        Ok(())
    }
}
