//! The scheduling simulator.

mod elastic;
mod gpu_time;
mod laws;

use foretrain_core::{Bytes, Nanos};
use foretrain_cost::interference::colocation::JobLoad;
use foretrain_fleet::schedule::policy::{
    Gandiva, Horus, Interleave, LeastAttained, Moving, Order, POLICIES, Queue, Rank, Ranked, Rules,
};
use foretrain_fleet::schedule::{
    Board, Cluster, ConstantSlowdown, Costs, Ending, Failures, GpuKind, Job, Node, Outcome,
    Placement, Placer, Policy, Rhythm, Setup, Share, simulate,
};

fn seconds(value: i64) -> Nanos {
    Nanos::from_millis(value * 1_000)
}

const ALONE: ConstantSlowdown = ConstantSlowdown(1.0);

/// All that have a name, and ways to set them up that no name has.
fn policies() -> Vec<Box<dyn Policy>> {
    let place = Placer::Consolidated;
    let rules = Rules { restart: seconds(3), ..Rules::default() };
    let mut all: Vec<Box<dyn Policy>> = Vec::new();
    for named in &POLICIES {
        all.push(named.make(&rules));
    }
    all.extend([
        Box::new(Queue::new(Order::LeastService, Placer::Anywhere, true).every(seconds(60)))
            as Box<dyn Policy>,
        Box::new(Queue::new(Order::Shortest, Placer::FirstFit, true)),
        Box::new(Ranked::new(Rank::LeastRemainingService, place).every(seconds(60))),
        Box::new(Ranked::new(Rank::FinishTimeFairness, place)),
        Box::new(LeastAttained::new(vec![500.0], Moving::Stay)),
        Box::new(LeastAttained::new(vec![500.0, 5_000.0], Moving::Replan(place))),
        Box::new(Gandiva::new(seconds(100))),
        Box::new(Interleave::new(true, 4, place)),
        Box::new(Interleave::new(false, 2, place)),
    ]);
    all
}

fn cluster(nodes: u32, gpus: u32) -> Cluster {
    let kind =
        GpuKind { memory: Some(Bytes::from_gib(32)), sliced: true, ..GpuKind::named("a100") };
    Cluster::uniform(nodes, gpus, 2, kind).expect("valid")
}

fn job(number: usize, submit: i64, gpus: u32, duration: i64) -> Job {
    Job::new(number.to_string(), seconds(submit), gpus, seconds(duration))
}

fn run(cluster: &Cluster, jobs: &[Job], policy: &mut dyn Policy) -> Outcome {
    simulate(&Setup::new(cluster, jobs, &ALONE), policy)
}

#[test]
fn first_come_first_served_by_hand() {
    // Eight GPUs: the second job waits for the first, the third behind the second.
    let cluster = cluster(1, 8);
    let jobs = [job(0, 0, 6, 100), job(1, 10, 4, 50), job(2, 20, 1, 5)];
    let strict = run(&cluster, &jobs, &mut Queue::new(Order::Arrival, Placer::Consolidated, false));
    let ends = |run: &Outcome| run.jobs.iter().map(|job| job.finish).collect::<Vec<_>>();
    assert_eq!(ends(&strict), [Some(seconds(100)), Some(seconds(150)), Some(seconds(105))]);
    let back = run(&cluster, &jobs, &mut Queue::new(Order::Arrival, Placer::Consolidated, true));
    assert_eq!(ends(&back), [Some(seconds(100)), Some(seconds(150)), Some(seconds(25))]);
    assert_eq!(back.makespan, seconds(150));
    assert_eq!(back.wait.mean, seconds(30));
    // 6 x 100 + 4 x 50 + 1 x 5 of 8 x 150 GPU-seconds.
    assert!((back.allocated() - 805.0 / 1_200.0).abs() < 1e-9, "{}", back.allocated());
}

