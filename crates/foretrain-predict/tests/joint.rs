//! Predicting from several recorded ranks, against the independent generator.

mod support;

use foretrain_core::Nanos;
use foretrain_graph::{NodeKind, StepGraph};
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_predict::{Owner, PredictOptions, Prediction, Recording, predict, predict_graphs};
use foretrain_rewrite::BucketCaps;
use foretrain_testkit::{Generated, JobSpec, SlowRank, generate};

use support::recordings;

/// On the machine it was recorded on, so that every transfer keeps its time.
fn same_machine(recordings: &[Recording], gpus: &[u32]) -> Prediction {
    let catalogue = Catalogue::builtin();
    let cluster = catalogue.cluster("aws-p4d").expect("known");
    predict(recordings, &cluster, catalogue, &options(&cluster, gpus)).expect("predicts")
}

fn options(recorded_on: &Cluster, gpus: &[u32]) -> PredictOptions {
    PredictOptions {
        recorded_on: Some(recorded_on.clone()),
        unprofiled_step: None,
        gpus: gpus.to_vec(),
        replica_batch: None,
        buckets: BucketCaps::default(),
        gradient_bytes: None,
        roles: Vec::new(),
        interference: None,
    }
}

fn with_slow_rank(slow_rank: Option<SlowRank>) -> (Generated, Vec<Recording>) {
    let spec = JobSpec { ranks: 3, steps: 5, slow_rank, ..JobSpec::gpu_bound() };
    let job = generate(&spec).expect("a valid job");
    let recordings = recordings(&job);
    (job, recordings)
}

#[test]
fn the_others_wait_for_the_slow_rank_and_the_answer_names_it() {
    let (job, recordings) = with_slow_rank(Some(SlowRank { rank: 2, factor: 1.3 }));
    let prediction = same_machine(&recordings, &[3]);
    assert_eq!(prediction.recorded.simulated_ranks, [0, 1, 2], "{:?}", prediction.warnings);
    let size = &prediction.sizes[0];
    let truth = Nanos::from_nanos(job.truth.steady_step_ns).nanos() as f64;
    let error = size.step_time.value.nanos() as f64 / truth - 1.0;
    assert!(error.abs() < 0.01, "{error:+.3}");
    assert_eq!(size.breakdown.total(), size.step_time.value, "every nanosecond has an owner");
    let waiting = size.breakdown.time(|owner| *owner == Owner::StragglerWait);
    assert!(waiting > size.step_time.value.scale(0.05), "{waiting}");
    let explained: Nanos = size.held_up.iter().map(|h| h.time).sum();
    assert!(explained <= waiting && explained > waiting.scale(0.9), "{explained} of {waiting}");
    for held_up in &size.held_up {
        assert_eq!(held_up.rank, 2, "{held_up:?}");
    }
    assert_eq!(size.held_up[0].owner, Owner::Compute);
}

#[test]
fn equal_ranks_wait_for_nobody() {
    let (_, recordings) = with_slow_rank(None);
    let prediction = same_machine(&recordings, &[3]);
    let size = &prediction.sizes[0];
    let waiting = size.breakdown.time(|owner| *owner == Owner::StragglerWait);
    assert!(waiting < size.step_time.value.scale(0.02), "{waiting} of {}", size.step_time.value);
}

/// What a slow rank costs does not depend on how many fast ones wait for it.
#[test]
fn a_slow_rank_slows_the_larger_job_as_much() {
    let (_, slow) = with_slow_rank(Some(SlowRank { rank: 2, factor: 1.3 }));
    let prediction = same_machine(&slow, &[3, 6]);
    let waiting = |i: usize| {
        let parts = &prediction.sizes[i].breakdown;
        parts.time(|owner| *owner == Owner::StragglerWait).millis_f64()
    };
    assert!((waiting(1) / waiting(0) - 1.0).abs() < 0.1, "{} {}", waiting(0), waiting(1));
    assert!(prediction.sizes[1].held_up.iter().all(|h| h.rank == 2));
}

/// Ranks that share nothing stand alone; the answer says so and still comes.
#[test]
fn ranks_that_never_met_are_not_joined() {
    let (_, mut a) = with_slow_rank(None);
    let alone = JobSpec { ranks: 1, ..JobSpec::gpu_bound() };
    let b = recordings(&generate(&alone).expect("a valid job")).swap_remove(0);
    a.truncate(1);
    a.push(b);
    let prediction = same_machine(&a, &[3]);
    assert_eq!(prediction.recorded.simulated_ranks.len(), 1);
    let said = prediction.warnings.iter().any(|w| w.contains("not simulated together"));
    assert!(said, "{:?}", prediction.warnings);
}

