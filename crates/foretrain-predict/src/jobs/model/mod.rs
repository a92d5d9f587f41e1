//! What the description of a model tells of a job that trains it.

mod input;

use foretrain_core::words::counted;
use foretrain_core::{Bytes, DType, Flops, InputError, Result};
use foretrain_cost::kernels::{KernelModel, Operation};
use foretrain_fleet::jobs::Class;
use foretrain_plan::lower::{Slice, Work, lower};
use foretrain_plan::times::{Machine, Part};
use foretrain_plan::{Answer, Job, Layout, Optimiser, Precision, Software, Training, Wish};
use foretrain_workload::model::{Model, OpKind, Sample};

use super::Asked;
use super::exchange::{Exchanged, traffic};
use super::figure::{Basis, Figure};
use super::row::{JobFeatures, Origin};
use input::input;

/// The row of a job that trains a model on whole replicas.
///
/// # Errors
/// If no batch is given, or the model cannot be trained so.
pub fn of_model(model: &Model, asked: &Asked<'_>) -> Result<JobFeatures> {
    let Some(batch) = asked.batch else {
        return Err(InputError::new(format!("no batch for a step of \"{}\"", model.name))
            .hint("give --batch, the samples of a replica's step"));
    };
    let training = training(model, batch, asked)?;
    let software = Software::named("pytorch")?;
    let layout = Layout { micro_batch: batch, ..Wish::default().complete(1)? };
    let slice = Slice::of(&layout, &training, &software);
    let work = StepWork::of(model, &slice);
    let tables = Tables::of(model, &training);
    let precision = training.precision;
    let cnodes = match (asked.cnodes, asked.class) {
        (Some(cnodes), _) => Figure::new(cnodes, Basis::Given, ""),
        (None, Some(class)) if class.fewest() > 1 => {
            let how = "the GPUs of a server; give --cnodes";
            Figure::new(asked.gpus_per_server, Basis::Assumed, how)
        }
        (None, _) => Figure::new(1, Basis::Assumed, "one GPU; give --cnodes"),
    };
    let class = asked.class(&cnodes, 1);
    asked.check(&class, &cnodes)?;
    let in_gradients = |elements: u64| Bytes::new(precision.gradients.bytes_of(elements));
    let dense = model.parameters() - tables.elements;
    let exchanged = Exchanged {
        dense: in_gradients(dense),
        tables: in_gradients(tables.elements),
        touched: in_gradients(tables.touched),
    };
    let spread = class.value.zip(cnodes.value);
    let (bytes, how) =
        spread.map_or((Bytes::ZERO, ""), |(class, cnodes)| traffic(class, cnodes, &exchanged));
    let samples = format!("{}, {} products", counted(batch, "sample"), precision.compute.as_str());
    let updated = if exchanges_rows(class.value) { tables.touched } else { tables.elements };
    let update = update(dense.saturating_add(updated), &training);
    let (weights, state) = with_state(precision, asked.optimiser);
    let estimate =
        asked.on.map(|_| estimate(model, &training, &software, &layout, asked)).transpose()?;
    let not_on = || "a description has no device: give --on".to_owned();
    // One GPU alone does not tell how long a step with an exchange takes.
    let spread_over = cnodes.value.filter(|cnodes| *cnodes > 1);
    let alone = estimate.as_ref().filter(|_| spread_over.is_none());
    let not_alone = || match (spread_over, asked.on) {
        (Some(cnodes), Some(on)) => format!(
            "one GPU does not tell the exchange of {cnodes}: foretrain estimate {} --on {} --gpus {cnodes} does",
            model.name, on.name
        ),
        _ => not_on(),
    };
    let of_table = |bytes, how: &str| match tables.elements {
        0 => Figure::new(Bytes::ZERO, Basis::Model, "the model has no embedding table"),
        _ => Figure::new(bytes, Basis::Model, how),
    };
    let mut notes = model.assumptions.clone();
    if matches!(class.value, Some(Class::AllReduceLocal | Class::AllReduceCluster))
        && tables.elements > 0
    {
        notes.push("all-reduce exchanges the gradients of whole embedding tables, as PyTorch does unless they are sparse".into());
    }
    Ok(JobFeatures {
        id: asked.id.clone(),
        origin: Origin::Model,
        model: model.name.clone(),
        class,
        cnodes,
        batch: asked.batch(""),
        flops: Figure::new(
            Flops::new(work.flops),
            Basis::Model,
            format!("matrix products, convolutions and attention, forward and backward: {samples}"),
        ),
        memory_access: Figure::new(
            Bytes::from_f64(work.moved) + update,
            Basis::Model,
            format!(
                "other operations, each input and result once, and the update ({update}): activations in {}",
                precision.activations.as_str()
            ),
        ),
        input: input(model, &training),
        traffic: Figure::new(
            bytes,
            Basis::Model,
            format!("{how}; gradients in {}", precision.gradients.as_str()),
        ),
        dense_weights: Figure::new(
            Bytes::new(dense.saturating_mul(weights)),
            Basis::Model,
            format!("weights other than of embedding tables: {state}"),
        ),
        embedding_weights: of_table(Bytes::new(tables.elements.saturating_mul(weights)), &state),
        embedding_touched: of_table(
            Bytes::new(precision.weights.bytes_of(tables.touched)),
            "rows looked up by a step, each time anew",
        ),
        gradients: Figure::new(
            exchanged.dense,
            Basis::Model,
            format!(
                "of weights other than of embedding tables, in {}",
                precision.gradients.as_str()
            ),
        ),
        steps: asked.steps(),
        step_time: alone.map_or_else(
            || Figure::missing(not_alone()),
            |found| Figure::new(found.time.value, Basis::Estimated, on_one(asked)),
        ),
        utilisation: alone.map_or_else(
            || Figure::missing(not_alone()),
            |found| Figure::new(busy(found), Basis::Estimated, on_one(asked)),
        ),
        gpu_memory: estimate.as_ref().map_or_else(
            || Figure::missing(not_on()),
            |found| Figure::new(found.peak_memory(), Basis::Estimated, on_one(asked)),
        ),
        notes,
    })
}

