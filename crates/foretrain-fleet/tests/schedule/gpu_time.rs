//! GPU-time is neither made nor lost where jobs share GPUs.

use foretrain_cost::interference::colocation::JobLoad;
use foretrain_fleet::schedule::policy::{Horus, POLICIES, Rules};
use foretrain_fleet::schedule::{ConstantSlowdown, Job, Outcome, Setup, simulate};

use super::{cluster, job, seconds};

fn busy(busy: f64, job: Job) -> Job {
    let load = JobLoad { step: seconds(1), busy, launch: seconds(1) };
    Job { load: Some(load), peak: busy, ..job }
}

fn held(run: &Outcome) -> f64 {
    run.jobs.iter().map(|job| job.held).sum()
}

#[test]
fn what_jobs_cost_each_other_is_no_computation() {
    let cluster = cluster(1, 1);
    let jobs = [0, 1, 2].map(|number| busy(0.3, job(number, 0, 1, 100)));
    for slowdown in [1.0, 1.2, 1.5] {
        let beside = ConstantSlowdown(slowdown);
        let run = simulate(&Setup::new(&cluster, &jobs, &beside), &mut Horus::new());
        assert!((run.makespan.secs_f64() - 100.0 * slowdown).abs() < 1e-6);
        // Three times 30 s, however long they take for it.
        assert!((run.totals.utilised - 90.0).abs() < 1e-3, "{slowdown}: {:?}", run.totals);
        assert!((run.utilisation() - 0.9 / slowdown).abs() < 1e-5);
        // Idle and busy GPUs draw what they draw, in proportion to the work.
        let (idle, more) = (60.0 * 100.0 * slowdown, (350.0 - 60.0) * 90.0);
        assert!((run.totals.energy - idle - more).abs() < 1.0, "{:?}", run.totals);
    }
}

#[test]
fn all_gpus_of_a_job_go_at_the_pace_of_its_slowest() {
    let cluster = cluster(1, 2);
    let jobs = [busy(0.4, job(0, 0, 2, 100)), busy(0.4, job(1, 10, 1, 50))];
    let beside = ConstantSlowdown(2.0);
    let run = simulate(&Setup::new(&cluster, &jobs, &beside), &mut Horus::new());
    assert_eq!(run.jobs[0].finish, Some(seconds(150)), "one of its GPUs is shared for 100 s");
    assert!((run.totals.utilised - 0.4 * 250.0).abs() < 1e-3, "{:?}", run.totals);
}

#[test]
fn time_on_shared_gpus_is_divided() {
    let cluster = cluster(1, 2);
    let jobs = [busy(0.4, job(0, 0, 2, 100)), busy(0.4, job(1, 10, 1, 50))];
    let beside = ConstantSlowdown(2.0);
    let run = simulate(&Setup::new(&cluster, &jobs, &beside), &mut Horus::new());
    // 50 s on two GPUs, 100 s on one and a half; the other has half of one.
    assert!((run.jobs[0].held - 250.0).abs() < 1e-6 && (run.jobs[1].held - 50.0).abs() < 1e-6);
    assert!((run.jobs[0].service - 300.0).abs() < 1e-6, "attained service is whole GPUs");
    for policy in &POLICIES {
        let run =
            simulate(&Setup::new(&cluster, &jobs, &beside), &mut *policy.make(&Rules::default()));
        assert!((held(&run) - run.totals.busy).abs() < 1e-3, "{}", policy.name);
        assert!((run.totals.utilised - 100.0).abs() < 1e-3, "{}: {:?}", policy.name, run.totals);
    }
}
