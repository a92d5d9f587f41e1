//! Verdicts, fits and predictions from measured points, without a trace.
//!
//! People have throughputs or step times of one job at a few sizes. From these, and from what is
//! known of the job (bytes, strategy, accumulation, NIC rate), [`scaling`] tells what is lost where,
//! the rate that explains it, what would help and by how much, and what other sizes would do. The
//! model is `T = work x c + E`: computation, and what synchronisation shows beside it (`exposed`).
//! See `docs/scaling.md`.

mod accumulation;
mod answer;
mod caveats;
mod contradictions;
mod exposed;
mod forecast;
pub mod input;
mod normal;
mod outlook;
mod ranks;
pub mod read;
mod segments;
mod verdict;

use foretrain_core::{Bandwidth, Estimate, Nanos, Result};

pub use answer::{
    AccumulationAnswer, BreakEven, Losses, PointAnswer, Predicted, RankAnswer, Remedy,
    ScalingAnswer, SegmentRate, SeriesAnswer, SplitAnswer, StrategyOutlook, Verdict,
};
pub use input::{Known, Measure, Point, RankKind, ScalingInput, Series};

use exposed::{Exposed, Size};
use forecast::Basis;
use normal::{Normal, Normalised};
use outlook::Situation;
use verdict::Case;

/// Batches per GPU for which an effective rate is shown where the batch is unknown.
const USUAL_BATCHES: [u32; 4] = [32, 64, 128, 256];

/// Answers for all series.
///
/// # Errors
/// If the input is not consistent (see [`ScalingInput::check`]).
pub fn scaling(input: &ScalingInput) -> Result<ScalingAnswer> {
    input.check()?;
    contradictions::check_names(input)?;
    let series = input.series.iter().filter_map(Normalised::of);
    Ok(ScalingAnswer {
        series: series.map(|normal| series_answer(&normal)).collect(),
        ranks: ranks::answer(&input.ranks, input.global_batch),
        contradictions: contradictions::find(input),
    })
}

fn series_answer(normal: &Normalised<'_>) -> SeriesAnswer {
    let series = normal.series;
    let line = accumulation::line(normal);
    let node_cost = line.as_ref().map(|line| line.micro_step).or_else(|| normal.node_cost());
    let exposed = match (&line, node_cost) {
        (Some(line), _) => Some(Exposed::from_sync(normal, line.size(), line.sync, line.misfit)),
        (None, Some(cost)) => Exposed::fit(normal, cost),
        (None, None) => None,
    };
    let segments = segments::rates(normal);
    let effective = effective(normal, exposed.as_ref(), &segments);
    let line_size = line.as_ref().map(accumulation::Line::size);
    let asked = asked_like(normal, line_size);
    let outlook_at = outlook_size(normal, asked);
    let from_rate = rate_without_points(normal);
    let measured = situation(normal, node_cost, exposed.as_ref());
    let now = measured.or_else(|| expected(normal, outlook_at, node_cost?, from_rate.as_ref()?));
    let effective = effective.or_else(|| {
        let nominal = normal.series.known.nic.filter(|_| from_rate.is_some() && now.is_some())?;
        Some(Estimate::between(nominal * forecast::REACHED, nominal * 0.5, nominal))
    });
    let losses = losses(normal, node_cost);
    let case = Case {
        normal,
        losses,
        exposed: exposed.as_ref(),
        now,
        effective: effective.map(|rate| rate.value),
        sync: line.as_ref().map(|line| line.sync / line.micro_step),
    };
    let (verdict, reasons) = verdict::judge(&case);
    let points: Vec<PointAnswer> =
        normal.points.iter().map(|point| point_answer(normal, point, node_cost)).collect();
    let is_line = line.is_some();
    let basis = Basis { normal, node_cost, exposed, is_line };
    let (predictions, unanswered) = basis.answer(asked);
    let computation = node_cost.unwrap_or(1.0) * basis.work(outlook_at);
    let warnings =
        caveats::warnings(normal, verdict, &points, &segments, !series.ask_accumulation.is_empty());
    SeriesAnswer {
        name: series.name.clone(),
        unit: normal.throughput(1, 1.0).map(|_| normal.first().point.measure.family().to_owned()),
        verdict,
        reasons,
        losses,
        effective_by_batch: by_batch(normal, exposed.as_ref()),
        break_even: now
            .and_then(|now| outlook::break_even(normal, &now, effective.map(|e| e.value))),
        effective,
        segments,
        accumulation: line.map(|line| line.answer(normal)),
        remedies: now.map(|now| outlook::remedies(normal, &now)).unwrap_or_default(),
        strategies: outlook::strategies(
            normal,
            outlook_at,
            computation,
            basis.exposed.as_ref().or(from_rate.as_ref()),
        ),
        predictions,
        unanswered,
        warnings,
        assumptions: assumptions(normal, node_cost, measured.as_ref()),
        points,
    }
}

