//! One pipeline under several schedules.

use foretrain_core::{InputError, Nanos, Result};
use rayon::prelude::*;

use super::schedule::Schedule;
use super::simulate::{
    Distribution, Jitter, Pipeline, Run, Step, draws, simulate, simulate_recorded,
};

/// What to play.
#[derive(Clone, Debug, PartialEq)]
pub struct CompareOptions {
    /// The schedules, in the order of the answer.
    pub schedules: Vec<Schedule>,
    /// Micro-batches of the step.
    pub micro_batches: u32,
    /// What follows the pipeline: all-reduce and update.
    pub after: Nanos,
    /// Variation, and how many draws of it.
    pub jitter: Option<(Jitter, u32)>,
    /// What to keep of the runs.
    pub detail: Detail,
}

/// What to keep of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// Sums only.
    #[default]
    Sums,
    /// When each task ran.
    Slices,
}

/// The pipeline under one schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The step.
    pub step: Step,
    /// How it went without variation.
    pub run: Run,
    /// What follows the pipeline.
    pub after: Nanos,
    /// How long the pipeline takes under variation.
    pub distribution: Option<Distribution>,
}

impl Compared {
    /// The step's time without variation: the pipeline, then what follows.
    pub fn time(&self) -> Nanos {
        self.run.makespan + self.after
    }
}

/// Passes of all runs together, which take some seconds.
const MOST_PASSES: u64 = 20_000_000;

/// Passes of all runs together where each is kept and written: a few hundred megabytes.
const MOST_KEPT: u64 = 2_000_000;

/// Plays a pipeline under each schedule.
///
/// # Errors
/// If there are no micro-batches or too many, or no draw or too many are asked for, or all together
/// are too much to play.
pub fn compare(pipeline: &Pipeline, options: &CompareOptions) -> Result<Vec<Compared>> {
    check(pipeline, options)?;
    let each = options.schedules.par_iter().map(|schedule| {
        let step = Step::new(pipeline.clone(), *schedule, options.micro_batches)?;
        let run = match options.detail {
            Detail::Sums => simulate(&step),
            Detail::Slices => simulate_recorded(&step),
        };
        let distribution = match options.jitter {
            Some((jitter, count)) => Some(draws(&step, jitter, count)?),
            None => None,
        };
        Ok(Compared { step, run, after: options.after, distribution })
    });
    each.collect()
}

fn check(pipeline: &Pipeline, options: &CompareOptions) -> Result<()> {
    let (stages, schedules) = (pipeline.stages().len(), options.schedules.len());
    let draws = options.jitter.map_or(0, |(_, draws)| draws);
    let factors = [2, stages as u64, options.micro_batches.into(), schedules as u64];
    let passes = factors.into_iter().fold(u64::from(draws) + 1, u64::saturating_mul);
    let most = match options.detail {
        Detail::Sums => MOST_PASSES,
        Detail::Slices => MOST_KEPT,
    };
    if passes <= most {
        return Ok(());
    }
    let mut what = format!("{stages} stages of {} micro-batches", options.micro_batches);
    if schedules > 1 {
        what.push_str(&format!(" under {schedules} schedules"));
    }
    if draws > 0 {
        what.push_str(&format!(" with {draws} draws"));
    }
    let message = format!("{what} are {passes} passes to play, at most {most}");
    let message = match options.detail {
        Detail::Sums => message,
        Detail::Slices => format!("{message} with a timeline"),
    };
    Err(InputError::new(message).hint("ask for fewer draws, schedules, stages or micro-batches"))
}
