//! How long collectives take on a cluster, by size and by number of ranks.
//!
//! ```text
//! kinds x ranks x latencies ──setting──▶ fabrics ──sweep──▶ rows, switches, plateau ─┐
//!                                                       └─network─▶ rows under what-ifs ─┤
//! benchmark logs ────────────setting──▶ fabrics ──compare─▶ measured beside predicted┴─▶ answer
//! ```
//!
//! [`calibrate`] places runs of logs in the same way, to fit the model to them.
//!
//! The model behind is [`foretrain_cost::collective_time`], asked from outside only: how high a
//! plateau is, where latency stops to matter and where the algorithm changes are found by asking it
//! at other sizes. So all of this holds for whatever the model rests on, calibration included.

mod answer;
pub mod calibrate;
mod compare;
mod network;
mod notes;
mod runs;
mod setting;
mod sweep;

use foretrain_core::{Bytes, Evidence, EvidenceKind, InputError, Nanos, Result};
use foretrain_cost::Method;
use foretrain_graph::CollectiveKind;
use foretrain_hardware::source::Source;
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_ingest::collective_log::CollectiveLog;

pub use answer::{
    Choice, CollectivesAnswer, ComparedRow, Comparison, LeftOut, Limit, Plateau, Point, Setting,
    Sweep, Term, Uncompared, bus_range, dominating_term, latency_share,
};
pub use network::{NetworkWhatIfs, Step, StepKind, StepPoint};
pub(crate) use setting::fabric_of;
pub use setting::{Layout, WhatIf};

/// What to ask.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectivesOptions {
    /// Operations.
    pub kinds: Vec<CollectiveKind>,
    /// Ranks of the group, one per device.
    pub ranks: Vec<u32>,
    /// Sizes: the larger of a rank's input and output buffer.
    pub sizes: Vec<Bytes>,
    /// Where the ranks sit, and those of logs that name no hosts.
    pub layout: Layout,
    /// Latencies to add to each hop between nodes, one way; each gives sweeps of its own. Logs are
    /// compared with the first.
    pub extra_latencies: Vec<Nanos>,
    /// How many of the ring's links between nodes have that latency, if not all have it.
    pub late_links: Option<u32>,
    /// What the library is told to take (`NCCL_ALGO`), where it has it for the operation.
    pub algorithm: Option<Method>,
    /// Bytes that a connection may have in flight.
    pub window: Option<Bytes>,
    /// What-ifs of the network, each on top of those before it.
    pub network: NetworkWhatIfs,
}

/// Answers what was asked of `cluster`, and puts `logs` beside it.
///
/// Numbers of ranks that the cluster cannot hold are left out and listed.
///
/// # Errors
/// If nothing that was asked can be answered, with the first reason.
pub fn collectives(
    cluster: &Cluster,
    catalogue: &Catalogue,
    options: &CollectivesOptions,
    logs: &[CollectiveLog],
) -> Result<CollectivesAnswer> {
    let what_ifs: Vec<WhatIf> = options
        .extra_latencies
        .iter()
        .map(|&extra_latency| WhatIf {
            extra_latency,
            late_links: options.late_links,
            window: options.window,
            algorithm: options.algorithm,
        })
        .collect();
    let layout = options.network.layout(cluster, options.layout)?;
    let mut sweeps = Vec::new();
    let mut left_out: Vec<LeftOut> = Vec::new();
    let mut refused: Option<InputError> = None;
    for &ranks in &options.ranks {
        for &what_if in &what_ifs {
            let job = network::Job { cluster, ranks, layout, what_if };
            match of_job(job, options) {
                Ok(of_ranks) => sweeps.extend(of_ranks),
                Err(error) => {
                    if left_out.last().is_none_or(|last| last.ranks != ranks) {
                        left_out.push(LeftOut { ranks, why: error.to_string() });
                    }
                    refused.get_or_insert(error);
                }
            }
        }
    }
    if let Some(error) = refused.filter(|_| sweeps.is_empty()) {
        return Err(error);
    }
    let rank_of = |kind| options.kinds.iter().position(|&asked| asked == kind);
    sweeps.sort_by_key(|sweep: &Sweep| rank_of(sweep.setting.kind));
    let what_if = what_ifs.first().copied().unwrap_or_default();
    let machine = runs::Machine { cluster, catalogue, layout: options.layout, what_if };
    let (comparisons, uncompared) = compare::compare(&machine, &sweeps, logs);
    let mut evidence = evidence(cluster, &sweeps, &comparisons);
    evidence.extend(network::evidence(&options.network));
    evidence.sort_by_key(|line| line.kind);
    Ok(CollectivesAnswer {
        cluster: cluster.name.clone(),
        device: cluster.node.device.name.clone(),
        devices_per_node: cluster.node.devices,
        window: options.window,
        late_links: options.late_links,
        sweeps,
        left_out,
        comparisons,
        uncompared,
        evidence,
    })
}

