//! What-ifs against jobs whose truth is known, and against what must hold for any job.

mod support;

use std::path::PathBuf;

use foretrain_core::{Bytes, Nanos};
use foretrain_cost::interference::{Fixed, OverlapModel};
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, Group, Node, NodeId, NodeKind, QueueKind, StepGraph,
};
use foretrain_hardware::Catalogue;
use foretrain_ingest::{ReadOptions, read_trace};
use foretrain_predict::whatif::{
    Axis, Scenario, WhatIf, WhatIfOptions, grid, what_if, what_if_graphs,
};
use foretrain_predict::{PredictOptions, Recording, predict};
use foretrain_testkit::{JobSpec, SlowRank, generate};
use proptest::prelude::*;

use support::recordings;

fn options(scenarios: &[&str]) -> WhatIfOptions {
    let cluster = Catalogue::builtin().cluster("aws-p4d").expect("known");
    WhatIfOptions {
        predict: PredictOptions { recorded_on: Some(cluster.clone()), ..PredictOptions::default() },
        cluster: Some(cluster),
        gpus: None,
        scenarios: scenarios.iter().map(|text| Scenario::parse(text).expect("valid")).collect(),
        sweeps: Vec::new(),
        lenient: false,
    }
}

fn ask(recordings: &[Recording], scenarios: &[&str]) -> WhatIf {
    what_if(recordings, Catalogue::builtin(), &options(scenarios)).expect("answers")
}

fn steps(answer: &WhatIf) -> Vec<Nanos> {
    answer.scenarios.iter().map(|one| one.outcome.step_time.value).collect()
}

fn relative(a: Nanos, b: Nanos) -> f64 {
    (a - b).nanos() as f64 / b.nanos() as f64
}

fn job(slow_rank: Option<SlowRank>) -> (Nanos, Vec<Recording>) {
    let spec = JobSpec { ranks: 3, steps: 5, slow_rank, ..JobSpec::gpu_bound() };
    let job = generate(&spec).expect("a valid job");
    (Nanos::from_nanos(job.truth.steady_step_ns), recordings(&job))
}

/// Each way round: the one job is what the other would be.
#[test]
fn a_slow_rank_comes_and_goes_as_in_a_job_that_was_recorded_so() {
    let (even, healthy) = job(None);
    let (held_up, uneven) = job(Some(SlowRank { rank: 2, factor: 1.3 }));
    let slowed = steps(&ask(&healthy, &["slow rank 2 x1.3"]))[0];
    assert!(relative(slowed, held_up).abs() < 0.02, "{slowed} against {held_up}");
    let mended = steps(&ask(&uneven, &["fastest rank everywhere"]))[0];
    assert!(relative(mended, even).abs() < 0.02, "{mended} against {even}");
}

#[test]
fn what_says_how_something_is_counts_once() {
    let (_, recordings) = job(None);
    for change in ["precision=bf16", "fuse", "perfect overlap"] {
        let twice = format!("{change} + latency x1 + {change}");
        let steps = steps(&ask(&recordings, &[change, &twice]));
        assert_eq!(steps[0], steps[1], "{change}");
    }
    let error = |text: &str| {
        what_if(&recordings, Catalogue::builtin(), &options(&[text])).expect_err("refused")
    };
    let far = error("kernel x1000000 + kernel x1000000 + kernel x1000000");
    assert!(far.message().contains("a hundred days"), "{far}");
}

/// Gradients are cleared after the input has come, between work of the forward pass.
#[test]
fn micro_batches_take_the_time_of_as_many_steps_without_the_optimiser() {
    let (_, recordings) = job(None);
    let strategies = [1, 2, 12].map(|k| format!("strategy=accumulate({k}) | fuse(25MiB)"));
    let answer = ask(&recordings, &strategies.each_ref().map(String::as_str));
    let [one, two, twelve] = [0, 1, 2].map(|i| steps(&answer)[i]);
    assert!(one.scale(1.2) < two && two <= one.scale(2.0), "{one} {two}");
    // Each further micro-batch takes as long as the first.
    let more = (twelve - two).scale(0.1);
    assert!(relative(more, two - one).abs() < 0.05, "{more} after {}", two - one);
}

