//! The answers of `fleet` as tables.

mod audit;
mod characterise;
mod distributions;
mod moved;

pub use audit::fleet_audit;
pub use characterise::fleet_characterise;
pub use moved::{fleet_project, fleet_sweep};

use foretrain_core::diagnostics::Coverage;
use foretrain_core::units::significant;
use foretrain_fleet::pai::characterise::{Method, Rows};
use foretrain_fleet::pai::{Hardware, Overlap, Resource};

use super::sheet::Sheet;
use super::units::percent;

/// `13 of 1000 (1.3 %)`.
fn of(coverage: Coverage) -> String {
    let Coverage { used, total } = coverage;
    match total {
        0 => "0 of 0".into(),
        _ => format!("{used} of {total} ({})", percent(used as f64 / total as f64)),
    }
}

/// Whole numbers as they are, others with four digits.
fn amount(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        significant(value, 4)
    }
}

/// The machine that steps were timed on, and the rows.
fn method(method: &Method, rows: &Rows, overlap: Overlap, sheet: &mut Sheet) {
    let hardware = &method.hardware;
    let base = Hardware { pcie_sharing: hardware.pcie_sharing, ..Hardware::pai_2019() };
    let changed = if *hardware == base { "" } else { " with changes" };
    let machine = format!(
        "{}{changed}: {} TFLOPS, memory {}, Ethernet {} Gbit/s, PCIe {}, NVLink {}",
        Hardware::PAI_2019,
        amount(hardware.flops.tflops()),
        hardware.memory,
        amount(hardware.ethernet.get() * 8.0 / 1e9),
        hardware.pcie,
        hardware.nvlink,
    );
    sheet.field("machine", &machine);
    let parts = Resource::ALL.map(|resource| hardware.efficiency.of(resource));
    let efficiency = if parts.iter().all(|part| *part == parts[0]) {
        format!("{} of every peak", percent(parts[0]))
    } else {
        let each = Resource::ALL.map(|resource| {
            format!("{} {}", resource.name(), percent(hardware.efficiency.of(resource)))
        });
        each.join(", ")
    };
    sheet.field("reached", &efficiency);
    let sharing = hardware.sharing(hardware.gpus_per_server);
    let shared = match sharing {
        1 => "no replicas share a PCIe root".into(),
        _ => format!("up to {sharing} replicas of a server share a PCIe root for their input"),
    };
    sheet.field("servers", &format!("{} GPUs; {shared}", hardware.gpus_per_server));
    let order = match overlap {
        Overlap::None => "input, computation and weight traffic one after the other",
        Overlap::Ideal => "the longest of input, computation and weight traffic hides the others",
    };
    sheet.field("a step", order);
    sheet.field("rows", &format!("{} timed", of(rows.timed)));
    if rows.synthetic > 0 {
        sheet.warning(&format!(
            "synthetic: {} of {} timed rows were drawn by a generator to have published shares; they \
             tell nothing that was not put into them",
            rows.synthetic, rows.timed.used
        ));
    }
}