#[test]
fn the_shortest_remaining_time_takes_gpus_from_others() {
    let cluster = cluster(1, 1);
    let jobs = [job(0, 0, 1, 100), job(1, 10, 1, 20)];
    let costs = Costs { restart: seconds(5), ..Costs::default() };
    let setup = Setup { costs, ..Setup::new(&cluster, &jobs, &ALONE) };
    let run = simulate(&setup, &mut Ranked::new(Rank::ShortestRemaining, Placer::Consolidated));
    assert_eq!(run.jobs[1].finish, Some(seconds(30)));
    // Ten seconds were done before, and resuming costs five.
    assert_eq!(run.jobs[0].finish, Some(seconds(30 + 90 + 5)));
    assert_eq!(run.jobs[0].disturbed, [1, 0, 0]);
    assert_eq!(run.jobs[0].waited, seconds(20));
}

#[test]
fn jobs_that_share_a_gpu_slow_each_other_down_while_they_do() {
    let cluster = cluster(1, 1);
    let half = JobLoad { step: seconds(1), busy: 0.4, launch: seconds(1) };
    let busy = |job: Job| Job { load: Some(half), peak: 0.4, ..job };
    let jobs = [busy(job(0, 0, 1, 100)), busy(job(1, 50, 1, 100))];
    let twice = ConstantSlowdown(2.0);
    let run = simulate(&Setup::new(&cluster, &jobs, &twice), &mut Horus::new());
    // Alone for 50 s, then at half speed: 50 s of work take 100. The other then has 50 s left, alone.
    assert_eq!(run.jobs[0].finish, Some(seconds(150)));
    assert_eq!(run.jobs[1].finish, Some(seconds(200)));
}

#[test]
fn parts_and_slices_are_kept_apart() {
    let cluster = cluster(1, 2);
    let part = |number: usize, thousandths: u16| Job {
        share: Share::Part(thousandths),
        ..job(number, 0, 1, 10)
    };
    let slice = |number: usize, sevenths: u8| Job {
        share: Share::Slice(sevenths),
        ..job(number, 0, 1, 10)
    };
    let jobs = [part(0, 600), part(1, 400), slice(2, 4), slice(3, 3), slice(4, 1), part(5, 1)];
    let run = run(&cluster, &jobs, &mut Queue::new(Order::Arrival, Placer::Consolidated, true));
    let starts: Vec<Option<Nanos>> = run.jobs.iter().map(|job| job.first_start).collect();
    let (now, later) = (Some(seconds(0)), Some(seconds(10)));
    assert_eq!(starts, [now, now, now, now, later, later]);
}

#[test]
fn a_failure_costs_the_work_since_the_last_checkpoint() {
    let cluster = cluster(1, 1);
    let jobs = [job(0, 0, 1, 100_000)];
    let failures =
        Failures { every: seconds(20_000), repair: seconds(100), checkpoint_every: seconds(1_000) };
    let setup = Setup { failures: Some(failures), seed: 3, ..Setup::new(&cluster, &jobs, &ALONE) };
    let fifo = || Queue::new(Order::Arrival, Placer::Consolidated, false);
    let run = simulate(&setup, &mut fifo());
    let [_, _, failed] = run.jobs[0].disturbed;
    assert!(failed > 0);
    let lost = run.jobs[0].on_gpus - seconds(100_000);
    assert!(lost > Nanos::ZERO && lost < seconds(1_000 * i64::from(failed)), "{lost:?} {failed}");
    assert!(run.totals.down > 0.0);
    let again = simulate(&setup, &mut fifo());
    assert_eq!(run.jobs[0].finish, again.jobs[0].finish);
    let other = simulate(&Setup { seed: 4, ..setup }, &mut fifo());
    assert_ne!(run.jobs[0].finish, other.jobs[0].finish);
}

#[test]
fn a_run_says_why_it_ended() {
    let cluster = cluster(1, 1);
    let jobs = [job(0, 0, 1, 100_000)];
    let plain = Setup::new(&cluster, &jobs, &ALONE);
    let ending = |setup: Setup<'_>| {
        simulate(&setup, &mut Queue::new(Order::Arrival, Placer::Consolidated, false)).ending
    };
    assert_eq!(ending(plain), Ending::Done);
    assert_eq!(ending(Setup { until: Some(seconds(10)), ..plain }), Ending::Cut);
    let failures =
        Failures { every: seconds(60), repair: seconds(1), checkpoint_every: seconds(3_600) };
    assert_eq!(ending(Setup { failures: Some(failures), ..plain }), Ending::Failures);
}