#[test]
fn more_sizes_than_are_kept_at_a_time_come_in_order() {
    let (_, recordings) = job(None);
    let sizes: Vec<u32> = (1..40).map(|replicas| replicas * 3).collect();
    let scenario = |gpus: &u32| Scenario::parse(&format!("gpus={gpus}")).expect("valid");
    let sweeps = sizes.iter().map(scenario).collect();
    let asked = WhatIfOptions { sweeps, ..options(&[]) };
    let answer = what_if(&recordings, Catalogue::builtin(), &asked).expect("answers");
    let got: Vec<u32> = answer.scenarios.iter().map(|one| one.outcome.gpus).collect();
    assert_eq!(got, sizes);
    let alone = ask(&recordings, &["gpus=117"]);
    assert_eq!(steps(&answer).last(), steps(&alone).last());
}

#[test]
fn the_same_setting_gives_what_predict_gives() {
    let (_, recordings) = job(None);
    let catalogue = Catalogue::builtin();
    let asked = options(&["gpus=24", "cluster=dgx-h100 + gpus=24", "device=h100-sxm5-80gb"]);
    let answer = what_if(&recordings, catalogue, &asked).unwrap();
    for (i, cluster) in [(0, "aws-p4d"), (1, "dgx-h100")] {
        let cluster = catalogue.cluster(cluster).unwrap();
        let options = PredictOptions { gpus: vec![24], ..asked.predict.clone() };
        let size = predict(&recordings, &cluster, catalogue, &options).unwrap().sizes.remove(0);
        let outcome = &answer.scenarios[i].outcome;
        assert_eq!(outcome.step_time, size.step_time, "{cluster:?}");
        assert_eq!(outcome.breakdown, size.breakdown);
    }
    assert!(answer.scenarios[2].saving > Nanos::ZERO, "a faster device saves time");
}

/// The ends of the interval are simulated with the slow-downs of its middle.
#[test]
fn slow_downs_give_the_interval_that_predict_gives() {
    let (_, recordings) = job(None);
    let mut asked = options(&["gpus=24"]);
    let model = Fixed::new(1.4, 1.2).expect("in range");
    asked.predict.interference = Some(OverlapModel::Fixed(model));
    let answer = what_if(&recordings, Catalogue::builtin(), &asked).unwrap();
    let options = PredictOptions { gpus: vec![24], ..asked.predict };
    let cluster = asked.cluster.expect("given");
    let size =
        predict(&recordings, &cluster, Catalogue::builtin(), &options).unwrap().sizes.remove(0);
    let step = answer.scenarios[0].outcome.step_time;
    assert_eq!(step.value, size.step_time.value);
    for (ours, exact) in [(step.low, size.step_time.low), (step.high, size.step_time.high)] {
        assert!(relative(ours, exact).abs() < 0.01, "{step:?} {:?}", size.step_time);
    }
}

#[test]
fn factors_of_one_change_nothing() {
    let (_, recordings) = job(None);
    let answer = ask(
        &recordings,
        &[
            "kernel x1",
            "bandwidth x1",
            "nic x1",
            "latency x1",
            "batch x1",
            "input x1",
            "faster host x1",
            "slow rank 0 x1",
            "gpus=3",
            "cluster=aws-p4d",
        ],
    );
    for scenario in &answer.scenarios {
        assert_eq!(scenario.saving, Nanos::ZERO, "{}", scenario.label);
        assert_eq!(scenario.outcome.breakdown, answer.baseline.breakdown, "{}", scenario.label);
    }
}

#[test]
fn bounds_are_in_order() {
    let (_, recordings) = job(None);
    let answer = ask(
        &recordings,
        &["no communication", "perfect overlap", "bandwidth x1000 + latency x0", "bandwidth x2"],
    );
    let [none, overlapped, fastest, twice] = steps(&answer)[..] else { panic!("four scenarios") };
    let before = answer.baseline.step_time.value;
    assert!(none <= overlapped && none <= fastest, "{none} {overlapped} {fastest}");
    assert!(fastest <= twice && twice < before && overlapped < before, "{answer:?}");
}

