//! Plans over all numbers of stages, from profiles as users write them.

use foretrain_core::{Bytes, Nanos};
use foretrain_plan::varuna::layout::{Machines, Placement};
use foretrain_plan::varuna::partition::Balance;
use foretrain_plan::varuna::plan::{MicroBatches, Owner, Plan, PlanOptions, Reason, plan};
use foretrain_plan::varuna::profile::{Gaps, Profile, parse};
use foretrain_plan::varuna::schedule::Schedule;
use foretrain_plan::varuna::simulate::{Jitter, simulate};

/// Six cut-points of 10 ms and 20 ms per sample; messages and all-reduces by lines.
const SIX: &str = r#"
varuna_profile = 1
model = "six blocks"

[[cut_point]]
name = "block"
repeat = 6
update = "1ms"
at = [
  { micro_batch = 1, forward = "10ms", backward = "20ms", copy = "1ms", max_memory = "1GiB", activation = "16MiB", saved = "256MiB" },
  { micro_batch = 2, forward = "18ms", backward = "36ms", copy = "2ms", max_memory = "2GiB", activation = "32MiB", saved = "512MiB" },
]

[network]
send = { latency = "10us", bandwidth = "20GB/s" }
long_send = { latency = "50us", bandwidth = "1GB/s" }
all_reduce = { latency = "50us", bandwidth = "1GB/s" }
gradients = "600MB"
"#;

fn options(gpus: u32) -> PlanOptions {
    PlanOptions {
        gpus,
        batch: 96,
        gpu_memory: None,
        drop_remainder: false,
        machines: Machines { gpus_each: Machines::VARUNA_GPUS, placement: Placement::Packed },
        schedules: vec![Schedule::Varuna],
        micro_batches: MicroBatches::Largest,
        stages: Vec::new(),
        uneven: false,
        gaps: Gaps::Refuse,
        jitter: None,
    }
}

fn six() -> Profile {
    parse(SIX).expect("valid")
}

fn depths(plan: &Plan) -> Vec<usize> {
    let mut all: Vec<usize> = plan.ranked.iter().map(|c| c.stages.len()).collect();
    all.sort_unstable();
    all
}

#[test]
fn all_divisors_are_tried_up_to_one_cut_point_per_stage() {
    assert_eq!(depths(&plan(&six(), &options(12)).unwrap()), [1, 2, 3, 6]);
    let uneven = PlanOptions { uneven: true, ..options(12) };
    assert_eq!(depths(&plan(&six(), &uneven).unwrap()), [1, 2, 3, 4, 5, 6]);
    let four = plan(&six(), &PlanOptions { stages: vec![4], ..options(12) }).unwrap();
    assert_eq!((depths(&four), four.ranked[0].balance), (vec![4], Balance::Cost));
    // With fewer GPUs than stages there is no plan, and it is said.
    let few = plan(&six(), &options(4)).unwrap();
    assert_eq!(depths(&few), [1, 2, 3]);
    assert_eq!(few.refused[0].reason, Reason::Gpus { needed: 6, there: 4 });
}

#[test]
fn a_step_is_the_pipeline_the_all_reduce_and_the_update() {
    let found = plan(&six(), &PlanOptions { stages: vec![3], ..options(14) }).unwrap();
    let best = &found.ranked[0];
    assert_eq!((best.replicas, best.idle_gpus), (4, 2));
    // 24 samples per replica in twos.
    assert_eq!((best.micro_batch, best.micro_batches, best.samples), (2, 12, 96));
    // 200 MB per stage: six hops of 50 MB.
    assert_eq!(best.all_reduce, Nanos::from_micros(6 * 50_050));
    assert_eq!(best.update, Nanos::from_millis(2));
    assert_eq!(best.step, best.makespan + best.all_reduce + best.update);
    let owned: Nanos = Owner::ALL.into_iter().map(|owner| best.shares.of(owner)).sum();
    assert_eq!(owned, best.step, "every nanosecond has one owner");
}

#[test]
fn losers_say_what_they_lose_by() {
    let found = plan(&six(), &options(12)).unwrap();
    assert!(found.ranked[0].lost_to.is_none());
    for pair in found.ranked.windows(2) {
        assert!(pair[0].per_sample() <= pair[1].per_sample());
        let (owner, time) = pair[1].lost_to.unwrap();
        assert!(pair[1].slower > 1.0 && time > Nanos::ZERO, "{owner:?}");
    }
    // Twelve replicas of the whole model have nothing to lose but the all-reduce.
    let whole = found.ranked.iter().find(|c| c.stages.len() == 1).unwrap();
    assert_eq!(whole.lost_to.map(|(owner, _)| owner), Some(Owner::AllReduce));
}

#[test]
fn the_largest_micro_batch_that_fits_is_taken() {
    let with = |gib: u64, stages: u32, schedule| {
        let gpu_memory = Some(Bytes::from_gib(gib));
        let schedules = vec![schedule];
        plan(&six(), &PlanOptions { gpu_memory, stages: vec![stages], schedules, ..options(12) })
    };
    let size = |gib, stages, schedule| with(gib, stages, schedule).unwrap().ranked[0].micro_batch;
    // A stage of two needs a little less than 4 GiB in twos, 2 GiB in ones.
    assert_eq!(size(4, 3, Schedule::Varuna), 2);
    assert_eq!(size(3, 3, Schedule::Varuna), 1);
    let error = with(1, 3, Schedule::Varuna).unwrap_err();
    let why = error.hints().join(" ");
    assert!(why.contains("micro-batch 1") && why.contains("more than 1.000 GiB"), "{why}");
    // 1F1B keeps what it does not recompute: two more micro-batches of 2 x 256 MiB in the first stage.
    assert_eq!(size(4, 3, Schedule::OneFOneB), 1);
    let exact = Bytes::new((2 * 1024 - 16 + 4 * 256) << 20);
    let found = with(4, 3, Schedule::OneFOneB).unwrap();
    assert_eq!(found.ranked[0].memory, Some(exact));
}

