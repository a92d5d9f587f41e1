use foretrain_core::{Bytes, DType, Nanos};
use foretrain_hardware::Catalogue;
use proptest::prelude::*;

use super::*;

fn model(device: &str) -> KernelModel {
    KernelModel::for_device(Catalogue::builtin().device(device).unwrap())
}

fn gemm(m: u64, n: u64, k: u64, dtype: DType) -> Operation {
    Operation::Gemm(Gemm::new(m, n, k, dtype))
}

fn attention(batch: u64, heads: u64, length: u64, width: u64, pass: Pass) -> Operation {
    Operation::Attention(Attention {
        batch,
        heads,
        kv_heads: heads,
        queries: length,
        keys: length,
        head_dim: width,
        value_dim: width,
        causal: true,
        window: None,
        dtype: DType::Bf16,
        pass,
        kernel: AttentionKernel::Tuned,
    })
}

fn memory(kind: MemoryKind, read: u64, written: u64) -> Operation {
    Operation::Memory(Memory { kind, read: Bytes::new(read), written: Bytes::new(written) })
}

/// TFLOP/s that the model gives an operation.
fn rate(device: &str, operation: &Operation) -> f64 {
    operation.flops().get() / model(device).time(operation).time.secs_f64() / 1e12
}

#[test]
fn every_device_with_a_curve_uses_its_own() {
    for (device, dtype) in [
        ("a100-sxm4-80gb", DType::Bf16),
        ("h100-sxm5-80gb", DType::F8E4m3),
        ("gb200", DType::F4),
        ("v100-sxm2-16gb", DType::F16),
        ("t4", DType::F32),
    ] {
        let found = model(device).time(&gemm(4096, 4096, 4096, dtype));
        assert_eq!(found.basis, Basis::Fitted, "{device} {dtype:?}");
    }
}

#[test]
fn large_products_reach_what_is_measured_of_them() {
    // TFLOP/s of m = n = k = 8192 in kernels_aiconfigurator_gemm.csv.
    for (device, dtype, measured) in [
        ("a100-sxm4-80gb", DType::Bf16, 262.5),
        ("h100-sxm5-80gb", DType::Bf16, 782.7),
        ("b200-sxm", DType::Bf16, 1491.6),
    ] {
        let got = rate(device, &gemm(8192, 8192, 8192, dtype));
        assert!((got / measured - 1.0).abs() < 0.08, "{device}: {got}");
    }
}

#[test]
fn a_wave_more_costs_a_wave() {
    let model = model("a100-sxm4-80gb");
    let time = |m| model.time(&gemm(m, 128, 8192, DType::Bf16)).time.secs_f64();
    // As many rows as fill all 108 processors, and a few more.
    assert!(time(108 * 256 + 64) > 1.02 * time(108 * 256));
}

#[test]
fn splitting_the_sums_fills_the_device() {
    let model = model("h100-sxm5-80gb");
    let time = |k| model.time(&gemm(256, 256, k, DType::Bf16)).time.secs_f64();
    // Four tiles alone would need all of k one after the other.
    assert!(time(65536) < 0.35 * 64.0 * time(1024));
}

#[test]
fn attention_is_slower_backward_and_faster_with_wider_heads() {
    for device in ["a100-sxm4-80gb", "h100-sxm5-80gb", "b200-sxm"] {
        let forward = rate(device, &attention(2, 32, 4096, 128, Pass::Forward));
        let backward = rate(device, &attention(2, 32, 4096, 128, Pass::Backward));
        let narrow = rate(device, &attention(2, 64, 4096, 64, Pass::Forward));
        assert!(backward < forward && narrow < forward, "{device} {forward} {backward} {narrow}");
        let time = model(device).time(&attention(2, 32, 4096, 128, Pass::Backward)).time;
        let once = model(device).time(&attention(2, 32, 4096, 128, Pass::Forward)).time;
        assert!((2.4..4.0).contains(&(time.secs_f64() / once.secs_f64())));
    }
}

#[test]
fn memory_bound_kernels_differ_by_kind_and_norms_by_pass() {
    let model = model("a100-sxm4-80gb");
    let time = |kind, read, written| model.time(&memory(kind, read, written)).time;
    let size = 256 << 20;
    let elementwise = time(MemoryKind::Elementwise, size, size);
    assert!(time(MemoryKind::Gather, size, size) > elementwise.scale(3.0));
    let (forward, backward) =
        (time(MemoryKind::Norm, size, size), time(MemoryKind::Norm, 2 * size, size));
    assert!(backward > forward.scale(1.6), "{forward} {backward}");
    // An empty one is a launch.
    assert!(time(MemoryKind::Copy, 0, 0) >= Nanos::from_micros_f64(1.0));
}

#[test]
fn relatives_lend_their_curves_and_say_so() {
    let operation = gemm(8192, 8192, 8192, DType::Bf16);
    for device in ["a100-pcie-40gb", "mi300x", "tpu-v5p", "gaudi2", "rtx-4090"] {
        let found = model(device).time(&operation);
        assert_eq!(found.basis, Basis::Borrowed, "{device}");
        let own = model("a100-sxm4-80gb").time(&operation);
        assert!(found.relative_spread > own.relative_spread, "{device}");
        let evidence = model(device).evidence(&operation);
        assert!(evidence.source.contains("carried over"), "{}", evidence.source);
    }
    // A 300 W card of the same chip, whose best product is known to be slower.
    let share = |name: &str| {
        let peak = Catalogue::builtin().device(name).unwrap().peak(DType::Bf16).unwrap().tflops();
        rate(name, &operation) / peak
    };
    assert!(share("h100-pcie-80gb") < 0.9 * share("h100-sxm5-80gb"));
}

