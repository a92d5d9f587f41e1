//! What a step has to do, checked: every part is known and possible.

use foretrain_core::{Bytes, Flops, Ledger, Nanos, Severity};

use super::hardware::Hardware;
use super::step::{Overlap, Step};
use crate::jobs::{Class, Features, Job, TrafficCounts};

/// What one step of one replica does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// How the job is spread.
    pub class: Class,
    /// Replicas.
    pub cnodes: u32,
    /// Floating-point work.
    pub flops: Flops,
    /// Bytes of memory-bound operations.
    pub memory_access: Bytes,
    /// Input copied to the device.
    pub input: Bytes,
    /// Weights and gradients, sent and received.
    pub traffic: Bytes,
    /// Dense weights, if known.
    pub dense_weights: Option<Bytes>,
    /// Embedding weights, if known.
    pub embedding_weights: Option<Bytes>,
    /// Embedding rows that a step touches, if known.
    pub embedding_touched: Option<Bytes>,
}

/// Why a row is no job that can be timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has no features at all, as rows of cluster logs.
    NoFeatures,
    /// Some features are missing.
    Incomplete,
    /// Fewer replicas than its class has.
    TooFew,
    /// More replicas than a server has GPUs, in a class of one server.
    TooMany,
    /// Several replicas in the class of one GPU.
    NotOneGpu,
    /// A medium that its class does not use.
    WrongMedium,
    /// Next to nothing to do in a step.
    NoWork,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Refusal; 7] = [
        Self::NoFeatures,
        Self::Incomplete,
        Self::TooFew,
        Self::TooMany,
        Self::NotOneGpu,
        Self::WrongMedium,
        Self::NoWork,
    ];

    const fn said(self) -> (&'static str, &'static str) {
        match self {
            Self::NoFeatures => {
                ("no-features", "row without features of a step: only its times and GPUs count")
            }
            Self::Incomplete => (
                "features-incomplete",
                "class, FLOPs, memory access, input or traffic missing: not timed",
            ),
            Self::TooFew => {
                ("class-needs-more-cnodes", "fewer cNodes than its class has: not timed")
            }
            Self::TooMany => (
                "class-of-one-server",
                "more cNodes than a server has GPUs, in a class of one server: not timed",
            ),
            Self::NotOneGpu => ("one-gpu-class", "several cNodes in class 1w1g: not timed"),
            Self::WrongMedium => {
                ("class-and-medium", "a medium that its class does not use: not timed")
            }
            Self::NoWork => ("no-work", "a step of less than a microsecond: not timed"),
        }
    }

    /// Writes how often it was met to a ledger.
    pub fn record(self, count: u64, first: Option<u64>, ledger: &mut Ledger) {
        let (code, message) = self.said();
        let severity = if self == Self::NoFeatures { Severity::Note } else { Severity::Dropped };
        ledger.record_many(severity, code, message, count, first.map(|row| format!("row {row}")));
    }
}

impl Work {
    /// What a row's step does. Without a class of one GPU, `traffic` is needed; it counts as
    /// `assumed` where the row does not say which directions it holds.
    ///
    /// # Errors
    /// If the row has no features, not all of them, or impossible ones.
    pub fn of(job: &Job, hardware: &Hardware, assumed: TrafficCounts) -> Result<Self, Refusal> {
        let features = &job.features;
        let Some(class) = features.class else {
            let any = features.flops.is_some() || features.memory_access.is_some();
            return Err(if any { Refusal::Incomplete } else { Refusal::NoFeatures });
        };
        let alone = class == Class::OneWorkerOneGpu;
        let cnodes = match features.cnodes.or_else(|| whole(job.gpus)) {
            Some(cnodes) => cnodes,
            None if alone => 1,
            None => return Err(Refusal::Incomplete),
        };
        check(class, cnodes, features, hardware)?;
        let (Some(flops), Some(memory_access), Some(input)) =
            (features.flops, features.memory_access, features.input)
        else {
            return Err(Refusal::Incomplete);
        };
        let traffic = match features.traffic {
            Some(traffic) => features.traffic_counts.unwrap_or(assumed).both_ways(traffic),
            None if alone => Bytes::ZERO,
            None => return Err(Refusal::Incomplete),
        };
        let work = Self {
            class,
            cnodes,
            flops,
            memory_access,
            input,
            traffic,
            dense_weights: features.dense_weights,
            embedding_weights: features.embedding_weights,
            embedding_touched: features.embedding_touched,
        };
        // Shares of a step that rounds to nothing would be no numbers.
        if Step::of(&work, hardware).total(Overlap::Ideal) < Nanos::from_micros(1) {
            return Err(Refusal::NoWork);
        }
        Ok(work)
    }
}

fn check(
    class: Class,
    cnodes: u32,
    features: &Features,
    hardware: &Hardware,
) -> Result<(), Refusal> {
    if class == Class::OneWorkerOneGpu && cnodes > 1 {
        return Err(Refusal::NotOneGpu);
    }
    if cnodes < class.fewest() {
        return Err(Refusal::TooFew);
    }
    if class.within_a_server() && cnodes > hardware.gpus_per_server {
        return Err(Refusal::TooMany);
    }
    match features.medium {
        Some(medium) if !class.media().contains(&medium) => Err(Refusal::WrongMedium),
        _ => Ok(()),
    }
}

fn whole(gpus: Option<f64>) -> Option<u32> {
    gpus.filter(|gpus| gpus.fract() == 0.0 && *gpus >= 1.0).map(|gpus| gpus as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Medium;

    fn job(class: Class, cnodes: u32) -> Job {
        let features = Features {
            class: Some(class),
            cnodes: Some(cnodes),
            flops: Some(Flops::new(1e12)),
            memory_access: Some(Bytes::new(1)),
            input: Some(Bytes::new(1)),
            traffic: Some(Bytes::new(100)),
            ..Features::default()
        };
        Job { features, ..Job::default() }
    }

    fn of(job: &Job) -> Result<Work, Refusal> {
        Work::of(job, &Hardware::pai_2019(), TrafficCounts::SentAndReceived)
    }

    #[test]
    fn impossible_jobs_are_refused() {
        assert_eq!(of(&job(Class::OneWorkerOneGpu, 2)), Err(Refusal::NotOneGpu));
        assert_eq!(of(&job(Class::AllReduceLocal, 9)), Err(Refusal::TooMany));
        assert_eq!(of(&job(Class::AllReduceCluster, 1)), Err(Refusal::TooFew));
        assert_eq!(of(&Job::default()), Err(Refusal::NoFeatures));
        let mut wrong = job(Class::AllReduceLocal, 8);
        wrong.features.medium = Some(Medium::Ethernet);
        assert_eq!(of(&wrong), Err(Refusal::WrongMedium));
        wrong.features.medium = Some(Medium::NvLink);
        assert!(of(&wrong).is_ok());
        wrong.features.traffic = None;
        assert_eq!(of(&wrong), Err(Refusal::Incomplete));
    }

    #[test]
    fn traffic_that_counts_one_direction_is_doubled() {
        let mut one_way = job(Class::PsWorker, 4);
        one_way.features.traffic_counts = Some(TrafficCounts::Sent);
        assert_eq!(of(&one_way).unwrap().traffic, Bytes::new(200));
        assert_eq!(of(&job(Class::PsWorker, 4)).unwrap().traffic, Bytes::new(100));
    }
}
