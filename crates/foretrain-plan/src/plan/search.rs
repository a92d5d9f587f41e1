//! Looking at every layout.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use foretrain_core::{Bytes, Estimate, InputError, Nanos, Result};
use foretrain_cost::kernels::KernelModel;
use foretrain_hardware::Cluster;
use foretrain_workload::model::Model;
use rayon::prelude::*;
use serde::Serialize;

use super::space::{Space, layouts};
use crate::Software;
use crate::calibrate::Calibrated;
use crate::check::{check_layout, check_training};
use crate::estimate::Answer;
use crate::layout::Layout;
use crate::memory::Fit;
use crate::step::{Job, Step};
use crate::times::{Factors, Machine};
use crate::training::Training;

/// What is to be planned.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The model.
    pub model: &'a Model,
    /// What is trained.
    pub training: &'a Training,
    /// How software runs it.
    pub software: &'a Software,
    /// Where.
    pub cluster: &'a Cluster,
    /// Kernel times of its devices.
    pub kernels: &'a KernelModel,
    /// What steps that were measured on it tell of its times.
    pub calibrated: Option<&'a Calibrated>,
    /// On how many devices.
    pub devices: u32,
    /// Which layouts.
    pub space: &'a Space,
    /// Most memory that a device may be filled with, in the middle of the range; the device's if
    /// `None`.
    pub memory: Option<Bytes>,
}

impl<'a> Question<'a> {
    /// Factors on the machine's times.
    pub fn factors(&self) -> Factors {
        self.calibrated.map_or_else(Factors::default, |calibrated| calibrated.factors)
    }

    /// The cluster, with all that was measured of it.
    pub fn machine(&self) -> Machine<'a> {
        Machine::new(self.cluster, self.kernels.clone()).with_factors(self.factors())
    }

    /// A step's time with its interval.
    pub(crate) fn time(&self, step: &Step) -> Estimate<Nanos> {
        self.calibrated.map_or_else(
            || step.estimate(),
            |calibrated| calibrated.estimate(&self.model.name, step),
        )
    }

    /// Everything about one layout, asked of `job`, whose machine is the [question's](Self::machine).
    ///
    /// # Errors
    /// As [`Job::answer`].
    pub fn ask(&self, job: &Job<'_>, layout: &Layout) -> Result<Answer> {
        Ok(job.answer(layout)?.measured(self.calibrated, &self.model.name, self.kernels))
    }
}

/// A layout that fits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// The layout.
    pub layout: Layout,
    /// Step time with its interval.
    pub time: Estimate<Nanos>,
    /// Most likely use of the fullest device.
    pub memory: Bytes,
    /// Whether it fits for certain.
    pub fit: Fit,
}

/// Why layouts were refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// A degree does not divide what it should.
    pub illegal: usize,
    /// They do not fit into memory.
    pub too_large: usize,
    /// Even without bubbles and communication they take longer than twice the best.
    pub hopeless: usize,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Found {
    /// Layouts that fit, fastest first.
    pub ranked: Vec<Candidate>,
    /// Of those that do not fit the one that comes nearest, and what it needs.
    pub nearest: Option<(Layout, Bytes)>,
    /// How many layouts were looked at.
    pub looked_at: usize,
    /// How many there are.
    pub all: usize,
    /// Why others were refused.
    pub refused: Refused,
}

/// How far a search has come.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Layouts looked at.
    pub done: usize,
    /// Layouts in all.
    pub all: usize,
    /// The best so far.
    pub best: Option<(Layout, Nanos)>,
}

/// A layout is not put together when its computation alone takes this many times the best step.
const HOPELESS: f64 = 2.0;
/// Layouts that one thread looks at in a row: neighbours share most costs.
const IN_A_ROW: usize = 256;

enum Outcome {
    Fits(Box<Candidate>),
    TooLarge(Layout, Bytes),
    Illegal,
    Hopeless,
    Stopped,
}

