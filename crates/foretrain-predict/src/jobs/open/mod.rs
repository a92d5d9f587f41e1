//! A row of the feature table as the graph of its step, which `predict` and the others read.
//!
//! The graph holds one replica without its exchange: the copy of the input, then compute-bound and
//! memory-bound kernels, forward and backward, with their work and the characterisation's times.
//! Gradients become ready along the backward pass, so that any strategy of synchronisation can be
//! put in.

mod checks;
mod draw;

use foretrain_core::{Bytes, InputError, Nanos, Result};
use foretrain_fleet::jobs::{Class, Features, Job, TrafficCounts};
use foretrain_fleet::pai::{Hardware, Overlap, Refusal, Step, Work};
use foretrain_graph::{StepGraph, StepMeta};
use foretrain_plan::{Optimiser, Precision};

use super::exchange::gradients;
use super::figure::{Basis, Figure};
use super::{Asked, of_model};

/// On which terms rows are opened.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The machine that the step is timed on.
    pub hardware: Hardware,
    /// What a count of traffic holds where the row does not say.
    pub traffic_counts: TrafficCounts,
    /// The optimiser whose state is among the weights, where only these tell the gradients.
    pub optimiser: Optimiser,
    /// Number formats of a model that takes the place of missing features.
    pub precision: Precision,
}

/// An opened row.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The job's name in its table.
    pub id: String,
    /// The step of one replica.
    pub graph: StepGraph,
    /// What the step does.
    pub work: Work,
    /// How long its parts take, the exchange among them.
    pub step: Step,
    /// The replica's step without the exchange.
    pub time: Nanos,
    /// The row's step time over the characterised one, if the row tells the former: a table does not
    /// say whether it was measured.
    pub scale: Option<f64>,
    /// Gradients of a replica.
    pub gradients: Figure<Bytes>,
    /// The model that features are of which the row does not hold.
    pub model: Option<String>,
    /// Figures that cannot be, in sentences.
    pub warnings: Vec<String>,
}

/// Opens a row. `table` is where it stands.
///
/// # Errors
/// If the row lacks features and names no model that has them; the error says which.
pub fn open(job: &Job, table: &str, terms: &Terms) -> Result<Opened> {
    let (job, model) = complete(job, terms)?;
    let hardware = &terms.hardware;
    let work =
        Work::of(&job, hardware, terms.traffic_counts).map_err(|refusal| refused(&job, refusal))?;
    let step = Step::of(&work, hardware);
    let gradients = found_gradients(&job, &work, terms);
    let scale = scale(&job, &step);
    let warnings = checks::warnings(&work, hardware, scale, gradients.value);
    let mut graph = draw::graph(&work, &step, scale.unwrap_or(1.0), gradients.value);
    let time = graph.serial_sum();
    graph.meta.source = format!("job {} of {table}", name(&job));
    graph.meta.step = step_name(hardware, scale);
    graph.meta.world_size = 1;
    graph.meta.recorded_step = Some(time);
    Ok(Opened { id: name(&job), graph, work, step, time, scale, gradients, model, warnings })
}

/// What the times of the step are.
fn step_name(hardware: &Hardware, scale: Option<f64>) -> String {
    let machine = match *hardware == Hardware::pai_2019() {
        true => Hardware::PAI_2019,
        false => "a machine as given",
    };
    let scaled = if scale.is_some() { ", scaled to the row's step time" } else { "" };
    format!("{} on {machine}{scaled}", StepMeta::CHARACTERISED)
}

/// What identifies a row for people.
fn name(job: &Job) -> String {
    match job.id.as_str() {
        "" => format!("in row {}", job.row),
        id => id.to_owned(),
    }
}

/// The row's step holds the exchange too: all parts are scaled alike.
fn scale(job: &Job, step: &Step) -> Option<f64> {
    let told = job.step_time.filter(|time| *time > Nanos::ZERO)?;
    let total = step.total(Overlap::None).nanos().max(1);
    Some(told.nanos() as f64 / total as f64)
}

fn missing(job: &Job) -> Vec<&'static str> {
    let features = &job.features;
    let alone = features.class == Some(Class::OneWorkerOneGpu);
    [
        ("class", features.class.is_none()),
        ("flops", features.flops.is_none()),
        ("memory_access_bytes", features.memory_access.is_none()),
        ("input_bytes", features.input.is_none()),
        ("cnodes", features.cnodes.is_none() && job.gpus.is_none() && !alone),
        ("weight_traffic_bytes", features.traffic.is_none() && !alone),
    ]
    .into_iter()
    .filter_map(|(column, is_missing)| is_missing.then_some(column))
    .collect()
}