#[test]
fn a_replica_is_not_given_micro_batches_that_it_cannot_fill() {
    let few = plan(&six(), &PlanOptions { batch: 12, stages: vec![1], ..options(12) }).unwrap();
    assert_eq!((few.ranked[0].micro_batch, few.ranked[0].micro_batches), (1, 1));
    let less = plan(&six(), &PlanOptions { batch: 11, stages: vec![1], ..options(12) });
    let why = less.unwrap_err().hints().join(" ");
    assert!(why.contains("less than one sample for each of 12 replicas"), "{why}");
    // Four of twelve replicas have nine samples, or all have eight and four are left out.
    let of = |drop_remainder| {
        let odd = PlanOptions { batch: 100, stages: vec![1], drop_remainder, ..options(12) };
        plan(&six(), &odd).unwrap()
    };
    let (whole, odd) = (of(false), of(true));
    assert_eq!((whole.ranked[0].samples, whole.ranked[0].micro_batches), (100, 5));
    assert_eq!((odd.ranked[0].samples, odd.ranked[0].micro_batches), (96, 4));
    assert_eq!((whole.ranked[0].dropped, odd.ranked[0].dropped), (0, 4));
    assert!(odd.notes.iter().any(|note| note.contains("4 of 100 samples")), "{:?}", odd.notes);
}

#[test]
fn missing_entries_refuse_what_needs_them_and_only_that() {
    let tables = SIX.split("[network]").next().unwrap().to_owned()
        + "[[all_reduce]]\nstages = 1\nring = 12\ntime = \"1s\"\n";
    let found = plan(&parse(&tables).unwrap(), &options(12)).unwrap();
    assert_eq!(depths(&found), [1], "a single stage sends nothing");
    assert_eq!(found.refused.len(), 3);
    let why = found.refused[0].to_string();
    assert!(why.contains("send of a message of 33554432 bytes"), "{why}");
    let bare = parse(&tables.replace("max_memory = \"1GiB\", ", "")).unwrap();
    let memory = PlanOptions {
        gpu_memory: Some(Bytes::from_gib(8)),
        micro_batches: MicroBatches::Only(vec![1]),
        ..options(12)
    };
    let why = plan(&bare, &memory).unwrap_err().hints().join(" ");
    assert!(why.contains("lacks max_memory of cut-point \"block.0\""), "{why}");
}

#[test]
fn options_without_sense_are_refused() {
    let base = options(12);
    for (wrong, expected) in [
        (PlanOptions { gpus: 0, ..base.clone() }, "GPUs of 0"),
        (PlanOptions { batch: 0, ..base.clone() }, "batch of 0"),
        (PlanOptions { stages: vec![0], ..base.clone() }, "0 stages"),
        (PlanOptions { stages: vec![7], ..base.clone() }, "7 stages"),
        (PlanOptions { schedules: Vec::new(), ..base.clone() }, "no schedule"),
        (
            PlanOptions { micro_batches: MicroBatches::Only(vec![0]), ..base.clone() },
            "micro-batch of 0",
        ),
        (PlanOptions { batch: u64::MAX, ..base.clone() }, "too many configurations"),
    ] {
        let error = plan(&six(), &wrong).unwrap_err();
        assert!(error.message().contains(expected), "{error}");
    }
    let sizes = MicroBatches::Only(vec![3]);
    let error = plan(&six(), &PlanOptions { micro_batches: sizes, ..base.clone() }).unwrap_err();
    assert!(error.hints()[0].contains("only with 1, 2"), "{error:?}");
    assert!(plan(&Profile::default(), &base).is_err());
}

#[test]
fn jitter_counts_by_its_median_and_interpolation_is_said() {
    let jitter = Jitter::new(Jitter::VARUNA_COMPUTE, Jitter::VARUNA_NETWORK, 3).unwrap();
    let stages = vec![3];
    let noisy = PlanOptions { jitter: Some((jitter, 50)), stages, ..options(12) };
    let found = plan(&six(), &noisy).unwrap();
    let best = &found.ranked[0];
    assert_eq!(best.distribution.as_ref().map(|d| d.p50), Some(best.makespan));
    assert!(best.shares.of(Owner::Jitter) > Nanos::ZERO);
    assert!(found.filled.notes.contains_key("all_reduce"), "a line is not a table");
}

#[test]
fn scattered_stages_talk_between_machines() {
    let of = |placement| {
        let machines = Machines { gpus_each: 4, placement };
        let found = plan(&six(), &PlanOptions { machines, stages: vec![3], ..options(12) });
        found.unwrap().ranked.remove(0)
    };
    let (packed, scattered) = (of(Placement::Packed), of(Placement::Scattered));
    assert!(scattered.step > packed.step);
    let far = Nanos::from_micros(50)
        + Bytes::from_mib(32) / foretrain_core::Bandwidth::from_gb_per_sec(1.0);
    assert_eq!(scattered.pipeline.messages(), [far; 2]);
    let step = foretrain_plan::varuna::simulate::Step::new(
        scattered.pipeline.clone(),
        scattered.schedule,
        scattered.micro_batches,
    );
    assert_eq!(simulate(&step.unwrap()).makespan, scattered.makespan);
}
