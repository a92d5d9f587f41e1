//! `foretrain fleet schedule`.

use std::path::PathBuf;
use std::sync::Arc;

use foretrain::core::words::escaped;
use foretrain::core::{InputError, Ledger, Nanos};
use foretrain::cost::interference::ModelFile;
use foretrain::cost::interference::colocation::Sharing;
use foretrain::fleet::jobs::{MachineList, Table, TableOptions};
use foretrain::fleet::schedule::compare::{PolicyResult, Study, compare};
use foretrain::fleet::schedule::policy::{Named, Rules};
use foretrain::fleet::schedule::{
    Answer as Scheduled, Cluster, Colocated, ConstantSlowdown, Costs, Exchange, Failures, GpuKind,
    Intake, Interference, Job, Phase, Setup, cluster_of, describe, kind_of,
};
use foretrain::hardware::Catalogue;
use foretrain::report::json::{self, FleetScheduleReport};
use foretrain::report::{svg, text};

use super::Source;
use crate::commands::{Answer, hardware};
use crate::failure::Result;
use crate::output::{Output, write_file};
use crate::progress::Stages;

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) source: Source,
    pub(crate) policies: Vec<&'static Named>,
    pub(crate) machines: Machines,
    pub(crate) rules: Rules,
    pub(crate) costs: Costs,
    pub(crate) beside: Beside,
    pub(crate) utilisation: Option<f64>,
    pub(crate) predictor: Option<PathBuf>,
    pub(crate) elastic: bool,
    pub(crate) failures: Option<Failures>,
    pub(crate) runs: u32,
    pub(crate) seed: u64,
    pub(crate) duration_error: f64,
    pub(crate) until: Option<Nanos>,
    pub(crate) plot: Option<PathBuf>,
    pub(crate) jobs: Option<PathBuf>,
}

/// How the cluster is given.
#[derive(Debug)]
pub(crate) struct Machines {
    pub(crate) on: Option<String>,
    pub(crate) hardware: Vec<PathBuf>,
    pub(crate) nodes: Option<u32>,
    pub(crate) gpus_per_node: u32,
    pub(crate) table: Option<PathBuf>,
    pub(crate) per_rack: u32,
}

/// What jobs on one GPU do to each other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Beside {
    TimeSliced,
    Mps,
    Constant(f64),
}

impl Beside {
    fn interference(self) -> Result<Box<dyn Interference>> {
        let sharing = match self {
            Self::TimeSliced => Sharing::TimeSliced,
            Self::Mps => Sharing::Mps,
            Self::Constant(factor) => return Ok(Box::new(ConstantSlowdown(factor))),
        };
        let file = ModelFile::pretrained()?;
        let model = file.colocation.ok_or_else(|| InputError::new("no model of jobs is there"))?;
        Ok(Box::new(Colocated { model: model.model, sharing }))
    }
}

impl Machines {
    /// The cluster, its links where it is one of the catalogue, and what had to be left out.
    fn cluster(&self, ledger: &mut Ledger) -> Result<(Cluster, Option<Arc<Exchange>>)> {
        let catalogue = hardware::catalogue(&self.hardware)?;
        if let Some(table) = &self.table {
            return Ok((self.of_table(table, &catalogue, ledger)?, None));
        }
        let nodes = self.nodes.unwrap_or(1);
        let Some(on) = &self.on else {
            let kind = GpuKind::named("gpu");
            return Ok((Cluster::uniform(nodes, self.gpus_per_node, self.per_rack, kind)?, None));
        };
        let machine = catalogue.cluster(on)?;
        let kind = kind_of(&machine.node.device);
        let cluster = Cluster::uniform(nodes, machine.node.devices, self.per_rack, kind)?;
        Ok((cluster, Some(Arc::new(Exchange::new(machine)))))
    }

    fn of_table(
        &self,
        path: &std::path::Path,
        catalogue: &Catalogue,
        ledger: &mut Ledger,
    ) -> Result<Cluster> {
        let mut machines = MachineList::default();
        let table = Table::open(path, &TableOptions::default())?;
        table.for_each(|row| machines.add(row)).record(ledger);
        cluster_of(&machines, self.per_rack, catalogue, ledger)
            .map_err(|error| error.in_file(path).into())
    }
}

