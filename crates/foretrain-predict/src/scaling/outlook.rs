//! What would help: other strategies, accumulation, fewer bytes, faster NICs.

use foretrain_core::{Bandwidth, Estimate};
use foretrain_cost::Synchronisation;

use super::answer::{BreakEven, Remedy, StrategyOutlook};
use super::exposed::{Exposed, Size};
use super::normal::Normalised;

/// The efficiency that is asked for.
const GOOD: f64 = 0.8;
/// Share of the computation that is the backward pass, behind which gradients hide.
pub(super) const BACKWARD: f64 = 2.0 / 3.0;
/// More micro-batches than this are no advice.
const MOST_MICRO_BATCHES: f64 = 4_096.0;
/// How far off a loss that was carried over to other conditions may be, either way.
const CARRIED: f64 = 0.3;

/// The size in question and what it loses there, in micro-steps of the smallest point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    pub(super) size: Size,
    /// Computation of one step.
    pub(super) computation: f64,
    /// Beyond it.
    pub(super) lost: f64,
    /// What of that goes with the bytes that leave a node.
    pub(super) lost_to_bytes: f64,
}

impl Situation {
    fn efficiency(&self, computation: f64, lost: f64) -> Estimate<f64> {
        let of = |lost: f64| computation / (computation + lost);
        Estimate::between(of(lost), of(lost * (1.0 + CARRIED)), of(lost * (1.0 - CARRIED)))
    }
    fn present(&self) -> f64 {
        self.computation / (self.computation + self.lost)
    }
    /// What is lost with so many times the bytes (or with a network so much slower).
    fn lost_with(&self, bytes: f64) -> f64 {
        self.lost - self.lost_to_bytes * (1.0 - bytes)
    }
    fn remedy(&self, what: String, computation: f64, lost: f64, condition: &str) -> Remedy {
        let efficiency = self.efficiency(computation, lost);
        let gain = efficiency.value / self.present();
        Remedy { what, efficiency, gain, condition: condition.to_owned() }
    }
}

pub(super) fn break_even(
    normal: &Normalised<'_>,
    now: &Situation,
    effective: Option<Bandwidth>,
) -> Option<BreakEven> {
    if now.lost_to_bytes < 0.5 * now.lost || now.lost <= 0.0 {
        return None;
    }
    let step = normal.synchronised(now.size.way, now.size.gpus, now.size.nodes, now.size.micro);
    // Deferred gradients can hide behind the last micro-batch only.
    let behind = if step.deferred && now.size.way.synchronises_once() {
        now.computation / f64::from(now.size.micro.max(1))
    } else {
        now.computation
    };
    let times_for_80 = now.lost / (now.computation * (1.0 / GOOD - 1.0));
    let times_to_hide = now.lost / (behind * BACKWARD);
    let rate = |times: f64| effective.map(|rate| rate * times);
    Some(BreakEven {
        gpus: now.size.gpus,
        times_for_80,
        rate_for_80: rate(times_for_80),
        times_to_hide,
        rate_to_hide: rate(times_to_hide),
    })
}

pub(super) fn remedies(normal: &Normalised<'_>, now: &Situation) -> Vec<Remedy> {
    if now.lost <= 0.02 * now.computation {
        return Vec::new();
    }
    let mut found = Vec::new();
    accumulation(normal, now, &mut found);
    sharding(normal, now, &mut found);
    let (each, known) = (now.computation, &normal.series.known);
    if now.lost_to_bytes > 0.0
        && known.element_bytes.is_none_or(|bytes| bytes > 2)
        && now.size.way != Synchronisation::Zero3
    {
        let condition = match known.element_bytes {
            Some(_) => "half the bytes; DDP's fp16 or bf16 hook, error of rounding",
            None => "if gradients are 32-bit: half the bytes",
        };
        found.push(now.remedy("gradients in 16 bits".into(), each, now.lost_with(0.5), condition));
    }
    let times = now.lost / (now.computation * (1.0 / GOOD - 1.0));
    // Of changes that give the same, the one that needs less memory; hardware comes last.
    found.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    if times > 1.0 && now.lost_to_bytes > 0.5 * now.lost {
        let what = format!("a network {times:.1} x as fast");
        let condition = "effective rate, not nominal: see the break-even rate";
        found.push(now.remedy(what, each, now.lost_with(1.0 / times), condition));
    }
    found
}

