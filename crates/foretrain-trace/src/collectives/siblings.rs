//! Fills sizes from other steps: training repeats, so the n-th operation of a kind on a stream
//! has one size in every step that has as many of them.

use std::collections::BTreeMap;

use foretrain_core::{Bytes, DType, Nanos};
use foretrain_graph::CollectiveKind;

use super::{CollectiveOp, Source};
use crate::category::Category;
use crate::table::Trace;

/// A size as far as siblings can lend it.
type Size = (Option<DType>, Option<Bytes>, Option<Bytes>);

/// Fills unknown sizes from marked steps; returns how many were filled.
pub(crate) fn fill_from_other_steps(trace: &Trace, ops: &mut [CollectiveOp]) -> u64 {
    let marks = step_marks(trace);
    if marks.len() < 2 || ops.iter().all(|op| op.bytes.is_some()) {
        return 0;
    }
    let sequences = sequences(trace, ops, &marks);
    let mut filled = 0;
    for steps in sequences.values() {
        let Some(length) = steps.first().map(Vec::len) else { continue };
        if length == 0 || steps.len() < 2 || steps.iter().any(|step| step.len() != length) {
            continue;
        }
        for position in 0..length {
            let siblings: Vec<usize> = steps.iter().map(|step| step[position]).collect();
            if let Some(size) = common_size(ops, &siblings) {
                filled += lend(ops, &siblings, size);
            }
        }
    }
    filled
}

fn step_marks(trace: &Trace) -> Vec<(Nanos, Nanos)> {
    let is_mark = |row: &usize| {
        matches!(trace.category[*row], Category::UserAnnotation | Category::CpuOp)
            && trace.name_of(*row).starts_with("ProfilerStep#")
    };
    let rows = (0..trace.len()).filter(is_mark);
    let mut marks: Vec<_> = rows.map(|row| (trace.start[row], trace.end(row))).collect();
    marks.sort_unstable();
    marks
}

/// For each kind, stream and step the operations in order.
fn sequences(
    trace: &Trace,
    ops: &[CollectiveOp],
    marks: &[(Nanos, Nanos)],
) -> BTreeMap<(CollectiveKind, i32), Vec<Vec<usize>>> {
    let mut sequences: BTreeMap<_, Vec<Vec<usize>>> = BTreeMap::new();
    for (i, op) in ops.iter().enumerate() {
        let at = op.issue_row.map_or(op.start, |row| trace.start[row as usize]);
        let Some(step) = marks.partition_point(|(start, _)| *start <= at).checked_sub(1) else {
            continue;
        };
        if at <= marks[step].1 {
            let key = (op.kind, trace.stream[op.row as usize]);
            sequences.entry(key).or_insert_with(|| vec![Vec::new(); marks.len()])[step].push(i);
        }
    }
    sequences
}

/// The size that every sibling with a known one has.
fn common_size(ops: &[CollectiveOp], siblings: &[usize]) -> Option<Size> {
    let mut known = siblings
        .iter()
        .map(|&i| &ops[i])
        .filter(|op| op.bytes.is_some())
        .map(|op| (op.dtype, op.input_bytes, op.output_bytes));
    let first = known.next()?;
    known.all(|size| size == first).then_some(first)
}

fn lend(ops: &mut [CollectiveOp], siblings: &[usize], (dtype, input, output): Size) -> u64 {
    let mut filled = 0;
    for &i in siblings {
        let op = &mut ops[i];
        if op.bytes.is_none() {
            (op.dtype, op.input_bytes, op.output_bytes) = (dtype, input, output);
            op.bytes = input.max(output);
            let source = |known: bool| if known { Source::SiblingStep } else { Source::Unknown };
            op.provenance.dtype = source(dtype.is_some());
            op.provenance.input = source(input.is_some());
            op.provenance.output = source(output.is_some());
            filled += 1;
        }
    }
    filled
}