/// A saved graph says the same as the recording it came from.
#[test]
fn graphs_predict_like_the_recordings_they_came_from() {
    let (_, recordings) = with_slow_rank(Some(SlowRank { rank: 2, factor: 1.3 }));
    let from_traces = same_machine(&recordings, &[3]);
    let graphs: Vec<StepGraph> = recordings.iter().filter_map(Recording::steady).collect();
    let catalogue = Catalogue::builtin();
    let cluster = catalogue.cluster("aws-p4d").expect("known");
    let from_graphs =
        predict_graphs(&graphs, &cluster, catalogue, &options(&cluster, &[3])).expect("predicts");
    assert_eq!(from_graphs.recorded.simulated_ranks, [0, 1, 2], "{:?}", from_graphs.warnings);
    let [a, b] = [&from_traces, &from_graphs].map(|p| p.sizes[0].step_time.value.millis_f64());
    assert!((a / b - 1.0).abs() < 0.01, "{a} {b}");
}

#[test]
fn graphs_without_times_are_refused() {
    let (_, recordings) = with_slow_rank(None);
    let mut graph = recordings[0].steady().expect("a step");
    for id in graph.node_ids().collect::<Vec<_>>() {
        graph.set_work(id, Nanos::ZERO);
    }
    let catalogue = Catalogue::builtin();
    let cluster = catalogue.cluster("aws-p4d").expect("known");
    let error = predict_graphs(&[graph], &cluster, catalogue, &options(&cluster, &[3]));
    let error = error.expect_err("nothing to predict from");
    assert!(error.message().contains("no durations") && !error.hints().is_empty(), "{error}");
}

/// Several replicas without synchronisation in sight are not given another one.
#[test]
fn hidden_synchronisation_is_not_added_twice() {
    let (_, recordings) = with_slow_rank(None);
    let mut graph = recordings[0].steady().expect("a step");
    let communication: Vec<_> =
        foretrain_rewrite::collectives(&graph).map(|node| node.id).collect();
    for id in communication {
        let mut node = graph.node(id);
        node.kind = NodeKind::Kernel;
        (node.group, node.collective) = (None, None);
        graph.set_node(id, node);
    }
    let catalogue = Catalogue::builtin();
    let cluster = catalogue.cluster("aws-p4d").expect("known");
    let prediction =
        predict_graphs(&[graph], &cluster, catalogue, &options(&cluster, &[3])).expect("predicts");
    assert!(prediction.sizes[0].collectives.is_empty());
    let said = prediction.warnings.iter().any(|w| w.contains("3 replicas were recorded"));
    assert!(said, "{:?}", prediction.warnings);
}

#[test]
fn steps_that_cannot_be_reproduced_are_refused() {
    let (_, recordings) = with_slow_rank(None);
    let mut graph = recordings[0].steady().expect("a step");
    graph.meta.recorded_step = graph.meta.recorded_step.map(|step| step.scale(3.0));
    let catalogue = Catalogue::builtin();
    let cluster = catalogue.cluster("aws-p4d").expect("known");
    let error = predict_graphs(&[graph], &cluster, catalogue, &options(&cluster, &[3]));
    let error = error.expect_err("three times off");
    assert!(error.message().contains("cannot be reproduced"), "{error}");
}

/// A profiler that made every host operator slower is taken out again.
#[test]
fn the_profiler_s_cost_on_the_host_is_taken_out() {
    let job = generate(&JobSpec { ranks: 1, ..JobSpec::host_bound() }).expect("a valid job");
    let recordings = recordings(&job);
    let catalogue = Catalogue::builtin();
    let cluster = catalogue.cluster("aws-p4d").expect("known");
    let plain = predict(&recordings, &cluster, catalogue, &options(&cluster, &[1]));
    let recorded = plain.expect("predicts").sizes[0].step_time.value;
    let wanted = recorded.scale(0.8);
    let asked = PredictOptions { unprofiled_step: Some(wanted), ..options(&cluster, &[1]) };
    let fitted = predict(&recordings, &cluster, catalogue, &asked).expect("predicts");
    let step = fitted.sizes[0].step_time.value;
    assert!((step.millis_f64() / wanted.millis_f64() - 1.0).abs() < 0.01, "{step} {wanted}");
    let absurd = PredictOptions {
        unprofiled_step: Some(Nanos::from_nanos(1000)),
        ..options(&cluster, &[1])
    };
    let error = predict(&recordings, &cluster, catalogue, &absurd).expect_err("out of reach");
    assert!(error.message().contains("does not go with this recording"), "{error}");
}
