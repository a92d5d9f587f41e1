use foretrain_core::{Bytes, Nanos};
use foretrain_graph::CollectiveKind;
use proptest::prelude::*;

use super::*;
use crate::KernelClass;

const H100: DeviceLimits = DeviceLimits { multiprocessors: 132, memory_bandwidth: 3.35e12 };

fn kernel(class: KernelClass, micros: i64, blocks: u32) -> KernelLoad {
    KernelLoad { alone: Nanos::from_micros(micros), class, blocks, threads: 256, bandwidth: None }
}

fn transfer(mib: u64, micros: i64, channels: u32, moving: f64) -> TransferLoad {
    TransferLoad {
        transfer: Nanos::from_micros(micros),
        kind: CollectiveKind::AllReduce,
        bytes: Some(Bytes::from_mib(mib)),
        ranks: 8,
        channels,
        moving,
    }
}

fn slowdowns(model: &dyn SlowdownModel, running: &[Activity]) -> Vec<f64> {
    let mut slowdowns = vec![1.0; running.len()];
    model.slowdowns(&H100, running, &mut slowdowns);
    slowdowns
}

fn pair(kernel: KernelLoad, transfer: TransferLoad) -> [Activity; 2] {
    [Activity::Kernel(kernel), Activity::Transfer(transfer)]
}

#[test]
fn nothing_beside_is_no_slowdown() {
    let models =
        [OverlapModel::Fixed(Fixed::default()), OverlapModel::Analytic(Analytic::default())];
    let (k, t) = (kernel(KernelClass::Elementwise, 3, 4), transfer(64, 900, 24, 1.0));
    for model in models {
        assert_eq!(slowdowns(&model, &[Activity::Kernel(k)]), [1.0], "{model:?}");
        assert_eq!(slowdowns(&model, &[Activity::Transfer(t)]), [1.0], "{model:?}");
        assert_eq!(slowdowns(&model, &[Activity::Kernel(k), Activity::Kernel(k)]), [1.0, 1.0]);
    }
}

#[test]
fn one_wave_of_matrix_tiles_needs_a_second_round() {
    // 264 tiles fill 132 multiprocessors twice over; 108 of them need two rounds.
    let gemm = kernel(KernelClass::Gemm, 500, 264);
    let [tiles, _] = slowdowns(&Analytic::default(), &pair(gemm, transfer(64, 900, 24, 0.0)))[..]
    else {
        unreachable!("two activities")
    };
    assert!((1.6..=2.0).contains(&tiles), "{tiles}");
    let many = kernel(KernelClass::Gemm, 500, 264 * 50);
    let [rounds, _] = slowdowns(&Analytic::default(), &pair(many, transfer(64, 900, 24, 0.0)))[..]
    else {
        unreachable!("two activities")
    };
    assert!((1.1..1.25).contains(&rounds), "24 of 132 multiprocessors are lost: {rounds}");
}

#[test]
fn a_waiting_collective_holds_multiprocessors_but_moves_nothing() {
    let copy = kernel(KernelClass::Elementwise, 200, 100_000);
    let model = Analytic::default().with_launch_delay(Nanos::ZERO);
    let moving = slowdowns(&model, &pair(copy, transfer(512, 2_000, 24, 1.0)));
    let waiting = slowdowns(&model, &pair(copy, transfer(512, 2_000, 24, 0.0)));
    assert!(moving[0] > 1.05, "{moving:?}");
    assert_eq!(waiting, [1.0, 1.0], "memory is free and the kernel needs no multiprocessors");
}

#[test]
fn short_kernels_feel_the_launch_delay() {
    let model = Analytic::default().with_launch_delay(Nanos::from_micros(2));
    let slow = |micros, moving| {
        let small = kernel(KernelClass::Reduction, micros, 1);
        slowdowns(&model, &pair(small, transfer(1, 5_000, 2, moving)))[0]
    };
    // Collectives that wait for other ranks spin, and delay kernels all the same.
    for moving in [0.0, 1.0] {
        assert!((slow(4, moving) - 1.5).abs() < 0.01, "{}", slow(4, moving));
        assert!((slow(400, moving) - 1.005).abs() < 0.001, "{}", slow(400, moving));
    }
}

#[test]
fn fixed_factors_are_what_was_asked_for() {
    let model = Fixed::new(1.3, 1.1).expect("in range");
    let k = kernel(KernelClass::Gemm, 100, 1);
    assert_eq!(slowdowns(&model, &pair(k, transfer(1, 50, 2, 1.0))), [1.3, 1.1]);
    assert_eq!(slowdowns(&model, &pair(k, transfer(1, 50, 2, 0.0))), [1.0, 1.0]);
    for bad in [0.9, f64::NAN, f64::INFINITY, 101.0] {
        assert!(Fixed::new(bad, 1.0).is_err() && Fixed::new(1.0, bad).is_err(), "{bad}");
    }
}

fn samples(law: impl Fn(f64) -> f64) -> Vec<OverlapSample> {
    let sample = |micros: i64| {
        let kernel = kernel(KernelClass::Elementwise, micros, 40);
        let recorded = kernel.alone.scale(law(micros as f64));
        let beside = transfer(64, 9_000, 16, 1.0);
        OverlapSample { device: H100, kernel, beside, overlapped: 1.0, recorded }
    };
    (5..205).map(sample).collect()
}