/// A row that lacks features of a model that is known by name gets the model's.
fn complete(job: &Job, terms: &Terms) -> Result<(Job, Option<String>)> {
    let missing = missing(job);
    if missing.is_empty() {
        return Ok((job.clone(), None));
    }
    let lacks = || {
        InputError::new(format!("job {} has no {}", name(job), missing.join(", ")))
            .hint("fleet features makes whole rows of recordings and models")
    };
    if job.model.is_empty() {
        return Err(lacks().hint("nor does it name a model whose features could take their place"));
    }
    // Names in tables are no paths: a table is not trusted to have files read.
    let Ok(model) = foretrain_workload::named(&job.model) else {
        let hint = format!("foretrain models does not list its model \"{}\"", job.model);
        return Err(lacks().hint(hint));
    };
    let whole = |batch: &f64| batch.fract() == 0.0 && (1.0..1e9).contains(batch);
    let Some(batch) = job.batch.filter(whole) else {
        return Err(lacks().hint(format!(
            "nor does it tell the batch; with one: foretrain estimate {} --on CLUSTER --gpus {} --batch N",
            model.name,
            job.gpus.unwrap_or(1.0).max(1.0).ceil()
        )));
    };
    let asked = Asked {
        id: name(job),
        model: None,
        class: job.features.class,
        cnodes: job.features.cnodes.or(job.gpus.map(|gpus| gpus.max(1.0).ceil() as u32)),
        gpus_per_server: terms.hardware.gpus_per_server,
        batch: Some(batch as u64),
        sequence: None,
        target: None,
        optimiser: terms.optimiser,
        precision: terms.precision,
        steps: None,
        on: None,
    };
    let row = of_model(&model, &asked)?;
    let features = filled(&job.features, &row.features());
    Ok((Job { features, ..job.clone() }, Some(model.name)))
}

/// What a row holds, and for the rest what a model has.
fn filled(row: &Features, model: &Features) -> Features {
    // Weights of the row tell more of its gradients than a model does.
    let gradients = if row.dense_weights.is_some() { None } else { model.gradients };
    let counts = if row.traffic.is_some() { row.traffic_counts } else { model.traffic_counts };
    Features {
        class: row.class.or(model.class),
        medium: row.medium,
        cnodes: row.cnodes.or(model.cnodes),
        flops: row.flops.or(model.flops),
        memory_access: row.memory_access.or(model.memory_access),
        input: row.input.or(model.input),
        traffic: row.traffic.or(model.traffic),
        traffic_counts: counts,
        dense_weights: row.dense_weights.or(model.dense_weights),
        embedding_weights: row.embedding_weights.or(model.embedding_weights),
        embedding_touched: row.embedding_touched.or(model.embedding_touched),
        gradients: row.gradients.or(gradients),
    }
}

fn refused(job: &Job, refusal: Refusal) -> InputError {
    let why = match refusal {
        Refusal::NoFeatures | Refusal::Incomplete => "features of a step are missing",
        Refusal::TooFew => "it has fewer cNodes than its class",
        Refusal::TooMany => "it has more cNodes than a server has GPUs, in a class of one server",
        Refusal::NotOneGpu => "it has several cNodes in class 1w1g",
        Refusal::WrongMedium => "it names a medium that its class does not use",
        Refusal::NoWork => "its step takes less than a microsecond",
    };
    let error = InputError::new(format!("job {} cannot be opened: {why}", name(job)));
    match refusal {
        Refusal::TooMany => error.hint("say how large a server is with --gpus-per-server"),
        _ => error.hint("correct the row; docs/fleet.md has the rules of classes"),
    }
}

/// Gradients by what is exchanged; of a job on one GPU as its row says, else by its weights.
fn found_gradients(job: &Job, work: &Work, terms: &Terms) -> Figure<Bytes> {
    if let Some(bytes) =
        gradients(work.class, work.cnodes, work.traffic).filter(|bytes| *bytes > Bytes::ZERO)
    {
        let how =
            format!("by the weight traffic of {} over {} cNodes", work.class.name(), work.cnodes);
        return Figure::new(bytes, Basis::Inferred, how);
    }
    let some = |bytes: &Bytes| *bytes > Bytes::ZERO;
    if let Some(bytes) = job.features.gradients.filter(some) {
        return Figure::new(bytes, Basis::Given, "as the row says");
    }
    let Some(weights) = work.dense_weights.filter(some) else {
        return Figure::missing(
            "neither traffic nor weights tell them: give predict --gradient-bytes",
        );
    };
    let copies = 1 + terms.optimiser.moments();
    let optimiser = terms.optimiser.as_str();
    let how = format!("dense weights over {copies}: weights and the moments of {optimiser}");
    Figure::new(Bytes::from_f64(weights.as_f64() / copies as f64), Basis::Assumed, how)
}

#[cfg(test)]
mod tests;
