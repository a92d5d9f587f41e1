//! The pass over a trace that finds its communication.

use std::collections::BTreeMap;

use foretrain_core::{Ledger, NameId, Severity};
use foretrain_graph::CollectiveKind;
use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::Facts;
use super::groups::Groups;
use super::link::{Context, IssueRows};
use super::names::{IssueName, KernelName, Library, NameFacts, classify_kernel, host_backend};
use super::siblings::fill_from_other_steps;
use super::{CollectiveOp, Collectives};
use crate::category::Category;
use crate::table::Trace;

/// Finds the communication of a trace, in order of start.
///
/// The ledger receives the coverage lines "collective bytes known" (operations) and "collective
/// time with bytes known (ns)", a note per operation whose size was inferred from another step,
/// and warnings: communication that no rule classifies, and a trace of a multi-rank job that
/// holds no recognised communication.
pub fn recognise(trace: &Trace, ledger: &mut Ledger) -> Collectives {
    let found = candidates(trace);
    let issues = IssueRows::new(trace);
    let mut groups = Groups::new(trace);
    let contexts = |rows: &[Candidate], on_device: bool| {
        let rows: Vec<u32> = rows.iter().map(|candidate| candidate.row).collect();
        if on_device { issues.of_device_rows(&rows) } else { issues.of_host_rows(&rows) }
    };
    let device = contexts(&found.device, true);
    let host = contexts(&found.host, false);
    let mut order: Vec<(&Candidate, &Context)> =
        found.device.iter().zip(&device).chain(found.host.iter().zip(&host)).collect();
    order.sort_by_key(|(candidate, _)| (trace.start[candidate.row as usize], candidate.row));
    let gathered: Vec<(&Candidate, &Context, Facts)> = order
        .into_iter()
        .map(|(candidate, context)| {
            let name = candidate.name.as_ref();
            let facts = Facts::gather(trace, candidate.row, name, context, &mut groups);
            (candidate, context, facts)
        })
        .collect();
    let ungrouped = gathered.iter().filter(|(.., facts)| facts.group().is_none());
    if groups.add_unnamed(trace, ungrouped.map(|(candidate, ..)| place(trace, candidate))) {
        ledger.record(
            Severity::Inferred,
            "group-size-from-world",
            "no group is stated and all communication uses one stream; taken as one group of all ranks",
        );
    }
    let mut ops: Vec<CollectiveOp> = gathered
        .into_iter()
        .map(|(candidate, context, facts)| finish(trace, candidate, context, facts, &groups))
        .collect();
    let unclassified: Vec<CollectiveOp> =
        found.looks_like.iter().map(|candidate| unclassified(trace, candidate)).collect();
    let filled = fill_from_other_steps(trace, &mut ops);
    number(trace, &mut ops);
    report(trace, &ops, &unclassified, filled, ledger);
    Collectives { ops, unclassified, groups: groups.into_table() }
}

struct Candidate {
    row: u32,
    on_device: bool,
    library: Library,
    /// `None` for host rows and for kernels that only their arguments give away.
    name: Option<NameFacts>,
}

#[derive(Default)]
struct Candidates {
    device: Vec<Candidate>,
    host: Vec<Candidate>,
    looks_like: Vec<Candidate>,
}

fn candidates(trace: &Trace) -> Candidates {
    let mut found = Candidates::default();
    let mut kernels: FxHashMap<NameId, KernelName> = FxHashMap::default();
    let mut hosts: FxHashMap<NameId, Option<Library>> = FxHashMap::default();
    let mut seen = FxHashSet::default();
    for row in 0..trace.len() {
        let id = trace.name[row];
        match trace.category[row] {
            category @ (Category::Kernel | Category::Other) => {
                let name =
                    *kernels.entry(id).or_insert_with(|| classify_kernel(trace.name_of(row)));
                // Rows of no known category are only trusted where a library's name is plain,
                // and some producers show one operation on several tracks.
                let plain = matches!(name, KernelName::Communication(_))
                    && seen.insert((id, trace.start[row], trace.duration[row]));
                if category == Category::Kernel || plain {
                    device_candidate(trace, row, name, &mut found);
                }
            }
            Category::CpuOp | Category::UserAnnotation => {
                let library = hosts.entry(id).or_insert_with(|| host_backend(trace.name_of(row)));
                if let Some(library) = *library {
                    let row = row as u32;
                    found.host.push(Candidate { row, on_device: false, library, name: None });
                }
            }
            _ => {}
        }
    }
    for list in [&mut found.device, &mut found.host, &mut found.looks_like] {
        list.sort_by_key(|candidate| (trace.start[candidate.row as usize], candidate.row));
    }
    found
}