/// What the largest size loses.
fn situation(
    normal: &Normalised<'_>,
    node_cost: Option<f64>,
    exposed: Option<&Exposed>,
) -> Option<Situation> {
    let (largest, cost) = (normal.largest()?, node_cost?);
    let computation = largest.work * cost;
    let lost = (largest.time() - computation).max(0.0);
    let share = exposed.map_or(1.0, |exposed| exposed.share_of_bytes(normal, largest.into()));
    Some(Situation { size: largest.into(), computation, lost, lost_to_bytes: lost * share })
}

/// What a size would lose by the NICs' rate.
fn expected(
    normal: &Normalised<'_>,
    size: Size,
    node_cost: f64,
    by_rate: &Exposed,
) -> Option<Situation> {
    let basis = Basis { normal, node_cost: Some(node_cost), exposed: None, is_line: false };
    let lost = by_rate.at(normal, size);
    let computation = node_cost * basis.work(size);
    (size.nodes > 1).then_some(Situation { size, computation, lost, lost_to_bytes: lost })
}

fn losses(normal: &Normalised<'_>, node_cost: Option<f64>) -> Losses {
    let alone: Vec<&Normal<'_>> = normal.trusted().filter(|point| point.nodes == 1).collect();
    let sizes = alone.windows(2).any(|pair| pair[0].gpus != pair[1].gpus);
    let inside = match (sizes, normal.node_cost()) {
        (true, Some(cost)) => alone.first().map(|first| (1.0 - first.cost / cost).max(0.0)),
        _ => None,
    };
    let between = match (normal.largest(), node_cost) {
        (Some(largest), Some(cost)) => Some((1.0 - cost / largest.cost).max(0.0)),
        _ => None,
    };
    Losses { inside_node: inside, between_nodes: between }
}

/// The rate behind the loss: of the timed parts of the step if there are any, else of the step.
fn effective(
    normal: &Normalised<'_>,
    exposed: Option<&Exposed>,
    segments: &[SegmentRate],
) -> Option<Estimate<Bandwidth>> {
    let rates = || segments.iter().map(|segment| segment.rate.get());
    let seconds: f64 = segments.iter().map(|segment| segment.growth.secs_f64()).sum();
    if seconds > 0.0 {
        let bytes: f64 = segments.iter().map(|segment| segment.node_bytes).sum();
        let rate = Bandwidth::from_bytes_per_sec;
        let (low, high) = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
        return Some(Estimate::between(rate(bytes / seconds), rate(low), rate(high)));
    }
    let (exposed, unit) = (exposed.filter(|_| normal.has_bytes())?, normal.unit?);
    let rate = Bandwidth::from_bytes_per_sec(exposed.rate()? / unit);
    Some(Estimate::with_relative_spread(rate, exposed.spread))
}

/// Rates of throughputs whose batch is unknown.
fn by_batch(normal: &Normalised<'_>, exposed: Option<&Exposed>) -> Vec<(u32, Bandwidth)> {
    let is_unknown = normal.unit.is_none() && normal.has_bytes();
    let unit = normal.first().point.measure.family().to_ascii_lowercase();
    let counts_samples = !unit.contains("flop") && !unit.contains("tok");
    let (Some(rate), Some(per_gpu)) = (exposed.and_then(Exposed::rate), normal.throughput(1, 1.0))
    else {
        return Vec::new();
    };
    if !(is_unknown && counts_samples) {
        return Vec::new();
    }
    let of = |batch: u32| Bandwidth::from_bytes_per_sec(rate * per_gpu / f64::from(batch));
    USUAL_BATCHES.map(|batch| (batch, of(batch))).to_vec()
}

fn point_answer(
    normal: &Normalised<'_>,
    point: &Normal<'_>,
    node_cost: Option<f64>,
) -> PointAnswer {
    let first = normal.first();
    let efficiency = 1.0 / point.cost;
    let synchronised = normal.synchronised(point.way, point.gpus, point.nodes, point.micro);
    let (rank, node) = (synchronised.per_rank(), synchronised.per_node());
    let step = normal.seconds(point.time());
    let lost = node_cost.map(|cost| point.time() - point.work * cost).filter(|lost| *lost > 0.0);
    let lost = lost.and_then(|lost| normal.seconds(lost)).map(Nanos::secs_f64);
    let rate = |seconds: f64| {
        (normal.has_bytes() && node.total() > 0.0 && seconds > 0.0)
            .then(|| Bandwidth::from_bytes_per_sec(node.total() / seconds))
    };
    PointAnswer {
        gpus: point.gpus,
        nodes: point.nodes,
        accumulation: point.micro,
        strategy: point.way,
        speed_up: f64::from(point.gpus) / f64::from(first.gpus) * efficiency,
        efficiency,
        scaling_factor: (first.gpus == 1).then_some(efficiency),
        per_gpu: normal.throughput(1, point.cost),
        step_ratio: Some(point.time() / first.time()).filter(|_| normal.same_batch),
        step,
        rank_bytes: normal.has_bytes().then_some(rank),
        node_bytes: normal.has_bytes().then_some(node),
        effective: lost.and_then(rate),
        average: step.and_then(|step| rate(step.secs_f64())),
    }
}

