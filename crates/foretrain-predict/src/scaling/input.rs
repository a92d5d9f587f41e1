//! What people know of a job at several sizes.

use foretrain_core::{Bandwidth, Bytes, InputError, Nanos, Result};
use foretrain_cost::Synchronisation;

/// The largest job that anybody asks for; more means a slip.
pub const MOST_GPUS: u32 = 10_000_000;
/// Points, ranks or questions of one input; tables of more are something else.
const MOST: usize = 2_000;
/// Seconds or rates in any unit; what lies outside would lose its digits in ratios.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 1e-9..=1e15;
/// Seconds; no step or epoch takes 30 years.
const LONGEST: f64 = 1e9;

/// Measured points and what is known beside them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScalingInput {
    /// Series of points, each of one job on one machine.
    pub series: Vec<Series>,
    /// Kinds of ranks of different speed in one job.
    pub ranks: Vec<RankKind>,
    /// Samples that all ranks together are to process in a step, where that is fixed.
    pub global_batch: Option<f64>,
}

/// One job at several sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// What it ran on; series on one machine are compared.
    pub machine: Option<String>,
    /// What is known of the job.
    pub known: Known,
    /// What was measured, in the order of the input.
    pub points: Vec<Point>,
    /// Sizes to predict, in GPUs.
    pub ask: Vec<u32>,
    /// Accumulation to predict, in micro-batches per step.
    pub ask_accumulation: Vec<u32>,
}

/// What is known of a job; all of it may be unknown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// GPUs on a node.
    pub gpus_per_node: Option<u32>,
    /// Bytes of all parameters, as they are gathered.
    pub parameter_bytes: Option<Bytes>,
    /// Bytes of all gradients, as they are reduced.
    pub gradient_bytes: Option<Bytes>,
    /// Bytes of one element of a gradient.
    pub element_bytes: Option<u32>,
    /// How gradients are synchronised, where a point does not say.
    pub strategy: Option<Synchronisation>,
    /// Micro-batches per step, where a point does not say.
    pub accumulation: Option<u32>,
    /// Samples per GPU and micro-batch, where a point does not say.
    pub batch_per_gpu: Option<f64>,
    /// Gradients are exchanged after every micro-batch (no `no_sync`).
    pub synchronises_each: bool,
    /// The nominal rate of a node's NICs in one direction.
    pub nic: Option<Bandwidth>,
    /// The batch of all GPUs together was the same at all sizes (strong scaling).
    pub same_global_batch: bool,
    /// Time of a step at the smallest point, where points are rates or times for the same data.
    pub base_step: Option<Nanos>,
    /// What had to be assumed on reading, for people.
    pub assumed: Vec<String>,
}

/// One measured size.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// GPUs.
    pub gpus: u32,
    /// Nodes, where known.
    pub nodes: Option<u32>,
    /// What was measured.
    pub measure: Measure,
    /// Samples per GPU and micro-batch.
    pub batch_per_gpu: Option<f64>,
    /// Micro-batches per step.
    pub accumulation: Option<u32>,
    /// How gradients were synchronised.
    pub strategy: Option<Synchronisation>,
    /// Time of the forward pass.
    pub forward: Option<Nanos>,
    /// Time of the backward pass.
    pub backward: Option<Nanos>,
    /// Where it stands: "line 7", "point 2".
    pub place: String,
}

/// A measured value.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// Time of one step.
    Step(Nanos),
    /// Work per second of all GPUs together, in a unit.
    Throughput(f64, String),
    /// Work per second of each GPU, in a unit.
    PerGpu(f64, String),
    /// Time for the same data (an epoch) at all sizes.
    SameData(Nanos),
}

impl Measure {
    /// What can be compared with what.
    pub(super) fn family(&self) -> &str {
        match self {
            Self::Step(_) => "step times",
            Self::SameData(_) => "times for the same data",
            Self::Throughput(_, unit) | Self::PerGpu(_, unit) => unit,
        }
    }
}

/// GPUs of one speed in a job.
#[derive(Clone, Debug, PartialEq)]
pub struct RankKind {
    /// Its name.
    pub name: String,
    /// How many.
    pub count: u32,
    /// Samples per second of one, at the batch it runs.
    pub rate: f64,
    /// Samples per step of one.
    pub batch: Option<f64>,
    /// Most samples per step that its memory holds.
    pub most_batch: Option<f64>,
}

