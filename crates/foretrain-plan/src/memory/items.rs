//! Items and their sums.

use foretrain_core::Bytes;
use serde::Serialize;

/// What memory is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Item {
    /// Parameters that the passes read.
    Parameters,
    /// Accumulated gradients.
    Gradients,
    /// The optimiser's moments and its copy of the parameters.
    Optimiser,
    /// Parameters gathered for the layers at work (ZeRO-3, FSDP).
    Gathered,
    /// Buckets of gradients under way.
    Buckets,
    /// Activations kept for the backward pass, of all micro-batches in flight.
    Activations,
    /// Activations of the layer that is formed again.
    Recomputed,
    /// Buffers that live within one operation: gathered inputs, logits in f32.
    Transient,
    /// Activations and gradients on their way between stages.
    Transfers,
    /// The matrix library's workspace.
    Workspace,
    /// The driver's context (outside the allocator).
    Context,
    /// Buffers of the communication library (outside the allocator).
    Communicators,
}

impl Item {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 12] = [
        Self::Parameters,
        Self::Gradients,
        Self::Optimiser,
        Self::Gathered,
        Self::Buckets,
        Self::Activations,
        Self::Recomputed,
        Self::Transient,
        Self::Transfers,
        Self::Workspace,
        Self::Context,
        Self::Communicators,
    ];

    /// For tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Gradients => "gradients",
            Self::Optimiser => "optimiser states",
            Self::Gathered => "gathered parameters",
            Self::Buckets => "gradient buckets",
            Self::Activations => "activations in flight",
            Self::Recomputed => "recomputed activations",
            Self::Transient => "transient buffers",
            Self::Transfers => "pipeline transfers",
            Self::Workspace => "workspace",
            Self::Context => "device context",
            Self::Communicators => "communicators",
        }
    }

    /// Held from the first step to the last.
    const fn lasts(self) -> bool {
        matches!(self, Self::Parameters | Self::Gradients | Self::Optimiser | Self::Workspace)
    }
    /// Outside the allocator.
    const fn outside(self) -> bool {
        matches!(self, Self::Context | Self::Communicators)
    }
}

/// A size between two ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryRange {
    /// At least.
    pub low: Bytes,
    /// Most likely.
    pub value: Bytes,
    /// At most.
    pub high: Bytes,
}

/// One stage's memory at its peak.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageMemory {
    /// The stage.
    pub stage: u32,
    /// What the device has.
    pub capacity: Bytes,
    /// What it is used for, items of no size left out.
    pub items: Vec<(Item, Bytes)>,
    /// What the framework's allocator hands out at the peak.
    pub allocated: MemoryRange,
    /// What it takes from the device for that.
    pub reserved: MemoryRange,
    /// All that is taken from the device, context and communicators included.
    pub used: MemoryRange,
}

/// Half of an 80 % interval over kept and transient sizes, as a share of them: from Megatron-LM's
/// functional tests, whose memory is mostly these (`memory-megatron`).
const PASSING_SPREAD: f64 = 0.12;
/// The same over all that is allocated, for padding and buffers that no item names: from runs of a few
/// large layers, whose memory is mostly parameters and their states (`memory-simumax`).
const WHOLE_SPREAD: f64 = 0.02;

impl StageMemory {
    pub(super) fn new(stage: u32, capacity: Bytes) -> Self {
        Self {
            stage,
            capacity,
            items: Vec::new(),
            allocated: MemoryRange::default(),
            reserved: MemoryRange::default(),
            used: MemoryRange::default(),
        }
    }

    pub(super) fn add(&mut self, item: Item, bytes: Bytes) {
        if bytes == Bytes::ZERO {
            return;
        }
        match self.items.iter_mut().find(|(other, _)| *other == item) {
            Some((_, held)) => *held += bytes,
            None => self.items.push((item, bytes)),
        }
    }

    /// Sums up; `slack` are the least and the most that the allocator reserves beyond what comes
    /// and goes.
    pub(super) fn close(&mut self, slack: (f64, f64)) {
        let sum = |wanted: &dyn Fn(Item) -> bool| -> Bytes {
            self.items.iter().filter(|(item, _)| wanted(*item)).map(|(_, bytes)| *bytes).sum()
        };
        let lasting = sum(&Item::lasts);
        let passing = sum(&|item: Item| !item.lasts() && !item.outside());
        let outside = sum(&Item::outside);
        let share = |bytes: Bytes, factor: f64| Bytes::from_f64(bytes.as_f64() * factor);
        let value = lasting + passing;
        let off = (PASSING_SPREAD * passing.as_f64()).hypot(WHOLE_SPREAD * value.as_f64());
        let off = Bytes::from_f64(off);
        let allocated = MemoryRange { low: value - off, value, high: value + off };
        let middle = 0.5 * (slack.0 + slack.1);
        let reserved = MemoryRange {
            low: allocated.low + share(passing, slack.0),
            value: allocated.value + share(passing, middle),
            high: allocated.high + share(passing, slack.1),
        };
        self.used = MemoryRange {
            low: reserved.low + share(outside, 0.6),
            value: reserved.value + outside,
            high: reserved.high + share(outside, 1.6),
        };
        self.allocated = allocated;
        self.reserved = reserved;
    }

    /// Whether it fits: for certain, probably (in the middle of the range), or not.
    pub fn fits(&self) -> Fit {
        if self.used.high <= self.capacity {
            Fit::Yes
        } else if self.used.value <= self.capacity {
            Fit::Tight
        } else {
            Fit::No
        }
    }
}

/// Whether something fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// Even at the upper end of the range.
    Yes,
    /// In the middle of the range, but not at its upper end.
    Tight,
    /// No.
    No,
}
