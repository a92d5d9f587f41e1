//! What runs on a device, as the models see it.

use foretrain_core::{Bytes, Nanos};
use foretrain_graph::CollectiveKind;

use crate::kernel::KernelClass;

/// What activities on a device share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceLimits {
    /// Streaming multiprocessors or compute units, 0 if not known.
    pub multiprocessors: u32,
    /// Bandwidth of the device's memory in bytes per second, 0 if not known.
    pub memory_bandwidth: f64,
}

/// One thing that runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activity {
    /// A kernel or copy.
    Kernel(KernelLoad),
    /// A collective or message.
    Transfer(TransferLoad),
}

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelLoad {
    /// Its time when nothing runs beside it.
    pub alone: Nanos,
    /// What it does.
    pub class: KernelClass,
    /// Thread blocks, 0 if not known.
    pub blocks: u32,
    /// Threads of a block, 0 if not known.
    pub threads: u32,
    /// Memory traffic in bytes per second when alone, if known.
    pub bandwidth: Option<f64>,
}

/// A collective or message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransferLoad {
    /// How long it moves data when nothing runs beside it.
    pub transfer: Nanos,
    /// What is done.
    pub kind: CollectiveKind,
    /// The larger of a rank's buffers, if known.
    pub bytes: Option<Bytes>,
    /// Ranks that take part, 0 if not known.
    pub ranks: u32,
    /// Thread blocks it occupies, 0 if not known.
    pub channels: u32,
    /// Part of the time looked at in which it moves data, 0 to 1. A collective that waits for other
    /// ranks spins: it holds its multiprocessors and moves nothing.
    pub moving: f64,
}

/// Blocks of a collective whose trace does not tell.
const USUAL_CHANNELS: u32 = 16;
/// Threads that one multiprocessor holds.
const RESIDENT_THREADS: u32 = 2048;
/// Blocks that one multiprocessor holds.
const RESIDENT_BLOCKS: u32 = 32;
/// Memory traffic over peak of a kernel of which only the class is known and which fills the
/// device: streaming kernels reach about this much.
const USUAL_MEMORY_USE: f64 = 0.75;

impl KernelLoad {
    /// Part of what bounds the kernel that is memory, 0 to 1.
    pub(super) fn memory_share(&self) -> f64 {
        self.class.memory_share().0
    }

    /// Blocks that one multiprocessor holds at once.
    pub(super) fn blocks_per_multiprocessor(&self) -> u32 {
        let by_threads = RESIDENT_THREADS.checked_div(self.threads).unwrap_or(1);
        let most = by_threads.clamp(1, RESIDENT_BLOCKS);
        // Tiles of matrices fill registers and shared memory long before they fill the threads.
        if self.memory_share() < 0.5 { most.min(2) } else { most }
    }

    /// Rounds in which the blocks run on so many multiprocessors; `None` if blocks or
    /// multiprocessors are not known.
    pub(super) fn waves(&self, multiprocessors: u32) -> Option<f64> {
        let at_once = multiprocessors.checked_mul(self.blocks_per_multiprocessor())?;
        (self.blocks > 0 && at_once > 0).then(|| f64::from(self.blocks.div_ceil(at_once)))
    }

    /// Part of the device that the blocks fill, 0 to 1; 1 if that is not known.
    pub(super) fn fill(&self, device: &DeviceLimits) -> f64 {
        let slots = device.multiprocessors.saturating_mul(self.blocks_per_multiprocessor());
        if self.blocks == 0 || slots == 0 {
            return 1.0;
        }
        (f64::from(self.blocks) / f64::from(slots)).min(1.0)
    }

    /// Memory traffic over the device's bandwidth, 0 to 1.
    pub(super) fn memory_use(&self, device: &DeviceLimits) -> f64 {
        match self.bandwidth {
            Some(rate) if device.memory_bandwidth > 0.0 && rate.is_finite() => {
                (rate / device.memory_bandwidth).clamp(0.0, 1.0)
            }
            _ => USUAL_MEMORY_USE * self.memory_share() * self.fill(device),
        }
    }
}

impl TransferLoad {
    /// Multiprocessors it keeps from others.
    pub(super) fn held(&self) -> u32 {
        if self.channels == 0 { USUAL_CHANNELS } else { self.channels }
    }

    /// Part of its time in which it moves data, 0 to 1.
    pub(super) fn moving(&self) -> f64 {
        if self.moving.is_finite() { self.moving.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Its traffic on the device's memory over the memory's bandwidth while data moves, 0 to 1; 0
    /// if size or time are not known.
    ///
    /// A step of a ring reads what it sends, writes what it receives, and reduces by reading once
    /// more: 6 (n-1)/n bytes per byte of an all-reduce, half of that for either of its halves.
    pub(super) fn memory_use(&self, device: &DeviceLimits) -> f64 {
        let Some(bytes) = self.bytes else { return 0.0 };
        let time = self.transfer.secs_f64();
        if time <= 0.0 || device.memory_bandwidth <= 0.0 {
            return 0.0;
        }
        let others = |n: u32| if n > 1 { f64::from(n - 1) / f64::from(n) } else { 1.0 };
        let passes = match self.kind {
            CollectiveKind::AllReduce => 6.0 * others(self.ranks),
            CollectiveKind::ReduceScatter | CollectiveKind::Reduce => 3.0 * others(self.ranks),
            CollectiveKind::AllGather
            | CollectiveKind::Broadcast
            | CollectiveKind::Gather
            | CollectiveKind::Scatter
            | CollectiveKind::AllToAll => 2.0 * others(self.ranks),
            CollectiveKind::Barrier => 0.0,
            _ => 1.0,
        };
        (passes * bytes.as_f64() / time / device.memory_bandwidth).min(1.0)
    }
}

/// What all communication on a device does to the kernels beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Beside {
    /// Whether anything communicates.
    pub(super) any: bool,
    /// Multiprocessors held.
    pub(super) held: u32,
    /// Part of the memory's bandwidth taken, on the average over their whole time.
    pub(super) memory_use: f64,
    /// The largest part of its time in which one moves data.
    pub(super) moving: f64,
    /// The longest transfer.
    pub(super) longest: Nanos,
}

impl Beside {
    pub(super) fn of(device: &DeviceLimits, running: &[Activity]) -> Self {
        running.iter().fold(Self::default(), |beside, activity| match activity {
            Activity::Kernel(_) => beside,
            Activity::Transfer(load) => Self {
                any: true,
                held: beside.held.saturating_add(load.held()),
                memory_use: beside.memory_use + load.memory_use(device) * load.moving(),
                moving: beside.moving.max(load.moving()),
                longest: beside.longest.max(load.transfer),
            },
        })
    }
}