#[test]
fn types_without_units_run_as_what_replaces_them() {
    // Volta multiplies bf16 on its vector units.
    let operation = |dtype| gemm(4096, 4096, 4096, dtype);
    let volta = model("v100-sxm2-16gb");
    let slow = volta.time(&operation(DType::Bf16)).time;
    assert!(slow > volta.time(&operation(DType::F16)).time.scale(4.0));
    let tf32 = model("a100-sxm4-80gb").time(&operation(DType::Tf32));
    assert_eq!(tf32.basis, Basis::Borrowed);
    assert!(tf32.time < model("a100-sxm4-80gb").time(&operation(DType::F32)).time);
}

#[test]
fn a_cpu_has_only_its_limits() {
    let cpu = model("xeon-8480").time(&gemm(1024, 1024, 1024, DType::F32));
    assert_eq!(cpu.basis, Basis::Limits);
    assert!(cpu.time > cpu.bound);
}

#[test]
fn convolutions_cost_as_much_as_their_product_and_depthwise_ones_their_traffic() {
    let convolution = |groups, pass| {
        Operation::Convolution(Convolution {
            batch: 64,
            inputs: 256,
            outputs: 256,
            kernel: (3, 3),
            stride: 1,
            size: (28, 28),
            groups,
            dtype: DType::F16,
            pass,
        })
    };
    let model = model("v100-sxm2-16gb");
    let full = model.time(&convolution(1, Pass::Forward));
    assert!(full.time > full.bound && full.time < full.bound.scale(4.0), "{full:?}");
    let depthwise = model.time(&convolution(256, Pass::Forward));
    assert!(depthwise.time < full.time && depthwise.relative_spread > 0.4);
    for pass in [Pass::Forward, Pass::Backward, Pass::WeightGradient] {
        let Operation::Convolution(shape) = convolution(1, pass) else { unreachable!() };
        assert_eq!(shape.as_gemm().flops(), shape.flops());
    }
}

#[test]
fn the_hash_holds_out_a_fifth() {
    let held = (0..10_000_u64).filter(|&m| is_held_out(&[1, m, 4096, 1024])).count();
    assert!((1800..2200).contains(&held), "{held}");
}

fn sizes() -> impl Strategy<Value = u64> {
    prop_oneof![0..70_000_u64, Just(1), Just(u64::from(u32::MAX))]
}

proptest! {
    #[test]
    fn no_time_is_below_the_bound_or_no_number(
        (m, n, k) in (sizes(), sizes(), sizes()),
        batch in 1..64_u64,
        width in 1..512_u64,
        causal: bool,
    ) {
        let catalogue = Catalogue::builtin();
        for device in catalogue.devices() {
            let model = KernelModel::for_device(device);
            let mut operations = vec![
                gemm(m, n, k, DType::Bf16),
                gemm(m, n, k, DType::F8E4m3),
                memory(MemoryKind::Norm, m * n, k),
            ];
            if let Operation::Attention(shape) = attention(batch, 8, m, width, Pass::Backward) {
                operations.push(Operation::Attention(Attention { causal, keys: n, ..shape }));
            }
            for operation in operations {
                let found = model.time(&operation);
                prop_assert!(found.time >= found.bound, "{} {operation:?}", device.name);
                prop_assert!(found.relative_spread.is_finite() && found.relative_spread > 0.0);
            }
        }
    }

    #[test]
    fn more_work_never_takes_much_less(
        (m, n, k) in (1..20_000_u64, 1..20_000_u64, 1..20_000_u64),
    ) {
        // Whole tiles of another size may fit better, by no more than a fifth.
        let model = model("h100-sxm5-80gb");
        let time = |m, n, k| model.time(&gemm(m, n, k, DType::Bf16)).time.secs_f64();
        let base = time(m, n, k);
        prop_assert!(time(2 * m, n, k) > 0.8 * base);
        prop_assert!(time(m, 2 * n, k) > 0.8 * base);
        prop_assert!(time(m, n, 2 * k) > 0.8 * base);
    }
}

#[test]
fn attention_of_2023_is_slow_on_devices_that_came_after_it() {
    let time = |device: &str, kernel, length| {
        let device = Catalogue::builtin().device(device).unwrap();
        let Operation::Attention(shape) = attention(1, 32, length, 128, Pass::Forward) else {
            panic!("attention")
        };
        let operation = Operation::Attention(Attention { kernel, ..shape });
        KernelModel::for_device(device).time(&operation).time.secs_f64()
    };
    use AttentionKernel::{Flash1, Flash2, Tuned};
    let ratio = |device, kernel| time(device, kernel, 32_768) / time(device, Tuned, 32_768);
    assert_eq!(ratio("a100-sxm4-80gb", Flash2), 1.0);
    assert!((ratio("h100-sxm5-80gb", Flash2) - 1.47).abs() < 0.01);
    assert!((ratio("a100-sxm4-80gb", Flash1) - 2.0).abs() < 0.01);
    assert!((ratio("h100-sxm5-80gb", Flash1) - 2.94).abs() < 0.01);
    // FlashAttention-2 on Hopper: 0.4 of 989 TFLOP/s over long sequences.
    let pairs = 65_536.0_f64.powi(2) / 2.0;
    let rate = 32.0 * pairs * 4.0 * 128.0 / time("h100-sxm5-80gb", Flash2, 65_536) / 1e12;
    assert!((380.0..400.0).contains(&rate), "{rate}");
}
