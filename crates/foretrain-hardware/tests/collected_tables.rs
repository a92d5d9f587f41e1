//! The catalogue against an independent table of public figures, where that table is at hand:
//! `measured/hw_accelerators_summary.csv` under `FORETRAIN_DATA` or `../shared/data`.

use std::path::PathBuf;

use foretrain_core::DType;
use foretrain_hardware::Catalogue;

/// Table row -> catalogue name.
const ROWS: [(&str, &str); 31] = [
    ("V100 SXM2", "v100-sxm2-32gb"),
    ("A100 SXM-40", "a100-sxm4-40gb"),
    ("A100 SXM-80", "a100-sxm4-80gb"),
    ("A800 SXM", "a800"),
    ("H100 SXM", "h100-sxm"),
    ("H100 PCIe", "h100-pcie"),
    ("H200 SXM", "h200-sxm"),
    ("H800 SXM", "h800-sxm"),
    ("B200 SXM", "b200-sxm"),
    ("GB200", "gb200"),
    ("B300 SXM", "b300"),
    ("GB300", "gb300"),
    ("GH200", "gh200"),
    ("RTX PRO 6000 Blackwell", "rtx-pro-6000"),
    ("L4", "l4"),
    ("L40S", "l40s"),
    ("A10", "a10"),
    ("T4", "t4"),
    ("RTX 3090", "rtx-3090"),
    ("RTX 4090", "rtx-4090"),
    ("MI250X", "mi250x"),
    ("MI300X", "mi300x"),
    ("MI325X", "mi325x"),
    ("MI355X", "mi355x"),
    ("TPU v4", "tpu-v4"),
    ("TPU v5e", "tpu-v5e"),
    ("TPU v5p", "tpu-v5p"),
    ("TPU v6e (Trillium)", "tpu-v6e"),
    ("Gaudi2", "gaudi2"),
    ("Gaudi3", "gaudi3"),
    ("Trainium2", "trainium2"),
];

/// Public tables disagree with each other by up to 5 %.
const SPREAD: f64 = 0.05;

fn table() -> Option<String> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let root = std::env::var_os("FORETRAIN_DATA").map_or_else(|| default.into(), PathBuf::from);
    std::fs::read_to_string(root.join("measured/hw_accelerators_summary.csv")).ok()
}

fn assert_close(what: &str, ours: f64, theirs: &str) -> u32 {
    let Ok(theirs) = theirs.parse::<f64>() else { return 0 };
    assert!((ours / theirs - 1.0).abs() <= SPREAD, "{what}: {ours}, the table has {theirs}");
    1
}

#[test]
fn figures_agree_with_the_collected_table() {
    let Some(table) = table() else {
        println!("skipped: no measured/hw_accelerators_summary.csv under FORETRAIN_DATA");
        return;
    };
    let mut compared = 0;
    for (row, name) in ROWS {
        let line = table.lines().find(|line| line.split(',').next() == Some(row));
        let fields: Vec<&str> = line.unwrap_or_else(|| panic!("no row {row}")).split(',').collect();
        let device = Catalogue::builtin().device(name).unwrap();
        let peak = device.native_peak(DType::Bf16).or(device.native_peak(DType::F16)).unwrap();
        compared += assert_close(&format!("{name} 16-bit"), peak.tflops(), fields[3]);
        let rate = device.memory_bandwidth.gb_per_sec();
        compared += assert_close(&format!("{name} memory rate"), rate, fields[7]);
        let units = device.multiprocessors.map_or(0.0, f64::from);
        if units > 0.0 {
            compared += assert_close(&format!("{name} units"), units, fields[8]);
        }
    }
    assert!(compared > 60, "{compared}");
}
