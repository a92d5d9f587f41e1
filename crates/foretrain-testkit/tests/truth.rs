//! The truth is consistent with itself, with closed forms and with the traces.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

use std::collections::BTreeMap;

use foretrain_testkit::{
    ClockSpec, Dialect, Generated, JobSpec, Model, SlowRank, Sync, assign_buckets, generate, stream,
};
use proptest::prelude::*;
use serde_json::Value;

fn job(spec: &JobSpec) -> Generated {
    generate(spec).unwrap()
}

fn events(trace: &[u8]) -> Vec<Value> {
    let value: Value = serde_json::from_slice(trace).unwrap();
    value.get("traceEvents").unwrap_or(&value).as_array().unwrap().clone()
}

fn check_owners(job: &Generated) {
    for rank in &job.truth.ranks {
        for step in &rank.steps {
            assert_eq!(step.owners.total_ns(), step.period_ns, "rank {} {step:?}", rank.rank);
            assert!(step.owners.host_ns >= 0 && step.period_ns > 0);
            assert!(step.owners.compute_ns <= step.compute_busy_ns);
        }
        for pair in rank.steps.windows(2) {
            assert_eq!(pair[0].completion_ns + pair[1].period_ns, pair[1].completion_ns);
        }
    }
}

/// A job whose every time is a round number.
fn exact() -> JobSpec {
    let mut spec = JobSpec::tiny_ddp();
    spec.model = Model::Mlp { widths: vec![1_000, 2_000, 1_000] };
    spec.device.fixed_kernel_ns = Some(100_000);
    (spec.noise, spec.network_noise) = (0.0, 0.0);
    spec
}

#[test]
fn every_dialect_is_json_with_the_events_it_should_have() {
    for dialect in Dialect::ALL {
        for with_stack in [false, true] {
            let spec = JobSpec { with_stack, ..JobSpec::tiny_ddp() }.with_dialect(dialect);
            let job = job(&spec);
            check_owners(&job);
            for trace in &job.ranks {
                let events = events(trace);
                let marks = |event: &&Value| {
                    event["name"].as_str().is_some_and(|name| name.starts_with("ProfilerStep#"))
                };
                assert_eq!(events.iter().filter(marks).count(), 3, "{dialect:?}");
                let frames = events.iter().filter(|event| event["cat"] == "python_function");
                assert_eq!(frames.count() > 0, with_stack && dialect != Dialect::Pytorch18);
                let device = events
                    .iter()
                    .filter(|event| event["cat"] == "kernel" || event["cat"] == "Kernel");
                assert_eq!(device.count() > 0, dialect.has_device());
            }
        }
    }
}

#[test]
fn without_overlap_a_step_is_a_plain_sum() {
    let mut spec = exact();
    spec.ddp.overlap = false;
    let job = job(&spec);
    // Forward 4 (two products, ReLU, loss), backward 1 + 3 + 1 + 3, four gradients scaled,
    // optimiser 3.
    let kernels = 4 + 8 + 4 + 3;
    let transfers: i64 = job.truth.bucket_transfers_ns.iter().sum();
    for rank in &job.truth.ranks {
        for step in &rank.steps {
            assert_eq!(step.kernels, kernels);
            let owners = step.owners;
            assert_eq!(owners.compute_ns, i64::from(kernels) * 100_000);
            assert_eq!(owners.exposed_transfer_ns, transfers);
            assert_eq!(owners.exposed_wait_ns, 0, "ranks are alike");
            let rest = owners.copy_ns + owners.loader_ns + owners.host_ns;
            assert_eq!(step.period_ns, i64::from(kernels) * 100_000 + transfers + rest);
        }
    }
}

#[test]
fn a_single_rank_that_runs_ahead_is_its_device_work() {
    let mut spec = exact();
    (spec.ranks, spec.sync, spec.steps) = (1, Sync::None, 6);
    spec.device.fixed_kernel_ns = Some(1_000_000);
    let job = job(&spec);
    let copy = job.truth.ranks[0].steps[1].copy_busy_ns;
    // 4 forward, 8 backward, 3 optimiser kernels; no gradient exchange with one rank.
    assert_eq!(job.truth.steady_step_ns, 15_000_000 + copy);
    let host = &job.truth.ranks[0].steps[1];
    assert!(host.host_end_ns - host.host_start_ns < 5_000_000, "the host does not wait");
}

