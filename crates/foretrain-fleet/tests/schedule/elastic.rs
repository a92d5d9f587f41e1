//! Sizes of jobs that can run at several.

use std::sync::Arc;

use foretrain_core::Nanos;
use foretrain_fleet::schedule::policy::{Named, Rules};
use foretrain_fleet::schedule::{Job, Outcome, Scaling, Setup, simulate};

use super::{ALONE, cluster, job, seconds};

/// Speeds by size, from one GPU on.
#[derive(Debug)]
struct Speeds(Vec<f64>);

impl Scaling for Speeds {
    fn speed(&self, gpus: u32, _nodes: u32, _done: f64) -> f64 {
        self.0.get(gpus as usize - 1).copied().unwrap_or(0.0)
    }

    fn most_gpus(&self) -> u32 {
        self.0.len() as u32
    }
}

fn elastic(number: usize, gpus: u32, work: i64, speeds: &[f64]) -> Job {
    let scaling: Arc<dyn Scaling> = Arc::new(Speeds(speeds.to_vec()));
    Job { scaling: Some(scaling), ..job(number, 0, gpus, work) }
}

fn run(jobs: &[Job], gpus: u32, policy: &str) -> Outcome {
    let rules = Rules { restart: Nanos::ZERO, ..Rules::default() };
    let mut policy = Named::find(policy).expect("known").make(&rules);
    simulate(&Setup::new(&cluster(1, gpus), jobs, &ALONE), &mut *policy)
}

/// Two GPUs on a slow link are slower than one, eight much faster.
const DIP: [f64; 8] = [1.0, 0.7, 0.9, 1.5, 1.6, 1.7, 1.8, 4.0];

#[test]
fn a_size_that_is_slower_is_no_end() {
    for policy in ["optimus", "pollux"] {
        for asked in [1, 4] {
            let jobs = [elastic(0, asked, 100_000, &DIP)];
            let took = run(&jobs, 8, policy).makespan;
            // At once, or after a few decisions.
            assert!(took < seconds(25_500), "{policy}, {asked}: {took:?}");
        }
    }
}

/// Speeds that are learnt while a job runs.
#[derive(Debug)]
struct Learnt(Speeds);

impl Scaling for Learnt {
    fn speed(&self, gpus: u32, nodes: u32, done: f64) -> f64 {
        self.0.speed(gpus, nodes, done)
    }

    fn is_learnt(&self) -> bool {
        true
    }

    fn most_gpus(&self) -> u32 {
        self.0.most_gpus()
    }
}

#[test]
fn what_is_learnt_is_believed_up_to_what_was_asked_for() {
    let took = |asked| {
        let scaling: Arc<dyn Scaling> = Arc::new(Learnt(Speeds(DIP.to_vec())));
        let job = Job { scaling: Some(scaling), ..job(0, 0, asked, 100_000) };
        run(&[job], 8, "pollux").makespan
    };
    assert_eq!(took(1), seconds(100_000));
    assert!(took(4) < seconds(25_500));
}

#[test]
fn the_size_asked_for_is_had_where_it_is_free_and_faster() {
    // Six of eight GPUs are left; neither four nor five are faster than one.
    let speeds = [1.0, 0.5, 0.5, 0.9, 0.9, 3.0];
    for policy in ["optimus", "pollux"] {
        let jobs = [job(0, 0, 2, 50_000), elastic(1, 6, 30_000, &speeds)];
        let finish = run(&jobs, 8, policy).jobs[1].finish;
        assert!(finish < Some(seconds(11_000)), "{policy}: {finish:?}");
    }
}

#[test]
fn gpus_that_do_not_help_are_left() {
    for policy in ["optimus", "pollux"] {
        let jobs = [elastic(0, 1, 1_000, &[1.0, 0.9, 0.8, 0.7])];
        let run = run(&jobs, 8, policy);
        assert_eq!(run.jobs[0].held, 1_000.0, "{policy}");
    }
}
