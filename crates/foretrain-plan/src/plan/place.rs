//! One cluster and size: what was found there.

use std::sync::atomic::AtomicBool;

use foretrain_core::{Bytes, InputError, Nanos, Result};
use serde::Serialize;

use super::rank::settle;
use super::search::{Candidate, Found, Progress, Question, search};
use crate::calibrate::Calibrated;
use crate::estimate::{Answer, Cost, cost, model_flops, tokens_per_sample};
use crate::horizon::Horizon;
use crate::layout::Layout;
use crate::step::Job;

/// What was found for a cluster and a size.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// The cluster.
    pub cluster: String,
    /// Devices.
    pub devices: u32,
    /// Memory of a device.
    pub capacity: Bytes,
    /// Memory that was allowed to be filled.
    pub limit: Bytes,
    /// Layouts, in the order of preference.
    pub found: Found,
    /// The fastest layout, where a simpler one of equal time is preferred to it.
    pub fastest: Option<Candidate>,
    /// Everything about the preferred layout.
    pub winner: Option<Answer>,
    /// What it takes to finish the tokens asked for.
    pub horizon: Option<Horizon>,
    /// What times turn into.
    pub rates: Rates,
    /// Measured steps that its times rest on.
    pub calibrated: Option<Calibrated>,
}

/// What a step time turns into at one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rates {
    devices: f64,
    /// Tokens (or samples) of a step.
    pub tokens: f64,
    /// Whether these are samples.
    pub in_samples: bool,
    model_flops: f64,
    peak: Option<f64>,
    hourly: Cost,
}

impl Rates {
    fn of(question: &Question<'_>) -> Self {
        let Question { model, training, cluster, devices, .. } = *question;
        let peak = cluster.node.device.peak(training.precision.compute);
        Self {
            devices: f64::from(devices),
            tokens: tokens_per_sample(model, training) * training.global_batch as f64,
            in_samples: matches!(model.sample, foretrain_workload::model::Sample::Fixed),
            model_flops: model_flops(model, training),
            peak: peak.map(foretrain_core::FlopRate::get).filter(|&peak| peak > 0.0),
            hourly: cost(cluster, u64::from(devices), Nanos::from_millis(3_600_000)),
        }
    }

    /// Tokens per second.
    pub fn tokens_per_second(&self, step: Nanos) -> f64 {
        self.tokens / step.secs_f64().max(1e-12)
    }
    /// Tokens per second and device.
    pub fn tokens_per_second_and_device(&self, step: Nanos) -> f64 {
        self.tokens_per_second(step) / self.devices
    }
    /// As [`Answer::mfu`].
    pub fn mfu(&self, step: Nanos) -> Option<f64> {
        let seconds = step.secs_f64().max(1e-12);
        self.peak.map(|peak| self.model_flops / (seconds * self.devices * peak))
    }
    /// US dollars for a million tokens, where the price is known.
    pub fn dollars_per_million(&self, step: Nanos) -> Option<f64> {
        let hours = step.secs_f64() / 3600.0;
        self.hourly.dollars_per_hour.map(|dollars| dollars * hours * 1e6 / self.tokens)
    }
}

impl Place {
    /// Searches, puts what was found in order and looks at the best of it. `tokens` are to be
    /// finished.
    ///
    /// # Errors
    /// If the cluster cannot hold the job, or no layout goes with it, whatever the memory.
    pub fn search(
        question: &Question<'_>,
        stop: &AtomicBool,
        progress: &(dyn Fn(Progress) + Sync),
        tokens: Option<f64>,
    ) -> Result<Self> {
        question.cluster.nodes_for(u64::from(question.devices))?;
        let capacity = question.cluster.node.device.memory;
        if let Some(limit) = question.memory.filter(|&limit| limit > capacity) {
            let device = &question.cluster.node.device.name;
            return Err(InputError::new(format!(
                "{limit} are more than the {capacity} of a {device}"
            ))
            .hint("give --memory what may be used of a device, as in 90% or 70GiB"));
        }
        let mut found = search(question, stop, progress)?;
        if found.looked_at == found.all && found.ranked.is_empty() && found.nearest.is_none() {
            return Err(question.refusal());
        }
        let fastest = found.ranked.first().cloned();
        settle(&mut found.ranked);
        let winner = found.ranked.first();
        let fastest = fastest.filter(|fastest| Some(&fastest.layout) != winner.map(|w| &w.layout));
        let winner = winner.map(|winner| question.answer(&winner.layout)).transpose()?;
        Ok(Self {
            cluster: question.cluster.name.clone(),
            devices: question.devices,
            capacity,
            limit: question.memory.unwrap_or(capacity),
            horizon: tokens
                .zip(winner.as_ref())
                .and_then(|(tokens, answer)| answer.horizon(tokens)),
            found,
            fastest,
            winner,
            rates: Rates::of(question),
            calibrated: question.calibrated.cloned(),
        })
    }

    /// Positions, in the ranking, of the layouts that no other beats in both time and memory, the
    /// fastest first.
    pub fn front(&self) -> Vec<usize> {
        let ranked = &self.found.ranked;
        let mut order: Vec<usize> = (0..ranked.len()).collect();
        order.sort_by_key(|&at| (ranked[at].time.value, ranked[at].memory, at));
        let mut least: Option<Bytes> = None;
        order.retain(|&at| {
            let better = least.is_none_or(|least| ranked[at].memory < least);
            if better {
                least = Some(ranked[at].memory);
            }
            better
        });
        order
    }

    /// Whether the model cannot tell a candidate's time from the winner's: their intervals overlap.
    pub fn ties(&self, candidate: &Candidate) -> bool {
        self.found.ranked.first().is_some_and(|winner| {
            candidate.time.low <= winner.time.high && winner.time.low <= candidate.time.high
        })
    }
}

impl Question<'_> {
    /// Why there is no layout at all: what is wrong with the simplest that the pins leave.
    fn refusal(&self) -> InputError {
        let simplest = self.space.wish.complete(self.devices);
        let Err(error) = simplest.and_then(|layout| self.answer(&layout)) else {
            let devices = self.devices;
            return InputError::new(format!("no layout of {devices} devices goes with the job"))
                .hint("leave choices open (--pin), or choose another batch or number of GPUs");
        };
        error
    }

    /// Asks a job that knows nothing yet.
    pub(super) fn with_job<T>(&self, ask: impl FnOnce(&Job<'_>) -> T) -> T {
        let machine = self.machine();
        ask(&Job::new(self.model, self.training, self.software, &machine))
    }

    /// Everything about one layout.
    ///
    /// # Errors
    /// As [`Job::answer`].
    pub fn answer(&self, layout: &Layout) -> Result<Answer> {
        self.with_job(|job| self.ask(job, layout))
    }
}