impl Series {
    /// Nodes of a size.
    pub(super) fn nodes(&self, gpus: u32) -> u32 {
        gpus.div_ceil(self.per_node().unwrap_or(gpus).max(1)).max(1)
    }

    /// GPUs per node: as told, else by the points that say how many nodes they ran on.
    pub(super) fn per_node(&self) -> Option<u32> {
        let of = |point: &Point| point.nodes.map(|nodes| point.gpus.div_ceil(nodes.max(1)));
        self.known.gpus_per_node.or_else(|| self.points.iter().filter_map(of).max())
    }

    pub(super) fn nodes_of(&self, point: &Point) -> u32 {
        point.nodes.unwrap_or_else(|| self.nodes(point.gpus))
    }

    pub(super) fn strategy_of(&self, point: &Point) -> Synchronisation {
        point.strategy.or(self.known.strategy).unwrap_or(Synchronisation::AllReduce)
    }

    pub(super) fn accumulation_of(&self, point: &Point) -> u32 {
        point.accumulation.or(self.known.accumulation).unwrap_or(1)
    }
}

impl ScalingInput {
    /// Checks that figures make sense and can be compared.
    ///
    /// # Errors
    /// Names the first point that is wrong.
    pub fn check(&self) -> Result<()> {
        if self.series.iter().all(|series| series.points.is_empty()) && self.ranks.is_empty() {
            return Err(InputError::new("no measured points")
                .hint("give a file, or points as in --point 8=2697 --point 16=2633 --unit img/s"));
        }
        let counts = [
            ("points", self.series.iter().map(|series| series.points.len()).sum::<usize>()),
            ("ranks", self.ranks.len()),
            ("sizes asked for", self.series.iter().map(|series| series.ask.len()).sum()),
            (
                "accumulations asked for",
                self.series.iter().map(|series| series.ask_accumulation.len()).sum(),
            ),
        ];
        if let Some((what, count)) = counts.into_iter().find(|(_, count)| *count > MOST) {
            return Err(InputError::new(format!("{count} {what}: expected at most {MOST}"))
                .hint("give the median of each size instead of every step"));
        }
        self.series.iter().try_for_each(check_series)?;
        self.ranks.iter().try_for_each(check_rank)?;
        self.check_names_of_ranks()?;
        match self.global_batch {
            Some(batch) if !PLAUSIBLE.contains(&batch) => {
                Err(InputError::new(format!("global_batch = {batch}: expected samples above zero")))
            }
            Some(_) if self.ranks.is_empty() => {
                Err(InputError::new("a global batch is split among ranks, and none are described")
                    .hint("describe them, as in --ranks slow:count=2,rate=500")
                    .hint("or, if it was the same at all sizes, say same_global_batch"))
            }
            _ => Ok(()),
        }
    }

    fn check_names_of_ranks(&self) -> Result<()> {
        for (i, rank) in self.ranks.iter().enumerate() {
            let name = &rank.name;
            if name.is_empty() {
                return Err(InputError::new("ranks without a name").hint("give each kind its own"));
            }
            if self.ranks[..i].iter().any(|before| before.name == *name) {
                return Err(InputError::new(format!("two kinds of ranks are called \"{name}\""))
                    .hint("give each its own name, or one of them their sum as count"));
            }
        }
        Ok(())
    }
}

fn check_rank(rank: &RankKind) -> Result<()> {
    let wrong = |what: String| Err(InputError::new(what).at(format!("rank \"{}\"", rank.name)));
    let positive = |value: f64| PLAUSIBLE.contains(&value);
    if rank.count == 0 || rank.count > MOST_GPUS {
        return wrong(format!("count = {}: expected 1 to {MOST_GPUS}", rank.count));
    }
    if !positive(rank.rate) {
        return wrong(format!("rate = {}: expected samples per second above zero", rank.rate));
    }
    for batch in [rank.batch, rank.most_batch].into_iter().flatten() {
        if !positive(batch) {
            return wrong(format!("batch = {batch}: expected samples above zero"));
        }
        if !PLAUSIBLE.contains(&(batch / rank.rate)) {
            return wrong(format!(
                "a batch of {batch} at {} samples per second is no step that can be timed",
                rank.rate
            ));
        }
    }
    match (rank.batch, rank.most_batch) {
        (Some(batch), Some(most)) if batch > most => {
            wrong(format!("batch = {batch} is more than most_batch = {most}"))
        }
        _ => Ok(()),
    }
}

