//! Points of any kind in common terms.
//!
//! A point's `cost` is the time that a GPU spends on a unit of work, relative to the smallest
//! point; its `work` is what a GPU does per step, in micro-batches of the smallest point. So a step
//! takes `work x cost` of the smallest point's micro-steps, whatever was measured.

use foretrain_core::{Bytes, Nanos};
use foretrain_cost::{Synchronisation, SynchronisedStep};

use super::input::{Measure, Point, Series};

/// Bytes that stand for unknown ones: only ratios are used then.
const STAND_IN: Bytes = Bytes::new(1_000_000_000);

/// A point in common terms.
#[derive(Clone, Debug)]
pub(super) struct Normal<'a> {
    pub(super) point: &'a Point,
    pub(super) gpus: u32,
    pub(super) nodes: u32,
    pub(super) micro: u32,
    pub(super) way: Synchronisation,
    pub(super) work: f64,
    pub(super) cost: f64,
    /// Another point of the same size says otherwise: it is shown, and used for nothing.
    pub(super) is_contradicted: bool,
}

impl Normal<'_> {
    /// The step in micro-steps of the smallest point.
    pub(super) fn time(&self) -> f64 {
        self.work * self.cost
    }
}

/// Points of one size that differ by more than this cannot both be right.
const CONTRADICTION: f64 = 1.1;

fn mark_contradicted(points: &mut [Normal<'_>]) {
    let key = |p: &Normal<'_>| (p.gpus, p.nodes, p.micro, p.way, p.work.to_bits());
    for i in 0..points.len() {
        let others = points.iter().filter(|other| key(other) == key(&points[i]));
        let off =
            |other: &Normal<'_>| (other.cost / points[i].cost).max(points[i].cost / other.cost);
        points[i].is_contradicted = others.map(off).any(|ratio| ratio > CONTRADICTION);
    }
}

/// A series in common terms.
#[derive(Clone, Debug)]
pub(super) struct Normalised<'a> {
    pub(super) series: &'a Series,
    /// By nodes, then GPUs; the first is what others are compared with.
    pub(super) points: Vec<Normal<'a>>,
    /// Seconds of the smallest point's micro-step, if they can be known.
    pub(super) unit: Option<f64>,
    /// Whether all points have one batch per GPU, so that steps compare.
    pub(super) same_batch: bool,
}

impl<'a> Normalised<'a> {
    /// `None` without points.
    pub(super) fn of(series: &'a Series) -> Option<Self> {
        let raw = |point: &Point| match &point.measure {
            Measure::Throughput(rate, _) => f64::from(point.gpus) / rate,
            Measure::PerGpu(rate, _) => 1.0 / rate,
            Measure::SameData(time) => time.secs_f64() * f64::from(point.gpus),
            Measure::Step(time) => time.secs_f64(),
        };
        let first = series.points.iter().min_by(|a, b| {
            let key = |p: &Point| (series.nodes_of(p), p.gpus, series.accumulation_of(p));
            key(a).cmp(&key(b)).then(raw(a).total_cmp(&raw(b)))
        })?;
        let batch = |point: &Point| point.batch_per_gpu.or(series.known.batch_per_gpu);
        let batches: Vec<Option<f64>> = series.points.iter().map(batch).collect();
        let micro_of_first = f64::from(series.accumulation_of(first));
        let work = |point: &Point| match (batch(point), batch(first)) {
            (Some(own), Some(of_first)) => {
                f64::from(series.accumulation_of(point)) * own / of_first
            }
            _ if series.known.same_global_batch => {
                micro_of_first * f64::from(first.gpus) / f64::from(point.gpus)
            }
            _ => f64::from(series.accumulation_of(point)),
        };
        let cost = |point: &Point| match point.measure {
            Measure::Step(time) => time.secs_f64() / work(point),
            _ => raw(point),
        };
        let cost_of_first = cost(first);
        let mut points: Vec<Normal<'_>> = series
            .points
            .iter()
            .map(|point| Normal {
                point,
                gpus: point.gpus,
                nodes: series.nodes_of(point),
                micro: series.accumulation_of(point),
                way: series.strategy_of(point),
                work: work(point),
                cost: cost(point) / cost_of_first,
                is_contradicted: false,
            })
            .collect();
        mark_contradicted(&mut points);
        points.sort_by_key(|normal| (normal.nodes, normal.gpus, normal.micro));
        let counts_samples = match &first.measure {
            Measure::Throughput(_, unit) | Measure::PerGpu(_, unit) => {
                !unit.to_ascii_lowercase().contains("flop")
            }
            _ => false,
        };
        let unit = match (&first.measure, series.known.base_step, batch(first)) {
            (Measure::Step(_), _, _) => Some(cost_of_first),
            (_, Some(step), _) => Some(step.secs_f64() / micro_of_first),
            (_, None, Some(batch)) if counts_samples => Some(cost_of_first * batch),
            _ => None,
        };
        Some(Self {
            series,
            points,
            unit: unit.filter(|seconds| seconds.is_finite() && *seconds > 0.0),
            same_batch: batches.windows(2).all(|pair| pair[0] == pair[1]),
        })
    }

