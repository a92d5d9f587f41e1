//! The pipeline simulator against known times, closed forms and what must always hold.

use foretrain_core::Nanos;
use foretrain_plan::varuna::schedule::{Schedule, Work};
use foretrain_plan::varuna::simulate::{
    Jitter, Pipeline, StageTime, Step, draws, simulate, simulate_recorded,
};
use proptest::prelude::*;

const FORWARD: Nanos = Nanos::from_millis(10);
const BACKWARD: Nanos = Nanos::from_millis(20);

/// Equal stages; a message takes `near` within a machine of four and `far` between machines.
fn even(stages: usize, near: Nanos, far: Nanos) -> Pipeline {
    let messages = (1..stages).map(|to| if to % 4 == 0 { far } else { near });
    let stage = StageTime { forward: FORWARD, backward: BACKWARD };
    Pipeline::new(vec![stage; stages], messages.collect()).expect("valid")
}

fn ms(schedule: Schedule, stages: usize, micro_batches: u32, near: i64, far: i64) -> i64 {
    let pipeline = even(stages, Nanos::from_millis(near), Nanos::from_millis(far));
    let step = Step::new(pipeline, schedule, micro_batches).expect("valid");
    let makespan = simulate(&step).makespan;
    assert_eq!(makespan.nanos() % 1_000_000, 0);
    makespan.nanos() / 1_000_000
}

/// Times in ms that Varuna's own simulator gives without jitter: without communication, and with
/// messages of 1 ms in a machine of four GPUs, 5 ms between machines and an all-reduce of 50 ms.
const GOLDEN: [(usize, u32, [i64; 2], [i64; 2]); 6] = [
    (1, 8, [240, 290], [320, 370]),
    (2, 8, [340, 392], [350, 402]),
    (4, 8, [420, 476], [410, 466]),
    (4, 16, [720, 776], [730, 786]),
    (8, 32, [1540, 1612], [1490, 1562]),
    (16, 64, [3120, 3224], [3010, 3114]),
];

#[test]
fn times_of_varunas_own_simulator() {
    for (stages, micro, varuna, gpipe) in GOLDEN {
        for (schedule, expected) in [(Schedule::Varuna, varuna), (Schedule::GPipe, gpipe)] {
            let found = [ms(schedule, stages, micro, 0, 0), ms(schedule, stages, micro, 1, 5) + 50];
            assert_eq!(found, expected, "{schedule} of {stages} stages, {micro} micro-batches");
        }
    }
}

#[test]
fn closed_forms_without_communication() {
    let per_micro = 30;
    for (stages, micro, ..) in GOLDEN {
        let (m, p) = (i64::from(micro), stages as i64);
        assert_eq!(ms(Schedule::GPipe, stages, micro, 0, 0), m * 40 + (p - 1) * per_micro);
        assert_eq!(ms(Schedule::OneFOneB, stages, micro, 0, 0), (m + p - 1) * per_micro);
        // The first stage runs each forward pass twice, unless it is the last.
        let twice = if stages > 1 { 10 } else { 0 };
        let least = m * (per_micro + twice);
        assert!(ms(Schedule::OneFOneBRecompute, stages, micro, 0, 0) >= least);
        // Messages delay 1F1B, by less than one of each per stage and micro-batch.
        let slowed = ms(Schedule::OneFOneB, stages, micro, 1, 5);
        let base = (m + p - 1) * per_micro;
        assert!((base..base + 2 * p * m * 5 + 1).contains(&slowed), "{slowed} against {base}");
    }
}

#[test]
fn no_pipeline_no_micro_batch_and_too_many_of_them_are_refused() {
    let message = |error: foretrain_core::InputError| error.message().to_owned();
    let none = Pipeline::new(Vec::new(), Vec::new()).unwrap_err();
    assert!(message(none).contains("0 stages"));
    let one = even(2, Nanos::ZERO, Nanos::ZERO);
    let none = Step::new(one.clone(), Schedule::Varuna, 0).unwrap_err();
    assert!(message(none).contains("0 micro-batches"));
    let many = Step::new(one.clone(), Schedule::Varuna, u32::MAX).unwrap_err();
    assert!(message(many).contains("too much"));
    assert!(Pipeline::new(one.stages().to_vec(), Vec::new()).is_err());
    let jitter = Jitter::new(FORWARD, BACKWARD, 1).unwrap();
    let step = Step::new(one, Schedule::Varuna, 1).unwrap();
    assert!(draws(&step, jitter, 0).is_err());
    assert!(Jitter::new(-FORWARD, BACKWARD, 1).is_err());
}

