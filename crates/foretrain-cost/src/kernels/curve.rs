//! The figures of a curve as `data/kernels.toml` holds them, and the limits they are fractions of.

use foretrain_core::{Bandwidth, Bytes};
use foretrain_hardware::Device;
use serde::Deserialize;

/// What a device can do at most, as plain numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Processors that take tiles.
    pub(super) processors: f64,
    /// Bytes per second.
    pub(super) bandwidth: f64,
    /// Bytes of last-level cache; 0 if there is none or it is not known.
    pub(super) cache: f64,
}

/// Processors of a device whose number is not known; only waves depend on it.
const PROCESSORS: f64 = 128.0;

impl Limits {
    pub(super) fn of(device: &Device) -> Self {
        Self {
            processors: device.multiprocessors.map_or(PROCESSORS, f64::from).max(1.0),
            bandwidth: Bandwidth::get(device.memory_bandwidth),
            cache: device.l2_cache.map_or(0.0, Bytes::as_f64),
        }
    }

    /// Seconds to move `bytes`, at fractions of the bandwidth out of memory and out of the cache.
    /// `steep` says how sharply the cache overflows.
    pub(super) fn moving(&self, bytes: f64, memory: f64, cached: f64, steep: i32) -> f64 {
        let resident = 1.0 / (1.0 + (bytes / self.cache).powi(steep));
        bytes / (self.bandwidth * (memory + (cached - memory) * resident))
    }
}

/// Error that four of five rows stay below, relative.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spread {
    /// Of kernels of 20 us and more.
    pub(super) large: f64,
    /// Of shorter ones.
    pub(super) small: f64,
}

impl Spread {
    pub(super) fn at(&self, seconds: f64) -> f64 {
        if seconds < 20e-6 { self.small } else { self.large }
    }

    /// With an independent further error.
    pub(super) fn and(self, further: f64) -> Self {
        Self { large: self.large.hypot(further), small: self.small.hypot(further) }
    }
}

/// What a source measures beside the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Around {
    /// However large the operation is.
    us: f64,
    /// Traffic per element of the input.
    bytes: f64,
    /// Its rate out of the cache, as a fraction of the memory's; 0 if it never stays there.
    resident: f64,
}

impl Around {
    /// Seconds for an input of so many elements.
    pub(super) fn seconds(&self, elements: f64, limits: &Limits) -> f64 {
        let bytes = self.bytes * elements;
        self.us * 1e-6
            + if self.resident > 0.0 {
                limits.moving(bytes, 0.8, self.resident, 2)
            } else {
                bytes / limits.bandwidth
            }
    }
}

/// Both limits at once: near the lesser one's share of the larger they add up, `sharpness` says how
/// little.
pub(super) fn both(a: f64, b: f64, sharpness: f64) -> f64 {
    let (longer, shorter) = if a > b { (a, b) } else { (b, a) };
    if longer <= 0.0 {
        return 0.0;
    }
    longer * (1.0 + (shorter / longer).powf(sharpness)).powf(1.0 / sharpness)
}