    /// The smallest point. There is one, by construction.
    pub(super) fn first(&self) -> &Normal<'a> {
        &self.points[0]
    }

    /// Points that no other of the same size contradicts.
    pub(super) fn trusted(&self) -> impl Iterator<Item = &Normal<'a>> {
        self.points.iter().filter(|point| !point.is_contradicted)
    }

    /// Relative cost of work on one full node: that of its largest point.
    pub(super) fn node_cost(&self) -> Option<f64> {
        let alone = self.trusted().filter(|point| point.nodes == 1);
        alone.max_by(|a, b| a.gpus.cmp(&b.gpus).then(b.cost.total_cmp(&a.cost))).map(|p| p.cost)
    }

    /// Points on several nodes.
    pub(super) fn spread(&self) -> impl Iterator<Item = &Normal<'a>> {
        self.trusted().filter(|point| point.nodes > 1)
    }

    /// The largest of them.
    pub(super) fn largest(&self) -> Option<&Normal<'a>> {
        self.spread().max_by(|a, b| {
            a.gpus.cmp(&b.gpus).then(b.micro.cmp(&a.micro)).then(a.cost.total_cmp(&b.cost))
        })
    }

    /// A time in micro-steps of the smallest point as a time, if that is known.
    pub(super) fn seconds(&self, micro_steps: f64) -> Option<Nanos> {
        self.unit.map(|unit| Nanos::from_secs_f64(unit * micro_steps))
    }

    /// Whether bytes are known.
    pub(super) fn has_bytes(&self) -> bool {
        self.series.known.gradient_bytes.is_some()
    }

    /// What is synchronised at a size; with stand-in bytes where they are unknown.
    pub(super) fn synchronised(
        &self,
        way: Synchronisation,
        gpus: u32,
        nodes: u32,
        micro: u32,
    ) -> SynchronisedStep {
        let known = &self.series.known;
        let (parameters, gradients) = match known.gradient_bytes {
            Some(gradients) => (known.parameter_bytes.unwrap_or(gradients), gradients),
            None => (STAND_IN, STAND_IN),
        };
        SynchronisedStep {
            way,
            parameters,
            gradients,
            replicas: gpus,
            per_node: gpus.div_ceil(nodes.max(1)),
            micro_batches: micro,
            deferred: !known.synchronises_each,
        }
    }

    /// Bytes that leave a node per step at a point.
    pub(super) fn node_bytes(&self, point: &Normal<'_>) -> f64 {
        self.synchronised(point.way, point.gpus, point.nodes, point.micro).per_node().total()
    }

    /// The rate of all GPUs for a relative cost, where rates were measured.
    pub(super) fn throughput(&self, gpus: u32, cost: f64) -> Option<f64> {
        let first = self.first();
        let per_gpu = match &first.point.measure {
            Measure::Throughput(rate, _) => rate / f64::from(first.gpus),
            Measure::PerGpu(rate, _) => *rate,
            _ => return None,
        };
        Some(per_gpu * f64::from(gpus) / cost)
    }
}
