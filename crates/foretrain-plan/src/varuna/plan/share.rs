//! Whose the time of a step is: every nanosecond has one owner.

use foretrain_core::Nanos;

use super::Candidate;
use crate::varuna::simulate::Run;

/// Who takes a part of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// What stages compute on average, recomputing included.
    Computing,
    /// What the slowest stage computes beyond the average.
    Imbalance,
    /// Filling and draining the pipeline, and waits that the order of work brings.
    Bubble,
    /// What messages add to the pipeline.
    Messages,
    /// What random lateness adds to the pipeline.
    Jitter,
    /// The all-reduce of gradients.
    AllReduce,
    /// The optimizer's update.
    Update,
}

impl Owner {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Computing,
        Self::Imbalance,
        Self::Bubble,
        Self::Messages,
        Self::Jitter,
        Self::AllReduce,
        Self::Update,
    ];

    /// The word for tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Computing => "computing",
            Self::Imbalance => "imbalance",
            Self::Bubble => "bubble",
            Self::Messages => "messages",
            Self::Jitter => "jitter",
            Self::AllReduce => "all-reduce",
            Self::Update => "update",
        }
    }
}

/// The parts of a step; they add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares([Nanos; 7]);

impl Shares {
    /// From a run without jitter, the pipeline's time with it, and that without messages. A schedule
    /// may be faster with messages than without; they then own nothing.
    pub(super) fn new(
        run: &Run,
        makespan: Nanos,
        silent: Nanos,
        all_reduce: Nanos,
        update: Nanos,
    ) -> Self {
        let slowest = run.busy.iter().copied().max().unwrap_or_default();
        let all: Nanos = run.busy.iter().copied().sum();
        let mean = Nanos::from_nanos(all.nanos() / run.busy.len().max(1) as i64);
        let messages = (run.makespan - silent).clamp_positive();
        let mut shares = Self::default();
        for (owner, time) in [
            (Owner::Computing, mean),
            (Owner::Imbalance, slowest - mean),
            (Owner::Bubble, run.makespan - messages - slowest),
            (Owner::Messages, messages),
            (Owner::Jitter, makespan - run.makespan),
            (Owner::AllReduce, all_reduce),
            (Owner::Update, update),
        ] {
            shares.0[owner as usize] = time;
        }
        shares
    }

    /// One owner's part.
    pub fn of(&self, owner: Owner) -> Nanos {
        self.0[owner as usize]
    }
}

/// Says of each but the first of a ranking what it loses by.
pub(super) fn explain(ranked: &mut [Candidate]) {
    let Some((first, rest)) = ranked.split_first_mut() else { return };
    for other in rest {
        // The same number of samples in both.
        let scale = first.samples as f64 / other.samples as f64;
        let more = |owner| other.shares.of(owner).scale(scale) - first.shares.of(owner);
        let most = Owner::ALL.into_iter().max_by_key(|owner| (more(*owner), *owner));
        let lost_to = most.map(|owner| (owner, more(owner))).filter(|(_, t)| *t > Nanos::ZERO);
        other.lost_to = lost_to;
        let least = first.per_sample();
        other.slower = if least > 0.0 { other.per_sample() / least } else { 1.0 };
    }
}
