//! A job on traces of availability, against sums by hand.

use foretrain_core::Nanos;
use foretrain_plan::varuna::availability::{Availability, Options, parse as trace};
use foretrain_plan::varuna::layout::{Machines, Placement};
use foretrain_plan::varuna::morph::machines::Slow;
use foretrain_plan::varuna::morph::{Cause, Morph, MorphOptions, Prices, morph};
use foretrain_plan::varuna::plan::{MicroBatches, PlanOptions};
use foretrain_plan::varuna::profile::{Gaps, Profile, parse};
use foretrain_plan::varuna::schedule::Schedule;
use proptest::prelude::*;

/// One cut-point: a sample takes a second, gradients take no time.
fn profile() -> Profile {
    parse(
        "varuna_profile = 1\n[[cut_point]]\nname = \"all\"\nupdate = 0\n\
         at = [{ micro_batch = 1, forward = \"400ms\", backward = \"600ms\" }]\n\
         [network]\nall_reduce = { latency = 0, bandwidth = \"1000GB/s\" }\ngradients = 1\n",
    )
    .expect("valid")
}

/// Eight samples per step; a checkpoint after 100 s takes 5 s.
fn options() -> MorphOptions {
    MorphOptions {
        plan: PlanOptions {
            gpus: 1,
            batch: 8,
            gpu_memory: None,
            drop_remainder: false,
            machines: Machines { gpus_each: 1, placement: Placement::Packed },
            schedules: vec![Schedule::Varuna],
            micro_batches: MicroBatches::Largest,
            stages: Vec::new(),
            uneven: false,
            gaps: Gaps::Refuse,
            jitter: None,
        },
        checkpoint_every: secs(100),
        checkpoint: secs(5),
        preempted_wait: secs(120),
        transient_wait: secs(60),
        restart: secs(10),
        notice: secs(30),
        quiet: secs(100),
        dedicated_gpus: None,
        prices: Prices { preemptible: Some(1.0), dedicated: Some(4.0) },
    }
}

const fn secs(secs: i64) -> Nanos {
    Nanos::from_millis(secs * 1000)
}

fn of(rows: &str) -> Availability {
    let text = format!("time,gpus\n{rows}");
    trace(&text, &Options { gpus_per_vm: 1, ..Options::default() }).expect("valid")
}

fn run(rows: &str, options: &MorphOptions) -> Morph {
    let found = morph(&profile(), &of(rows), Vec::new(), options).expect("valid");
    assert_eq!(found.account.total(), found.length, "{:?}", found.account);
    found
}

#[test]
fn nothing_happens_and_everything_but_checkpoints_is_training() {
    // Steps of 1 s; 100 of them and a checkpoint of 5 s take turns: 9 times 105 s, then 55 s.
    let found = run("0,8\n1000,8\n", &options());
    assert_eq!(found.samples, 8 * 955);
    assert_eq!((found.account.training, found.account.checkpoints), (secs(955), secs(45)));
    assert_eq!(found.morphings.len(), 1);
    // 8 GPUs for 1000 s at 1 an hour.
    let per_million = 8.0 * 1000.0 / 3600.0 / (8.0 * 955.0) * 1e6;
    assert!((found.preemptible.per_million.unwrap() / per_million - 1.0).abs() < 1e-9);
    let dedicated = found.dedicated.unwrap();
    assert!((dedicated.goodput - 8.0 * 100.0 / 105.0).abs() < 1e-6, "{dedicated:?}");
}

#[test]
fn a_loss_with_notice_costs_the_wait_and_the_restart() {
    // Told at 270 s: 60 s into the third cycle, at a boundary. A checkpoint until 275 s, then idle; the wait
    // counts from the loss at 300 s, the restart from 420 s.
    let found = run("0,8\n300,4\n1000,4\n", &options());
    let [start, loss] = &found.morphings[..] else { panic!("{:?}", found.morphings) };
    assert_eq!((start.gpus, loss.gpus, loss.cause), (8, 4, Cause::Loss));
    assert_eq!((loss.at, loss.resumed, loss.lost_steps), (secs(300), secs(430), 0));
    assert_eq!(found.account.restarting, secs(430 - 275));
    // With four GPUs the same batch takes two micro-batches: steps of 2 s, 50 of them to a checkpoint.
    assert_eq!((loss.micro_batches, loss.replicas), (2, 4));
    // 570 s are five cycles and 45 s.
    assert_eq!(found.samples, 8 * (260 + 5 * 50 + 22));
}

