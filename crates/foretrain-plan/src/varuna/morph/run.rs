//! Playing a job on a trace of availability.

use std::collections::BTreeMap;

use foretrain_core::{InputError, Nanos, Result};

use super::MorphOptions;
use super::account::{Account, Cause, Cost, Morph, Morphing};
use super::machines::Slow;
use super::progress::{Pace, Progress};
use crate::varuna::availability::Availability;
use crate::varuna::plan::{Candidate, PlanOptions, plan};
use crate::varuna::profile::{Filled, Profile};

/// Plays a job on the GPUs of a trace. Machines in `excluded` take their GPUs away at all times; they
/// are not paid for.
///
/// A loss is taken to hit GPUs in use, however many are idle.
///
/// # Errors
/// If the options make no sense, or no plan can use any number of GPUs of the trace.
pub fn morph(
    profile: &Profile,
    trace: &Availability,
    excluded: Vec<Slow>,
    options: &MorphOptions,
) -> Result<Morph> {
    options.check()?;
    let each = options.plan.machines.gpus_each;
    let slow = u32::try_from(excluded.len()).unwrap_or(u32::MAX).saturating_mul(each);
    let trace = trace.without(slow);
    let mut job = Job::new(profile, &trace, options);
    job.play()?;
    if job.morphings.is_empty() {
        let error = InputError::new("no number of GPUs of the trace can run a plan");
        let reasons = job.plans.unusable.iter().take(4);
        return Err(
            reasons.fold(error, |error, (gpus, why)| error.hint(format!("{gpus} GPUs: {why}")))
        );
    }
    let seconds = trace.until.secs_f64();
    let goodput = job.samples as f64 / seconds;
    let dedicated = dedicated(&mut job.plans, &trace, options);
    let prices = options.prices;
    Ok(Morph {
        length: trace.until,
        samples: job.samples,
        account: job.account,
        morphings: job.morphings,
        preemptible: Cost::new(trace.gpu_seconds() / seconds, goodput, prices.preemptible),
        dedicated,
        excluded,
        unusable: job.plans.unusable,
        filled: job.plans.filled,
    })
}

/// The same job where nothing is ever taken away; `None` if it cannot run on so many GPUs.
fn dedicated(plans: &mut Plans<'_>, trace: &Availability, options: &MorphOptions) -> Option<Cost> {
    let gpus = options.dedicated_gpus.unwrap_or_else(|| trace.most());
    let best = plans.best(gpus)?;
    let efficiency = pace(&best, options).efficiency();
    Some(Cost::new(gpus.into(), best.throughput() * efficiency, options.prices.dedicated))
}

fn pace(best: &Candidate, options: &MorphOptions) -> Pace {
    Pace::new(best.step, options.checkpoint_every, options.checkpoint)
}

/// The best plan for each number of GPUs, planned when first needed.
struct Plans<'a> {
    profile: &'a Profile,
    options: &'a PlanOptions,
    known: BTreeMap<u32, Option<Candidate>>,
    unusable: BTreeMap<u32, String>,
    filled: Filled,
}

impl Plans<'_> {
    fn best(&mut self, gpus: u32) -> Option<Candidate> {
        if let Some(known) = self.known.get(&gpus) {
            return known.clone();
        }
        // More than a sample for each at the deepest is more than any plan can use.
        let workers = (self.profile.cut_points.len() as u64).saturating_mul(self.options.batch);
        let most = workers.saturating_mul(self.profile.tensor_parallel.into());
        let usable = gpus.min(u32::try_from(most).unwrap_or(u32::MAX));
        let options = PlanOptions { gpus: usable, ..self.options.clone() };
        let best = match plan(self.profile, &options) {
            Ok(plan) => {
                self.filled.merge(&plan.filled);
                plan.ranked.into_iter().next()
            }
            Err(error) => {
                let why = error.hints().first().map_or(String::new(), |hint| format!(": {hint}"));
                self.unusable.insert(gpus, format!("{error}{why}"));
                None
            }
        };
        let best =
            best.map(|best| Candidate { idle_gpus: best.idle_gpus + (gpus - usable), ..best });
        self.known.insert(gpus, best.clone());
        best
    }
}

/// What ends a time of training.
enum End {
    Loss { at: Nanos, before: u32 },
    Growth(Nanos),
    Trace,
}

struct Job<'a> {
    trace: &'a Availability,
    options: &'a MorphOptions,
    plans: Plans<'a>,
    samples: u64,
    account: Account,
    morphings: Vec<Morphing>,
}

impl<'a> Job<'a> {
    fn new(profile: &'a Profile, trace: &'a Availability, options: &'a MorphOptions) -> Self {
        let plans = Plans {
            profile,
            options: &options.plan,
            known: BTreeMap::new(),
            unusable: BTreeMap::new(),
            filled: Filled::default(),
        };
        let (account, morphings) = (Account::default(), Vec::new());
        Self { trace, options, plans, samples: 0, account, morphings }
    }

