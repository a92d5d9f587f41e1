use super::super::GpuKind;
use super::*;

fn row(id: &str, submit: i64, gpus: f64, seconds: i64) -> jobs::Job {
    let time = |seconds: i64| Some(Nanos::from_millis(seconds * 1_000));
    jobs::Job {
        id: id.into(),
        submit: time(submit),
        gpus: Some(gpus),
        duration: time(seconds),
        ..jobs::Job::default()
    }
}

#[test]
fn rows_that_cannot_be_used_are_counted() {
    let cluster = Cluster::uniform(1, 8, 1, GpuKind::named("v100")).expect("valid");
    let mut intake = Intake::new(&cluster);
    intake.add(&row("a", 100, 2.0, 60));
    intake.add(&row("b", 130, 0.25, 60));
    intake.add(&jobs::Job { submit: None, ..row("c", 0, 1.0, 60) });
    intake.add(&row("d", 0, 0.0, 60));
    intake.add(&row("e", 0, 1.0, 0));
    intake.add(&jobs::Job { duration: None, ..row("f", 0, 1.0, 0) });
    let endless = jobs::Job {
        steps: Some(1e12),
        step_time: Some(Nanos::from_millis(1_000)),
        ..row("g", 0, 1.0, 60)
    };
    intake.add(&endless);
    let (jobs, used) = intake.finish().expect("two can");
    assert_eq!(jobs.len(), 2);
    assert_eq!((jobs[0].submit, jobs[1].submit), (Nanos::ZERO, Nanos::from_millis(30_000)));
    assert_eq!(jobs[1].share, Share::Part(250));
    assert_eq!(used.left_out.values().sum::<u64>(), 5);
    assert_eq!(used.left_out["it ran for no time"], 1);
    assert_eq!(used.left_out["duration not known"], 1);
    assert_eq!(used.left_out["longer than ten years"], 1);
    assert_eq!(used.left_out[NO_SUBMIT], 1);
}

#[test]
fn jobs_are_in_the_order_of_submission_whatever_that_of_the_rows() {
    let cluster = Cluster::uniform(1, 8, 1, GpuKind::named("v100")).expect("valid");
    let mut intake = Intake::new(&cluster);
    for (id, submit) in [("late", 90), ("first", 10), ("second", 10), ("third", 50)] {
        intake.add(&row(id, submit, 1.0, 60));
    }
    let (jobs, _) = intake.finish().expect("usable");
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["first", "second", "third", "late"]);
}

/// One slice in place of eight would be an eighth of the job.
#[test]
fn several_slices_are_not_taken_for_one() {
    let cluster = Cluster::uniform(1, 8, 1, GpuKind::named("a100")).expect("valid");
    let mut intake = Intake::new(&cluster);
    for (id, gpus) in [("one", 1.0), ("part", 0.5), ("two", 2.0), ("eight", 8.0)] {
        intake.add(&jobs::Job { gpu_kind: "MIG-1g.5gb".into(), ..row(id, 0, gpus, 60) });
    }
    let (jobs, used) = intake.finish().expect("two can");
    assert_eq!(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["one", "part"]);
    assert_eq!(used.left_out[SEVERAL_SLICES], 2);
}

#[test]
fn jobs_that_had_not_ended_are_left_out_unless_steps_tell_of_them() {
    let cluster = Cluster::uniform(1, 8, 1, GpuKind::named("v100")).expect("valid");
    let mut intake = Intake::new(&cluster);
    let status = Some(jobs::Status::Running);
    let running = jobs::Job { status, duration: None, ..row("a", 0, 1.0, 60) };
    intake.add(&running);
    let second = Some(Nanos::from_millis(1_000));
    intake.add(&jobs::Job { steps: Some(9.0), step_time: second, ..running });
    let (jobs, used) = intake.finish().expect("one can");
    assert_eq!((jobs.len(), jobs[0].work, used.left_out[UNFINISHED]), (1, 9.0, 1));
}

#[test]
fn arrivals_are_not_made_up() {
    let cluster = Cluster::uniform(1, 8, 1, GpuKind::named("v100")).expect("valid");
    let mut intake = Intake::new(&cluster);
    intake.add(&jobs::Job { submit: None, ..row("a", 0, 1.0, 60) });
    let error = intake.finish().expect_err("no submission");
    assert!(error.hints().iter().any(|hint| hint.contains("--column submit=")), "{error:?}");
}
