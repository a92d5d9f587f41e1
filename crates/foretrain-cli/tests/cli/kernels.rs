//! Calibrating kernel times from a sweep.

use foretrain::cost::kernels::KernelCalibration;
use serde_json::Value;

use crate::support::{answer, complaint, misfits, text, write};

/// A sweep of a made-up A100 and one row that says nothing.
const SWEEP: &str = "\
gpu,dtype,m,n,k,time_us
NVIDIA A100-SXM4-80GB,bf16,4096,4096,4096,660
NVIDIA A100-SXM4-80GB,bf16,8192,4096,4096,1250
NVIDIA A100-SXM4-80GB,bf16,8192,8192,8192,5000
NVIDIA A100-SXM4-80GB,bf16,2048,4096,4096,340
NVIDIA A100-SXM4-80GB,bf16,1024,4096,4096,190
NVIDIA A100-SXM4-80GB,bf16,2048,8192,2048,340
NVIDIA A100-SXM4-80GB,bf16,0,8192,2048,340
";

#[test]
fn a_page_a_file_and_json_of_a_sweep() {
    let home = tempfile::tempdir().unwrap();
    let (sweep, file) = (write(home.path(), "sweep.csv", SWEEP), home.path().join("kernels.toml"));
    let verb = ["calibrate", "kernels", text(&sweep)];
    let page = answer(&verb);
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    insta::assert_snapshot!("calibrate_kernels", page);
    answer(&[&verb[..], &["-o", text(&file)]].concat());
    let written = std::fs::read_to_string(&file).unwrap();
    let kept = KernelCalibration::read(&written).unwrap();
    assert_eq!((kept.device.as_str(), kept.corrections().len()), ("a100-sxm4-80gb", 1));
    assert!((0.8..1.4).contains(&kept.corrections()[0].factor), "{written}");
    let document: Value =
        serde_json::from_str(&answer(&[&verb[..], &["--json"]].concat())).expect("JSON");
    let schema = answer(&["schema", "calibrate-kernels"]);
    let schema = serde_json::from_str(&schema).expect("JSON");
    let found = misfits(&document, &schema, &schema, "$");
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(document["left_out"][0]["first"], "line 8");
}

#[test]
fn another_device_s_times_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let sweep = write(home.path(), "sweep.csv", SWEEP);
    let said = complaint(&["calibrate", "kernels", text(&sweep), "--device", "t4"], home.path());
    assert!(said.contains("faster than t4 can be") && said.contains("--device"), "{said}");
    let sweep = write(home.path(), "other.csv", SWEEP.replace("NVIDIA A100-SXM4-80GB", "XPU 9"));
    let said = complaint(&["calibrate", "kernels", text(&sweep)], home.path());
    assert!(said.contains("no device \"XPU 9\""), "{said}");
}
