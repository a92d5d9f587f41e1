//! Policies by name.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use foretrain_core::suggest::nearest;
use foretrain_core::{InputError, Nanos, Result};

use super::las::USUAL_LIMITS;
use super::{
    Gandiva, Goodput, Horus, Interleave, LeastAttained, MarginalGain, Moving, Order, Placer,
    Policy, Queue, Rank, Ranked,
};

/// A policy that can be made anew for every run.
#[derive(Clone, Copy)]
pub struct Named {
    /// As users write it.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// Whether jobs on one GPU take turns on resources, as the policy arranges it.
    pub interleaves: bool,
    make: &'static Make,
}

/// Makes a policy for one run.
pub type Make = dyn Fn(&Rules) -> Box<dyn Policy + Send> + Send + Sync;

/// Policies that this process knows beside Foretrain's own.
static INSTALLED: RwLock<Vec<&'static Named>> = RwLock::new(Vec::new());

/// What policies have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// How often those decide that decide at intervals.
    pub interval: Nanos,
    /// What a restart is believed to cost.
    pub restart: Nanos,
    /// How GPUs are chosen.
    pub placer: Placer,
    /// GPU-seconds between Tiresias's queues.
    pub limits: Vec<f64>,
    /// Queues of Horus+.
    pub queues: usize,
    /// Most jobs of a group that interleaves.
    pub group: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            interval: Nanos::from_millis(60_000),
            restart: Nanos::ZERO,
            placer: Placer::Consolidated,
            limits: USUAL_LIMITS.to_vec(),
            queues: 3,
            group: 4,
        }
    }
}

/// All of them, in the order of tables.
pub const POLICIES: [Named; 17] = [
    named("fifo", "first come, first served; who does not fit holds up all behind it", &|rules| {
        Box::new(Queue::new(Order::Arrival, rules.placer, false))
    }),
    named("fifo+backfill", "first come, first served; smaller jobs may pass", &|rules| {
        Box::new(Queue::new(Order::Arrival, rules.placer, true))
    }),
    named("best-fit", "first come, where the fewest idle GPUs become useless", &|_| {
        Box::new(Queue::new(Order::Arrival, Placer::LeastFragments, true))
    }),
    named("sjf", "shortest job first, by expected duration", &|rules| {
        Box::new(Queue::new(Order::Shortest, rules.placer, true))
    }),
    named("ssf", "smallest service first: expected duration times GPUs", &|rules| {
        Box::new(Queue::new(Order::LeastService, rules.placer, true))
    }),
    named("smallest", "fewest GPUs first", &|rules| {
        Box::new(Queue::new(Order::Smallest, rules.placer, true))
    }),
    named("srtf", "shortest remaining time first, pre-empting", &|rules| {
        Box::new(Ranked::new(Rank::ShortestRemaining, rules.placer))
    }),
    named("srsf", "shortest remaining service first, pre-empting", &|rules| {
        Box::new(Ranked::new(Rank::LeastRemainingService, rules.placer))
    }),
    named("tiresias", "least attained service in discrete queues, pre-empting", &|rules| {
        let moving = Moving::Replan(rules.placer);
        Box::new(LeastAttained::new(rules.limits.clone(), moving).every(rules.interval))
    }),
    named("themis", "finish-time fairness, pre-empting", &|rules| {
        let fair = Ranked::new(Rank::FinishTimeFairness, rules.placer);
        Box::new(fair.every(rules.interval))
    }),
    named("gandiva", "packing where GPUs have room, and time slices", &|rules| {
        // A turn costs a restart; slices are long enough that turns cost a tenth at most.
        Box::new(Gandiva::new(rules.interval.max(rules.restart.scale(10.0))))
    }),
    named("horus", "packing by predicted utilisation", &|_| Box::new(Horus::new())),
    named("horus+", "packing by predicted utilisation, jobs alike in one queue", &|rules| {
        Box::new(Horus::grouped(rules.queues))
    }),
    named("pollux", "elastic: sizes of the best goodput over all jobs", &|rules| {
        Box::new(Goodput::new(rules.interval, rules.restart))
    }),
    named("optimus", "elastic: each GPU to whom it saves most time", &|rules| {
        Box::new(MarginalGain::new(rules.interval))
    }),
    interleaving("muri-s", "jobs of equal size interleaved, by remaining service", &|rules| {
        Box::new(Interleave::new(true, rules.group, rules.placer).every(rules.interval))
    }),
    interleaving("muri-l", "jobs of equal size interleaved, by attained service", &|rules| {
        Box::new(Interleave::new(false, rules.group, rules.placer).every(rules.interval))
    }),
];

const fn named(name: &'static str, about: &'static str, make: &'static Make) -> Named {
    Named { name, about, interleaves: false, make }
}

const fn interleaving(name: &'static str, about: &'static str, make: &'static Make) -> Named {
    Named { name, about, interleaves: true, make }
}

impl Named {
    /// The policy of this name; case does not matter.
    ///
    /// # Errors
    /// If there is none.
    pub fn find(name: &str) -> Result<&'static Self> {
        let wanted = name.trim().to_ascii_lowercase();
        let installed = INSTALLED.read().unwrap_or_else(PoisonError::into_inner);
        let all = || POLICIES.iter().chain(installed.iter().copied());
        all().find(|policy| policy.name == wanted).ok_or_else(|| {
            let names = || all().map(|policy| policy.name);
            let error = InputError::new(format!("no policy is called {name:?}"));
            match nearest(&wanted, names()) {
                Some(near) => error.hint(format!("did you mean {near:?}?")),
                None => error.hint(format!("policies: {}", names().collect::<Vec<_>>().join(", "))),
            }
        })
    }

    /// Makes a policy known to the whole process, in place of one of that name that was installed
    /// before. The name is in lower case.
    ///
    /// # Errors
    /// If Foretrain has a policy of that name, or the name has capitals.
    pub fn install(name: &'static str, about: &'static str, make: &'static Make) -> Result<()> {
        if name.is_empty() || name != name.trim().to_ascii_lowercase() {
            return Err(InputError::new(format!("no name for a policy: {name:?}"))
                .hint("use lower case and no spaces around it"));
        }
        if POLICIES.iter().any(|policy| policy.name == name) {
            return Err(InputError::new(format!("there is a policy {name:?} already")));
        }
        let policy: &'static Self = Box::leak(Box::new(named(name, about, make)));
        let mut installed = INSTALLED.write().unwrap_or_else(PoisonError::into_inner);
        installed.retain(|other| other.name != name);
        installed.push(policy);
        Ok(())
    }

    /// A fresh one.
    pub fn make(&self, rules: &Rules) -> Box<dyn Policy + Send> {
        (self.make)(rules)
    }
}

impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Named").field(&self.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_call_themselves_as_they_are_called() {
        for policy in &POLICIES {
            assert_eq!(policy.make(&Rules::default()).name(), policy.name);
            assert_eq!(Named::find(policy.name).expect("known").name, policy.name);
        }
        let error = Named::find("fifoo").expect_err("unknown");
        assert!(error.hints()[0].contains("\"fifo\""), "{:?}", error.hints());
    }
}
