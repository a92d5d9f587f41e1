//! Replay and extrapolation against the independent generator, whose truth is known.

mod support;

use foretrain_core::{Bytes, Estimate, Ledger, Nanos};
use foretrain_cost::Primitives;
use foretrain_graph::{Glob, Job, StepGraph};
use foretrain_hardware::Catalogue;
use foretrain_predict::roles::{GivenRole, Role};
use foretrain_predict::{PredictOptions, predict, replay};
use foretrain_rewrite::strategy::{Call, Cost, Placed, Registry, SyncCosts};
use foretrain_rewrite::{BucketCaps, recost_collectives};
use foretrain_sim::{SimOptions, simulate};
use foretrain_testkit::{Dialect, JobSpec, SlowRank, generate};

use support::recordings;

fn relative(a: Nanos, b: Nanos) -> f64 {
    (a - b).nanos() as f64 / b.nanos() as f64
}

fn steady(graph: StepGraph) -> Nanos {
    let timeline = simulate(&Job::uniform(graph, 1), &SimOptions::iterations(12));
    timeline.expect("generated graphs simulate").steady_step_time().step
}

#[test]
fn every_dialect_replays_its_own_steps() {
    for dialect in Dialect::ALL {
        let job = generate(&JobSpec::tiny_ddp().with_dialect(dialect)).unwrap();
        for recording in recordings(&job) {
            assert!(!recording.graphs.is_empty(), "{dialect:?}: no steps");
            for (graph, step) in recording.graphs.iter().zip(&recording.steps.steps) {
                graph.validate().unwrap();
                let replayed = replay::replay_step(graph).unwrap();
                let error = relative(replayed, step.duration());
                assert!(error.abs() < 0.01, "{dialect:?} {}: {error:+.3}", step.name);
            }
        }
    }
}

#[test]
fn the_steady_step_matches_the_truth_of_each_kind_of_job() {
    for (what, spec) in [
        ("tiny ddp", JobSpec::tiny_ddp()),
        ("gpu-bound", JobSpec::gpu_bound()),
        ("host-bound", JobSpec::host_bound()),
        ("run-ahead", JobSpec::run_ahead()),
    ] {
        let job = generate(&spec).unwrap();
        let recording = recordings(&job).swap_remove(0);
        let found = steady(recording.steady().unwrap());
        let truth = Nanos::from_nanos(job.truth.steady_step_ns);
        let error = relative(found, truth);
        assert!(error.abs() < 0.02, "{what}: {found} against {truth} ({error:+.3})");
    }
}

#[test]
fn a_step_is_predicted_from_the_others() {
    let spec = JobSpec { steps: 6, noise: 0.02, ..JobSpec::gpu_bound() };
    let job = generate(&spec).unwrap();
    let recording = recordings(&job).swap_remove(0);
    for step in 1..recording.graphs.len() {
        let found = replay::predict_held_out_step(&recording, step).unwrap().time;
        let measured = recording.steps.steps[step].duration();
        let error = relative(found, measured);
        assert!(error.abs() < 0.03, "step {step}: {found} against {measured} ({error:+.3})");
    }
}

#[test]
fn ranks_replay_together_and_wait_for_the_slow_one() {
    let spec =
        JobSpec { slow_rank: Some(SlowRank { rank: 1, factor: 1.2 }), ..JobSpec::tiny_ddp() };
    let job = generate(&spec).unwrap();
    let recordings = recordings(&job);
    for step in 0..recordings[0].graphs.len() {
        let joint = replay::replay_ranks(&recordings, step, &mut Ledger::new()).unwrap();
        assert!(joint.matched > 0);
        for rank in &joint.ranks {
            let error = relative(rank.replayed, rank.measured);
            assert!(error.abs() < 0.03, "rank {} {}: {error:+.3}", rank.rank, rank.step);
        }
    }
}

/// The generator's own network.
struct Network<'a> {
    job: &'a JobSpec,
    primitives: Primitives,
}

impl SyncCosts for Network<'_> {
    fn replicas(&self) -> u32 {
        self.job.ranks
    }
    fn replicas_per_node(&self) -> u32 {
        self.job.ranks
    }
    fn collective(&self, call: &Call) -> Cost {
        let time = Nanos::from_nanos(self.job.all_reduce_ns(call.bytes.get()));
        Cost::work(Estimate::exact(time))
    }
    fn wire(&self, _: Bytes) -> Cost {
        unreachable!("all-reduces only")
    }
    fn primitives(&self) -> &Primitives {
        &self.primitives
    }
}