#[test]
fn a_loss_without_notice_costs_the_steps_since_the_checkpoint() {
    let options = MorphOptions { notice: Nanos::ZERO, ..options() };
    let found = run("0,8\n300,4\n1000,4\n", &options);
    // At 300 s the second checkpoint, of 200 steps, is 90 steps old.
    assert_eq!(found.morphings[1].lost_steps, 90);
    assert_eq!(found.account.lost, secs(90 + 1), "and half a step at the end of the trace");
    assert_eq!(found.samples, 8 * (200 + 5 * 50 + 22));
}

#[test]
fn what_is_made_good_at_once_is_a_transient_loss() {
    let found = run("0,8\n300,4\n350,8\n1000,8\n", &options());
    let again = &found.morphings[1];
    assert_eq!((again.cause, again.gpus, again.resumed), (Cause::Transient, 8, secs(370)));
    // Losses during the wait are one loss.
    let found = run("0,8\n300,4\n350,2\n1000,2\n", &options());
    assert_eq!((found.morphings.len(), found.morphings[1].gpus), (2, 2));
    // A loss during the restart is another.
    let found = run("0,8\n300,4\n425,2\n1000,2\n", &options());
    assert_eq!((found.morphings.len(), found.morphings[1].resumed), (2, secs(425 + 120 + 10)));
}

#[test]
fn more_gpus_are_used_after_the_quiet_time_if_they_help() {
    let found = run("0,4\n200,8\n1000,8\n", &options());
    let growth = &found.morphings[1];
    // In the second cycle at 95 s: a boundary is at 95 + 1 s (steps of 2 s), then checkpoint and restart.
    assert_eq!((growth.cause, growth.at, growth.resumed), (Cause::Growth, secs(200), secs(216)));
    let early = run("0,4\n10,8\n1000,8\n", &options());
    assert_eq!(early.morphings[1].at, secs(100), "not within 100 s of the start");
    // A fifth GPU does not divide the batch of eight better than four.
    let useless = run("0,4\n200,5\n1000,5\n", &options());
    assert!(useless.morphings.len() == 1, "{:?}", useless.morphings);
}

#[test]
fn no_gpus_no_training_and_slow_machines_are_left_out() {
    let found = run("0,0\n100,8\n200,0\n300,8\n1000,8\n", &options());
    assert_eq!(found.account.starved, secs(100));
    assert!(found.unusable.contains_key(&0));
    let slow = Slow { name: "a".into(), stage: "0".into(), over_median: 1.5 };
    let found = morph(&profile(), &of("0,8\n1000,8\n"), vec![slow; 4], &options()).unwrap();
    assert_eq!(found.morphings[0].gpus, 4);
    let error = morph(&profile(), &of("0,0\n10,0\n"), Vec::new(), &options()).unwrap_err();
    assert!(error.hints()[0].contains("0 GPUs"), "{error:?}");
    let wrong = MorphOptions { restart: secs(-1), ..options() };
    assert!(morph(&profile(), &of("0,8\n1000,8\n"), Vec::new(), &wrong).is_err());
}

proptest! {
    #[test]
    fn every_second_is_accounted_for(
        rows in prop::collection::vec((1_u32..400, 0_u32..12), 2..40),
        notice in 0_i64..60, quiet in 0_i64..300,
    ) {
        let mut at = 0;
        let mut text = String::from("0,8\n");
        for (gap, gpus) in rows {
            at += gap;
            text.push_str(&format!("{at},{gpus}\n"));
        }
        let options = MorphOptions { notice: secs(notice), quiet: secs(quiet), ..options() };
        let found = run(&text, &options);
        let dedicated = found.dedicated.unwrap();
        // At most one checkpoint of 5 s and one step have not come up yet.
        let ahead = 8.0 * 6.0 / found.length.secs_f64();
        prop_assert!(found.preemptible.goodput <= dedicated.goodput + ahead);
        for pair in found.morphings.windows(2) {
            prop_assert!(pair[0].resumed < pair[1].resumed && pair[0].at < pair[1].at);
        }
    }
}
