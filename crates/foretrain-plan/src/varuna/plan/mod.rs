//! Which pipeline to run on so many GPUs: all numbers of stages are simulated and ranked.

mod attempt;
mod candidate;
mod share;

use std::cmp::Ordering;

use foretrain_core::{Bytes, InputError, Nanos, Result};
use rayon::prelude::*;

pub use candidate::{Candidate, Reason, Refused};
pub use share::{Owner, Shares};

use super::layout::Machines;
use super::partition::{Balance, by_cost, by_count};
use super::profile::{Filled, Gaps, Profile};
use super::schedule::Schedule;
use super::simulate::Jitter;
use attempt::{Attempt, Outcome};

/// Which micro-batch sizes to try.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MicroBatches {
    /// The largest that fits into memory, as Varuna does.
    #[default]
    Largest,
    /// Every size that all cut-points were measured with.
    All,
    /// These.
    Only(Vec<u32>),
}

/// What to plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// GPUs there are.
    pub gpus: u32,
    /// Samples per step over all replicas.
    pub batch: u64,
    /// Memory of one GPU; no check without it.
    pub gpu_memory: Option<Bytes>,
    /// Whether a batch that does not divide by the replicas is cut down to one that does, as Varuna
    /// does. Else some replicas get a sample more, and the step is theirs.
    pub drop_remainder: bool,
    /// Machines and placement.
    pub machines: Machines,
    /// Schedules to try.
    pub schedules: Vec<Schedule>,
    /// Micro-batch sizes to try.
    pub micro_batches: MicroBatches,
    /// Numbers of stages to try; all if empty.
    pub stages: Vec<u32>,
    /// Whether to deal cut-points by cost too, so that any number of stages is possible.
    pub uneven: bool,
    /// How to fill gaps of the profile.
    pub gaps: Gaps,
    /// Variation, and how many draws of it; the median is what counts.
    pub jitter: Option<(Jitter, u32)>,
}

/// Configurations in order, fastest first, and those that cannot run.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Fastest per sample first; never empty.
    pub ranked: Vec<Candidate>,
    /// Those that cannot run or cannot be known, with the reason.
    pub refused: Vec<Refused>,
    /// What the profile did not hold and was filled in.
    pub filled: Filled,
    /// What the answer leaves out.
    pub notes: Vec<String>,
}

/// Simulated work of one plan, in stages times micro-batches, over all draws.
const MOST_WORK: u64 = 1 << 29;

/// Ranks all configurations.
///
/// # Errors
/// If the options make no sense, or no configuration can run; the error then says why each cannot.
pub fn plan(profile: &Profile, options: &PlanOptions) -> Result<Plan> {
    profile.check()?;
    check(profile, options)?;
    let mut attempts = Vec::new();
    for &schedule in &options.schedules {
        for stages in stage_counts(profile, options)? {
            for balance in [Balance::Count, Balance::Cost] {
                attempts.extend(attempt(profile, options, schedule, stages, balance));
            }
        }
    }
    let work: u64 = attempts.iter().map(Attempt::work).fold(0, u64::saturating_add);
    let runs = 1 + options.jitter.map_or(0, |(_, draws)| u64::from(draws));
    let work = work.saturating_mul(runs);
    if work > MOST_WORK {
        return Err(InputError::new(format!(
            "too many configurations of too many micro-batches to simulate: {work} \
             stages times micro-batches, at most {MOST_WORK}"
        ))
        .hint("name some numbers of stages, or give a smaller batch or fewer draws"));
    }
    let outcomes: Vec<Vec<Outcome>> =
        attempts.par_iter().map(|attempt| attempt.run(profile, options)).collect();
    let mut filled = Filled::default();
    let (mut ranked, mut refused) = (Vec::new(), Vec::new());
    for outcome in outcomes.into_iter().flatten() {
        match outcome {
            Outcome::Runs(candidate, used) => {
                filled.merge(&used);
                ranked.push(*candidate);
            }
            Outcome::Refused(why) => refused.push(why),
        }
    }
    if ranked.is_empty() {
        return Err(nothing_runs(&refused));
    }
    ranked.sort_by(compare);
    share::explain(&mut ranked);
    let notes = notes(profile, options, &ranked);
    Ok(Plan { ranked, refused, filled, notes })
}

fn check(profile: &Profile, options: &PlanOptions) -> Result<()> {
    let zero = |what: &str| Err(InputError::new(format!("{what} of 0, expected 1 or more")));
    if options.gpus == 0 {
        return zero("a number of GPUs");
    }
    if options.batch == 0 {
        return zero("a batch");
    }
    if options.machines.gpus_each == 0 {
        return zero("a number of GPUs per machine");
    }
    if options.schedules.is_empty() {
        return Err(InputError::new("no schedule to try"));
    }
    if options.gpus < profile.tensor_parallel {
        return Err(InputError::new(format!(
            "{} GPUs, but each stage of this profile takes {}",
            options.gpus, profile.tensor_parallel
        )));
    }
    if let MicroBatches::Only(sizes) = &options.micro_batches
        && (sizes.is_empty() || sizes.contains(&0))
    {
        return zero("a micro-batch");
    }
    Ok(())
}

