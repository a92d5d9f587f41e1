//! Plans from recordings.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};

use foretrain_hardware::Catalogue;
use foretrain_predict::PredictOptions;
use foretrain_predict::plan::{RecordedPlanOptions, plan};
use foretrain_predict::whatif::{Watch, WhatIfOptions};
use foretrain_testkit::{JobSpec, generate};

use support::recordings;

fn options(gpus: &[u32], strategies: &[&str]) -> RecordedPlanOptions {
    let cluster = Catalogue::builtin().cluster("aws-p4d").expect("known");
    RecordedPlanOptions {
        asked: WhatIfOptions {
            predict: PredictOptions {
                recorded_on: Some(cluster.clone()),
                ..PredictOptions::default()
            },
            cluster: Some(cluster),
            gpus: None,
            scenarios: Vec::new(),
            sweeps: Vec::new(),
            lenient: false,
        },
        gpus: gpus.to_vec(),
        strategies: strategies.iter().map(|text| (*text).to_owned()).collect(),
        explain: None,
    }
}

#[test]
fn every_size_has_every_strategy_ranked() {
    let job = recordings(&generate(&JobSpec::tiny_ddp()).expect("a valid job"));
    let catalogue = Catalogue::builtin();
    let answer = plan(&job, catalogue, &options(&[8, 32], &[]), Watch::NOBODY).expect("a plan");
    for gpus in [8, 32] {
        let of_size: Vec<_> =
            answer.choices.iter().filter(|choice| choice.outcome.gpus == gpus).collect();
        assert!(of_size.len() > 6, "{gpus}: {}", of_size.len());
        assert!((of_size[0].of_best - 1.0).abs() < 1e-12 && of_size[0].ties);
        assert!(
            of_size.windows(2).all(|pair| {
                pair[0].outcome.throughput.value >= pair[1].outcome.throughput.value
            })
        );
    }
    // What the runner-up spends more adds up to what it is slower.
    let (best, other) = (&answer.choices[0], &answer.choices[1]);
    let why = best.why(other);
    let sum: foretrain_core::Nanos = why.iter().map(|(_, more)| *more).sum();
    let slower = other.outcome.breakdown.total() - best.outcome.breakdown.total();
    assert_eq!(sum, slower);
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let job = recordings(&generate(&JobSpec::tiny_ddp()).expect("a valid job"));
    let catalogue = Catalogue::builtin();
    assert!(plan(&job, catalogue, &options(&[], &[]), Watch::NOBODY).is_err());
    assert!(plan(&job, catalogue, &options(&[0], &[]), Watch::NOBODY).is_err());
    let error = plan(&job, catalogue, &options(&[8], &["zero-9"]), Watch::NOBODY).unwrap_err();
    assert!(error.to_string().contains("zero"), "{error}");
}

#[test]
fn what_is_asked_about_is_looked_at_once() {
    let job = recordings(&generate(&JobSpec::tiny_ddp()).expect("a valid job"));
    let catalogue = Catalogue::builtin();
    let mut asked = options(&[8], &["ddp", "fsdp", "ddp"]);
    asked.explain = Some("fsdp".into());
    let answer = plan(&job, catalogue, &asked, Watch::NOBODY).expect("a plan");
    assert_eq!((answer.looked_at, answer.all, answer.choices.len()), (2, 2, 2));
    asked.explain = Some("zero-1".into());
    let answer = plan(&job, catalogue, &asked, Watch::NOBODY).expect("a plan");
    assert!(answer.choices.iter().any(|choice| choice.strategy == "zero-1"));
}

/// Ended after some choices, the answer holds those that had begun, ranked, and says so.
#[test]
fn what_is_ended_early_holds_the_best_so_far() {
    let job = recordings(&generate(&JobSpec::tiny_ddp()).expect("a valid job"));
    let stop = AtomicBool::new(false);
    let after_two = |done: usize, _: usize| {
        if done == 2 {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let watch = Watch { stop: &stop, progress: &after_two };
    let answer =
        plan(&job, Catalogue::builtin(), &options(&[8, 16, 32, 64], &[]), watch).expect("a plan");
    assert!(!answer.is_complete() && answer.looked_at >= 2, "{}", answer.looked_at);
    assert_eq!(answer.choices.len() + answer.left_out.len(), answer.looked_at);
    assert!(answer.sizes().all(|of_size| (of_size[0].of_best - 1.0).abs() < 1e-12));
}
