//! Slow-down from what kernels and collectives share.

use foretrain_core::Nanos;
use serde::{Deserialize, Serialize};

use super::activity::Beside;
use super::{Activity, DeviceLimits, KernelLoad, SlowdownModel};

/// Three causes, of which the second holds only while a collective moves data, the others also while
/// it waits for other ranks (it then spins on its multiprocessors):
///
/// - its blocks hold multiprocessors, so the kernel's blocks may need one round more;
/// - both move data in the same memory: beyond its bandwidth they share it;
/// - a kernel starts and ends later on a device that is not its own, which short kernels feel.
///
/// The first counts as far as computation bounds a kernel, the second as far as memory does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Analytic {
    /// Mean delay of a kernel beside communication, ns.
    launch_delay_ns: f64,
    /// How much slower a transfer gets beside a kernel that uses all of the memory's bandwidth:
    /// 0.1 for a tenth.
    memory_sensitivity: f64,
    /// Part of the rounds that a kernel of several rounds loses if it loses multiprocessors, 0 to
    /// 1: blocks end at different times, so not every lost multiprocessor costs a whole round.
    wave_loss: f64,
}

impl Default for Analytic {
    /// The delay is the one that comes closest to the summed times of equal kernels in public traces
    /// of A100, V100 and H800 training; without any one of them it is 2 to 2.25 µs. The sensitivity
    /// is the lower end of published figures (0.1 to 0.3).
    fn default() -> Self {
        Self { launch_delay_ns: 2_000.0, memory_sensitivity: 0.1, wave_loss: 1.0 }
    }
}

/// No kernel takes longer than this many times: short ones were seen to take up to 8.
pub(super) const MOST_SLOWDOWN: f64 = 8.0;

impl Analytic {
    /// The formula with another launch delay.
    #[must_use]
    pub fn with_launch_delay(self, delay: Nanos) -> Self {
        Self { launch_delay_ns: delay.clamp_positive().nanos() as f64, ..self }
    }

    /// The formula with another slow-down of transfers beside a kernel that uses all of the
    /// memory's bandwidth: 0.1 for a tenth. It is kept between 0 and 2.
    #[must_use]
    pub fn with_memory_sensitivity(self, sensitivity: f64) -> Self {
        Self { memory_sensitivity: sensitivity.clamp(0.0, 2.0), ..self }
    }

    /// Mean delay of a kernel beside communication.
    pub fn launch_delay(&self) -> Nanos {
        Nanos::from_nanos_f64(self.launch_delay_ns)
    }

    /// What cannot be true, a lowercase fragment.
    pub(super) fn defect(&self) -> Option<String> {
        let figures = [
            ("launch_delay_ns", self.launch_delay_ns, 1e6),
            ("memory_sensitivity", self.memory_sensitivity, 2.0),
            ("wave_loss", self.wave_loss, 1.0),
        ];
        let bad = figures.into_iter().find(|&(_, value, most)| !(0.0..=most).contains(&value));
        bad.map(|(name, value, most)| format!("{name} is {value}; expected 0 to {most}"))
    }

    pub(super) fn kernel(&self, load: &KernelLoad, beside: &Beside, device: &DeviceLimits) -> f64 {
        if !beside.any {
            return 1.0;
        }
        let memory = (load.memory_use(device) + beside.memory_use).max(1.0);
        let rounds = self.rounds(load, beside, device);
        let share = load.memory_share();
        let alone = load.alone.nanos().max(1) as f64;
        let delay = self.launch_delay_ns / alone;
        (share * memory + (1.0 - share) * rounds + delay).clamp(1.0, bound(load, beside))
    }

    /// Rounds with fewer multiprocessors over rounds with all.
    fn rounds(&self, load: &KernelLoad, beside: &Beside, device: &DeviceLimits) -> f64 {
        let all = device.multiprocessors;
        // However many blocks communicate, computation keeps a part of the device.
        let left = all.saturating_sub(beside.held).max(all.div_ceil(4));
        match (load.waves(left), load.waves(all)) {
            (Some(fewer), Some(all)) => 1.0 + self.wave_loss * (fewer / all - 1.0),
            _ => 1.0,
        }
    }

    pub(super) fn transfer(&self, moving: f64, kernels: f64) -> f64 {
        1.0 + self.memory_sensitivity * moving * kernels.clamp(0.0, 1.0)
    }
}

/// The worst there can be: the kernel runs when the communication is over.
pub(super) fn bound(load: &KernelLoad, beside: &Beside) -> f64 {
    let serial = beside.longest.nanos() as f64 / load.alone.nanos().max(1) as f64;
    (1.0 + serial).min(MOST_SLOWDOWN)
}

impl SlowdownModel for Analytic {
    fn slowdowns(&self, device: &DeviceLimits, running: &[Activity], slowdowns: &mut [f64]) {
        let beside = Beside::of(device, running);
        let kernels = kernels_memory_use(device, running);
        for (activity, slowdown) in running.iter().zip(slowdowns) {
            *slowdown = match activity {
                Activity::Kernel(load) => self.kernel(load, &beside, device),
                Activity::Transfer(load) => self.transfer(load.moving(), kernels),
            };
        }
    }
}

/// Part of the memory's bandwidth that the running kernels use.
pub(super) fn kernels_memory_use(device: &DeviceLimits, running: &[Activity]) -> f64 {
    let each = running.iter().map(|activity| match activity {
        Activity::Kernel(load) => load.memory_use(device),
        Activity::Transfer(_) => 0.0,
    });
    each.sum()
}
