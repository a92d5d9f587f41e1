//! Evidence and warnings that go with a prediction.

use std::collections::BTreeMap;

use foretrain_core::{Evidence, EvidenceKind, Nanos};
use foretrain_graph::StepGraph;
use foretrain_rewrite::{CollectiveNode, collectives};

use super::PredictOptions;
use super::base::Base;
use super::captured::FromCapture;
use super::layout::Layout;
use super::origin::{ONE_STEP_SPREAD, Origin};
use super::ranks::Class;
use crate::answer::SizePrediction;
use crate::breakdown::Owner;
use crate::roles::Role;

/// Why groups are believed to be what they are taken for; groups of one role for one reason
/// together.
pub(crate) fn role_evidence(graph: &StepGraph, layout: &Layout, evidence: &mut Vec<Evidence>) {
    let mut alike: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for role in &layout.roles {
        let name = graph.groups[role.group].name.as_str();
        alike.entry((role.role.as_str(), role.reason.as_str())).or_default().push(name);
    }
    for ((role, reason), names) in alike {
        let what = match names.as_slice() {
            [one] => format!("group {one} is {role}"),
            [first, .., last] => format!("{} groups, {first} to {last}, are {role}", names.len()),
            [] => continue,
        };
        evidence.push(Evidence::new(EvidenceKind::Inferred, what, reason, 0.0));
    }
}

/// What is not known of the step's communication.
pub(crate) fn warn_about_communication(
    graph: &StepGraph,
    layout: &Layout,
    warnings: &mut Vec<String>,
) {
    let blank = |node: &CollectiveNode| node.bytes.is_none() && node.work <= Nanos::ZERO;
    let (count, blanks) = collectives(graph)
        .fold((0, 0), |(count, blanks), node| (count + 1, blanks + usize::from(blank(&node))));
    if blanks > 0 {
        warnings.push(format!(
            "{blanks} of {count} communication operations have neither a size nor a time: they count as nothing, so the step is too short"
        ));
    }
    let unknown: Vec<&str> = layout
        .roles
        .iter()
        .filter(|role| role.role == Role::Unknown && layout.size(role.group) > 1)
        .map(|role| graph.groups[role.group].name.as_str())
        .collect();
    if let Some(first) = unknown.first() {
        warnings.push(format!(
            "it is not known what {} {} for: it keeps its recorded size in larger jobs; say it with --role '{first}=dp' (or tp, pp, ep)",
            if unknown.len() == 1 { "group" } else { "groups" },
            match unknown.len() {
                1 => format!("{first} is"),
                n => format!("{first} and {} more are", n - 1),
            }
        ));
    }
}

/// What the base step rests on.
pub(crate) fn describe_base(
    origin: &Origin,
    fidelity: f64,
    evidence: &mut Vec<Evidence>,
    warnings: &mut Vec<String>,
) {
    let spread = origin.spread();
    if origin.is_characterised {
        let source = format!("{}: no recording", origin.step_source);
        evidence.push(Evidence::new(EvidenceKind::Assumed, "step", source, origin.base_spread()));
        warnings.push("nobody recorded this step: its times follow from a row of a table and what a machine is assumed to reach, so only ratios of sizes and changes mean much".into());
        return;
    }
    let source = match (origin.step_times.len(), spread) {
        (0, _) => "replayed: the graph says no recorded step time".to_owned(),
        (n, Some(spread)) => {
            format!("median of {n} recorded steps, spread {:.1} %", spread * 100.0)
        }
        (n, None) => format!("{n} recorded step, spread unknown"),
    };
    evidence.push(Evidence::new(
        EvidenceKind::Measured,
        "step",
        source,
        spread.unwrap_or(ONE_STEP_SPREAD),
    ));
    let source = format!("replay differs from the recording by {:.1} %", fidelity * 100.0);
    evidence.push(Evidence::new(EvidenceKind::Measured, "step graph", source, fidelity));
    if spread.is_none() {
        warnings.push("one recorded step only: its noise is unknown, and waiting for the slowest of more ranks is not included".into());
    }
    if fidelity > 0.05 {
        warnings.push(format!(
            "the steady step replays {:.0} % off the recorded median: the recorded steps differ from each other, or the run had not settled",
            fidelity * 100.0
        ));
    }
}

/// What a reader must know before using the sizes.
pub(crate) fn warn_about_answer(sizes: &[SizePrediction], warnings: &mut Vec<String>) {
    let Some(first) = sizes.first() else { return };
    let total = first.breakdown.total().nanos().max(1) as f64;
    let share = |time: Nanos| time.nanos() as f64 / total;
    let idle = share(first.breakdown.time(|o| matches!(o, Owner::LaunchBound | Owner::Host)));
    let on_path: Nanos =
        first.critical_path.iter().filter(|part| part.kind == "host").map(|part| part.time).sum();
    let has_device = first.critical_path.iter().any(|part| part.kind == "kernel")
        || first.breakdown.time(|o| *o == Owner::LaunchBound) > Nanos::ZERO;
    if has_device && (idle > 0.3 || share(on_path) > 0.5) {
        warnings.push(format!(
            "host-bound: host work (of this rank, or of the ranks it waits for) makes up {:.0} % of the critical path, and the device idles another {:.0} % of the step; a faster device or network will not shorten it (launch less: CUDA graphs, fused or larger kernels, less Python per step)",
            share(on_path).min(1.0) * 100.0,
            idle * 100.0
        ));
    }
    let input = first.breakdown.time(|o| *o == Owner::Input);
    if share(input) > 0.1 {
        warnings
            .push(format!("input-bound: {:.0} % of the step waits for data", share(input) * 100.0));
    }
    if sizes.iter().any(|s| !s.converged) {
        warnings.push("simulated step times had not settled; the last one is shown".into());
    }
}

/// What built gradient synchronisation rests on.
pub(super) fn synchronisation_evidence(
    base: &Base<'_>,
    lead: &Class,
    options: &PredictOptions,
    when: &str,
) -> Vec<Evidence> {
    let (cluster, captured) = (base.cluster, base.captured);
    const WHAT: &str = "gradient synchronisation";
    let (times, spread) = match &cluster.collectives {
        Some(_) => ("times from the cluster's calibration", 0.1),
        None => ("times from uncalibrated priors", 0.3),
    };
    let mut evidence = Vec::new();
    match &options.strategy {
        None => {
            let what = format!("DDP buckets in ready order{when}, all-reduce {times}");
            evidence.push(Evidence::new(EvidenceKind::Assumed, WHAT, what, spread));
            if let Some(bytes) = options.buffer_bytes {
                let what = format!(
                    "{bytes} {}, before every forward pass",
                    FromCapture::how(captured.buffers)
                );
                let broadcast = "broadcast of buffers";
                evidence.push(Evidence::new(EvidenceKind::Measured, broadcast, what, 0.0));
            }
        }
        Some(strategy) => {
            let (place, times) = match lead.layout.synchronises() {
                true => (
                    " in place of what was recorded",
                    "collectives as much off the model as those were, in the median",
                ),
                false => ("", times),
            };
            let what = format!("{}{place}; {times}", strategy.text());
            evidence.push(Evidence::new(EvidenceKind::Assumed, WHAT, what, spread));
            if let Some(primitives) = &options.primitives {
                let what = "summing and encoding gradients";
                let source = primitives.source.clone();
                evidence.push(Evidence::new(EvidenceKind::Calibrated, what, source, 0.1));
            }
        }
    }
    evidence.push(options.bucket_copies.evidence(cluster, FromCapture::how(captured.copies)));
    evidence
}
