//! What limits a job, and why we say so.

use std::collections::BTreeMap;

use foretrain_core::Bandwidth;

use super::answer::{Losses, Verdict};
use super::exposed::{Exposed, Grows};
use super::normal::{Normal, Normalised};
use super::outlook::{BACKWARD, Situation};

/// Losses of the per-GPU rate below this are no problem.
const MINOR: f64 = 0.1;
/// Throughput that grows by less while GPUs double is flat.
const FLAT: f64 = 1.1;
/// Spread up to which one rate explains several points.
const ONE_RATE: f64 = 0.25;
/// Buffers below this are bound by latency on any network.
const SMALL: f64 = 16e6;

/// What the verdict rests on.
pub(super) struct Case<'a> {
    pub(super) normal: &'a Normalised<'a>,
    pub(super) losses: Losses,
    pub(super) exposed: Option<&'a Exposed>,
    pub(super) now: Option<Situation>,
    pub(super) effective: Option<Bandwidth>,
    /// A synchronisation's cost in micro-steps, from points of different accumulation.
    pub(super) sync: Option<f64>,
}

pub(super) fn judge(case: &Case<'_>) -> (Verdict, Vec<String>) {
    let normal = case.normal;
    let mut reasons = losses(case);
    let trusted: Vec<&Normal<'_>> = normal.trusted().collect();
    if trusted.len() < 2 {
        if let (1, Some(now)) = (trusted.len(), &case.now) {
            return expected(case, now);
        }
        reasons.push(match trusted.len() {
            1 => "one size alone shows no loss: measure another, best one on one node and one on several".into(),
            _ => "all points contradict each other".into(),
        });
        return (Verdict::NotEnoughInformation, reasons);
    }
    if let Some(why) = flat_within_node(normal).or_else(|| flat_over_nodes(normal)) {
        reasons.push(why);
        return (Verdict::InputBoundSuspected, reasons);
    }
    let (inside, between) =
        (case.losses.inside_node.unwrap_or(0.0), case.losses.between_nodes.unwrap_or(0.0));
    if let Some(sync) = case.sync {
        let dominates =
            if sync > 1.0 { ": with few micro-batches per step it dominates" } else { "" };
        reasons
            .push(format!("a synchronisation costs as much as {sync:.1} micro-steps{dominates}"));
        let worst = case.now.map_or(0.0, |now| now.lost / (now.lost + now.computation));
        let verdict = if worst > MINOR { Verdict::CommunicationBound } else { Verdict::ScalesWell };
        return (verdict, reasons);
    }
    if case.losses.between_nodes.is_none()
        && normal.spread().count() >= 2
        && case.losses.inside_node.is_none()
    {
        return several_nodes_only(normal, reasons);
    }
    if inside.max(between) < MINOR {
        return (Verdict::ScalesWell, reasons);
    }
    if inside > between {
        reasons.push("more is lost inside the node than between nodes: contention for memory, host or PCIe, small buckets, or input; a faster network will not help that part".into());
        return (Verdict::LossInsideNode, reasons);
    }
    between_nodes(case, reasons)
}

/// One size, and the rate of the NICs for the rest.
fn expected(case: &Case<'_>, now: &Situation) -> (Verdict, Vec<String>) {
    let normal = case.normal;
    let bytes = normal
        .synchronised(now.size.way, now.size.gpus, now.size.nodes, now.size.micro)
        .per_node()
        .total();
    let time = |micro_steps: f64| {
        normal.seconds(micro_steps).map_or_else(String::new, |time| time.to_string())
    };
    let share = now.lost / (now.lost + now.computation);
    let reasons = vec![format!(
        "expected from the NICs' nominal rate, not measured: at {} GPUs {:.3} GB leave each node per step, which takes {} beside {} of computation; nothing counted as hidden, that is {:.0} % of the step",
        now.size.gpus,
        bytes / 1e9,
        time(now.lost),
        time(now.computation),
        share * 100.0
    )];
    // What is within the backward pass can hide behind it.
    let hides = now.lost <= now.computation * BACKWARD && now.size.way.synchronises_once();
    let is_bound = share > MINOR && !hides;
    (if is_bound { Verdict::CommunicationBound } else { Verdict::ScalesWell }, reasons)
}

fn losses(case: &Case<'_>) -> Vec<String> {
    let said = |loss: Option<f64>, of: &str, place: &str| {
        loss.map(|loss| match loss {
            ..0.0005 => format!("nothing is lost {place}"),
            _ => format!("{:.1} % of {of} is lost {place}", loss * 100.0),
        })
    };
    let inside = said(case.losses.inside_node, "the rate per GPU", "inside the node");
    let between = said(case.losses.between_nodes, "the node's rate per GPU", "between nodes");
    inside.into_iter().chain(between).collect()
}