/// What predictions are like where the question does not say.
fn asked_like(normal: &Normalised<'_>, line: Option<Size>) -> Size {
    let like = normal.largest().unwrap_or(normal.first());
    let way = normal.series.known.strategy.unwrap_or(like.way);
    let micro = normal.series.known.accumulation.unwrap_or(like.micro);
    Size { way, micro, ..line.unwrap_or_else(|| like.into()) }
}

/// Where strategies are compared: the largest measured size, else the largest asked.
fn outlook_size(normal: &Normalised<'_>, like: Size) -> Size {
    match normal.largest() {
        Some(largest) => largest.into(),
        None => {
            let gpus = normal.series.ask.iter().copied().max().unwrap_or(like.gpus);
            Size { gpus, nodes: normal.series.nodes(gpus), ..like }
        }
    }
}

/// The loss by the NICs' rate alone, for jobs that were never run on several nodes.
fn rate_without_points(normal: &Normalised<'_>) -> Option<Exposed> {
    if normal.spread().next().is_some() || !normal.has_bytes() {
        return None;
    }
    let rate = normal.series.known.nic?.get() * forecast::REACHED * normal.unit?;
    Some(Exposed::from_rate(rate, 0.3))
}

fn assumptions(
    normal: &Normalised<'_>,
    node_cost: Option<f64>,
    now: Option<&Situation>,
) -> Vec<String> {
    let known = &normal.series.known;
    let mut found = known.assumed.clone();
    let is_step = matches!(normal.first().point.measure, Measure::Step(_));
    if normal.points.len() > 1 && is_step && !known.same_global_batch {
        let strong = now.map(|now| {
            let share = f64::from(normal.first().gpus) / f64::from(now.size.gpus);
            let (first, last) = (normal.first().time(), now.computation + now.lost);
            format!(
                " (else the efficiency at {} GPUs is {:.0} %)",
                now.size.gpus,
                first / last * share * 100.0
            )
        });
        found.push(format!("the batch per GPU is the same at all sizes{}; say so if the global batch is (same_global_batch)", strong.unwrap_or_default()));
    }
    if matches!(normal.first().point.measure, Measure::SameData(_)) && !known.same_global_batch {
        found.push("the batch per GPU is the same at all sizes, so twice the GPUs take half the steps for the same data".into());
    }
    if normal.series.points.iter().all(|point| point.strategy.is_none()) && known.strategy.is_none()
    {
        found.push("gradients are all-reduced (ddp): no strategy was named".into());
    }
    if normal.series.per_node().is_none() && normal.points.len() > 1 {
        found.push("all points are on one node: neither nodes nor gpus_per_node were given".into());
    }
    if node_cost.is_some() && normal.node_cost().is_none() {
        found.push("one node's rate follows from points of different accumulation".into());
    }
    let (first, largest) = (normal.first(), normal.largest());
    if let Some(largest) = largest
        && normal.node_cost().is_some()
        && normal
            .trusted()
            .filter(|p| p.nodes == 1)
            .all(|p| p.gpus < largest.gpus.div_ceil(largest.nodes))
    {
        found.push(format!("no point fills a node: what is lost inside a node of {} GPUs counts as lost between nodes", largest.gpus.div_ceil(largest.nodes)));
    }
    found.extend(passes_per_step(first, largest));
    found
}

/// Steps that hold several forward and backward passes, though no accumulation was named.
fn passes_per_step(first: &Normal<'_>, largest: Option<&Normal<'_>>) -> Option<String> {
    let passes = |point: &Normal<'_>| {
        let Measure::Step(step) = point.point.measure else { return None };
        let parts = point.point.forward? + point.point.backward?;
        Some(step.secs_f64() / parts.secs_f64())
    };
    let (a, b) = (passes(first)?, passes(largest?)?);
    let unsaid = first.micro == 1 && a.min(b) > 1.5;
    unsaid.then(|| {
        format!("steps take {a:.1} and {b:.1} times as long as forward and backward together: either they hold several micro-batches (say accumulation), or much time is spent outside them")
    })
}