    fn play(&mut self) -> Result<()> {
        let mut cause = Cause::Start;
        // When the cause came, when the job is planned for it, and what it takes to run after that.
        let (mut at, mut planned, mut restart) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
        let mut lost_steps = 0;
        while planned < self.trace.until {
            let gpus = self.trace.at(planned);
            let Some(best) = self.plans.best(gpus) else {
                let next = self.trace.after(planned).next();
                let until = next.map_or(self.trace.until, |(time, _)| time);
                self.account.starved += until - planned;
                (at, planned, restart, cause) = (until, until, self.options.restart, Cause::Start);
                continue;
            };
            let resumed = planned + restart;
            if let Some(loss) = self.first_loss(planned, resumed, gpus) {
                let wait = self.wait_after(loss, self.trace.at(loss - Nanos::from_nanos(1)));
                (planned, cause) = (self.until(loss + wait.0, planned), wait.1);
                restart = self.options.restart;
                continue;
            }
            let resumed = self.until(resumed, planned);
            if resumed == self.trace.until {
                break;
            }
            self.morphings.push(Morphing {
                at,
                cause,
                resumed,
                gpus,
                stages: u32::try_from(best.stages.len()).unwrap_or(u32::MAX),
                replicas: best.replicas,
                micro_batch: best.micro_batch,
                micro_batches: best.micro_batches,
                throughput: best.throughput(),
                lost_steps,
            });
            let end = self.end_of(planned, resumed, at + self.options.quiet, &best);
            let progress = pace(&best, self.options);
            lost_steps = 0;
            match end {
                End::Trace => {
                    let done = progress.within(self.trace.until - resumed);
                    self.trained(&best, done, done.done, self.trace.until - resumed);
                    break;
                }
                End::Growth(time) => {
                    let stop = progress.boundary(time - resumed);
                    let done = progress.within(stop);
                    let stopped = self.stop_orderly(&best, done, resumed, resumed + stop);
                    (at, cause, planned) = (time, Cause::Growth, stopped);
                }
                End::Loss { at: time, before } => {
                    let warned = (time - self.options.notice - resumed).clamp_positive();
                    let stop = progress.boundary(warned);
                    let stopped = if resumed + stop + self.options.checkpoint <= time {
                        let done = progress.within(stop);
                        self.stop_orderly(&best, done, resumed, resumed + stop)
                    } else {
                        let done = progress.within(time - resumed);
                        lost_steps = done.done - done.saved;
                        self.trained(&best, done, done.saved, time - resumed);
                        time
                    };
                    let (wait, why) = self.wait_after(time, before);
                    (at, cause, planned) = (time, why, self.until(time + wait, stopped));
                }
            }
            restart = self.options.restart;
        }
        Ok(())
    }

    /// Counts the time from `from` up to `to`, or to the end of the trace, as restarting.
    fn until(&mut self, to: Nanos, from: Nanos) -> Nanos {
        let to = to.min(self.trace.until);
        self.account.restarting += (to - from).clamp_positive();
        to
    }

    /// Ends at a whole step with a checkpoint; gives the time after it.
    fn stop_orderly(
        &mut self,
        best: &Candidate,
        done: Progress,
        from: Nanos,
        stop: Nanos,
    ) -> Nanos {
        let end = self.trace.until;
        if stop >= end {
            let within = pace(best, self.options).within(end - from);
            self.trained(best, within, within.done, end - from);
            return end;
        }
        self.trained(best, done, done.done, stop - from);
        let saved = (stop + self.options.checkpoint).min(end);
        self.account.checkpoints += saved - stop;
        saved
    }

    /// Accounts for a time of training of which so many steps count.
    fn trained(&mut self, best: &Candidate, done: Progress, kept: i64, time: Nanos) {
        let steps = u64::try_from(kept).unwrap_or(0);
        self.samples = self.samples.saturating_add(steps.saturating_mul(best.samples));
        let training = best.step.scale(kept as f64);
        let checkpoints = self.options.checkpoint.scale(done.checkpoints as f64);
        self.account.training += training;
        self.account.checkpoints += checkpoints;
        self.account.lost += (time - training - checkpoints).clamp_positive();
    }

    /// How long the job waits after a loss, and what the loss was.
    fn wait_after(&self, loss: Nanos, before: u32) -> (Nanos, Cause) {
        let transient = self.options.transient_wait;
        let back = loss + transient;
        if back < self.trace.until && self.trace.at(back) >= before {
            return (transient, Cause::Transient);
        }
        (self.options.preempted_wait, Cause::Loss)
    }

    /// The first time after `from` and up to `to` that there are fewer GPUs than before.
    fn first_loss(&self, from: Nanos, to: Nanos, gpus: u32) -> Option<Nanos> {
        let mut before = gpus;
        self.trace.after(from).take_while(|(at, _)| *at <= to).find_map(|(at, now)| {
            let is_loss = now < before;
            before = now;
            is_loss.then_some(at)
        })
    }

    /// What ends the training that was planned at `planned` and runs from `resumed` on. Further GPUs
    /// are looked at after `quiet`.
    fn end_of(&mut self, planned: Nanos, resumed: Nanos, quiet: Nanos, best: &Candidate) -> End {
        let trace = self.trace;
        let mut before = self.trace.at(planned);
        let mut growth: Option<Nanos> = None;
        for (at, now) in trace.after(planned).chain([(trace.until, 0)]) {
            if let Some(time) = growth.filter(|time| *time < at)
                && self.plans.best(before).is_some_and(|plan| plan.throughput() > best.throughput())
            {
                return End::Growth(time);
            }
            if at == trace.until {
                break;
            }
            growth = None;
            if now < before {
                return End::Loss { at, before };
            }
            if now > before {
                growth = Some(at.max(quiet).max(resumed));
            }
            before = now;
        }
        End::Trace
    }
}