#[test]
fn trees_learn_what_the_formula_misses_and_stay_within_physics() {
    let law = |micros: f64| if micros < 60.0 { 1.6 } else { 1.05 };
    let samples = samples(law);
    let learned = Learned::fit(Analytic::default(), &samples, &vec![1.0; samples.len()]);
    let error = |model: &dyn SlowdownModel| -> f64 {
        let off = |s: &OverlapSample| {
            (s.predict(model).nanos() as f64 / s.recorded.nanos() as f64 - 1.0).abs()
        };
        samples.iter().map(off).sum::<f64>() / samples.len() as f64
    };
    let (formula, trees) = (error(&Analytic::default()), error(&learned));
    assert!(trees < formula / 4.0, "{formula} {trees}");
    // Speeding up is not learnt.
    let shorter = self::samples(|_| 0.5);
    let learned = Learned::fit(Analytic::default(), &shorter, &vec![1.0; shorter.len()]);
    for sample in &shorter {
        assert!(sample.predict(&learned) >= sample.kernel.alone);
    }
}

#[test]
fn a_sample_s_slowdown_and_time_belong_together() {
    let sample =
        OverlapSample { overlapped: 0.5, recorded: Nanos::from_micros(12), ..samples(|_| 1.0)[5] };
    assert_eq!(sample.kernel.alone, Nanos::from_micros(10));
    assert!((sample.slowdown() - 1.4).abs() < 1e-12);
    assert_eq!(sample.time_at(sample.slowdown()), sample.recorded);
}

fn file() -> ModelFile {
    let samples = samples(|micros| 1.0 + 3.0 / micros);
    let model = Learned::fit(Analytic::default(), &samples, &vec![1.0; samples.len()]);
    let trained_on =
        TrainedOn { rows: samples.len(), sources: vec!["a".into()], ..TrainedOn::default() };
    ModelFile::new(Some(Domain { trained_on, model }), None)
}

#[test]
fn files_come_back_as_written_and_the_built_in_one_can_be_used() {
    let file = file();
    assert_eq!(ModelFile::read(&file.text()).expect("own file"), file);
    let built_in = ModelFile::pretrained().expect("built in");
    assert!(built_in.overlap.is_some() && built_in.colocation.is_some());
}

#[test]
fn other_files_are_refused_with_the_place() {
    let text = file().text();
    let error = |text: &str| ModelFile::read(text).expect_err("refused");
    assert!(error("{}").message().contains("format"));
    assert!(
        error(&text.replace("foretrain-interference", "xgboost")).message().contains("xgboost")
    );
    assert_eq!(error(&text.replace("\"version\":1", "\"version\":2")).place(), Some("version"));
    let negative = text.replace("\"wave_loss\":1.0", "\"wave_loss\":-1.0");
    assert!(error(&negative).message().contains("wave_loss is -1"), "{}", error(&negative));
    let unknown = text.replace("\"wave_loss\"", "\"waveloss\"");
    assert_eq!(error(&unknown).place(), Some("overlap.model.formula.waveloss"));
    assert!(error(&format!("{text}{{}}")).message().contains("follows"));
    let other = text.replace("log_fill", "log_phil");
    assert!(error(&other).message().contains("this version knows"));
    assert!(
        error("{\"format\":\"foretrain-interference\",\"version\":1}")
            .message()
            .contains("no model")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Damaged files are refused or give a model that answers within physics; nothing panics.
    #[test]
    fn damaged_files_never_panic(at in 0.0_f64..1.0, byte in any::<u8>(), cut in 0_usize..20) {
        let mut bytes = file().text().into_bytes();
        let at = (at * bytes.len() as f64) as usize;
        bytes[at] = byte;
        bytes.drain(at..(at + cut).min(bytes.len()));
        let text = String::from_utf8_lossy(&bytes);
        if let Ok(model) = ModelFile::read(&text).and_then(ModelFile::overlap_model) {
            let k = kernel(KernelClass::Gemm, 30, 500);
            for slowdown in slowdowns(&model, &pair(k, transfer(16, 300, 8, 1.0))) {
                prop_assert!((1.0..=8.0).contains(&slowdown), "{}", slowdown);
            }
        }
    }

    /// No model ever speeds anything up or stops it, whatever runs, in whatever order.
    #[test]
    fn slowdowns_are_within_bounds_and_do_not_depend_on_order(
        kernels in prop::collection::vec((0_i64..10_000, any::<u32>(), 0_u32..4_000), 0..4),
        transfers in prop::collection::vec((0_i64..10_000, 0_u64..1 << 50, any::<u32>(), any::<f64>()), 0..4),
    ) {
        let load = |&(micros, blocks, threads): &(i64, u32, u32)| Activity::Kernel(KernelLoad {
            threads,
            ..kernel(KernelClass::Unknown, micros, blocks)
        });
        let comm = |&(micros, mib, channels, moving): &(i64, u64, u32, f64)| {
            Activity::Transfer(TransferLoad { bytes: Some(Bytes::new(mib)), ..transfer(0, micros, channels, moving) })
        };
        let running: Vec<Activity> =
            kernels.iter().map(load).chain(transfers.iter().map(comm)).collect();
        let reversed: Vec<Activity> = running.iter().rev().copied().collect();
        let model = file().overlap_model().expect("has one");
        for model in [&model as &dyn SlowdownModel, &Analytic::default(), &Fixed::default()] {
            let (forth, back) = (slowdowns(model, &running), slowdowns(model, &reversed));
            for (a, b) in forth.iter().zip(back.iter().rev()) {
                prop_assert!((1.0..=8.0).contains(a), "{}", a);
                prop_assert!((a - b).abs() < 1e-9, "{} {}", a, b);
            }
        }
    }
}