fn device_candidate(trace: &Trace, row: usize, name: KernelName, found: &mut Candidates) {
    let stated = trace.comm_args_of(row).is_some_and(|args| args.collective != NameId::EMPTY);
    let row = row as u32;
    let candidate = |name: NameFacts| Candidate {
        row,
        on_device: true,
        library: name.library,
        name: Some(name),
    };
    match name {
        KernelName::Communication(name) => found.device.push(candidate(name)),
        KernelName::LooksLike(name) if stated => found.device.push(candidate(name)),
        KernelName::LooksLike(name) => found.looks_like.push(candidate(name)),
        KernelName::Compute if stated => {
            let library = Library::Other;
            found.device.push(Candidate { row, on_device: true, library, name: None });
        }
        KernelName::Compute => {}
    }
}

/// What an operation without a stated group is grouped by.
fn place(trace: &Trace, candidate: &Candidate) -> Option<i32> {
    candidate.on_device.then(|| trace.stream[candidate.row as usize])
}

fn finish(
    trace: &Trace,
    candidate: &Candidate,
    context: &Context,
    mut facts: Facts,
    groups: &Groups,
) -> CollectiveOp {
    if facts.group().is_none() {
        facts.infer_group(groups.unnamed(place(trace, candidate)));
    }
    facts.infer_sizes(facts.group().map_or(0, |group| groups.size(group)));
    let (input_bytes, output_bytes) = facts.bytes();
    CollectiveOp {
        kind: facts.kind(),
        dtype: facts.dtype(),
        input_bytes,
        output_bytes,
        bytes: input_bytes.max(output_bytes),
        group: facts.group(),
        recorded_sequence: facts.sequence,
        issue_row: issue_row(context),
        peer: facts.peer,
        provenance: facts.provenance(),
        ..unclassified(trace, candidate)
    }
}

/// The operation with what the row alone tells.
fn unclassified(trace: &Trace, candidate: &Candidate) -> CollectiveOp {
    let row = candidate.row as usize;
    CollectiveOp {
        row: candidate.row,
        on_device: candidate.on_device,
        start: trace.start[row],
        end: trace.end(row),
        library: candidate.library,
        kind: CollectiveKind::Unknown,
        algorithm: candidate.name.and_then(|name| name.algorithm),
        protocol: candidate.name.and_then(|name| name.protocol),
        dtype: None,
        input_bytes: None,
        output_bytes: None,
        bytes: None,
        group: None,
        nth: 0,
        recorded_sequence: None,
        issue_row: None,
        peer: None,
        provenance: super::Provenance::default(),
    }
}

fn issue_row(context: &Context) -> Option<u32> {
    let first = |wanted: IssueName| context.iter().find(|(issue, _)| *issue == wanted);
    first(IssueName::ParamComms)
        .or_else(|| first(IssueName::Operator))
        .or_else(|| first(IssueName::Annotation))
        .map(|(_, row)| *row)
}

/// Numbers the operations of each group and kind, in order of issue where every one's issue is
/// known: host backends may start two queued operations at once, in either order.
fn number(trace: &Trace, ops: &mut [CollectiveOp]) {
    let mut members: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (i, op) in ops.iter().enumerate() {
        members.entry((op.group, op.kind)).or_default().push(i);
    }
    for list in members.values_mut() {
        if list.iter().all(|&i| !ops[i].on_device && ops[i].issue_row.is_some()) {
            list.sort_by_key(|&i| ops[i].issue_row.map(|row| (trace.start[row as usize], row)));
        }
        for (nth, &i) in list.iter().enumerate() {
            ops[i].nth = nth as u32;
        }
    }
}

fn report(
    trace: &Trace,
    ops: &[CollectiveOp],
    unclassified: &[CollectiveOp],
    filled: u64,
    ledger: &mut Ledger,
) {
    let moves_data = |op: &&CollectiveOp| op.kind != CollectiveKind::Barrier;
    let time = |op: &CollectiveOp| op.duration().nanos().max(0) as u64;
    let total = ops.iter().filter(moves_data);
    let known = total.clone().filter(|op| op.bytes.is_some());
    if !ops.is_empty() {
        ledger.cover(
            "collective bytes known",
            known.clone().count() as u64,
            total.clone().count() as u64,
        );
        ledger.cover(
            "collective time with bytes known (ns)",
            known.map(time).fold(0, u64::saturating_add),
            total.map(time).fold(0, u64::saturating_add),
        );
    }
    ledger.record_many(
        Severity::Inferred,
        "collective-size-from-sibling-step",
        "size of a collective taken from the same operation of other steps",
        filled,
        None,
    );
    for op in unclassified {
        ledger.record_at(
            Severity::Warning,
            "communication-unclassified",
            "looks like communication, unclassified",
            || trace.name_of(op.row as usize).chars().take(120).collect(),
        );
    }
    if ops.is_empty() && trace.meta.world_size.is_some_and(|n| n > 1) {
        ledger.record(
            Severity::Warning,
            "no-communication",
            "the trace belongs to a job of several ranks but shows no communication that is recognised",
        );
    }
}
