//! Jobs that run on as many GPUs as they are given.
//!
//! A step takes what [`StepTimes`] say. What a step is worth depends on the batch: larger batches have
//! less noise in their gradients, so a step does more, but less than in proportion
//! ([`Efficiency`]). The product is *goodput*: progress per second (Pollux, Qiao et al., OSDI 2021).

mod efficiency;
mod fit;
mod step_times;

use std::sync::{Arc, OnceLock};

use super::job::Scaling;

pub use efficiency::{Efficiency, Phase};
pub use step_times::{Measured, StepTimes};

/// How a job's batch is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// The same number of samples per step at every size.
    Fixed(u64),
    /// Whatever has the largest goodput.
    Adaptive,
}

/// Samples that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// The batch that progress is counted in.
    pub initial: u64,
    /// Largest batch that still trains.
    pub most: u64,
    /// Fewest samples per GPU and pass.
    pub least_local: u64,
    /// Most samples per GPU and pass: its memory.
    pub most_local: u64,
}

/// What is known of a training job, whoever runs it. Its unit of work is a step at the initial batch.
#[derive(Debug)]
pub struct Application {
    times: StepTimes,
    efficiency: Efficiency,
    limits: BatchLimits,
    /// Best splits by phase, GPUs and whether nodes are crossed, worked out when first asked for.
    best: Vec<OnceLock<Option<Split>>>,
    most_gpus: u32,
}

/// An elastic job.
#[derive(Clone, Debug)]
pub struct Elastic {
    application: Arc<Application>,
    batch: Batch,
    most_gpus: u32,
}

/// Samples per GPU and pass, and passes per step beside the last (gradient accumulation).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Split {
    local: u64,
    accumulated: u64,
}

/// Batches tried between the least and the most, in geometric steps.
const TRIED: u32 = 50;
/// No job is tried on more.
const MOST_GPUS: u32 = 4_096;

impl Application {
    /// A job of which steps take `times` and are worth what `efficiency` says.
    pub fn new(times: StepTimes, efficiency: Efficiency, limits: BatchLimits) -> Self {
        let most = limits.most / limits.least_local.max(1);
        let most_gpus = u32::try_from(most).unwrap_or(u32::MAX).clamp(1, MOST_GPUS);
        let cells = efficiency.phases().max(1) * most_gpus as usize * 2;
        let best = std::iter::repeat_with(OnceLock::new).take(cells).collect();
        Self { times, efficiency, limits, best, most_gpus }
    }

    /// Most GPUs for which the largest batch has samples.
    pub fn most_gpus(&self) -> u32 {
        self.most_gpus
    }

    /// What fits.
    pub fn limits(&self) -> BatchLimits {
        self.limits
    }

    /// How a batch is divided among GPUs; `None` if it does not fit.
    fn split(&self, batch: u64, gpus: u32) -> Option<Split> {
        let BatchLimits { initial, most, least_local, most_local } = self.limits;
        let gpus = u64::from(gpus.max(1));
        let local = batch.div_ceil(gpus);
        let mut accumulated = local.div_ceil(most_local.max(1)).max(1) - 1;
        if gpus == 1 && batch > initial {
            // One pass says nothing of the gradients' noise, by which the learning rate is scaled.
            accumulated = accumulated.max(1);
        }
        let local = local.div_ceil(accumulated + 1).min(most / (gpus * (accumulated + 1)));
        (local >= least_local.max(1) && local <= most_local).then_some(Split { local, accumulated })
    }

    /// Progress per second of a split whose steps and synchronisation take so many seconds.
    fn goodput(&self, split: Split, gpus: u32, done: f64, (step, sync): (f64, f64)) -> f64 {
        let batch = u64::from(gpus) * split.local * (split.accumulated + 1);
        let time = step + (step - sync).max(0.0) * split.accumulated as f64;
        if time > 0.0 { self.efficiency.gain(batch, self.limits.initial, done) / time } else { 0.0 }
    }

    /// The split of the largest goodput.
    fn best(&self, gpus: u32, nodes: u32, done: f64) -> Option<Split> {
        if gpus == 0 || gpus > self.most_gpus {
            return None;
        }
        let at = self.efficiency.at(done) * self.most_gpus as usize + gpus as usize - 1;
        let cell = self.best.get(2 * at + usize::from(nodes > 1))?;
        *cell.get_or_init(|| self.search(gpus, nodes, done))
    }

    fn search(&self, gpus: u32, nodes: u32, done: f64) -> Option<Split> {
        let most = self.limits.most;
        let least = self.limits.initial.max(self.limits.least_local * u64::from(gpus));
        if least > most {
            return None;
        }
        let ratio = most as f64 / least as f64;
        let batch = |number: u32| {
            let part = f64::from(number) / f64::from(TRIED - 1);
            (least as f64 * ratio.powf(part)).round() as u64
        };
        let tried = (0..TRIED).filter_map(|number| self.split(batch(number), gpus));
        let scored = tried.map(|split| {
            let times = self.times.curve(gpus, nodes, split.local);
            (self.goodput(split, gpus, done, times), split)
        });
        scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, split)| split)
    }
}

impl Elastic {
    /// A job that may use up to so many GPUs.
    pub fn new(application: Arc<Application>, batch: Batch, most_gpus: u32) -> Self {
        Self { application, batch, most_gpus }
    }

    fn choose(&self, gpus: u32, nodes: u32, done: f64) -> Option<Split> {
        match self.batch {
            Batch::Fixed(batch) => self.application.split(batch, gpus),
            Batch::Adaptive => self.application.best(gpus, nodes, done),
        }
    }
}

impl Scaling for Elastic {
    fn speed(&self, gpus: u32, nodes: u32, done: f64) -> f64 {
        let split = self.choose(gpus, nodes, done);
        split.map_or(0.0, |split| {
            let times = self.application.times.even(gpus, nodes, split.local);
            self.application.goodput(split, gpus, done, times)
        })
    }

    fn is_learnt(&self) -> bool {
        true
    }

    fn changes_after(&self, done: f64) -> Option<f64> {
        self.application.efficiency.phase_end(done)
    }

    fn most_gpus(&self) -> u32 {
        self.most_gpus
    }

    fn speed_placed(&self, per_node: &[u32], done: f64) -> f64 {
        let (gpus, nodes) = (per_node.iter().sum(), per_node.len() as u32);
        let split = self.choose(gpus, nodes, done);
        let Application { times, .. } = &*self.application;
        split.map_or(0.0, |split| {
            self.application.goodput(split, gpus, done, times.placed(per_node, split.local))
        })
    }
}

#[cfg(test)]
mod tests;
