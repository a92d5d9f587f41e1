use super::*;

fn job(step_ms: f64, busy: f64, launch_ms: f64) -> JobLoad {
    let time = |ms: f64| Nanos::from_nanos_f64(ms * 1e6);
    JobLoad { step: time(step_ms), busy, launch: time(launch_ms) }
}

fn turns(cost: f64, size_exponent: f64) -> Turns {
    Turns { cost, size_exponent }
}

#[test]
fn equal_busy_jobs_take_turns_and_idle_time_absorbs_waiting() {
    let busy = job(10.0, 1.0, 4.0);
    assert!((turns(1.0, 1.0).slowdown(&busy, &[busy]) - 2.0).abs() < 1e-12);
    assert!((turns(1.0, 1.0).slowdown(&busy, &[busy, busy]) - 3.0).abs() < 1e-12);
    let light = job(10.0, 0.3, 10.0);
    assert_eq!(turns(1.0, 1.0).slowdown(&light, &[light]), 1.0, "0.6 of the device is used");
    assert_eq!(turns(1.0, 1.0).slowdown(&busy, &[]), 1.0);
}

#[test]
fn short_kernels_wait_for_long_ones_and_not_the_other_way() {
    let (short, long) = (job(8.0, 1.0, 8.0), job(40.0, 1.0, 8.0));
    let by_kernel = turns(1.0, 1.0);
    assert!((by_kernel.slowdown(&short, &[long]) - 6.0).abs() < 1e-9);
    assert!((by_kernel.slowdown(&long, &[short]) - 1.2).abs() < 1e-9);
    let by_time = turns(1.0, 0.0);
    assert!((by_time.slowdown(&short, &[long]) - 2.0).abs() < 1e-12);
    assert!((by_time.slowdown(&long, &[short]) - 2.0).abs() < 1e-12);
}

#[test]
fn a_family_tells_launching_from_device_work() {
    // 4 ms of launching hides under 0.5 ms per sample from batch 8 on.
    let step = |batch: f64| (batch, Nanos::from_nanos_f64(f64::max(4e6, batch * 5e5)));
    let loads = loads_of_family(&[step(32.0), step(2.0), step(64.0)]);
    assert!((loads[0].busy - 1.0).abs() < 1e-6 && (loads[2].busy - 1.0).abs() < 1e-6);
    assert!((loads[1].busy - 0.25).abs() < 1e-6, "{}", loads[1].busy);
    assert!(loads.iter().all(|load| load.launch == Nanos::from_millis(4)));
    let lone = loads_of_family(&[step(8.0)]);
    assert_eq!((lone[0].busy, lone[0].launch), (1.0, lone[0].step));
}

#[test]
fn odd_loads_never_give_odd_answers() {
    let odd = [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300];
    for step in odd {
        for busy in odd {
            let (odd, plain) = (job(step, busy, step), job(5.0, 0.5, 1.0));
            for answer in
                [turns(1.0, 1.0).slowdown(&odd, &[plain]), turns(1.0, 1.0).slowdown(&plain, &[odd])]
            {
                assert!((1.0..=MOST_SLOWDOWN).contains(&answer), "{step} {busy}: {answer}");
            }
        }
    }
}

#[test]
fn constants_are_found_again() {
    let truth = turns(0.8, 0.5);
    let jobs: Vec<JobLoad> =
        [1, 3, 6, 9, 14, 22].map(|n| job(4.0 + f64::from(n), 1.0, 4.0)).to_vec();
    let mut pairs = Vec::new();
    for &victim in &jobs {
        for &other in &jobs {
            pairs.push(Measured { victim, other, slowdown: truth.slowdown(&victim, &[other]) });
        }
    }
    let model = fit(&pairs).expect("enough pairs");
    assert!((model.time_sliced.cost - 0.8).abs() < 1e-9, "{:?}", model.time_sliced);
    assert!((model.time_sliced.size_exponent - 0.5).abs() < 1e-9, "{:?}", model.time_sliced);
    for pair in &pairs {
        let got = model.slowdown(&pair.victim, &[pair.other], Sharing::TimeSliced);
        assert!((got / pair.slowdown - 1.0).abs() < 0.01, "{got} {}", pair.slowdown);
    }
    assert!(fit(&pairs[..19]).is_err());
}