#[test]
fn what_overlaps_is_said_and_never_counted_twice() {
    let (_, recordings) = job(None);
    let answer = ask(&recordings, &["bandwidth x2 + no communication", "kernel x0.9 + input x0"]);
    let both = &answer.scenarios[0];
    assert!(both.overlaps(), "{:?}", both.shares);
    assert_eq!(both.shares[0].last, Nanos::ZERO, "bandwidth of no communication");
    let other_way = ask(&recordings, &["no communication + bandwidth x2 + collective x0.5"]);
    assert_eq!(other_way.scenarios[0].saving, both.saving);
    assert_eq!(both.shares[1].alone, both.saving);
    for scenario in &answer.scenarios {
        assert_eq!(scenario.shares.len(), 2);
        assert_eq!(scenario.outcome.breakdown.total(), scenario.outcome.step_time.value);
    }
}

#[test]
fn fusing_saves_at_most_the_kernels_and_removing_is_no_work() {
    let (_, recordings) = job(None);
    let answer = ask(&recordings, &["fuse", "kernel x0", "remove kernel"]);
    let kernels =
        answer.baseline.breakdown.time(|owner| *owner == foretrain_predict::Owner::Compute);
    let saving = |i: usize| answer.scenarios[i].saving;
    assert!(saving(0) > Nanos::ZERO && saving(0) < kernels);
    assert_eq!(saving(1), saving(2));
}

#[test]
fn mistakes_are_named_with_the_scenario() {
    let (_, recordings) = job(None);
    let refused = |text: &str| {
        let asked = options(&["input x0.5", text]);
        what_if(&recordings, Catalogue::builtin(), &asked).unwrap_err()
    };
    for (text, message, hint) in [
        ("kernel(*gemmm*) x0.5", "no node matches kernel(\"*gemmm*\")", "did you mean"),
        ("gpus=64 + slow rank 64 x2", "there is no rank 64", ""),
        ("gpus=8 + slow rank 5 x2", "rank 5 was not recorded", "0, 1, 2"),
        ("gpus=1 + buckets=1MiB", "synchronises no gradients", "gpus=8"),
        ("no sync(nothing)", "no wait matches", "its waits are"),
        ("cluster=dgx-a10", "no cluster", "did you mean"),
        ("precision=i8", "no type to train in", "bf16"),
        ("loader-workers=4", "", "loader-workers=2->8"),
    ] {
        let error = refused(text);
        assert!(error.message().contains(message), "{text}: {error}");
        assert!(error.hints().join("; ").contains(hint), "{text}: {:?}", error.hints());
        assert!(error.place().is_some_and(|place| place.contains("scenario")), "{text}: {error}");
    }
}

#[test]
fn without_scenarios_the_standard_list_is_answered() {
    let (_, recordings) = job(None);
    let answer = ask(&recordings, &[]);
    assert!(answer.is_standard && answer.scenarios.len() + answer.left_out.len() >= 9);
    assert!(answer.scenarios.is_sorted_by_key(|one| std::cmp::Reverse(one.saving)));
}

#[test]
fn sweeps_do_not_depend_on_threads() {
    let (_, recordings) = job(None);
    let axes = ["gpus=3,6,12", "nic x1,x2,x4", "kernel x1..0.5:5"];
    let axes: Vec<Axis> = axes.iter().map(|text| Axis::parse(text).unwrap()).collect();
    let asked = WhatIfOptions { sweeps: grid(&axes).unwrap(), ..options(&[]) };
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| what_if(&recordings, Catalogue::builtin(), &asked)).unwrap()
    };
    let one = on(1);
    assert_eq!(one.scenarios.len(), 45);
    assert_eq!(one, on(3));
}

