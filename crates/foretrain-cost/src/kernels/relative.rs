//! Which device's curve to borrow, and what that costs in certainty.

use foretrain_core::Bandwidth;
use foretrain_hardware::Device;

use super::class::Class;

/// How near two devices are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kinship {
    /// Less is nearer.
    pub(super) distance: f64,
    /// Relative error that borrowing adds; `docs/kernels.md` has the leave-one-device-out errors
    /// that it rests on.
    pub(super) further_error: f64,
}

/// Generations whose kernels are much alike, oldest first. A generation that is not listed counts
/// as the one before the last.
const GENERATIONS: [(&str, f64); 14] = [
    ("maxwell", 0.0),
    ("pascal", 1.0),
    ("volta", 2.0),
    ("turing", 2.5),
    ("ampere", 3.0),
    ("ada", 3.5),
    ("hopper", 4.0),
    ("blackwell", 5.0),
    ("vega", 1.0),
    ("cdna", 2.5),
    ("cdna2", 3.0),
    ("cdna3", 4.0),
    ("cdna4", 5.0),
    ("sapphire-rapids", 4.0),
];

fn generation(device: &Device) -> f64 {
    let name = device.architecture.as_deref().unwrap_or_default();
    GENERATIONS.iter().find(|(known, _)| *known == name).map_or(4.0, |&(_, place)| place)
}

/// How near `owner`, which has curves, is to `device`.
pub(super) fn kinship(device: &Device, owner: &Device) -> Kinship {
    let size = |device: &Device| {
        let bandwidth = Bandwidth::get(device.memory_bandwidth).max(1.0);
        (bandwidth.ln(), Class::Half.peak(device).max(1.0).ln())
    };
    let ((memory, peak), (other_memory, other_peak)) = (size(device), size(owner));
    let sizes = (memory - other_memory).abs() + (peak - other_peak).abs();
    let apart = (generation(device) - generation(owner)).abs();
    let foreign = device.vendor != owner.vendor;
    let further_error = if foreign {
        0.35
    } else if apart > 0.0 {
        0.2
    } else if sizes < 1.0 {
        0.1
    } else {
        0.2
    };
    Kinship { distance: sizes + 4.0 * apart + if foreign { 100.0 } else { 0.0 }, further_error }
}
