use super::*;

/// Steps of a known curve.
fn steps() -> Vec<Measured> {
    let mut steps = Vec::new();
    for per_node in [vec![1], vec![2], vec![4], vec![2, 2], vec![4, 4], vec![4, 4, 4, 4]] {
        for local in [8, 16, 32, 64] {
            let gpus: u32 = per_node.iter().sum();
            let compute = 0.05 + 0.01 * local as f64;
            let more = f64::from(gpus.saturating_sub(2));
            let sync = match (per_node.len(), gpus) {
                (_, 1) => 0.0,
                (1, _) => 0.1 + 0.01 * more,
                _ => 0.5 + 0.02 * more,
            };
            let step = (compute * compute + sync * sync).sqrt();
            steps.push(Measured { per_node: per_node.clone(), local, step, sync: step - compute });
        }
    }
    steps
}

fn elastic(batch: Batch) -> Elastic {
    let noise = |variance: f64| vec![(64, 1.0, variance), (4096, 1.0, variance)];
    let efficiency = Efficiency::new(vec![
        Phase { until: 100.0, noise: noise(1.0) },
        Phase { until: 200.0, noise: noise(100.0) },
    ]);
    let limits = BatchLimits { initial: 64, most: 4096, least_local: 8, most_local: 64 };
    let times = StepTimes::new(&steps()).expect("valid");
    Elastic::new(Arc::new(Application::new(times, efficiency, limits)), batch, 64)
}

#[test]
fn the_curve_is_found_again() {
    let times = StepTimes::new(&steps()).expect("valid");
    for Measured { per_node, local, step, .. } in steps() {
        let (by_curve, _) = times.curve(per_node.iter().sum(), per_node.len() as u32, local);
        assert!((by_curve / step - 1.0).abs() < 1e-6, "{per_node:?} {local}: {by_curve} {step}");
    }
    // Beyond what was measured it goes on as the formula does.
    let compute: f64 = 0.05 + 0.01 * 32.0;
    let sync: f64 = 0.5 + 0.02 * 30.0;
    let expected = (compute.powi(2) + sync.powi(2)).sqrt();
    assert!((times.curve(32, 8, 32).0 / expected - 1.0).abs() < 1e-6);
}

#[test]
fn measured_placements_are_kept() {
    let mut steps = steps();
    steps.push(Measured { per_node: vec![3, 1], local: 8, step: 7.0, sync: 6.0 });
    steps.push(Measured { per_node: vec![3, 1], local: 16, step: 9.0, sync: 7.0 });
    let times = StepTimes::new(&steps).expect("valid");
    assert_eq!(times.placed(&[1, 3], 8), (7.0, 6.0), "rotations are one placement");
    assert_eq!(times.placed(&[3, 1], 12), (8.0, 6.5), "between samples on a line");
}

#[test]
fn adaptive_batches_grow_with_noise() {
    let job = elastic(Batch::Adaptive);
    let quiet = job.choose(8, 2, 0.0).expect("fits");
    let noisy = job.choose(8, 2, 150.0).expect("fits");
    assert!(
        noisy.local * (noisy.accumulated + 1) > quiet.local * (quiet.accumulated + 1),
        "{quiet:?} {noisy:?}"
    );
    assert_eq!(job.changes_after(0.0), Some(100.0));
    assert_eq!(job.changes_after(100.0), None);
}

#[test]
fn a_fixed_batch_is_accumulated_where_it_does_not_fit() {
    let job = elastic(Batch::Fixed(1024));
    assert_eq!(job.application.split(1024, 16), Some(Split { local: 64, accumulated: 0 }));
    assert_eq!(job.application.split(1024, 4), Some(Split { local: 64, accumulated: 3 }));
    assert_eq!(job.application.split(64, 1), Some(Split { local: 64, accumulated: 0 }));
    assert_eq!(job.application.split(128, 1), Some(Split { local: 64, accumulated: 1 }));
    assert_eq!(job.application.split(64, 16), None, "fewer than the least samples per GPU");
    assert!(job.speed(16, 4, 0.0) > job.speed(4, 1, 0.0));
}

#[test]
fn impossible_steps_are_refused() {
    let step = |step: f64, sync: f64| Measured { per_node: vec![1], local: 1, step, sync };
    for bad in [step(0.0, 0.0), step(f64::NAN, 0.0), step(1.0, 2.0), step(1.0, -1.0)] {
        assert!(StepTimes::new(&[bad]).is_err());
    }
    assert!(StepTimes::new(&[]).is_err());
}
