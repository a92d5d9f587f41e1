//! Why one layout beats another, and when it would not.

use foretrain_core::{Nanos, Result};
use foretrain_cost::kernels::KernelModel;
use foretrain_hardware::Cluster;
use foretrain_workload::model::Model;
use serde::Serialize;

use crate::Software;
use crate::layout::Layout;
use crate::step::{Job, Step};
use crate::times::{Factors, Machine, Part};
use crate::training::Training;

/// What two layouts spend their steps on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The faster.
    pub winner: Nanos,
    /// The slower.
    pub loser: Nanos,
    /// Per part what the slower spends more (less where negative), the largest first; adds up to
    /// the difference.
    pub differences: Vec<(Part, Nanos)>,
}

/// Where the order of two layouts flips.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Crossover {
    /// What is changed: `global batch`, `network bandwidth of a node`.
    pub what: &'static str,
    /// Unit of the values; empty for counts.
    pub unit: &'static str,
    /// The value at which the slower becomes the faster; `None` if it does not within the range.
    pub at: Option<f64>,
    /// The value now.
    pub now: f64,
    /// Range that was looked at.
    pub range: (f64, f64),
}

/// How a step time answers to the hardware.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sensitivity {
    /// What is made a tenth faster.
    pub what: &'static str,
    /// Step time saved, in percent.
    pub saved_percent: f64,
}

/// What `loser` spends more than `winner`, part by part.
pub fn compare(winner: &Step, loser: &Step) -> Comparison {
    let mut differences: Vec<(Part, Nanos)> = Part::ALL
        .into_iter()
        .map(|part| (part, loser.parts[part] - winner.parts[part]))
        .filter(|(_, time)| *time != Nanos::ZERO)
        .collect();
    differences.sort_by_key(|(part, time)| (-time.nanos().abs(), *part));
    Comparison { winner: winner.time, loser: loser.time, differences }
}

/// A question that is asked again with something changed.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    model: &'a Model,
    training: &'a Training,
    software: &'a Software,
    cluster: &'a Cluster,
    kernels: &'a KernelModel,
    factors: Factors,
}

impl<'a> Asked<'a> {
    /// As `job` asks it.
    pub(super) fn of(job: &Job<'a>) -> Self {
        Self {
            model: job.model,
            training: job.training,
            software: job.software,
            cluster: job.machine.cluster(),
            kernels: job.machine.kernels(),
            factors: job.machine.factors(),
        }
    }

    /// The same with something else trained.
    pub(super) fn training<'b>(self, training: &'b Training) -> Asked<'b>
    where
        'a: 'b,
    {
        Asked { training, ..self }
    }

    pub(super) fn time(&self, layout: &Layout) -> Result<Nanos> {
        let machine = Machine::new(self.cluster, self.kernels.clone()).with_factors(self.factors);
        let job = Job::new(self.model, self.training, self.software, &machine);
        Ok(job.step(layout)?.time)
    }
}

/// Widest factors by which batch and bandwidth are changed.
const WIDEST: f64 = 64.0;

/// Where the order of two layouts flips as the global batch (in their common steps) or the
/// bandwidth of the network (of the links, within one node) changes.
///
/// # Errors
/// If a layout cannot be timed at all.
pub fn crossovers(job: &Job<'_>, winner: &Layout, loser: &Layout) -> Result<Vec<Crossover>> {
    let asked = Asked::of(job);
    Ok(vec![batch_crossover(asked, winner, loser)?, bandwidth_crossover(asked, winner, loser)?])
}

fn batch_crossover(asked: Asked<'_>, winner: &Layout, loser: &Layout) -> Result<Crossover> {
    let now = asked.training.global_batch;
    let step = lcm(round(winner), round(loser)).max(1);
    let flips = |batch: u64| -> Option<bool> {
        let training = Training { global_batch: batch, ..asked.training.clone() };
        let asked = asked.training(&training);
        let times = (asked.time(winner).ok()?, asked.time(loser).ok()?);
        Some(times.1 < times.0)
    };
    let smallest = step;
    let largest = (now as f64 * WIDEST) as u64 / step * step;
    let mut at = None;
    // Downwards and upwards in doublings, the nearer flip first, then between the last two.
    let mut factor = 2.0_f64;
    while at.is_none() && factor <= WIDEST {
        for batch in [now as f64 / factor, now as f64 * factor] {
            let batch = (batch as u64 / step * step).max(smallest);
            if at.is_none() && flips(batch) == Some(true) {
                let before = if batch < now {
                    (now as f64 * 2.0 / factor) as u64
                } else {
                    (now as f64 * factor / 2.0) as u64
                };
                at = Some(between(before / step * step, batch, step, &flips));
            }
        }
        factor *= 2.0;
    }
    Ok(Crossover {
        what: "global batch",
        unit: "",
        at: at.map(|batch| batch as f64),
        now: now as f64,
        range: (smallest as f64, largest.max(now) as f64),
    })
}