fn training(model: &Model, batch: u64, asked: &Asked<'_>) -> Result<Training> {
    let refuse = |option: &str| {
        InputError::new(format!("{option} is of no use to \"{}\"", model.name)).hint("leave it out")
    };
    let (sequence, target) = match model.sample {
        Sample::Tokens { .. } | Sample::Fixed if asked.target.is_some() => {
            return Err(refuse("--target-sequence"));
        }
        Sample::Fixed if asked.sequence.is_some() => return Err(refuse("--sequence")),
        Sample::Tokens { default, longest } => {
            let sequence = asked.sequence.unwrap_or(default);
            if let Some(longest) = longest.filter(|longest| sequence > *longest) {
                return Err(InputError::new(format!(
                    "{sequence} tokens; {} has positions for {longest}",
                    model.name
                )));
            }
            (sequence, 0)
        }
        Sample::Pair { source, target } => {
            (asked.sequence.unwrap_or(source), asked.target.unwrap_or(target))
        }
        Sample::Fixed => (0, 0),
    };
    Ok(Training {
        target,
        precision: asked.precision,
        optimiser: asked.optimiser,
        ..Training::of(batch, sequence)
    })
}

/// FLOPs of compute-bound operations and bytes of the others, forward and backward.
#[derive(Default)]
struct StepWork {
    flops: f64,
    moved: f64,
}

impl StepWork {
    fn of(model: &Model, slice: &Slice) -> Self {
        let mut all = Self::default();
        for block in &model.blocks {
            let lowered = lower(&block.layer, slice);
            for work in lowered.forward.iter().chain(&lowered.backward) {
                all.add(work, f64::from(block.repeat));
            }
        }
        all
    }

    fn add(&mut self, work: &Work, repeat: f64) {
        match work {
            Work::Kernel { operation, times, .. } => {
                self.kernel(operation, repeat * f64::from(*times));
            }
            Work::Beside { kernels, .. } => {
                kernels.iter().for_each(|(operation, _)| self.kernel(operation, repeat));
            }
            Work::Comm(_) => {}
        }
    }