#[test]
fn impossible_jobs_are_said_to_be() {
    let cluster = cluster(2, 4);
    let mut large = job(0, 0, 9, 10);
    let heavy = Job { memory: Bytes::from_gib(40), ..job(1, 0, 1, 10) };
    let strange = Job { kind: Some(3), ..job(2, 0, 1, 10) };
    let fine = job(3, 0, 8, 10);
    let setup = |jobs| Setup::new(&cluster, jobs, &ALONE);
    let jobs = [large.clone(), heavy, strange, fine];
    for mut policy in policies() {
        let run = simulate(&setup(&jobs), &mut *policy);
        assert_eq!((run.impossible, run.finished, run.unfinished), (3, 1, 0), "{}", run.policy);
    }
    large.gpus = 0;
    assert!(setup(&jobs).why_impossible(&large).expect("impossible").contains("no GPU"));
}

/// What would arrive when all others are done does not make the cluster idle until then.
#[test]
fn impossible_jobs_are_not_waited_for() {
    let cluster = cluster(1, 4);
    let jobs = [job(0, 0, 1, 100), job(1, 1_000, 9, 10)];
    let run = run(&cluster, &jobs, &mut Queue::new(Order::Arrival, Placer::Consolidated, true));
    assert_eq!((run.finished, run.impossible, run.makespan), (1, 1, seconds(100)));
    assert!((run.totals.busy - 100.0).abs() < 1e-9 && (run.totals.idle - 300.0).abs() < 1e-9);
}

#[test]
fn a_policy_that_does_nothing_ends() {
    struct Idle;
    impl Policy for Idle {
        fn name(&self) -> String {
            "idle".into()
        }
        fn decide(&mut self, _board: &mut Board<'_>) {}
    }
    let run = run(&cluster(1, 1), &[job(0, 0, 1, 1)], &mut Idle);
    assert_eq!((run.finished, run.unfinished, run.ending), (0, 1, Ending::Stuck));
}

/// A job that has started up has got no GPUs, so it is no reason to wait longer for a policy that
/// does nothing.
#[test]
fn patience_counts_from_the_last_gpus_given_or_taken() {
    struct Fickle(u32);
    impl Policy for Fickle {
        fn name(&self) -> String {
            "fickle".into()
        }
        fn rhythm(&self) -> Rhythm {
            Rhythm::Every(seconds(3_600))
        }
        fn decide(&mut self, board: &mut Board<'_>) {
            match self.0 {
                0 => board.start(0, Placement::of([0])).expect("idle"),
                _ => board.stop(0),
            }
            self.0 += 1;
        }
    }
    let (cluster, jobs) = (cluster(1, 1), [job(0, 0, 1, 1_000_000)]);
    let day = 24 * 3_600;
    let costs = Costs { start: seconds(10 * day), ..Costs::default() };
    let setup = Setup { costs, ..Setup::new(&cluster, &jobs, &ALONE) };
    let run = simulate(&setup, &mut Fickle(0));
    assert_eq!(run.unfinished, 1);
    assert_eq!(run.makespan, seconds(3_600 + 30 * day));
    assert_eq!(run.jobs[0].waited, seconds(30 * day));
}

#[test]
fn nodes_of_many_kinds_are_used() {
    let kinds = vec![GpuKind::named("v100"), GpuKind::named("a100")];
    let node = |kind, gpus| Node { gpus, kind, rack: 0 };
    let nodes = vec![node(0, 4), node(1, 8), node(1, 2), node(0, 2)];
    let cluster = Cluster::new(kinds, nodes).expect("valid");
    let wants =
        |kind: u32, number: usize, gpus: u32| Job { kind: Some(kind), ..job(number, 0, gpus, 10) };
    // Six v100 are on two nodes of different size.
    let jobs = [wants(0, 0, 6), wants(1, 1, 10), wants(1, 2, 1)];
    for mut policy in policies() {
        let run = run(&cluster, &jobs, &mut *policy);
        assert_eq!(run.finished, 3, "{}", run.policy);
    }
}
