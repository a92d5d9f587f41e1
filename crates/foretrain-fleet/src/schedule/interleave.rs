//! Groups of jobs that take turns on different resources.

use foretrain_core::Nanos;

use super::job::{Job, Stages};

/// The time in which each job of a group makes one step.
///
/// Storage and CPU, the GPU, and the network each serve one job at a time, in turn; while one job
/// computes, others read ahead and communicate. So a round lasts as long as the resource that is used
/// most, and no shorter than any job's own step, of which computation and communication follow each
/// other. That is the least time of any order of turns.
///
/// Multi-resource interleaving is from Muri, Zhao et al., SIGCOMM 2022, which orders steps in slots.
pub fn round(group: &[&Job]) -> Nanos {
    let sum = |part: fn(Stages) -> Nanos| {
        group.iter().map(|job| part(stages(job))).fold(Nanos::ZERO, |sum, part| sum + part)
    };
    let resources = [sum(|s| s.input), sum(|s| s.compute), sum(|s| s.network)];
    let own = group.iter().map(|job| stages(job)).map(|s| match group.len() {
        // Alone it may overlap all its parts.
        1 => s.step,
        _ => s.step.max(s.compute + s.network),
    });
    own.chain(if group.len() > 1 { resources } else { [Nanos::ZERO; 3] })
        .fold(Nanos::ZERO, Nanos::max)
}

/// Time of a step on all resources together.
pub(super) fn resources(job: &Job) -> Nanos {
    let stages = stages(job);
    stages.input + stages.compute + stages.network
}

/// Parts of a step; a job of which none are known uses the GPU all the time.
fn stages(job: &Job) -> Stages {
    job.stages.unwrap_or_else(|| {
        let load = job.load();
        let compute = load.step.scale(load.busy);
        Stages { input: load.step - compute, compute, network: Nanos::ZERO, step: load.step }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(input: i64, compute: i64, network: i64) -> Job {
        let ms = Nanos::from_millis;
        let step = ms(input.max(compute + network));
        let stages = Stages { input: ms(input), compute: ms(compute), network: ms(network), step };
        Job { stages: Some(stages), ..Job::new("job", Nanos::ZERO, 1, Nanos::ZERO) }
    }

    #[test]
    fn jobs_that_need_different_things_cost_each_other_nothing() {
        let (reader, computer, talker) = (job(9, 0, 0), job(0, 9, 0), job(0, 0, 9));
        let group = [&reader, &computer, &talker];
        assert_eq!(round(&group[..2]), Nanos::from_millis(9));
        assert_eq!(round(&group), Nanos::from_millis(9));
    }

    #[test]
    fn jobs_that_need_the_same_take_turns() {
        let (one, other) = (job(0, 7, 0), job(0, 5, 0));
        assert_eq!(round(&[&one, &other]), Nanos::from_millis(12));
        assert_eq!(round(&[&one]), Nanos::from_millis(7));
        assert_eq!(round(&[]), Nanos::ZERO);
    }

    #[test]
    fn no_job_is_faster_than_alone() {
        // The GPU serves both in 10 ms, but the second one needs 11 for itself.
        let (one, other) = (job(2, 4, 1), job(3, 6, 5));
        assert_eq!(round(&[&one, &other]), Nanos::from_millis(11));
    }
}