/// The first batch on the way from `from` (no flip) to `to` (flip), in steps of `step`.
fn between(from: u64, to: u64, step: u64, flips: &dyn Fn(u64) -> Option<bool>) -> u64 {
    let (mut from, mut to) = (from / step, to / step);
    while from.abs_diff(to) > 1 {
        let middle = u64::midpoint(from, to);
        if flips(middle * step) == Some(true) {
            to = middle;
        } else {
            from = middle;
        }
    }
    to * step
}

/// Of the network between the nodes, or of the links within the only one.
fn bandwidth_crossover(asked: Asked<'_>, winner: &Layout, loser: &Layout) -> Result<Crossover> {
    let alone = winner.devices() <= u64::from(asked.cluster.devices_per_node());
    let (what, now) = if alone {
        let links = asked.cluster.node.intra.per_device_bandwidth;
        ("bandwidth of a device's links", links.gb_per_sec())
    } else {
        ("network bandwidth of a node", asked.cluster.node_bandwidth().gb_per_sec())
    };
    let flips = |factor: f64| -> Option<bool> {
        let mut cluster = asked.cluster.clone();
        let node = &mut cluster.node;
        if alone {
            node.intra.per_device_bandwidth = node.intra.per_device_bandwidth * factor;
        } else {
            node.nic_bandwidth = node.nic_bandwidth * factor;
        }
        let asked = Asked { cluster: &cluster, ..asked };
        let times = (asked.time(winner).ok()?, asked.time(loser).ok()?);
        Some(times.1 < times.0)
    };
    let mut at = None;
    let mut factor = 2.0;
    while at.is_none() && factor <= WIDEST {
        for changed in [1.0 / factor, factor] {
            if at.is_none() && flips(changed) == Some(true) {
                let (mut from, mut to) =
                    (if changed < 1.0 { changed * 2.0 } else { changed / 2.0 }, changed);
                for _ in 0..20 {
                    let middle = (from * to).sqrt();
                    if flips(middle) == Some(true) {
                        to = middle;
                    } else {
                        from = middle;
                    }
                }
                at = Some(now * to);
            }
        }
        factor *= 2.0;
    }
    Ok(Crossover { what, unit: "GB/s", at, now, range: (now / WIDEST, now * WIDEST) })
}

/// Batches that a layout can deal out are multiples of this.
pub(super) fn round(layout: &Layout) -> u64 {
    let stages = if layout.virtual_stages > 1 { u64::from(layout.pipeline) } else { 1 };
    u64::from(layout.data) * layout.micro_batch * stages
}

pub(super) fn lcm(a: u64, b: u64) -> u64 {
    fn gcd(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    a.checked_div(gcd(a, b)).map_or(0, |part| part.saturating_mul(b))
}

/// What a tenth more of each resource would save.
///
/// # Errors
/// If the layout cannot be timed.
pub fn sensitivity(job: &Job<'_>, layout: &Layout) -> Result<Vec<Sensitivity>> {
    let asked = Asked::of(job);
    let base = asked.time(layout)?.nanos() as f64;
    let saved = |what, time: Nanos| Sensitivity {
        what,
        saved_percent: 100.0 * (1.0 - time.nanos() as f64 / base.max(1.0)),
    };
    let with_cluster = |change: &dyn Fn(&mut Cluster)| -> Result<Nanos> {
        let mut cluster = asked.cluster.clone();
        change(&mut cluster);
        Asked { cluster: &cluster, ..asked }.time(layout)
    };
    let faster = |change: &dyn Fn(&mut Factors)| {
        let mut factors = asked.factors;
        change(&mut factors);
        Asked { factors, ..asked }.time(layout)
    };
    let mut all = vec![
        saved("matrix products", faster(&|factors| factors.products /= 1.1)?),
        saved("memory-bound kernels", faster(&|factors| factors.memory /= 1.1)?),
        saved(
            "links within a node",
            with_cluster(&|cluster| {
                cluster.node.intra.per_device_bandwidth =
                    cluster.node.intra.per_device_bandwidth * 1.1;
            })?,
        ),
        saved(
            "network between nodes",
            with_cluster(&|cluster| {
                cluster.node.nic_bandwidth = cluster.node.nic_bandwidth * 1.1;
            })?,
        ),
        saved("pace of the host", faster(&|factors| factors.host /= 1.1)?),
    ];
    all.sort_by(|a, b| b.saved_percent.total_cmp(&a.saved_percent));
    Ok(all)
}
