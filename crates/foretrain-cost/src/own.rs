//! Costs that a user knows better than the models here.

use std::fmt::Debug;

use foretrain_core::{Bytes, DType, Nanos};
use foretrain_graph::{NodeKind, Phase};

use crate::collective::{CollectiveCall, Fabric};

/// A cost function of a user's own. What it does not answer keeps the time of Foretrain's models.
pub trait OwnCosts: Debug + Send + Sync {
    /// The name, for evidence.
    fn name(&self) -> &str;

    /// How long an operation takes from when its last member arrives. `modelled` is what it takes
    /// otherwise: measured, scaled by the models, or theirs alone.
    fn collective(&self, call: &CollectiveCall, on: &Fabric, modelled: Nanos) -> Option<Nanos> {
        let _ = (call, on, modelled);
        None
    }

    /// How long anything else takes on the machine that is asked about. `modelled` is its recorded
    /// time, scaled to that machine's device.
    fn node(&self, node: &OwnNode<'_>, modelled: Nanos) -> Option<Nanos> {
        let _ = (node, modelled);
        None
    }
}

/// A node of a step as a cost function sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnNode<'a> {
    /// Kernel, operator or segment.
    pub name: &'a str,
    /// What it is.
    pub kind: NodeKind,
    /// Where in the step.
    pub phase: Phase,
    /// Module path, empty if unknown.
    pub module: &'a str,
    /// Number format, if known.
    pub dtype: Option<DType>,
    /// Arithmetic, if known, in FLOPs.
    pub flops: Option<f64>,
    /// Memory traffic, if known.
    pub moved: Option<Bytes>,
}
