use foretrain_core::{DType, Nanos};
use foretrain_hardware::{Catalogue, Device};

use super::*;
use crate::kernels::{Gemm, KernelModel, Operation};

fn device(name: &str) -> &'static Device {
    Catalogue::builtin().device(name).unwrap()
}

/// A sweep on a machine that takes `factor` times the shipped time and `offset` more.
fn sweep(name: &str, factor: f64, offset_us: f64) -> Vec<KernelSample> {
    let model = KernelModel::for_device(device(name));
    let mut samples = Vec::new();
    for m in [128, 512, 2048, 8192] {
        for n in [1024, 4096, 12288] {
            for k in [512, 4096] {
                let operation = Operation::Gemm(Gemm::new(m, n, k, DType::Bf16));
                let time = model.time(&operation).time.scale(factor);
                let time = time + Nanos::from_micros_f64(offset_us);
                samples.push(KernelSample { operation, time, place: format!("{m} {n} {k}") });
            }
        }
    }
    samples
}

#[test]
fn a_slower_machine_is_found_again_and_used() {
    let fitted = fit(device("h100-sxm5-80gb"), &sweep("h100-sxm5-80gb", 1.2, 3.0), "test").unwrap();
    let [correction] = fitted.calibration.corrections() else { panic!("{fitted:?}") };
    assert!((correction.factor - 1.2).abs() < 0.01, "{correction:?}");
    assert!((correction.offset_us - 3.0).abs() < 0.1, "{correction:?}");
    assert!(fitted.error_before > 0.15 && fitted.error_after < 0.01, "{fitted:?}");
    assert!(fitted.odd.is_empty());
    let shipped = KernelModel::for_device(device("h100-sxm5-80gb"));
    let ours = shipped.clone().calibrated_by(&fitted.calibration).unwrap();
    let operation = Operation::Gemm(Gemm::new(8192, 8192, 8192, DType::F16));
    let ratio = ours.time(&operation).time.secs_f64() / shipped.time(&operation).time.secs_f64();
    assert!((ratio - 1.2).abs() < 0.01, "{ratio}");
    assert!(ours.evidence(&operation).source.contains("corrected by 24 measured"));
    // Other types keep the shipped curve.
    let other = Operation::Gemm(Gemm::new(8192, 8192, 8192, DType::F8E4m3));
    assert_eq!(ours.time(&other), shipped.time(&other));
}

#[test]
fn odd_rows_are_named_and_do_not_move_the_fit() {
    let mut samples = sweep("h100-sxm5-80gb", 1.1, 0.0);
    let last = samples.len() - 1;
    samples[last].time = samples[last].time.scale(3.0);
    let fitted = fit(device("h100-sxm5-80gb"), &samples, "test").unwrap();
    assert!((fitted.calibration.corrections()[0].factor - 1.1).abs() < 0.02);
    assert_eq!(fitted.odd.len(), 1);
    assert_eq!(fitted.odd[0].place, "8192 12288 4096");
}

#[test]
fn nonsense_is_refused_with_a_way_on() {
    let samples = sweep("h100-sxm5-80gb", 1.0, 0.0);
    // Milliseconds read as microseconds.
    let fast: Vec<_> = samples
        .iter()
        .map(|sample| KernelSample { time: sample.time.scale(1e-3), ..sample.clone() })
        .collect();
    let error = fit(device("h100-sxm5-80gb"), &fast, "test").unwrap_err();
    assert!(error.to_string().contains("faster than h100"), "{error}");
    let slow: Vec<_> = samples
        .iter()
        .map(|sample| KernelSample { time: sample.time.scale(1e3), ..sample.clone() })
        .collect();
    let error = fit(device("h100-sxm5-80gb"), &slow, "test").unwrap_err();
    assert!(error.to_string().contains("times what h100"), "{error}");
    assert!(!error.hints().is_empty());
    let error = fit(device("h100-sxm5-80gb"), &samples[..3], "test").unwrap_err();
    assert!(error.to_string().contains("no 5 matrix products"), "{error}");
}

#[test]
fn files_are_read_as_written_and_others_refused() {
    let fitted = fit(device("b200-sxm"), &sweep("b200-sxm", 0.95, 1.0), "a \"b\"\n").unwrap();
    let text = fitted.calibration.text(&["From a test.".into()]);
    let read = KernelCalibration::read(&text).unwrap();
    assert_eq!(read.device, "b200-sxm");
    assert!((read.corrections()[0].factor - 0.95).abs() < 0.01);
    assert_eq!(KernelCalibration::read(&read.text(&[])).unwrap(), read);
    for (from, to, place) in [
        ("version = 1", "version = 2", "version"),
        ("foretrain-kernels", "foretrain-other", "format"),
        ("factor = 0", "factor = -0", "factor"),
        ("spread = 0", "spread = nan #", "spread"),
        ("[[products]]", "[[others]]", ""),
    ] {
        let error = KernelCalibration::read(&text.replace(from, to)).unwrap_err();
        assert!(error.to_string().contains(place), "{to}: {error}");
    }
    let h100 = KernelModel::for_device(device("h100-sxm5-80gb"));
    let error = h100.calibrated_by(&read).unwrap_err();
    assert!(error.to_string().contains("b200-sxm"), "{error}");
}