/// One rank without communication, gradient buckets by DDP's rules, collective times of the
/// generator's own network: the steady step of N ranks must come out.
#[test]
fn one_rank_predicts_many_when_the_network_is_known() {
    let alone = JobSpec { ranks: 1, ..JobSpec::gpu_bound() };
    let job = generate(&alone).unwrap();
    let recording = recordings(&job).swap_remove(0);
    for ranks in [2, 4, 8] {
        let many = JobSpec { ranks, ..JobSpec::gpu_bound() };
        let truth = generate(&many).unwrap().truth;
        let mut graph = recording.steady().unwrap();
        let (first, cap) = (many.ddp.first_bucket_bytes, many.ddp.bucket_cap_bytes);
        let strategy = Registry::builtin().parse(&format!("fuse({cap}B, first={first}B)"));
        let network = Network { job: &many, primitives: Primitives::assumed() };
        let applied = strategy.unwrap().apply(&mut graph, &network, "").unwrap();
        let bytes = |placed: &Placed| graph.node(placed.id).bytes.unwrap().get();
        let buckets: Vec<u64> = applied.placed.iter().map(bytes).collect();
        let expected: Vec<u64> = truth.buckets.iter().map(|b| b.bytes).collect();
        assert_eq!(buckets, expected, "bucket sizes for {ranks} ranks");
        let found = steady(graph);
        let truth = Nanos::from_nanos(truth.steady_step_ns);
        let error = relative(found, truth);
        assert!(error.abs() < 0.05, "{ranks} ranks: {found} against {truth} ({error:+.3})");
    }
}

/// Two ranks recorded, eight asked for: only the collective times change.
#[test]
fn recorded_collectives_extrapolate_when_the_network_is_known() {
    let two = JobSpec { ranks: 2, ..JobSpec::gpu_bound() };
    let eight = JobSpec { ranks: 8, ..JobSpec::gpu_bound() };
    let recording = recordings(&generate(&two).unwrap()).swap_remove(0);
    let truth = Nanos::from_nanos(generate(&eight).unwrap().truth.steady_step_ns);
    let mut graph = recording.steady().unwrap();
    let changed = recost_collectives(&mut graph, |_, node| {
        node.bytes.map(|bytes| Nanos::from_nanos(eight.all_reduce_ns(bytes.get())))
    });
    assert!(changed > 0);
    let found = steady(graph);
    let error = relative(found, truth);
    assert!(error.abs() < 0.05, "{found} against {truth} ({error:+.3})");
}

#[test]
fn what_is_given_and_not_used_is_said() {
    let two = JobSpec { ranks: 2, ..JobSpec::gpu_bound() };
    let recordings = recordings(&generate(&two).unwrap());
    let catalogue = Catalogue::builtin();
    let cluster = catalogue.cluster("dgx-a100").unwrap();
    let ask = |options: PredictOptions| {
        let recorded_on = Some(cluster.clone());
        let options = PredictOptions { gpus: vec![8], recorded_on, ..options };
        predict(&recordings, &cluster, catalogue, &options).unwrap().warnings.join("\n")
    };
    let bare = ask(PredictOptions::default());
    assert!(!bare.contains("not used") && !bare.contains("--role"), "{bare}");
    let roles = vec![
        GivenRole { groups: Glob::new("*"), role: Role::DataParallel },
        GivenRole { groups: Glob::new("pipeline*"), role: Role::PipelineParallel },
    ];
    let said = ask(PredictOptions {
        gradient_bytes: Some(Bytes::from_mib(9)),
        buckets: BucketCaps::uniform(Bytes::from_mib(9)),
        cores: Some(2.0),
        roles,
        ..PredictOptions::default()
    });
    assert!(said.contains("not used: the bucket cap, gradient bytes."), "{said}");
    assert!(said.contains("not used: cores"), "{said}");
    assert!(said.contains("no group matches --role 'pipeline*=pipeline-parallel'"), "{said}");
    assert!(!said.contains("--role '*="), "{said}");
}