#[test]
fn a_full_launch_queue_holds_the_host_to_the_device() {
    let mut spec = exact();
    (spec.ranks, spec.sync, spec.steps) = (1, Sync::None, 12);
    spec.device.fixed_kernel_ns = Some(1_000_000);
    spec.host.queue_depth = 20;
    let job = job(&spec);
    let steps = &job.truth.ranks[0].steps;
    let first = steps[0].host_end_ns - steps[0].host_start_ns;
    let last = steps[11].host_end_ns - steps[11].host_start_ns;
    assert!(first < 5_000_000 && last > 14_000_000, "{first} {last}");
}

#[test]
fn buckets_match_hand_computed_sizes() {
    let job = job(&exact());
    let got: Vec<_> =
        job.truth.buckets.iter().map(|bucket| (bucket.tensors, bucket.elements)).collect();
    // Ready order: bias 1000, weight 2000 x 1000, bias 2000, weight 1000 x 2000. The first bucket
    // passes 1 MiB with its weight; the rest stays below 25 MiB.
    assert_eq!(got, [(2, 2_001_000), (2, 2_002_000)]);
    assert_eq!(job.truth.parameters, 4_003_000);
    let spec = exact();
    assert_eq!(job.truth.bucket_transfers_ns[0], spec.all_reduce_ns(4 * 2_001_000));
    assert_eq!(assign_buckets(&[1_000, 2_000_000, 2_000, 2_000_000], &spec.ddp), job.truth.buckets);
}

/// The end of every collective kernel in ns by rank, from the traces, with the clocks put right.
fn collective_ends(job: &Generated) -> Vec<Vec<i64>> {
    let ends = |(trace, rank): (&Vec<u8>, &foretrain_testkit::RankTruth)| {
        let mut ends: Vec<i64> = events(trace)
            .iter()
            .filter(|event| event["cat"] == "kernel")
            .filter(|event| event["name"].as_str().is_some_and(|name| name.starts_with("nccl")))
            .map(|event| {
                let us = event["ts"].as_f64().unwrap() + event["dur"].as_f64().unwrap();
                (us * 1e3).round() as i64 - rank.clock_offset_ns
            })
            .collect();
        ends.sort_unstable();
        ends
    };
    job.ranks.iter().zip(&job.truth.ranks).map(ends).collect()
}

#[test]
fn collectives_end_together_on_the_true_clock() {
    let mut spec = JobSpec { ranks: 3, ..JobSpec::tiny_ddp() };
    spec.slow_rank = Some(SlowRank { rank: 2, factor: 1.5 });
    spec.clocks = [0, 12_345_678, -7_654_321]
        .map(|offset_ns| ClockSpec { offset_ns, drift_ppm: 0.0 })
        .to_vec();
    let job = job(&spec);
    let ends = collective_ends(&job);
    assert_eq!(ends[0].len(), 3 * job.truth.buckets.len());
    for rank in &ends[1..] {
        for (a, b) in rank.iter().zip(&ends[0]) {
            // Doubles hold these microseconds to a fraction of a nanosecond.
            assert!((a - b).abs() <= 1, "{a} {b}");
        }
    }
    let late: usize = job
        .truth
        .collectives
        .iter()
        .filter(|collective| {
            collective.arrivals_ns.iter().max() == Some(&collective.arrivals_ns[2])
        })
        .count();
    assert!(2 * late > job.truth.collectives.len(), "the slow rank mostly comes last");
    for collective in &job.truth.collectives {
        let last = collective.arrivals_ns.iter().max().unwrap();
        assert_eq!(collective.end_ns, last + collective.transfer_ns);
    }
}

#[test]
fn kernels_follow_their_launches_and_streams_do_not_overlap() {
    for spec in
        [JobSpec::tiny_ddp(), JobSpec::host_bound(), JobSpec { steps: 2, ..JobSpec::run_ahead() }]
    {
        let job = job(&spec);
        let events = events(&job.ranks[0]);
        let mut launches = BTreeMap::new();
        let mut streams: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
        for event in &events {
            let (ts, dur) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap_or(0.0));
            match event["cat"].as_str() {
                Some("cuda_runtime") => {
                    launches.insert(event["args"]["correlation"].as_u64().unwrap(), ts + dur);
                }
                Some("kernel" | "gpu_memcpy") => {
                    streams.entry(event["tid"].as_u64().unwrap()).or_default().push((ts, ts + dur));
                }
                _ => {}
            }
        }
        for event in events.iter().filter(|event| event["cat"] == "kernel") {
            let launch = launches[&event["args"]["correlation"].as_u64().unwrap()];
            assert!(event["ts"].as_f64().unwrap() > launch);
        }
        assert_eq!(streams.len(), 2);
        for work in streams.values_mut() {
            work.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(work.windows(2).all(|pair| pair[0].1 <= pair[1].0 + 1e-3));
        }
    }
}