/// Accumulating until 80 %, and not synchronising in between.
fn accumulation(normal: &Normalised<'_>, now: &Situation, found: &mut Vec<Remedy>) {
    let micro = f64::from(now.size.micro.max(1));
    let (per_micro, each) = (now.computation / micro, normal.series.known.synchronises_each);
    if !now.size.way.synchronises_once() {
        return;
    }
    let sync = if each { now.lost / micro } else { now.lost };
    if each && now.size.micro > 1 {
        let what = "synchronise after the last micro-batch only (no_sync)".to_owned();
        found.push(now.remedy(what, now.computation, sync, "same batch, same result"));
    }
    let times = (GOOD / (1.0 - GOOD) * sync / per_micro).ceil();
    if times > micro && times <= MOST_MICRO_BATCHES {
        let what = format!("accumulate {times} micro-batches per step");
        let condition = format!(
            "gradients synchronised once per step (no_sync); the global batch grows {} x",
            times / micro
        );
        found.push(now.remedy(what, per_micro * times, sync, &condition));
    }
}

/// Strategies that move fewer bytes between nodes.
fn sharding(normal: &Normalised<'_>, now: &Situation, found: &mut Vec<Remedy>) {
    let bytes = |way| {
        let Size { gpus, nodes, micro, .. } = now.size;
        normal.synchronised(way, gpus, nodes, micro).per_node().total()
    };
    let present = bytes(now.size.way);
    for way in Synchronisation::ALL.into_iter().rev() {
        let ratio = bytes(way) / present;
        let is_sharded = now.size.way != Synchronisation::AllReduce;
        if now.lost_to_bytes <= 0.0
            || way == Synchronisation::Servers
            || !is_sharded
            || ratio > 0.9
            || !ratio.is_finite()
        {
            continue;
        }
        let what = format!("{} instead of {}", way.as_str(), now.size.way.as_str());
        let why = match way {
            Synchronisation::AllReduce => "if all states fit each GPU",
            Synchronisation::Zero1 => "if parameters and gradients fit each GPU",
            Synchronisation::Zero2 => "if parameters fit each GPU",
            _ => "if states fit the GPUs of one node; gathers stay within the node",
        };
        let share = if ratio < 0.01 {
            format!("{:.2}", ratio * 100.0)
        } else {
            format!("{:.0}", ratio * 100.0)
        };
        let condition = format!("{share} % of the bytes between nodes; {why}");
        found.push(now.remedy(what, now.computation, now.lost_with(ratio), &condition));
    }
}

/// Every strategy at a size.
pub(super) fn strategies(
    normal: &Normalised<'_>,
    size: Size,
    computation: f64,
    exposed: Option<&Exposed>,
) -> Vec<StrategyOutlook> {
    let of = |way: Synchronisation| {
        normal.synchronised(way, size.gpus, size.nodes, size.micro).per_node()
    };
    let present = of(size.way).total();
    if size.nodes <= 1 || present <= 0.0 {
        return Vec::new();
    }
    let listed = |way: &Synchronisation| *way != Synchronisation::Servers || size.way == *way;
    let outlook = |way: Synchronisation| {
        let size = Size { way, ..size };
        let bytes = of(way);
        let lost = exposed.map(|exposed| exposed.between(normal, size));
        let step = lost.map(|lost| lost.map::<f64>(|lost| computation + lost));
        let at_rate =
            |rate: Bandwidth| foretrain_core::Nanos::from_secs_f64(bytes.total() / rate.get());
        StrategyOutlook {
            strategy: way,
            gpus: size.gpus,
            is_present: false,
            relative_bytes: bytes.total() / present,
            node_bytes: normal.has_bytes().then_some(bytes),
            at_line_rate: normal.series.known.nic.filter(|_| normal.has_bytes()).map(at_rate),
            step: step.and_then(|step| {
                let unit = normal.unit?;
                Some(step.map(|micro_steps| micro_steps * unit * 1e9))
            }),
            efficiency: step.map(|step| inverse(step, computation)),
        }
    };
    let mut found: Vec<StrategyOutlook> = Synchronisation::ALL
        .into_iter()
        .rev()
        .filter(listed)
        .map(|way| StrategyOutlook { is_present: way == size.way, ..outlook(way) })
        .collect();
    found.sort_by(|a, b| a.relative_bytes.total_cmp(&b.relative_bytes));
    found
}

/// `top / value`, its ends exchanged.
pub(super) fn inverse(value: Estimate<f64>, top: f64) -> Estimate<f64> {
    Estimate::between(top / value.value, top / value.high, top / value.low)
}