/// Every operation on one number of ranks.
fn of_job(job: network::Job<'_>, options: &CollectivesOptions) -> Result<Vec<Sweep>> {
    let place = setting::situate(job.cluster, job.ranks, job.layout, job.what_if)?;
    let of = |&kind| sweep::sweep(&place, job.cluster, kind, &options.sizes);
    let mut sweeps: Vec<Sweep> = options.kinds.iter().map(of).collect();
    options.network.apply(job, &mut sweeps)?;
    Ok(sweeps)
}

/// What all times rest on: the model's own lines, each once with its largest spread, and the rates
/// of the links.
fn evidence(cluster: &Cluster, sweeps: &[Sweep], comparisons: &[Comparison]) -> Vec<Evidence> {
    let swept = sweeps.iter().flat_map(|sweep| sweep.points.iter().map(|point| &point.predicted));
    let compared = comparisons.iter().flat_map(|run| run.rows.iter().map(|row| &row.predicted));
    let mut lines: Vec<Evidence> = Vec::new();
    for line in swept.chain(compared).flat_map(|predicted| &predicted.evidence) {
        let same = |known: &&mut Evidence| {
            (known.kind, &known.what, &known.source) == (line.kind, &line.what, &line.source)
        };
        match lines.iter_mut().find(same) {
            Some(known) => {
                known.relative_spread = known.relative_spread.max(line.relative_spread);
            }
            None => lines.push(line.clone()),
        }
    }
    lines.extend(links(cluster, sweeps, comparisons));
    lines
}

/// The catalogue's rates of the links that are used. Their spread is in the model's.
fn links<'a>(
    cluster: &'a Cluster,
    sweeps: &'a [Sweep],
    comparisons: &'a [Comparison],
) -> impl Iterator<Item = Evidence> + 'a {
    let settings = || {
        let compared = comparisons.iter().map(|run| &run.setting);
        sweeps.iter().map(|sweep| &sweep.setting).chain(compared)
    };
    let node = &cluster.node;
    let within = settings().any(|s| s.ranks_per_node > 1).then(|| {
        let rate = node.intra.per_device_bandwidth;
        let rate = format!("{rate} per device, {}", node.intra.kind);
        ("intra_bandwidth", "links in a node", rate)
    });
    let between = settings().any(|s| s.nodes > 1).then(|| {
        let rate = format!("{} of {}, {}", node.nics, node.nic_bandwidth, node.nic_kind);
        ("nic_bandwidth", "NICs of a node", rate)
    });
    [within, between].into_iter().flatten().map(|(figure, what, rate)| {
        let source = cluster.source(figure);
        let kind = source.map_or(EvidenceKind::Assumed, Source::evidence_kind);
        let from = source.map_or_else(|| "no source is given".into(), ToString::to_string);
        Evidence::new(kind, what, format!("{rate}; {from}"), 0.0)
    })
}
