//! What a pass is.

use foretrain_core::Result;

use super::draft::Draft;
use super::parameters::{Parameter, Values};

/// The place of a pass in a strategy: passes are applied in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Changes the step itself: repeats parts of it.
    Step,
    /// Merges gradients.
    Fuse,
    /// Decides what is exchanged when: shards states, gathers parameters.
    Shard,
    /// Splits exchanges.
    Partition,
    /// Shrinks what is sent.
    Compress,
    /// Turns exchanges into operations on links.
    Topology,
    /// Orders exchanges and says what waits for them.
    Schedule,
}

impl Stage {
    /// The word for tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Fuse => "fuse",
            Self::Shard => "shard",
            Self::Partition => "partition",
            Self::Compress => "compress",
            Self::Topology => "topology",
            Self::Schedule => "schedule",
        }
    }
}

/// A mechanism of synchronisation: rewrites a [`Draft`].
///
/// It may change the graph under the draft (and then [find gradients again](Draft::find)), the
/// list of exchanges, or both. It must not simulate and knows no cluster: what something costs it
/// asks of [`Draft::costs`].
pub trait Pass: Send + Sync {
    /// Does it.
    ///
    /// # Errors
    /// If the draft cannot be changed so, in words for the user.
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()>;
}

/// Makes a pass of values for its parameters.
pub type Build = dyn Fn(&Values) -> Result<Box<dyn Pass>> + Send + Sync;

/// A kind of pass: its name, documentation and parameters, and how to make one.
#[derive(Clone, Copy)]
pub struct PassKind {
    /// The name in strategies.
    pub name: &'static str,
    /// Where it may stand.
    pub stage: Stage,
    /// What it does, in a sentence or two.
    pub about: &'static str,
    /// Where the mechanism is described.
    pub source: &'static str,
    /// What it can be told; the first may be given without its name.
    pub parameters: &'static [Parameter],
    /// Makes a pass of values for these parameters.
    ///
    /// # Errors
    /// If values do not go together.
    pub build: &'static Build,
}