/// The same training program was recorded with its data loaded in the process and by four workers:
/// then its steps took 117 to 127 ms.
#[test]
fn workers_load_as_fast_as_they_were_measured_to() {
    let data = std::env::var_os("FORETRAIN_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    let samples = data.join("traces/pytorch+kineto/tb_plugin/samples/resnet50_num_workers_0");
    if !samples.is_dir() {
        println!("skipped: no samples of PyTorch's profiler (set FORETRAIN_DATA)");
        return;
    }
    for name in ["worker0.1623143089861", "worker0.1623143566756"] {
        let path = samples.join(format!("{name}.pt.trace.json.gz"));
        let (trace, _) = read_trace(&path, &ReadOptions::default()).expect("readable");
        let cluster = Catalogue::builtin().cluster("dgx-1-v100").expect("known");
        let asked = WhatIfOptions {
            predict: PredictOptions::default(),
            cluster: Some(cluster),
            ..options(&["loader-workers=0->4", "loader-workers=0->0"])
        };
        let recording = [Recording::analyse(trace, None)];
        let answer = what_if(&recording, Catalogue::builtin(), &asked).expect("answers");
        let found = steps(&answer);
        let measured = Nanos::from_millis(117)..Nanos::from_millis(127);
        assert!(measured.contains(&found[0]), "{name}: {}", found[0]);
        assert_eq!(found[1], answer.baseline.step_time.value, "none is as recorded");
    }
}

/// Threads and streams in fixed order, a launch per kernel, and an all-reduce that waits for some
/// kernels and for which others wait.
fn step(kernels: &[(i64, i64, bool)]) -> StepGraph {
    let mut graph = StepGraph::new();
    let queues = [
        graph.add_queue("main thread", QueueKind::Thread),
        graph.add_queue("stream 7", QueueKind::Stream),
        graph.add_queue("stream 20", QueueKind::Stream),
    ];
    let group = graph.add_group(Group { name: "dp".into(), size: 8, ..Group::default() });
    let [host, gemm, reduce] = ["host", "gemm", "nccl"].map(|name| graph.names.intern(name));
    let us = Nanos::from_micros;
    let mut ends: [Vec<NodeId>; 3] = Default::default();
    for &(launch, work, communicates) in kernels {
        let add = |graph: &mut StepGraph, queue: usize, node: Node, ends: &mut [Vec<NodeId>; 3]| {
            let id = graph.add_node(node);
            if let Some(&before) = ends[queue].last() {
                let kind = if queue == 0 { EdgeKind::ThreadOrder } else { EdgeKind::StreamOrder };
                graph.add_edge(Edge::new(before, id, kind));
            }
            ends[queue].push(id);
            id
        };
        let call = Node::new(NodeKind::HostSegment, host, queues[0], us(launch));
        let call = add(&mut graph, 0, call, &mut ends);
        let mut node = Node::new(NodeKind::Kernel, gemm, queues[1], us(work));
        let mut queue = 1;
        if communicates {
            node = Node {
                group: Some(group),
                collective: Some(CollectiveKind::AllReduce),
                sequence: ends[2].len() as u32,
                bytes: Some(Bytes::from_mib(8)),
                ..Node::new(NodeKind::Collective, reduce, queues[2], us(work))
            };
            queue = 2;
        }
        let before = ends[1].last().copied();
        let awaited = ends[2].last().copied().filter(|_| ends[0].len().is_multiple_of(3));
        let id = add(&mut graph, queue, node, &mut ends);
        graph.add_edge(Edge::new(call, id, EdgeKind::Launch).with_lag(us(4)));
        let waits_for = if communicates { before } else { awaited };
        if let Some(source) = waits_for {
            graph.add_edge(Edge::new(source, id, EdgeKind::EventWait));
        }
    }
    for queue in ends {
        if let (Some(&first), Some(&last)) = (queue.first(), queue.last()) {
            graph.add_edge(Edge::new(last, first, EdgeKind::StreamOrder).with_distance(1));
        }
    }
    graph.meta.world_size = 8;
    graph
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn faster_parts_never_make_a_step_longer_and_savings_stay_within_it(
        kernels in prop::collection::vec((1i64..40, 1i64..200, any::<bool>()), 2..40),
        factor in 0.0f64..1.0,
    ) {
        let graph = step(&kernels);
        let factor = (factor * 100.0).round() / 100.0;
        let texts: Vec<String> = ["kernel", "host", "all", "collective | kernel"]
            .iter()
            .filter(|query| {
                let query = foretrain_graph::Query::parse(query).expect("valid");
                !graph.select(&query).is_empty()
            })
            .map(|query| format!("{query} x{factor}"))
            .collect();
        let mut texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let together = texts.join(" + ");
        texts.push(&together);
        let answer = what_if_graphs(&[graph], Catalogue::builtin(), &options(&texts)).unwrap();
        let before = answer.baseline.step_time.value;
        for scenario in &answer.scenarios {
            // Work is rounded to whole nanoseconds.
            let rounding = Nanos::from_nanos(200);
            prop_assert!(scenario.saving + rounding >= Nanos::ZERO, "{scenario:?}");
            prop_assert!(scenario.saving <= before, "{scenario:?}");
        }
    }
}
