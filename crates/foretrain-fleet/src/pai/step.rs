//! How long one step takes, part by part.

use foretrain_core::Nanos;

use super::hardware::{Hardware, Resource};
use super::work::Work;
use crate::jobs::{Class, Medium};

/// Whether parts of a step hide each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// One part after the other.
    #[default]
    None,
    /// Input, computation and traffic all at once: the longest counts.
    Ideal,
}

/// The parts of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Input to the device, over PCIe.
    pub input: Nanos,
    /// Compute-bound operations.
    pub flops: Nanos,
    /// Memory-bound operations.
    pub memory: Nanos,
    /// Weight traffic over Ethernet.
    pub ethernet: Nanos,
    /// Weight traffic over PCIe.
    pub pcie: Nanos,
    /// Weight traffic over NVLink.
    pub nvlink: Nanos,
}

impl Step {
    /// Times a step on a machine.
    pub fn of(work: &Work, hardware: &Hardware) -> Self {
        let over = |amount: f64, resource: Resource| {
            Nanos::from_nanos_f64(amount / hardware.reached(resource) * 1e9)
        };
        let traffic = work.traffic.as_f64();
        let crosses = |medium: Medium, resource: Resource| {
            if work.class.media().contains(&medium) { over(traffic, resource) } else { Nanos::ZERO }
        };
        // Replicas of one server share its PCIe roots for their input.
        let sharing = match work.class {
            Class::AllReduceLocal | Class::Pearl => hardware.sharing(work.cnodes),
            _ => 1,
        };
        Self {
            input: over(work.input.as_f64() * f64::from(sharing), Resource::Pcie),
            flops: over(work.flops.get(), Resource::Flops),
            memory: over(work.memory_access.as_f64(), Resource::Memory),
            ethernet: crosses(Medium::Ethernet, Resource::Ethernet),
            pcie: crosses(Medium::Pcie, Resource::Pcie),
            nvlink: crosses(Medium::NvLink, Resource::NvLink),
        }
    }

    /// Computation, T_c.
    pub fn compute(&self) -> Nanos {
        self.flops + self.memory
    }

    /// Weight traffic, T_w.
    pub fn traffic(&self) -> Nanos {
        self.ethernet + self.pcie + self.nvlink
    }

    /// The whole step.
    pub fn total(&self, overlap: Overlap) -> Nanos {
        match overlap {
            Overlap::None => self.input + self.compute() + self.traffic(),
            Overlap::Ideal => self.input.max(self.compute()).max(self.traffic()),
        }
    }

    /// What the step spends on a resource.
    pub fn on(&self, resource: Resource) -> Nanos {
        match resource {
            Resource::Ethernet => self.ethernet,
            Resource::Pcie => self.input + self.pcie,
            Resource::NvLink => self.nvlink,
            Resource::Flops => self.flops,
            Resource::Memory => self.memory,
        }
    }

    /// The step with each resource so many times as fast.
    pub fn faster(&self, times: &[f64; 5]) -> Self {
        let by = |time: Nanos, resource: Resource| time.scale(1.0 / times[resource.index()]);
        Self {
            input: by(self.input, Resource::Pcie),
            flops: by(self.flops, Resource::Flops),
            memory: by(self.memory, Resource::Memory),
            ethernet: by(self.ethernet, Resource::Ethernet),
            pcie: by(self.pcie, Resource::Pcie),
            nvlink: by(self.nvlink, Resource::NvLink),
        }
    }

    /// Shares of input, compute-bound and memory-bound operations, and traffic in the sum of all.
    pub fn shares(&self) -> [f64; 4] {
        let total = self.total(Overlap::None).secs_f64();
        [self.input, self.flops, self.memory, self.traffic()].map(|part| part.secs_f64() / total)
    }
}
