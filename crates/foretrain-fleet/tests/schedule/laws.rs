//! What must hold whatever the policy.

use std::sync::Arc;

use foretrain_core::{Bytes, Nanos};
use foretrain_cost::interference::colocation::JobLoad;
use foretrain_fleet::schedule::{
    ConstantSlowdown, Costs, Failures, Job, Outcome, Phase, Scaling, Setup, Share, simulate,
};
use proptest::prelude::*;

use super::{ALONE, cluster, job, policies, seconds};

/// A job that any number of GPUs will do for, each of less use than the one before. Its work is in
/// seconds of one GPU, and takes a turn at half of it.
#[derive(Debug)]
struct Bending {
    most: u32,
    work: f64,
}

impl Scaling for Bending {
    fn speed(&self, gpus: u32, nodes: u32, done: f64) -> f64 {
        let apart = if nodes > 1 { 0.9 } else { 1.0 };
        let late = if done >= self.work / 2.0 { 0.8 } else { 1.0 };
        f64::from(gpus).powf(0.8) * apart * late
    }

    fn changes_after(&self, done: f64) -> Option<f64> {
        Some(self.work / 2.0).filter(|turn| done < *turn)
    }

    fn most_gpus(&self) -> u32 {
        self.most
    }
}

/// Kinds of requests.
#[derive(Clone, Copy, Debug)]
enum Wants {
    Whole(u32),
    Part(u16),
    Slice(u8),
    Elastic(u32),
}

fn wants() -> impl Strategy<Value = Wants> {
    prop_oneof![
        3 => prop::sample::select(vec![1u32, 1, 2, 3, 4, 6, 8]).prop_map(Wants::Whole),
        1 => (1u16..=1_000).prop_map(Wants::Part),
        1 => prop::sample::select(vec![1u8, 2, 3, 4, 7]).prop_map(Wants::Slice),
        1 => (1u32..=8).prop_map(Wants::Elastic),
    ]
}

fn made(number: usize, submit: i64, wants: Wants, duration: i64, busy: f64, memory: u64) -> Job {
    let whole = |gpus: u32| Job {
        load: Some(JobLoad { step: seconds(1), busy, launch: seconds(1) }),
        peak: busy,
        memory: Bytes::from_gib(memory),
        ..job(number, submit, gpus, duration)
    };
    match wants {
        Wants::Whole(gpus) => whole(gpus),
        Wants::Part(thousandths) => Job { share: Share::Part(thousandths), ..whole(1) },
        Wants::Slice(sevenths) => Job { share: Share::Slice(sevenths), ..whole(1) },
        Wants::Elastic(most) => {
            let work = duration as f64;
            Job { scaling: Some(Arc::new(Bending { most, work })), ..whole(most.min(2)) }
        }
    }
}

prop_compose! {
    fn jobs()(rows in prop::collection::vec(
        (0i64..2_000, wants(), 1i64..800, 0.05f64..1.0, 0u64..20), 1..40,
    )) -> Vec<Job> {
        let rows = rows.into_iter().enumerate();
        let mut jobs: Vec<Job> = rows
            .map(|(number, (submit, wants, duration, busy, memory))| {
                made(number, submit, wants, duration, busy, memory)
            })
            .collect();
        jobs.sort_by_key(|job| job.submit);
        jobs
    }
}

/// Seconds on GPUs without which a job cannot be done.
fn least_seconds(job: &Job) -> f64 {
    match &job.scaling {
        Some(scaling) => job.work / scaling.speed(scaling.most_gpus(), 1, 0.0),
        None => job.work,
    }
}