/// Looks at every layout of the question's space. `stop` ends it early with what is found so far.
///
/// The answer does not depend on the number of threads unless it is stopped.
///
/// # Errors
/// If what is trained does not go with the model or the cluster, whatever the layout.
pub fn search(
    question: &Question<'_>,
    stop: &AtomicBool,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Found> {
    check_training(question.training, question.model, question.cluster)?;
    if question.devices == 0 {
        return Err(InputError::new("a plan needs at least one device"));
    }
    let Question { model, training, software, cluster, devices, space, .. } = *question;
    let all = layouts(space, model, training, software, cluster, devices);
    let done = AtomicUsize::new(0);
    let best: Mutex<Option<(Layout, Nanos)>> = Mutex::new(None);
    let outcomes: Vec<Vec<Outcome>> = all
        .par_chunks(IN_A_ROW)
        .map(|some| {
            let machine = question.machine();
            let job = Job::new(model, training, software, &machine);
            // The best of this row only, so that the answer depends on no other thread.
            let mut own_best: Option<Nanos> = None;
            let outcomes: Vec<Outcome> = some
                .iter()
                .map(|layout| {
                    if stop.load(Ordering::Relaxed) {
                        return Outcome::Stopped;
                    }
                    let outcome = look_at(question, &job, layout, own_best);
                    if let Outcome::Fits(candidate) = &outcome {
                        let time = candidate.time.value;
                        own_best = Some(own_best.map_or(time, |best| best.min(time)));
                    }
                    outcome
                })
                .collect();
            report(&outcomes, &done, &best, all.len(), progress);
            outcomes
        })
        .collect();
    Ok(gather(outcomes.into_iter().flatten(), all.len()))
}

fn report(
    outcomes: &[Outcome],
    done: &AtomicUsize,
    best: &Mutex<Option<(Layout, Nanos)>>,
    all: usize,
    progress: &(dyn Fn(Progress) + Sync),
) {
    let done = done.fetch_add(outcomes.len(), Ordering::Relaxed) + outcomes.len();
    let mut best = best.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    for outcome in outcomes {
        if let Outcome::Fits(candidate) = outcome
            && best.as_ref().is_none_or(|(_, time)| candidate.time.value < *time)
        {
            *best = Some((candidate.layout.clone(), candidate.time.value));
        }
    }
    progress(Progress { done, all, best: best.clone() });
}

fn look_at(
    question: &Question<'_>,
    job: &Job<'_>,
    layout: &Layout,
    best: Option<Nanos>,
) -> Outcome {
    let Question { model, training, cluster, .. } = *question;
    if check_layout(layout, model, training, cluster).is_err() {
        return Outcome::Illegal;
    }
    let Ok(laid) = job.lay(layout) else { return Outcome::Illegal };
    let Ok(memory) = laid.memory() else { return Outcome::Illegal };
    let Some(fullest) = memory.iter().max_by_key(|stage| stage.used.value) else {
        return Outcome::Illegal;
    };
    let limit = question.memory.unwrap_or(fullest.capacity);
    if fullest.used.value > limit {
        return Outcome::TooLarge(layout.clone(), fullest.used.value);
    }
    if best.is_some_and(|best| laid.least().nanos() as f64 > HOPELESS * best.nanos() as f64) {
        return Outcome::Hopeless;
    }
    let Ok(step) = laid.step() else { return Outcome::Illegal };
    let fit = if fullest.used.high <= limit { Fit::Yes } else { Fit::Tight };
    Outcome::Fits(Box::new(Candidate {
        layout: layout.clone(),
        time: question.time(&step),
        memory: fullest.used.value,
        fit,
    }))
}

fn gather(outcomes: impl Iterator<Item = Outcome>, all: usize) -> Found {
    let mut found =
        Found { ranked: Vec::new(), nearest: None, looked_at: 0, all, refused: Refused::default() };
    for outcome in outcomes {
        found.looked_at += 1;
        match outcome {
            Outcome::Fits(candidate) => found.ranked.push(*candidate),
            Outcome::TooLarge(layout, bytes) => {
                found.refused.too_large += 1;
                if found.nearest.as_ref().is_none_or(|(_, least)| bytes < *least) {
                    found.nearest = Some((layout, bytes));
                }
            }
            Outcome::Illegal => found.refused.illegal += 1,
            Outcome::Hopeless => found.refused.hopeless += 1,
            Outcome::Stopped => found.looked_at -= 1,
        }
    }
    // Equal times: the layout that needs less memory, then the one that was looked at first.
    found.ranked.sort_by_key(|candidate| (candidate.time.value, candidate.memory));
    found
}