#[test]
fn draws_are_the_same_for_any_number_of_threads_and_differ_by_seed() {
    let step = Step::new(even(4, FORWARD, FORWARD), Schedule::Varuna, 16).unwrap();
    let of = |seed, threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let jitter = Jitter::new(Jitter::VARUNA_COMPUTE, Jitter::VARUNA_NETWORK, seed).unwrap();
        pool.install(|| draws(&step, jitter, 64).unwrap())
    };
    let one = of(1, 1);
    assert_eq!(one, of(1, 3));
    assert_ne!(one, of(2, 1));
    assert!(one.p5 < one.p50 && one.p50 < one.p95, "{one:?}");
    assert!(one.p5 > simulate(&step).makespan, "messages are only ever later");
}

fn pipelines() -> impl Strategy<Value = Pipeline> {
    (1_usize..9).prop_flat_map(|stages| {
        let time = || (0_i64..40).prop_map(Nanos::from_millis);
        let stage =
            (time(), time()).prop_map(|(forward, backward)| StageTime { forward, backward });
        let all = (prop::collection::vec(stage, stages), prop::collection::vec(time(), stages - 1));
        all.prop_map(|(stages, messages)| Pipeline::new(stages, messages).expect("valid"))
    })
}

proptest! {
    #[test]
    fn every_task_runs_once_in_order_and_no_step_is_too_short(
        pipeline in pipelines(), micro in 1_u32..20, which in 0_usize..4,
    ) {
        let schedule = Schedule::ALL[which];
        let step = Step::new(pipeline, schedule, micro).unwrap();
        let run = simulate_recorded(&step);
        let stages = step.pipeline().stages().len();
        let mut free = vec![Nanos::ZERO; stages];
        let mut tasks = Vec::new();
        for slice in &run.slices {
            prop_assert!(slice.start >= free[slice.stage], "two tasks at once");
            free[slice.stage] = slice.end;
            tasks.push((slice.stage, slice.task));
        }
        let mut expected = Vec::new();
        for stage in 0..stages {
            for micro_batch in 0..micro {
                let recomputes = schedule.recomputes(stage + 1 == stages);
                for work in [Work::Forward, Work::Recompute, Work::Backward] {
                    if work != Work::Recompute || recomputes {
                        let task = foretrain_plan::varuna::schedule::Task { work, micro_batch };
                        expected.push((stage, task));
                    }
                }
            }
        }
        tasks.sort();
        expected.sort();
        prop_assert_eq!(tasks, expected);

        // No stage is done before its own work, nor the first micro-batch before its way there
        // and back.
        let times = step.pipeline().stages();
        let work = times.iter().map(|stage| stage.forward + stage.backward);
        let messages: Nanos = step.pipeline().messages().iter().copied().sum();
        let way = work.sum::<Nanos>() + messages + messages;
        prop_assert!(run.makespan >= way);
        for stage in 0..stages {
            prop_assert_eq!(run.busy[stage], step.work_of(stage));
            prop_assert!(run.makespan >= run.busy[stage]);
            prop_assert!(run.in_flight[stage] <= micro);
        }
        prop_assert_eq!(Some(run.makespan), run.slices.iter().map(|slice| slice.end).max());
        prop_assert_eq!(run.makespan, simulate(&step).makespan);
    }

    #[test]
    fn inputs_arrive_before_they_are_used(
        pipeline in pipelines(), micro in 1_u32..12, which in 0_usize..4,
    ) {
        let step = Step::new(pipeline, Schedule::ALL[which], micro).unwrap();
        let run = simulate_recorded(&step);
        let of = |stage: usize, work: Work, micro: u32| {
            let is = |s: &&foretrain_plan::varuna::simulate::Slice| {
                s.stage == stage && s.task.work == work && s.task.micro_batch == micro
            };
            run.slices.iter().find(is).unwrap()
        };
        for (boundary, message) in step.pipeline().messages().iter().enumerate() {
            for m in 0..micro {
                let sent = of(boundary, Work::Forward, m).end;
                prop_assert!(of(boundary + 1, Work::Forward, m).start >= sent + *message);
                let sent = of(boundary + 1, Work::Backward, m).end;
                prop_assert!(of(boundary, Work::Backward, m).start >= sent + *message);
            }
        }
    }

    #[test]
    fn jitter_leaves_no_schedule_stuck(
        pipeline in pipelines(), micro in 1_u32..12, which in 0_usize..4, seed in 0_u64..1000,
    ) {
        let step = Step::new(pipeline, Schedule::ALL[which], micro).unwrap();
        let jitter = Jitter::new(Nanos::from_millis(30), Nanos::from_millis(50), seed).unwrap();
        // A schedule that is stuck fails an assertion of the simulator.
        let found = draws(&step, jitter, 4).unwrap();
        prop_assert!(found.p5 <= found.p50 && found.p50 <= found.p95);
    }
}
