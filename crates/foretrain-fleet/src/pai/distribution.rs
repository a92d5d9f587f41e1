//! What a table of jobs says without the features of their steps: how long they ran and waited, how
//! many GPUs they held.

use super::histogram::Sizes;
use crate::jobs::{Job, Status};

/// Parts of the jobs at which values are given.
pub const QUANTILES: [f64; 6] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.99];

/// The distribution of one quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Rows that have it.
    pub rows: u64,
    /// Mean.
    pub mean: f64,
    /// Values at [`QUANTILES`], to a per cent.
    pub quantiles: [f64; QUANTILES.len()],
    /// The most.
    pub most: f64,
    /// All added up.
    pub sum: f64,
}

/// Sizes of jobs that are told apart, with the GPUs below which each ends.
pub const GPU_BINS: [(&str, f64); 7] = [
    ("0", 1e-9),
    ("part of one", 1.0),
    ("1", 1.000_001),
    ("2 to 7", 8.0),
    ("8", 8.000_001),
    ("9 to 64", 64.000_001),
    ("more than 64", f64::INFINITY),
];

/// Jobs and GPU-seconds of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Group {
    /// Jobs.
    pub jobs: u64,
    /// Jobs whose GPUs and run time are known.
    pub timed: u64,
    /// Their GPU-seconds.
    pub gpu_seconds: f64,
}

impl Group {
    fn add(&mut self, held: Option<f64>) {
        self.jobs += 1;
        self.timed += u64::from(held.is_some());
        self.gpu_seconds += held.unwrap_or(0.0);
    }
}

/// Distributions of a table of jobs.
#[derive(Clone, Debug, Default)]
pub struct Distributions {
    rows: u64,
    run: Sizes,
    wait: Sizes,
    gpus: Sizes,
    gpu_seconds: Sizes,
    by_status: [Group; Status::ALL.len()],
    without_status: u64,
    by_gpus: [Group; GPU_BINS.len()],
    dated: u64,
    slices: u64,
}

impl Distributions {
    pub(super) fn add(&mut self, job: &Job) {
        self.rows += 1;
        self.dated += u64::from(job.submit.is_some());
        self.slices += u64::from(job.slice().is_some());
        let run = job.run_time().map(foretrain_core::Nanos::secs_f64);
        let gpus = job.whole_gpus();
        let held = job.gpu_seconds();
        if let Some(run) = run {
            self.run.add(run);
        }
        if let Some(wait) = job.wait_time() {
            self.wait.add(wait.secs_f64());
        }
        if let Some(held) = held {
            self.gpu_seconds.add(held);
        }
        if let Some(gpus) = gpus {
            self.gpus.add(gpus);
            let bin = GPU_BINS.iter().position(|(_, end)| gpus < *end).unwrap_or(0);
            self.by_gpus[bin].add(held);
        }
        match job.status {
            Some(status) => self.by_status[status as usize].add(held),
            None => self.without_status += 1,
        }
    }

    /// Rows of the table.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Rows with a time of submission.
    pub fn submitted(&self) -> u64 {
        self.dated
    }

    /// Rows that ask for slices of GPUs, which count as their part.
    pub fn slices(&self) -> u64 {
        self.slices
    }

    /// Seconds that jobs ran.
    pub fn run_seconds(&self) -> Option<Spread> {
        spread(&self.run)
    }

    /// Seconds that jobs waited.
    pub fn wait_seconds(&self) -> Option<Spread> {
        spread(&self.wait)
    }

    /// GPUs that jobs held.
    pub fn gpus(&self) -> Option<Spread> {
        spread(&self.gpus)
    }

    /// GPU-hours that jobs held.
    pub fn gpu_hours(&self) -> Option<Spread> {
        let spread = spread(&self.gpu_seconds)?;
        Some(Spread {
            mean: spread.mean / 3600.0,
            quantiles: spread.quantiles.map(|value| value / 3600.0),
            most: spread.most / 3600.0,
            sum: spread.sum / 3600.0,
            ..spread
        })
    }

    /// Jobs by how they ended; empty if no row says.
    pub fn by_status(&self) -> Vec<(Status, Group)> {
        let groups = Status::ALL.into_iter().zip(self.by_status);
        groups.filter(|(_, group)| group.jobs > 0).collect()
    }

    /// Rows that do not say how they ended.
    pub fn without_status(&self) -> u64 {
        self.without_status
    }

    /// Jobs by their GPUs; empty if no row says.
    pub fn by_gpus(&self) -> Vec<(&'static str, Group)> {
        let groups = GPU_BINS.iter().map(|(name, _)| *name).zip(self.by_gpus);
        groups.filter(|(_, group)| group.jobs > 0).collect()
    }
}

fn spread(sizes: &Sizes) -> Option<Spread> {
    (sizes.count() > 0).then(|| Spread {
        rows: sizes.count(),
        mean: sizes.mean(),
        quantiles: QUANTILES.map(|part| sizes.quantile(part)),
        most: sizes.most(),
        sum: sizes.sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretrain_core::Nanos;

    #[test]
    fn jobs_are_told_apart_by_size_and_end() {
        let mut all = Distributions::default();
        for (gpus, status) in
            [(0.5, Status::Failed), (1.0, Status::Completed), (16.0, Status::Failed)]
        {
            let run = Some(Nanos::from_secs_f64(3600.0));
            let status = Some(status);
            all.add(&Job { gpus: Some(gpus), duration: run, status, ..Job::default() });
        }
        let sizes: Vec<&str> = all.by_gpus().into_iter().map(|(name, _)| name).collect();
        assert_eq!(sizes, ["part of one", "1", "9 to 64"]);
        assert_eq!(all.gpu_hours().map(|hours| hours.sum), Some(17.5));
        assert_eq!(all.by_status()[1].1, Group { jobs: 2, timed: 2, gpu_seconds: 16.5 * 3600.0 });
        assert_eq!(all.wait_seconds(), None);
    }

    /// No time is known of a job that still runs; that is not none.
    #[test]
    fn groups_say_of_how_many_jobs_gpu_hours_are_known() {
        let mut all = Distributions::default();
        let hour = Some(Nanos::from_secs_f64(3600.0));
        for duration in [None, hour, None] {
            all.add(&Job { gpus: Some(8.0), duration, ..Job::default() });
        }
        let expected = Group { jobs: 3, timed: 1, gpu_seconds: 8.0 * 3600.0 };
        assert_eq!(all.by_gpus(), [("8", expected)]);
    }

    #[test]
    fn slices_count_as_their_part_of_a_gpu() {
        let mut all = Distributions::default();
        let duration = Some(Nanos::from_secs_f64(3600.0));
        let gpu_kind = "MIG-1g.5gb".to_owned();
        all.add(&Job { gpus: Some(7.0), gpu_kind, duration, ..Job::default() });
        assert_eq!(all.gpu_hours().map(|hours| hours.sum), Some(1.0));
        assert_eq!(all.slices(), 1);
    }
}
