//! Idle GPUs that no job can use where they are.
//!
//! The measure is that of fragmentation gradient descent (Weng et al., USENIX ATC 2023), for whole
//! GPUs: what a job drawn from the table could not use of a node's idle GPUs, in the mean.

use super::job::{Job, Share};

/// What idle GPUs of a node are worth to the jobs there are.
#[derive(Clone, Debug, PartialEq)]
pub struct Fragments {
    /// Expected useless GPUs of a node with so many idle ones.
    useless: Vec<f64>,
}

impl Fragments {
    /// From what jobs ask of one node.
    pub fn new(jobs: &[Job], node: u32) -> Self {
        let mut asked = vec![0.0; node as usize + 1];
        let on_node = |job: &&Job| job.share == Share::Whole && job.gpus > 0;
        let mut count = 0.0;
        for job in jobs.iter().filter(on_node) {
            // What fills nodes asks for a whole one.
            asked[job.gpus.min(node) as usize] += 1.0;
            count += 1.0;
        }
        let expected = |idle: usize| {
            let too_large: f64 = asked.iter().skip(idle + 1).sum();
            if count > 0.0 { idle as f64 * too_large / count } else { 0.0 }
        };
        Self { useless: (0..=node as usize).map(expected).collect() }
    }

    /// Expected useless GPUs of a node with so many idle ones.
    pub fn useless(&self, idle: u32) -> f64 {
        self.useless.get(idle as usize).copied().unwrap_or(0.0)
    }

    /// How many more GPUs of a node become useless when `taken` of its `idle` ones are taken; it may
    /// be negative.
    pub fn added(&self, idle: u32, taken: u32) -> f64 {
        self.useless(idle.saturating_sub(taken)) - self.useless(idle)
    }
}

#[cfg(test)]
mod tests {
    use foretrain_core::Nanos;

    use super::*;

    #[test]
    fn idle_gpus_are_useless_to_larger_jobs() {
        let jobs = [1, 4, 8, 16].map(|gpus| Job::new("job", Nanos::ZERO, gpus, Nanos::ZERO));
        let fragments = Fragments::new(&jobs, 8);
        assert_eq!(fragments.useless(8), 0.0);
        // Half of the jobs want a whole node, a quarter wants four GPUs.
        assert_eq!(fragments.useless(3), 3.0 * 0.75);
        assert_eq!(fragments.useless(4), 4.0 * 0.5);
        assert_eq!(fragments.added(4, 4), -2.0);
        assert_eq!(fragments.added(8, 4), 2.0);
    }
}