/// Numbers of stages up to the number of cut-points and of GPUs. What was asked for stays, so that
/// it is answered.
fn stage_counts(profile: &Profile, options: &PlanOptions) -> Result<Vec<u32>> {
    let most = u32::try_from(profile.cut_points.len()).unwrap_or(u32::MAX);
    let mut counts = options.stages.clone();
    counts.sort_unstable();
    counts.dedup();
    if let Some(wrong) = counts.iter().find(|count| !(1..=most).contains(count)) {
        return Err(InputError::new(format!(
            "{wrong} stages, expected 1 to {most}: as many as there are cut-points"
        )));
    }
    if counts.is_empty() {
        counts.extend(1..=most);
        // By count, a divisor; anything else is not a way to run, rather than a slow one.
        counts.retain(|count| options.uneven || most.is_multiple_of(*count));
    }
    Ok(counts)
}

fn attempt(
    profile: &Profile,
    options: &PlanOptions,
    schedule: Schedule,
    stages: u32,
    balance: Balance,
) -> Option<Attempt> {
    let cuts = profile.cut_points.len();
    let even = by_count(cuts, stages as usize);
    let partition = match balance {
        Balance::Count => even?,
        // A number of stages that was asked for is answered, evenly or not.
        Balance::Cost if options.uneven || (even.is_none() && !options.stages.is_empty()) => {
            let times = |is_last| typical_times(profile, options, schedule.recomputes(is_last));
            by_cost(&times(false), &times(true), stages as usize)
                .filter(|parts| Some(parts) != even.as_ref())?
        }
        Balance::Cost => return None,
    };
    Some(Attempt::new(profile, options, schedule, balance, partition))
}

/// What each cut-point takes with the largest micro-batch: proportions hardly depend on its size.
fn typical_times(profile: &Profile, options: &PlanOptions, recomputes: bool) -> Vec<Nanos> {
    let size = match &options.micro_batches {
        MicroBatches::Only(sizes) => sizes.first().copied(),
        _ => profile.micro_batches().last().copied(),
    };
    let forwards = if recomputes { 2.0 } else { 1.0 };
    let time = |cut: &super::profile::CutPoint| {
        let costs =
            size.and_then(|size| cut.costs.get(&size)).or_else(|| cut.costs.values().last());
        costs.map_or(Nanos::ZERO, |costs| costs.forward.scale(forwards) + costs.backward)
    };
    profile.cut_points.iter().map(|cut| time(cut)).collect()
}

/// Time per sample; then what is simpler.
fn compare(a: &Candidate, b: &Candidate) -> Ordering {
    a.per_sample()
        .total_cmp(&b.per_sample())
        .then(a.stages.len().cmp(&b.stages.len()))
        .then(a.schedule.cmp(&b.schedule))
        .then(a.balance.cmp(&b.balance))
        .then(b.micro_batch.cmp(&a.micro_batch))
}

fn nothing_runs(refused: &[Refused]) -> InputError {
    const MOST: usize = 4;
    let error = InputError::new("no configuration can run");
    let reasons = refused.iter().take(MOST);
    let error = reasons.fold(error, |error, why| error.hint(why.to_string()));
    match refused.len().saturating_sub(MOST) {
        0 => error,
        more => error.hint(format!("and {more} more")),
    }
}

/// What a reader could take for included.
fn notes(profile: &Profile, options: &PlanOptions, ranked: &[Candidate]) -> Vec<String> {
    let mut notes = Vec::new();
    if options.gpu_memory.is_none() {
        notes.push("no GPU memory was given, so nothing was checked against it".to_owned());
    }
    let without = profile.cut_points.iter().filter(|cut| cut.update.is_none()).count();
    if without > 0 {
        notes.push(format!(
            "the optimizer's update of {without} of {} cut-points was not measured, it is not in the step",
            profile.cut_points.len()
        ));
    }
    let best = &ranked[0];
    if best.dropped > 0 {
        notes.push(format!(
            "{} of {} samples are left out of each step, as the batch does not divide by {} replicas",
            best.dropped, options.batch, best.replicas
        ));
    }
    if let Some(stage) = best.slow_copies().next() {
        notes.push(format!(
            "copying the input of stage {stage} to the host takes longer than its forward pass, which is not simulated"
        ));
    }
    notes
}