#[test]
fn presets_are_bound_by_what_they_say() {
    let share = |spec: &JobSpec| {
        let job = job(spec);
        check_owners(&job);
        let step = job.truth.ranks[0].steps.last().unwrap();
        (
            step.owners.compute_ns as f64 / step.period_ns as f64,
            step.owners.host_ns as f64 / step.period_ns as f64,
        )
    };
    let (compute, _) = share(&JobSpec::gpu_bound());
    assert!(compute > 0.8, "{compute}");
    let (compute, _) = share(&JobSpec::run_ahead());
    assert!(compute > 0.8, "{compute}");
    let (_, host) = share(&JobSpec::host_bound());
    assert!(host > 0.6, "{host}");
}

#[test]
fn warm_up_leaves_kernels_without_launches() {
    let spec = JobSpec { warmup_steps: 2, steps: 2, ..JobSpec::run_ahead() };
    let job = job(&spec);
    check_owners(&job);
    let events = events(&job.ranks[0]);
    let of = |cat: &str| -> Vec<u64> {
        let chosen = events.iter().filter(|event| event["cat"] == cat);
        chosen.map(|event| event["args"]["correlation"].as_u64().unwrap()).collect()
    };
    let launched = of("cuda_runtime");
    let orphans = of("kernel").iter().filter(|id| !launched.contains(id)).count();
    assert!(orphans > 100, "{orphans}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let spec = JobSpec::tiny_ddp();
    let (a, b) = (job(&spec), job(&spec));
    assert_eq!(a.ranks, b.ranks);
    assert_eq!(a.truth, b.truth);
    assert_ne!(a.ranks, job(&JobSpec { seed: 2, ..spec }).ranks);
}

#[test]
fn a_stream_holds_the_same_events() {
    let spec = JobSpec::tiny_ddp();
    let whole = job(&spec);
    let mut outputs = vec![Vec::new(), Vec::new()];
    let total = stream(&spec, &mut outputs, None).unwrap();
    assert_eq!(total.steps, 3);
    let keys = |trace: &[u8]| {
        let mut keys: Vec<String> = events(trace)
            .into_iter()
            .map(|mut event| {
                if let Some(args) = event["args"].as_object_mut() {
                    args.remove("Ev Idx");
                }
                event.to_string()
            })
            .collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&outputs[1]), keys(&whole.ranks[1]));
    assert_eq!(total.bytes as usize, outputs[0].len() + outputs[1].len());
}

#[test]
fn a_big_trace_reaches_its_count_and_is_json() {
    let mut out = Vec::new();
    let total = foretrain_testkit::big_trace(&mut out, 50_000).unwrap();
    assert!(total.events >= 50_000 && total.events < 80_000, "{total:?}");
    let events = events(&out);
    assert_eq!(events.len() as u64, total.events);
    let share = |cat: &str| {
        events.iter().filter(|event| event["cat"] == cat).count() as f64 / events.len() as f64
    };
    assert!((0.25..0.5).contains(&share("cpu_op")), "{}", share("cpu_op"));
    let bytes = total.bytes as f64 / total.events as f64;
    assert!((200.0..330.0).contains(&bytes), "{bytes}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn owners_share_out_any_job(
        seed in any::<u64>(),
        ranks in 1_u32..5,
        widths in prop::collection::vec(1_u64..600, 2..6),
        dialect in prop::sample::select(Dialect::ALL.to_vec()),
        sync in prop::sample::select(vec![Sync::None, Sync::Device, Sync::LossItem]),
        noise in 0.0..0.3_f64,
        queue_depth in 1_usize..64,
        warmup_steps in 0_u32..3,
    ) {
        let mut spec = JobSpec::tiny_ddp().with_dialect(dialect);
        (spec.seed, spec.ranks, spec.sync, spec.noise) = (seed, ranks, sync, noise);
        (spec.warmup_steps, spec.network_noise) = (warmup_steps, noise);
        spec.model = Model::Mlp { widths };
        spec.host.queue_depth = queue_depth;
        let job = job(&spec);
        check_owners(&job);
        for trace in &job.ranks {
            for event in events(trace) {
                prop_assert!(event["dur"].as_f64().unwrap_or(0.0) >= 0.0);
            }
        }
    }
}