    fn kernel(&mut self, operation: &Operation, times: f64) {
        match operation {
            Operation::Memory(_) => self.moved += times * operation.bytes().as_f64(),
            _ => self.flops += times * operation.flops().get(),
        }
    }
}

/// Whether only looked-up rows of tables have gradients.
const fn exchanges_rows(class: Option<Class>) -> bool {
    matches!(class, Some(Class::OneWorkerManyGpus | Class::PsWorker | Class::Pearl))
}

/// The update reads gradients, and reads and writes what it changes.
fn update(parameters: u64, training: &Training) -> Bytes {
    let Precision { gradients, weights, master, moments, .. } = training.precision;
    let bits = |dtype: DType| u64::from(dtype.bits());
    let changed =
        bits(weights) + master.map_or(0, bits) + training.optimiser.moments() * bits(moments);
    let each = (bits(gradients) + 2 * changed) as f64 / 8.0;
    Bytes::from_f64(parameters as f64 * each)
}

/// Bytes per parameter of weights and the optimiser's state, and of what they consist.
fn with_state(precision: Precision, optimiser: Optimiser) -> (u64, String) {
    let Precision { weights, master, moments, .. } = precision;
    let count = optimiser.moments();
    let bytes = |dtype: DType| dtype.bytes_of(1);
    let all = bytes(weights) + master.map_or(0, bytes) + count * bytes(moments);
    let copy = master.map_or(String::new(), |master| format!(", a copy in {}", master.as_str()));
    let state = format!(
        "{all} B each: {}{copy}, moments of {}: {count}",
        weights.as_str(),
        optimiser.as_str()
    );
    (all, state)
}

/// Embedding tables.
#[derive(Default)]
struct Tables {
    elements: u64,
    /// Numbers in the rows that a step looks up.
    touched: u64,
    /// Rows that it looks up.
    lookups: u64,
}

impl Tables {
    fn of(model: &Model, training: &Training) -> Self {
        let sample = sized(model, training);
        let mut all = Self::default();
        for block in &model.blocks {
            let positions = sample.positions(block.layer.tokens, None);
            for op in &block.layer.ops {
                let OpKind::Embedding { width, lookups, .. } = op.kind else { continue };
                let repeat = u64::from(block.repeat);
                let rows = training.global_batch * positions * lookups * repeat;
                all.elements += op.parameters() * repeat;
                all.touched = all.touched.saturating_add(rows.saturating_mul(width));
                all.lookups = all.lookups.saturating_add(rows);
            }
        }
        all
    }
}

/// The sample at the lengths that are trained.
fn sized(model: &Model, training: &Training) -> Sample {
    match model.sample {
        Sample::Tokens { longest, .. } => Sample::Tokens { default: training.sequence, longest },
        Sample::Pair { .. } => Sample::Pair { source: training.sequence, target: training.target },
        Sample::Fixed => Sample::Fixed,
    }
}

fn on_one(asked: &Asked<'_>) -> String {
    let on = asked.on.map_or("", |cluster| &cluster.name);
    format!("one GPU of {on}, run by PyTorch; nothing is exchanged")
}

fn estimate(
    model: &Model,
    training: &Training,
    software: &Software,
    layout: &Layout,
    asked: &Asked<'_>,
) -> Result<Answer> {
    let Some(cluster) = asked.on else { return Err(InputError::new("no device to estimate on")) };
    let machine = Machine::new(cluster, KernelModel::for_device(&cluster.node.device));
    Job::new(model, training, software, &machine).answer(layout)
}

/// Part of the step in which the device does not wait for the host.
fn busy(found: &Answer) -> f64 {
    let step = &found.step;
    let idle = (step.parts[Part::Launch] + step.parts[Part::Bubble]).nanos() as f64;
    1.0 - (idle / step.time.nanos().max(1) as f64).clamp(0.0, 1.0)
}
