//! What the JSON of verbs that look at steps has in common.

use foretrain_fleet::pai::characterise::{Method, Rows};
use foretrain_fleet::pai::{Hardware, Resource};
use schemars::JsonSchema;
use serde::Serialize;

use crate::json::common::{CoverageReport, finite};

/// The machine that steps are timed on, and how.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetMethodReport {
    /// The preset below the figures, and that it was recalled.
    pub preset: String,
    /// Whether any figure differs from the preset.
    pub changed: bool,
    /// The resources.
    pub resources: Vec<FleetResourceReport>,
    /// GPUs of a server.
    pub gpus_per_server: u32,
    /// Memory of a GPU.
    pub gpu_memory_bytes: u64,
    /// Replicas behind one PCIe root in classes of one server.
    pub pcie_sharing: u32,
    /// What traffic counts where a table does not say: `sent` or `sent+received`.
    pub traffic_counts: String,
}

/// A resource of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetResourceReport {
    /// `Ethernet`, `PCIe`, `NVLink`, `FLOPS` or `memory`.
    pub resource: String,
    /// Its peak in bytes (of FLOPS: FLOP) per second.
    pub peak_per_second: f64,
    /// The part of it that is reached.
    pub efficiency: f64,
}

/// Rows that an answer rests on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FleetRowsReport {
    /// Rows that could be timed.
    pub timed: CoverageReport,
    /// Of these, rows that a generator made.
    pub synthetic: u64,
}

pub(super) fn method(method: &Method) -> FleetMethodReport {
    let hardware = &method.hardware;
    let base = Hardware { pcie_sharing: hardware.pcie_sharing, ..Hardware::pai_2019() };
    FleetMethodReport {
        preset: Hardware::PAI_2019.into(),
        changed: *hardware != base,
        resources: Resource::ALL
            .map(|resource| FleetResourceReport {
                resource: resource.name().into(),
                peak_per_second: finite(hardware.peak(resource)),
                efficiency: hardware.efficiency.of(resource),
            })
            .into(),
        gpus_per_server: hardware.gpus_per_server,
        gpu_memory_bytes: hardware.gpu_memory.get(),
        pcie_sharing: hardware.sharing(hardware.gpus_per_server),
        traffic_counts: method.traffic.name().into(),
    }
}

pub(super) fn rows(rows: &Rows) -> FleetRowsReport {
    let (used, total) = (rows.timed.used, rows.timed.total);
    FleetRowsReport {
        timed: CoverageReport { what: "rows".into(), used, total },
        synthetic: rows.synthetic,
    }
}