/// Of the table of jobs.
const TITLES: [&str; 14] = [
    "policy",
    "job",
    "gpus",
    "submit_s",
    "start_s",
    "end_s",
    "completion_s",
    "wait_s",
    "waited_s",
    "gpu_seconds",
    "preemptions",
    "moves",
    "failures",
    "state",
];

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let outputs = [options.plot.as_deref(), options.jobs.as_deref(), output.file()];
    let inputs = options.source.files.iter().chain(&options.machines.table);
    super::keep_inputs(inputs, outputs)?;
    let mut ledger = Ledger::new();
    let (cluster, exchange) = options.machines.cluster(&mut ledger)?;
    let predictor = options.predictor.as_deref().map(super::utilisation::read).transpose()?;
    let mut intake = Intake::new(&cluster)
        .on(exchange, options.elastic)
        .assuming(options.utilisation)
        .predicting(predictor.as_ref().map(|file| &file.predictor));
    // The table of machines may have been cut, too.
    let cuts = |ledger: &Ledger| ledger.count("cut-short");
    let before = cuts(&ledger);
    options.source.each_job(&mut ledger, |row| intake.add(row))?;
    let cut_short = cuts(&ledger) > before;
    let (jobs, used) = intake.finish()?;
    let interference = options.beside.interference()?;
    let setup = Setup {
        costs: options.costs,
        failures: options.failures,
        until: options.until,
        seed: options.seed,
        ..Setup::new(&cluster, &jobs, &*interference)
    };
    let study = Study {
        policies: &options.policies,
        rules: options.rules.clone(),
        runs: options.runs,
        duration_error: options.duration_error,
    };
    let progress = Stages::new(output.progress());
    let results = compare(&setup, &study, &|done, all| progress.at("playing schedules", done, all));
    progress.finish();
    if let Some(path) = &options.jobs {
        write_file(path, &table_of_jobs(&jobs, &results)?)?;
    }
    let names: Vec<String> =
        options.source.files.iter().map(|file| file.display().to_string()).collect();
    let machines = describe(&cluster);
    let answer = Scheduled::new(names.join(", "), machines, used, (&setup, &study), results);
    let answer = Scheduled { cut_short, ..answer };
    if let Some(path) = &options.plot {
        write_file(path, svg::fleet_schedule(&answer).as_bytes())?;
    }
    output.give(
        || json::to_text(&FleetScheduleReport::new(&answer, &ledger)),
        |style| text::fleet_schedule(&answer, &ledger, style),
    )?;
    let none = answer.results.iter().all(|result| result.table.finished == 0);
    Ok(if none { Answer::No } else { Answer::Yes })
}

/// What became of each job, one line per job and policy. Times are seconds from the first submission.
fn table_of_jobs(jobs: &[Job], results: &[PolicyResult]) -> Result<Vec<u8>> {
    let mut table = csv::Writer::from_writer(Vec::new());
    let in_memory = |error: csv::Error| InputError::new(format!("cannot write a line: {error}"));
    table.write_record(TITLES).map_err(in_memory)?;
    let seconds = |time: Option<Nanos>| time.map_or(String::new(), |t| t.secs_f64().to_string());
    for result in results {
        for (job, state) in jobs.iter().zip(&result.table.jobs) {
            let phase = match state.phase {
                Phase::Done => "done",
                Phase::Impossible => "impossible",
                Phase::Future | Phase::Waiting => "waiting",
                Phase::Running => "running",
            };
            let [preemptions, moves, failures] = state.disturbed.map(|count| count.to_string());
            let cells = [
                result.policy.name.to_owned(),
                escaped(&job.name).into_owned(),
                job.gpus.to_string(),
                job.submit.secs_f64().to_string(),
                seconds(state.first_start),
                seconds(state.finish),
                seconds(state.completion),
                seconds(state.wait),
                state.waited.secs_f64().to_string(),
                state.held.to_string(),
                preemptions,
                moves,
                failures,
                phase.to_owned(),
            ];
            table.write_record(cells).map_err(in_memory)?;
        }
    }
    let written = table.into_inner();
    Ok(written.map_err(|error| InputError::new(format!("cannot write the last line: {error}")))?)
}