/// Everything a run says of jobs and the cluster.
fn all_of(run: &Outcome) -> String {
    format!("{:?} {:?} {:?}", run.jobs, run.totals, run.samples)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Everything finishes, nothing runs faster than alone, GPU-time is neither made nor lost, and
    /// a second run is the same.
    #[test]
    fn runs_conserve_work(jobs in jobs(), slowdown in 1.0f64..3.0, fails in any::<bool>()) {
        let cluster = cluster(2, 4);
        let slowdown = ConstantSlowdown(slowdown);
        let failures = fails.then_some(Failures {
            every: seconds(3_000), repair: seconds(200), checkpoint_every: seconds(100),
        });
        let costs = Costs { start: seconds(2), restart: seconds(3), relaunch_all: false };
        let setup = Setup { costs, failures, seed: 9, ..Setup::new(&cluster, &jobs, &slowdown) };
        let (first, second) = (policies(), policies());
        for (mut policy, mut again) in first.into_iter().zip(second) {
            let run = simulate(&setup, &mut *policy);
            let name = run.policy.clone();
            prop_assert_eq!(run.finished, jobs.len(), "{}", name);
            let end = |job: &Job| job.submit.secs_f64() + least_seconds(job);
            let least = jobs.iter().map(end).fold(0.0, f64::max);
            prop_assert!(run.makespan.secs_f64() + run.begin.secs_f64() >= least - 1e-6, "{}", name);
            let (mut service, mut held, mut work) = (0.0, 0.0, 0.0);
            for (job, state) in jobs.iter().zip(&run.jobs) {
                prop_assert_eq!(state.phase, Phase::Done);
                prop_assert!(state.on_gpus.secs_f64() >= least_seconds(job) - 1e-6, "{}", name);
                let completion = state.completion.expect("done");
                prop_assert_eq!(completion, state.waited + state.on_gpus, "{}", name);
                prop_assert!(state.first_start.expect("started") >= job.submit);
                service += state.service / job.part();
                held += state.held;
                work += job.work * f64::from(job.gpus) * job.utilisation();
            }
            // Shared GPU-seconds count once as busy, and once per job as service.
            prop_assert!(run.totals.busy <= service + 1e-3, "{} {} {}", name, run.totals.busy, service);
            let whole = f64::from(run.gpus) * run.makespan.secs_f64();
            let parts = run.totals.busy + run.totals.idle + run.totals.down;
            prop_assert!((parts - whole).abs() < 1e-6 * whole + 1e-3, "{} {} {}", name, parts, whole);
            // Divided among those that share a GPU it counts once.
            prop_assert!(held <= run.totals.busy + 1e-3, "{} {} {}", name, held, run.totals.busy);
            if jobs.iter().all(|job| job.share == Share::Whole) {
                prop_assert!((held - run.totals.busy).abs() < 1e-3, "{} {}", name, held);
            }
            prop_assert!(run.totals.utilised <= run.totals.busy + 1e-6);
            // However often they were slowed down or moved, jobs compute what they compute.
            if !fails && jobs.iter().all(|job| job.scaling.is_none()) {
                let computed = run.totals.utilised;
                prop_assert!(computed <= work + 1e-4 * work + 1e-3, "{} {} {}", name, computed, work);
            }
            prop_assert!(run.totals.useless <= run.totals.idle + 1e-6);
            prop_assert_eq!(all_of(&run), all_of(&simulate(&setup, &mut *again)), "{}", name);
        }
    }

    /// Where nothing costs or slows anything, jobs are served just the GPU-time that they need; and
    /// where machines fail, what they are served beyond it is what was lost and started anew.
    #[test]
    fn gpu_time_served_is_work(jobs in jobs(), checkpoint in 20i64..500) {
        let cluster = cluster(2, 4);
        let free = Setup::new(&cluster, &jobs, &ALONE);
        let failures = Failures {
            every: seconds(3_000), repair: seconds(200), checkpoint_every: seconds(checkpoint),
        };
        let start = seconds(5);
        let costs = Costs { start, restart: start, relaunch_all: false };
        let failing = Setup { costs, failures: Some(failures), seed: 2, ..free };
        for (mut free_of, mut failing_under) in policies().into_iter().zip(policies()) {
            let run = simulate(&free, &mut *free_of);
            for (job, state) in jobs.iter().zip(&run.jobs).filter(|(job, _)| job.scaling.is_none()) {
                let wanted = job.work * f64::from(job.gpus) * job.part();
                let off = (state.service - wanted).abs();
                prop_assert!(off < 1e-5, "{}: {} is {} off {}", run.policy, job.name, off, wanted);
            }
            let run = simulate(&failing, &mut *failing_under);
            for (job, state) in jobs.iter().zip(&run.jobs).filter(|(job, _)| job.scaling.is_none()) {
                let [preempted, moved, failed] = state.disturbed.map(i64::from);
                let starts = seconds(5 * (1 + preempted + moved + failed));
                let most = Nanos::from_secs_f64(job.work) + starts + seconds(checkpoint * failed);
                let over = state.on_gpus - most;
                prop_assert!(over < Nanos::from_nanos(1_000), "{}: {} {:?}", run.policy, job.name, over);
            }
        }
    }
}
