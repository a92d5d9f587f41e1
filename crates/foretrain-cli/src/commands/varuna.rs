//! `foretrain varuna`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use foretrain::core::{Bytes, InputError, Nanos};
use foretrain::plan::varuna::compare::{CompareOptions, Compared, Detail, compare};
use foretrain::plan::varuna::layout::Machines;
use foretrain::plan::varuna::morph::{MorphOptions, Prices, machines, morph};
use foretrain::plan::varuna::plan::{MicroBatches, PlanOptions, plan};
use foretrain::plan::varuna::profile::{Gaps, LayerChoice, Profile, Reach};
use foretrain::plan::varuna::schedule::Schedule;
use foretrain::plan::varuna::simulate::{Jitter, Pipeline, StageTime};
use foretrain::plan::varuna::{availability, read};
use foretrain::report::json::{self, VarunaMorphReport, VarunaPlanReport, VarunaSimulateReport};
use foretrain::report::perfetto::write_pipelines;
use foretrain::report::text;

use super::Answer;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// What to do.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) action: Action,
}

#[derive(Debug)]
pub(crate) enum Action {
    Plan(Configured),
    Simulate(Simulate),
    Morph(Morph),
}

/// Files of a profile.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) choice: LayerChoice,
}

/// A profile and what to plan with it.
#[derive(Debug)]
pub(crate) struct Configured {
    pub(crate) source: Source,
    pub(crate) job: Job,
}

#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) gpus: u32,
    pub(crate) batch: u64,
    pub(crate) gpu_memory: Option<Bytes>,
    pub(crate) drop_remainder: bool,
    pub(crate) machines: Machines,
    pub(crate) schedules: Vec<Schedule>,
    pub(crate) micro_batches: MicroBatches,
    pub(crate) stages: Vec<u32>,
    pub(crate) uneven: bool,
    pub(crate) gaps: Gaps,
    pub(crate) variation: Variation,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Variation {
    pub(crate) draws: Option<u32>,
    pub(crate) compute: Nanos,
    pub(crate) network: Nanos,
    pub(crate) seed: u64,
}

/// A pipeline to play, of given times or else of a profile.
#[derive(Debug)]
pub(crate) struct Simulate {
    pub(crate) given: Option<Given>,
    pub(crate) configured: Configured,
    pub(crate) timeline: bool,
    pub(crate) perfetto: Option<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) forward: Vec<Nanos>,
    pub(crate) backward: Vec<Nanos>,
    pub(crate) micro_batches: u32,
    pub(crate) send: Nanos,
    pub(crate) long_send: Nanos,
    pub(crate) all_reduce: Nanos,
    pub(crate) replicas: u32,
}

#[derive(Debug)]
pub(crate) struct Morph {
    pub(crate) configured: Configured,
    pub(crate) availability: PathBuf,
    pub(crate) gpu_kind: Option<String>,
    pub(crate) until: Option<Nanos>,
    pub(crate) machines: Option<PathBuf>,
    pub(crate) manager: Manager,
}

#[derive(Debug)]
pub(crate) struct Manager {
    pub(crate) checkpoint_every: Nanos,
    pub(crate) checkpoint: Nanos,
    pub(crate) restart: Nanos,
    pub(crate) preempted_wait: Nanos,
    pub(crate) transient_wait: Nanos,
    pub(crate) notice: Nanos,
    pub(crate) quiet: Nanos,
    pub(crate) slow: f64,
    pub(crate) prices: Prices,
    pub(crate) dedicated_gpus: Option<u32>,
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    match &options.action {
        Action::Plan(configured) => planned(configured, output)?,
        Action::Simulate(options) => simulated(options, output)?,
        Action::Morph(options) => morphed(options, output)?,
    }
    Ok(Answer::Yes)
}

fn planned(configured: &Configured, output: &Output<'_>) -> Result<()> {
    let (profile, options) = configured.read()?;
    let plan = plan(&profile, &options)?;
    output.give(
        || json::to_text(&VarunaPlanReport::new(&profile, &options, &plan)),
        |style| text::varuna_plan(&profile, &options, &plan, style),
    )
}

fn simulated(options: &Simulate, output: &Output<'_>) -> Result<()> {
    let job = &options.configured.job;
    let is_kept = options.timeline || options.perfetto.is_some();
    let (pipeline, micro_batches, after) = match &options.given {
        Some(given) => (given.pipeline(job)?, given.micro_batches, given.all_reduce),
        None => configured_pipeline(&options.configured)?,
    };
    let settings = CompareOptions {
        schedules: job.schedules.clone(),
        micro_batches,
        after,
        jitter: job.variation.jitter()?,
        detail: if is_kept { Detail::Slices } else { Detail::Sums },
    };
    let mut all = compare(&pipeline, &settings)?;
    if let Some(path) = &options.perfetto {
        write_timeline(&all, path, output)?;
    }
    if !options.timeline {
        for one in &mut all {
            one.run.slices = Vec::new();
        }
    }
    output.give(
        || json::to_text(&VarunaSimulateReport::new(&all)),
        |style| text::varuna_simulate(&all, style),
    )
}