fn check_series(series: &Series) -> Result<()> {
    let named = |error: InputError, place: &str| match series.name.as_str() {
        "" => error.at(place.to_owned()),
        name => error.at(format!("{place} of \"{name}\"")),
    };
    let size = |gpus: u32| (1..=MOST_GPUS).contains(&gpus);
    if let Some(bad) = series.ask.iter().find(|gpus| !size(**gpus)) {
        return Err(InputError::new(format!("asked for {bad} GPUs: expected 1 to {MOST_GPUS}")));
    }
    if series.known.gpus_per_node == Some(0) {
        return Err(InputError::new("gpus_per_node = 0: expected at least 1"));
    }
    if let Some(batch) = series.known.batch_per_gpu
        && !(batch.is_finite() && batch > 0.0)
    {
        return Err(InputError::new(format!(
            "batch_per_gpu = {batch}: expected samples above zero"
        )));
    }
    if let Some(step) = series.known.base_step
        && !(step > Nanos::ZERO && step.secs_f64() <= LONGEST)
    {
        return Err(InputError::new(format!(
            "base_step = {step}: expected a time above zero, at most {LONGEST:e} s"
        )));
    }
    let accumulations = series.ask_accumulation.iter().chain(&series.known.accumulation);
    if accumulations.clone().any(|micro| *micro == 0) {
        return Err(InputError::new("accumulation = 0: expected at least 1 micro-batch per step"));
    }
    for point in &series.points {
        check_point(series, point).map_err(|error| named(error, &point.place))?;
    }
    let mut points = series.points.iter();
    let Some(first) = points.next() else { return Ok(()) };
    match points.find(|point| point.measure.family() != first.measure.family()) {
        None => Ok(()),
        Some(other) => {
            let (a, b) = (first.measure.family(), other.measure.family());
            let error = InputError::new(format!("{a} and {b} cannot be compared"));
            let hint = "write all points of a series in one unit, or give them different series";
            Err(named(error.hint(hint), &other.place))
        }
    }
}

fn check_point(series: &Series, point: &Point) -> Result<()> {
    if !(1..=MOST_GPUS).contains(&point.gpus) {
        let found = point.gpus;
        return Err(InputError::new(format!("gpus = {found}: expected 1 to {MOST_GPUS}")));
    }
    if let Some(nodes) = point.nodes
        && !(1..=point.gpus).contains(&nodes)
    {
        return Err(InputError::new(format!(
            "{nodes} nodes for {} GPUs: expected at least one node and one GPU on each",
            point.gpus
        )));
    }
    if let (Some(nodes), Some(most)) = (point.nodes, series.known.gpus_per_node)
        && u64::from(nodes) * u64::from(most) < u64::from(point.gpus)
    {
        return Err(InputError::new(format!(
            "{} GPUs do not fit on {nodes} nodes of {most}",
            point.gpus
        )));
    }
    if point.accumulation == Some(0) {
        return Err(InputError::new("accumulation = 0: expected at least 1 micro-batch per step"));
    }
    let value = match &point.measure {
        Measure::Step(time) | Measure::SameData(time) => time.secs_f64(),
        Measure::Throughput(rate, _) | Measure::PerGpu(rate, _) => *rate,
    };
    if !(value > 0.0 && PLAUSIBLE.contains(&value)) {
        let (low, high) = (PLAUSIBLE.start(), PLAUSIBLE.end());
        return Err(InputError::new(format!(
            "a measured value of {value}: expected one above zero, {low:e} to {high:e}"
        )));
    }
    let whole = match point.measure {
        Measure::Step(time) | Measure::SameData(time) => Some(time),
        _ => None,
    };
    for time in [whole, point.forward, point.backward].into_iter().flatten() {
        if !(0.0..=LONGEST).contains(&time.secs_f64()) {
            return Err(InputError::new(format!("a time of {time}: expected 0 to {LONGEST:e} s")));
        }
    }
    if let Some(batch) = point.batch_per_gpu
        && !(batch.is_finite() && batch > 0.0)
    {
        return Err(InputError::new(format!("batch = {batch}: expected samples above zero")));
    }
    let parts: Nanos = [point.forward, point.backward].into_iter().flatten().sum();
    if let Measure::Step(step) = &point.measure
        && parts > *step
    {
        return Err(InputError::new(format!(
            "forward and backward take {parts}, more than the step of {step}"
        ))
        .hint("give times of one step each, in the same unit"));
    }
    Ok(())
}
