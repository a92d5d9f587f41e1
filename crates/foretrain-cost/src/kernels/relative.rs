//! Which device's curve to borrow, and what that costs in certainty.

use foretrain_core::Bandwidth;
use foretrain_hardware::Device;

/// How near two devices are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kinship {
    /// Less is nearer.
    pub(super) distance: f64,
    /// Relative error that borrowing adds; the sets `kernels-*-unseen-device` hold it against
    /// measurements.
    pub(super) further_error: f64,
}

/// Where other makers' generations stand among NVIDIA's compute capabilities.
const GENERATIONS: [(&str, f64); 4] =
    [("cdna", 7.0), ("cdna2", 8.0), ("cdna3", 9.0), ("cdna4", 10.0)];
/// Where a generation stands that is not listed.
const RECENT: f64 = 9.0;

/// Compute capability, or what stands for it.
fn generation(device: &Device) -> f64 {
    if let Some((major, minor)) = device.compute_capability {
        return f64::from(major) + f64::from(minor) / 10.0;
    }
    let name = device.architecture.as_deref().unwrap_or_default();
    GENERATIONS.iter().find(|(known, _)| *known == name).map_or(RECENT, |&(_, place)| place)
}

/// Whether the chip is of NVIDIA's line for graphics: same generation, other caches, matrix units
/// and memory.
fn is_graphics(device: &Device) -> bool {
    matches!(device.compute_capability, Some((6, 1) | (7, 5) | (8, 6 | 9) | (12, _)))
}

/// How near `owner`, which has curves, is to `device`. Power counts because it, not the peak, holds
/// the clock of matrix kernels.
pub(super) fn kinship(device: &Device, owner: &Device) -> Kinship {
    let gap = |a: f64, b: f64| if a > 0.0 && b > 0.0 { (a / b).ln().abs() } else { 1.0 };
    let bandwidth = |device: &Device| Bandwidth::get(device.memory_bandwidth);
    let watts = |device: &Device| device.tdp_watts.unwrap_or(0.0);
    let sizes = gap(bandwidth(device), bandwidth(owner)) + gap(watts(device), watts(owner));
    let line = if is_graphics(device) == is_graphics(owner) { 0.0 } else { 3.0 };
    let distance = 2.0 * (generation(device) - generation(owner)).abs() + 2.0 * sizes + line;
    if device.vendor == owner.vendor {
        Kinship { distance, further_error: (0.08 + 0.04 * distance).min(0.5) }
    } else {
        Kinship { distance: distance + 100.0, further_error: 0.35 }
    }
}