/// The pipeline of a profile with one number of stages, as it is planned for the first schedule.
fn configured_pipeline(configured: &Configured) -> Result<(Pipeline, u32, Nanos)> {
    let (profile, options) = configured.read()?;
    if options.stages.len() != 1 {
        let error = InputError::new("several numbers of stages").at("--stages");
        return Err(error.hint("simulate one, or compare them by varuna plan").into());
    }
    let schedules = options.schedules.iter().take(1).copied().collect();
    let planned = plan(&profile, &PlanOptions { schedules, jitter: None, ..options })?;
    let best = &planned.ranked[0];
    Ok((best.pipeline.clone(), best.micro_batches, best.all_reduce + best.update))
}

fn write_timeline(all: &[Compared], path: &Path, output: &Output<'_>) -> Result<()> {
    let written = File::create(path).and_then(|file| {
        let mut out = BufWriter::new(file);
        write_pipelines(&mut out, all)?;
        out.flush()
    });
    written.map_err(|error| Failure::writing(&error, &path.display().to_string()))?;
    output.note(&format!("wrote {}; open it at ui.perfetto.dev", path.display()));
    Ok(())
}

fn morphed(options: &Morph, output: &Output<'_>) -> Result<()> {
    let (profile, plan) = options.configured.read()?;
    let of_trace = availability::Options {
        gpus_per_vm: plan.machines.gpus_each,
        kind: options.gpu_kind.clone(),
        until: options.until,
    };
    let trace = read::availability(&options.availability, &of_trace)?;
    let slow = match &options.machines {
        Some(path) => machines::slow(&read::machines(path)?, options.manager.slow),
        None => Vec::new(),
    };
    let options = options.manager.options(plan);
    let found = morph(&profile, &trace, slow, &options)?;
    output.give(
        || json::to_text(&VarunaMorphReport::new(&found)),
        |style| text::varuna_morph(&options, &found, style),
    )
}

impl Configured {
    fn read(&self) -> Result<(Profile, PlanOptions)> {
        let profile = self.source.read()?;
        let job = &self.job;
        let options = PlanOptions {
            gpus: job.gpus,
            batch: job.batch,
            gpu_memory: job.gpu_memory,
            drop_remainder: job.drop_remainder,
            machines: job.machines,
            schedules: job.schedules.clone(),
            micro_batches: job.micro_batches.clone(),
            stages: job.stages.clone(),
            uneven: job.uneven,
            gaps: job.gaps,
            jitter: job.variation.jitter()?,
        };
        Ok((profile, options))
    }
}

impl Source {
    fn read(&self) -> Result<Profile> {
        let LayerChoice { model, gpu, tensor_parallel, activation } = &self.choice;
        let given = [
            ("--model", model.is_some()),
            ("--gpu", gpu.is_some()),
            ("--tp", tensor_parallel.is_some()),
            ("--activation", activation.is_some()),
        ];
        let chosen = given.iter().find(|(_, is_given)| *is_given);
        if let Some((option, _)) = chosen
            && !self.files.iter().any(|file| read::is_table(file))
        {
            let message = format!("{option} is of no use to a profile");
            let hint = "it says which rows of a table of layers to take; name the table (.csv)";
            return Err(InputError::new(message).hint(hint).into());
        }
        Ok(read::profile(&self.files, &self.choice)?)
    }
}

impl Variation {
    fn jitter(&self) -> Result<Option<(Jitter, u32)>> {
        let Some(draws) = self.draws else { return Ok(None) };
        Ok(Some((Jitter::new(self.compute, self.network, self.seed)?, draws)))
    }
}

impl Given {
    fn pipeline(&self, job: &Job) -> Result<Pipeline> {
        let stages = match job.stages[..] {
            [] => self.forward.len().max(self.backward.len()),
            [one] => one as usize,
            _ => {
                let error = InputError::new("several numbers of stages, expected one");
                return Err(error.at("--stages").into());
            }
        };
        const MOST: usize = 100_000;
        if stages > MOST {
            let error = InputError::new(format!("{stages} stages, at most {MOST}"));
            return Err(error.at("--stages").into());
        }
        let forward = each(&self.forward, stages, "--forward")?;
        let backward = each(&self.backward, stages, "--backward")?;
        let times = forward.into_iter().zip(backward);
        let times = times.map(|(forward, backward)| StageTime { forward, backward });
        let message = |stage| match job.machines.reach(stage, self.replicas, 1) {
            Reach::Near => self.send,
            Reach::Far => self.long_send,
        };
        let messages = (0..stages.saturating_sub(1)).map(message).collect();
        Ok(Pipeline::new(times.collect(), messages)?)
    }
}

/// One time for all stages, or one for each.
fn each(times: &[Nanos], stages: usize, flag: &str) -> Result<Vec<Nanos>> {
    match times {
        [one] => Ok(vec![*one; stages]),
        many if many.len() == stages => Ok(many.to_vec()),
        many => {
            let message = format!("{} times for {stages} stages", many.len());
            Err(InputError::new(message).at(flag).hint("give one, or one for each stage").into())
        }
    }
}

impl Manager {
    fn options(&self, plan: PlanOptions) -> MorphOptions {
        MorphOptions {
            plan,
            checkpoint_every: self.checkpoint_every,
            checkpoint: self.checkpoint,
            preempted_wait: self.preempted_wait,
            transient_wait: self.transient_wait,
            restart: self.restart,
            notice: self.notice,
            quiet: self.quiet,
            dedicated_gpus: self.dedicated_gpus,
            prices: self.prices,
        }
    }
}
