//! The machine that steps are timed on.

use foretrain_core::{Bandwidth, Bytes, FlopRate, InputError, Result};

/// A resource that takes part in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// Links between servers.
    Ethernet,
    /// Links between host and devices.
    Pcie,
    /// Links between devices of a server.
    NvLink,
    /// Peak rate of the GPU.
    Flops,
    /// Bandwidth of the GPU's memory.
    Memory,
}

impl Resource {
    /// All of them, in the order of tables.
    pub const ALL: [Resource; 5] =
        [Self::Ethernet, Self::Pcie, Self::NvLink, Self::Flops, Self::Memory];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::Pcie => "PCIe",
            Self::NvLink => "NVLink",
            Self::Flops => "FLOPS",
            Self::Memory => "memory",
        }
    }

    /// The position in [`Resource::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// The part of each peak that software reaches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Efficiency(pub [f64; 5]);

impl Efficiency {
    /// 70 % of everything, as recalled of the paper.
    pub const USUAL: Efficiency = Efficiency([0.7; 5]);

    /// Of one resource.
    pub const fn of(&self, resource: Resource) -> f64 {
        self.0[resource.index()]
    }

    /// With another efficiency of one resource.
    ///
    /// # Errors
    /// Unless it is above 0 and at most 1.
    pub fn with(mut self, resource: Resource, efficiency: f64) -> Result<Self> {
        if !(efficiency > 0.0 && efficiency <= 1.0) {
            return Err(InputError::new(format!(
                "an efficiency of {efficiency} for {}: expected a part of 1",
                resource.name()
            )));
        }
        self.0[resource.index()] = efficiency;
        Ok(self)
    }
}

/// Peak rates, what of them is reached, and how servers are built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hardware {
    /// Links between servers, per replica.
    pub ethernet: Bandwidth,
    /// Links between host and devices.
    pub pcie: Bandwidth,
    /// Links between devices.
    pub nvlink: Bandwidth,
    /// Peak rate of a GPU.
    pub flops: FlopRate,
    /// Bandwidth of a GPU's memory.
    pub memory: Bandwidth,
    /// What of each is reached.
    pub efficiency: Efficiency,
    /// GPUs of a server.
    pub gpus_per_server: u32,
    /// Memory of a GPU.
    pub gpu_memory: Bytes,
    /// Replicas behind one PCIe root, which share it for their input.
    pub pcie_sharing: u32,
}

impl Hardware {
    /// The name of the preset, with where it is from.
    pub const PAI_2019: &'static str = "pai-2019 (recalled)";

    /// The base machine of the study. 11 TFLOPS, 25 Gbit/s, 10 GB/s and 50 GB/s are cited by others
    /// who read it; 1 TB/s and 70 % are recalled; the memory of a GPU is assumed.
    pub const fn pai_2019() -> Self {
        Self {
            ethernet: Bandwidth::from_gbit_per_sec(25.0),
            pcie: Bandwidth::from_gb_per_sec(10.0),
            nvlink: Bandwidth::from_gb_per_sec(50.0),
            flops: FlopRate::from_tflops(11.0),
            memory: Bandwidth::from_gb_per_sec(1_000.0),
            efficiency: Efficiency::USUAL,
            gpus_per_server: 8,
            gpu_memory: Bytes::new(16_000_000_000),
            pcie_sharing: 1,
        }
    }

    /// The peak of a resource in bytes or FLOP per second.
    pub const fn peak(&self, resource: Resource) -> f64 {
        match resource {
            Resource::Ethernet => self.ethernet.get(),
            Resource::Pcie => self.pcie.get(),
            Resource::NvLink => self.nvlink.get(),
            Resource::Flops => self.flops.get(),
            Resource::Memory => self.memory.get(),
        }
    }

    /// What is reached of a resource, in bytes or FLOP per second.
    pub const fn reached(&self, resource: Resource) -> f64 {
        self.peak(resource) * self.efficiency.of(resource)
    }

    /// Replicas that share one PCIe root for their input, of so many on a server.
    pub fn sharing(&self, on_server: u32) -> u32 {
        self.pcie_sharing.min(on_server).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn efficiencies_are_parts_of_one() {
        let usual = Efficiency::USUAL;
        assert_eq!(usual.with(Resource::Memory, 0.03).unwrap().of(Resource::Memory), 0.03);
        for wrong in [0.0, -1.0, 1.1, f64::NAN] {
            assert!(usual.with(Resource::Flops, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_more_share_a_root_than_there_are() {
        let hardware = Hardware { pcie_sharing: 4, ..Hardware::pai_2019() };
        assert_eq!([hardware.sharing(1), hardware.sharing(2), hardware.sharing(8)], [1, 2, 4]);
    }
}
