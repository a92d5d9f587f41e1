use foretrain_core::DType;
use foretrain_cost::kernels::{KernelModel, Operation};
use foretrain_hardware::Catalogue;

use super::*;

const SHAPES: [(u64, u64, u64); 6] = [
    (1024, 4096, 4096),
    (2048, 4096, 4096),
    (4096, 4096, 4096),
    (8192, 4096, 4096),
    (8192, 8192, 8192),
    (512, 1024, 1024),
];

fn device() -> &'static Device {
    Catalogue::builtin().device("a100-sxm4-80gb").unwrap()
}

/// Sizes and microseconds.
type Measured = (u64, u64, u64, f64);

/// Rows of a machine that takes `factor` times as long as known.
fn rows(factor: f64) -> Vec<Measured> {
    let model = KernelModel::for_device(device());
    let row = |(m, n, k)| {
        let gemm = foretrain_cost::kernels::Gemm::new(m, n, k, DType::Bf16);
        (m, n, k, model.time(&Operation::Gemm(gemm)).time.micros_f64() * factor)
    };
    SHAPES.map(row).to_vec()
}

fn factor_of(text: &str) -> f64 {
    let samples = read_sweep(text, None).unwrap();
    let answer = calibrate_kernels(device(), &samples, "a test").unwrap();
    assert_eq!(answer.samples, SHAPES.len());
    answer.fitted.calibration.corrections()[0].factor
}

#[test]
fn tables_with_many_titles_say_the_same() {
    let rows = rows(1.25);
    let write = |head: &str, row: &dyn Fn(&Measured) -> String| {
        let lines: Vec<String> = rows.iter().map(row).collect();
        format!("{head}\n{}\n", lines.join("\n"))
    };
    let forms = [
        write("m,n,k,dtype,time_us", &|(m, n, k, us)| format!("{m},{n},{k},bf16,{us}")),
        write("M;N;K;Precision;Latency (ms)", &|(m, n, k, us)| {
            format!("{m};{n};{k};torch.bfloat16;{}", us / 1e3)
        }),
        write("gpu\tgemm_dtype\tm\tn\tk\tTFLOP/s", &|(m, n, k, us)| {
            let rate = 2.0 * (m * n * k) as f64 / us / 1e6;
            format!("mine\tfloat16\t{m}\t{n}\t{k}\t{rate}")
        }),
        rows.iter()
            .map(|(m, n, k, us)| {
                format!("{{\"m\":{m},\"n\":{n},\"k\":{k},\"dtype\":\"bf16\",\"us\":{us}}}\n")
            })
            .collect(),
    ];
    for form in forms {
        let factor = factor_of(&form);
        assert!((factor - 1.25).abs() < 0.01, "{factor} from {form}");
    }
}

#[test]
fn rows_that_say_nothing_are_counted_with_their_line() {
    let text = "m,n,k,dtype,time_us\n8,8,8,bf16,5\n8,-1,8,bf16,5\n8,8,8,what,5\n8,8,8,bf16,0\n\
                8,8,8,bf16,NaN\n8,8,1e300,bf16,5\n8,8\n";
    let found = read_sweep(text, None).unwrap();
    assert_eq!(found.samples.len(), 1);
    let counts: Vec<usize> = found.left_out.values().map(|met| met.count).collect();
    assert_eq!(counts.iter().sum::<usize>(), 6, "{:?}", found.left_out);
    assert_eq!(found.left_out["the type is not known"].first, "line 4");
    let error = calibrate_kernels(device(), &found, "a test").unwrap_err();
    assert!(error.hints().iter().any(|hint| hint.contains("line 4")), "{:?}", error.hints());
}

#[test]
fn several_devices_need_a_choice() {
    let text = "gpu,m,n,k,dtype,time_us\nA,8,8,8,bf16,5\nB,8,8,8,bf16,6\n";
    let error = read_sweep(text, None).unwrap_err();
    assert!(error.hints()[0].contains("A, B"), "{:?}", error.hints());
    let found = read_sweep(text, Some("b")).unwrap();
    assert_eq!((found.samples.len(), found.device.as_deref()), (1, Some("B")));
}

#[test]
fn what_is_no_sweep_is_refused_with_what_was_expected() {
    for text in ["", "\n", "a,b\n1,2\n", "{\"m\": 1}\n", "m,n,k\n1,2,3\n"] {
        let error = read_sweep(text, None).unwrap_err();
        assert!(!error.hints().is_empty(), "{text}: {error}");
    }
    let error = read_sweep("{\"m\": 1}\n{broken\n", None).unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
}