/// Neither bytes nor latency grow so within a node.
fn flat_within_node(normal: &Normalised<'_>) -> Option<String> {
    let alone: Vec<&Normal<'_>> = normal.trusted().filter(|point| point.nodes == 1).collect();
    let (first, last) = (alone.first()?, alone.last()?);
    let (few, many) = (f64::from(first.gpus), f64::from(last.gpus));
    let growth = (many / last.cost) / (few / first.cost);
    (many >= 2.0 * few && growth < FLAT).then(|| {
        format!(
            "within one node the rate of all GPUs grows {growth:.2} x from {} to {} GPUs: something they share is used up. Look at the input pipeline (loader workers, decoding, storage) first, at PCIe second",
            first.gpus, last.gpus
        )
    })
}

/// Bytes of a ring cost the same on any number of nodes, so they leave some growth; a shared resource
/// leaves none.
fn flat_over_nodes(normal: &Normalised<'_>) -> Option<String> {
    let mut rates: BTreeMap<u32, f64> = BTreeMap::new();
    for point in normal.trusted() {
        let best = rates.entry(point.nodes).or_default();
        *best = best.max(f64::from(point.gpus) / point.cost);
    }
    let (first, last) = (*rates.first_key_value()?.0, *rates.last_key_value()?.0);
    let least = rates.values().copied().fold(f64::MAX, f64::min);
    let most = rates.values().copied().fold(0.0, f64::max);
    let is_flat = rates.len() >= 3 && last >= 4 * first && most < FLAT * least;
    is_flat.then(|| {
        format!(
            "the rate of all GPUs is the same on {first} to {last} nodes: something that all nodes share is used up. Look at the storage or data server and at a shared uplink first"
        )
    })
}

fn several_nodes_only(normal: &Normalised<'_>, mut reasons: Vec<String>) -> (Verdict, Vec<String>) {
    let costs: Vec<f64> = normal.spread().map(|point| point.cost).collect();
    let worst = costs.iter().copied().fold(1.0, f64::max);
    if worst < 1.0 / (1.0 - MINOR) {
        reasons.push(format!(
            "the rate per GPU falls by {:.1} % over these sizes, but no point on one node shows what several nodes cost to begin with",
            (1.0 - 1.0 / worst) * 100.0
        ));
        return (Verdict::NotEnoughInformation, reasons);
    }
    reasons.push("the loss grows with the number of nodes, which bytes of a ring hardly do; no point on one node shows what several nodes cost to begin with".into());
    (Verdict::LatencyBound, reasons)
}

fn between_nodes(case: &Case<'_>, mut reasons: Vec<String>) -> (Verdict, Vec<String>) {
    let normal = case.normal;
    let Some(now) = &case.now else { return (Verdict::CommunicationBound, reasons) };
    if let Some(exposed) = case.exposed {
        match exposed.grows {
            Grows::Ranks => {
                reasons.push("the time lost grows with the number of ranks, as the hops of a ring do, and not with its bytes, which barely grow".into());
                return (Verdict::LatencyBound, reasons);
            }
            Grows::Nodes => {
                reasons.push("the time lost grows with the logarithm of the number of nodes and not with bytes: latency of a tree's hops, or ranks that wait for the latest; what bytes cost is hidden".into());
                return (Verdict::LatencyBound, reasons);
            }
            Grows::BytesAndNodes => reasons.push("the time lost has a part that bytes explain and one that grows with the number of nodes".into()),
            Grows::Bytes if exposed.points > 1 && exposed.spread <= ONE_RATE => reasons.push(format!(
                "one effective rate explains all {} points on several nodes to {:.0} %: bytes per step barely grow with their number",
                exposed.points,
                exposed.spread * 100.0
            )),
            Grows::Bytes if exposed.points > 1 => reasons.push(format!(
                "no single rate explains the points on several nodes (off by {:.0} %): do batch, placement or software differ?",
                exposed.spread * 100.0
            )),
            Grows::Bytes => {}
        }
    }
    let step = normal.synchronised(now.size.way, now.size.gpus, now.size.nodes, now.size.micro);
    let bytes = step.per_node().total();
    if normal.has_bytes() && bytes < SMALL {
        reasons.push(format!(
            "only {:.1} MB leave a node per step: latency and waiting, not bandwidth",
            bytes / 1e6
        ));
        return (Verdict::LatencyBound, reasons);
    }
    if normal.has_bytes() {
        reasons.push(format!("{:.2} GB leave each node per step", bytes / 1e9));
    }
    if let (Some(rate), Some(nic)) = (case.effective, normal.series.known.nic) {
        let share = rate.get() / nic.get();
        reasons.push(format!(
            "the growth implies {:.1} Gbit/s of the NICs' nominal {:.0} ({:.0} %)",
            rate.get() * 8e-9,
            nic.get() * 8e-9,
            share * 100.0
        ));
        if share < 0.2 {
            reasons.push("the wire alone does not explain this: look for TCP instead of RDMA (one stream reaches 5 to 20 Gbit/s), staging through the host, a NIC that is not used, or input that is shared by the nodes".into());
        }
    }
    (Verdict::CommunicationBound, reasons)
}
