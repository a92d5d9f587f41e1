//! Ties device communication to the host rows that issued it.

use foretrain_core::NameId;
use foretrain_graph::CollectiveKind;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::names::{IssueName, classify_issue, kind_of};
use super::text::first_input_elements;
use crate::category::Category;
use crate::table::Trace;

/// Issue rows that belong to one operation, the innermost first.
pub(crate) type Context = SmallVec<[(IssueName, u32); 4]>;

/// Rows that may nest around a launch; deeper nesting is cut.
const MAX_CONTEXT: usize = 16;

/// Rows held open at once; only damaged times nest deeper.
const MAX_OPEN: usize = 64;

/// The issue rows of a trace.
pub(crate) struct IssueRows<'a> {
    trace: &'a Trace,
    // Ordered by track, start, then outer before inner.
    rows: Vec<(IssueName, u32)>,
    by_external: FxHashMap<u64, usize>,
}

impl<'a> IssueRows<'a> {
    pub(crate) fn new(trace: &'a Trace) -> Self {
        let mut known: FxHashMap<NameId, Option<IssueName>> = FxHashMap::default();
        let mut rows = Vec::new();
        for row in 0..trace.len() {
            if !matches!(trace.category[row], Category::CpuOp | Category::UserAnnotation) {
                continue;
            }
            let issue =
                *known.entry(trace.name[row]).or_insert_with(|| classify_issue(trace.name_of(row)));
            if let Some(issue) = issue
                && !is_wait(trace, row)
            {
                rows.push((issue, row as u32));
            }
        }
        rows.sort_by_key(|&(_, row)| {
            let row = row as usize;
            (trace.track[row], trace.start[row], -trace.end(row), row)
        });
        let mut by_external = FxHashMap::default();
        for (position, &(issue, row)) in rows.iter().enumerate() {
            let id = trace.external_id[row as usize];
            if issue == IssueName::ParamComms && id != 0 {
                by_external.entry(id).or_insert(position);
            }
        }
        Self { trace, rows, by_external }
    }

    /// The context of each device row: what encloses its launch, else what its external id names.
    pub(crate) fn of_device_rows(&self, device_rows: &[u32]) -> Vec<Context> {
        let launches = launches(self.trace, device_rows);
        let mut contexts = self.enclosing(&launches);
        for ((context, &row), launch) in contexts.iter_mut().zip(device_rows).zip(&launches) {
            if !context.iter().any(|(issue, _)| *issue == IssueName::ParamComms)
                && let Some(position) = self.by_external_id(row, *launch)
            {
                *context = self.nested(position);
            }
        }
        contexts
    }

    fn by_external_id(&self, row: u32, launch: Option<u32>) -> Option<usize> {
        [Some(row), launch].into_iter().flatten().find_map(|row| {
            let row = row as usize;
            let id = self.trace.external_id[row];
            // Some producers repeat the correlation here, which numbers something else.
            let usable = id != 0 && id != self.trace.correlation[row];
            usable.then(|| self.by_external.get(&id).copied()).flatten()
        })
    }

    /// An issue row and what it encloses, the innermost first.
    fn nested(&self, position: usize) -> Context {
        let outer = self.rows[position].1 as usize;
        let inside = self.rows[position..].iter().take(MAX_CONTEXT).take_while(|(_, row)| {
            let row = *row as usize;
            self.trace.track[row] == self.trace.track[outer]
                && self.trace.start[row] <= self.trace.end(outer)
        });
        let mut context: Context = inside.copied().collect();
        context.reverse();
        context
    }

    /// What encloses the start of each launch on its own thread, by one sweep over both lists.
    fn enclosing(&self, launches: &[Option<u32>]) -> Vec<Context> {
        let trace = self.trace;
        let mut queries: Vec<(usize, u32)> =
            launches.iter().enumerate().filter_map(|(i, l)| l.map(|l| (i, l))).collect();
        let place = |row: u32| (trace.track[row as usize], trace.start[row as usize]);
        queries.sort_by_key(|&(i, row)| (place(row), i));
        let mut contexts = vec![Context::new(); launches.len()];
        let mut open: Vec<(IssueName, u32)> = Vec::new();
        let mut next = 0;
        for (i, launch) in queries {
            while let Some(&(issue, row)) = self.rows.get(next)
                && place(row) <= place(launch)
            {
                open.retain(|&(_, outer)| self.is_open(outer, row));
                if open.len() < MAX_OPEN {
                    open.push((issue, row));
                }
                next += 1;
            }
            open.retain(|&(_, outer)| self.is_open(outer, launch));
            contexts[i] = open.iter().rev().take(MAX_CONTEXT).copied().collect();
        }
        contexts
    }

    fn is_open(&self, outer: u32, at: u32) -> bool {
        let (outer, at) = (outer as usize, at as usize);
        self.trace.track[outer] == self.trace.track[at]
            && self.trace.end(outer) >= self.trace.start[at]
    }

    /// The context of each host row that carries communication itself: the operator that
    /// queued it. Backends work off one queue in order, so the n-th operation of a kind and size
    /// belongs to the n-th operator of that kind and size that began before it.
    pub(crate) fn of_host_rows(&self, host_rows: &[u32]) -> Vec<Context> {
        let trace = self.trace;
        let mut waiting: FxHashMap<(CollectiveKind, u64), Vec<usize>> = FxHashMap::default();
        for (position, &(issue, row)) in self.rows.iter().enumerate() {
            if issue == IssueName::Operator
                && let Some(key) = queue_key(trace, row as usize)
            {
                waiting.entry(key).or_default().push(position);
            }
        }
        let mut taken: FxHashMap<(CollectiveKind, u64), usize> = FxHashMap::default();
        let by_start = |position: &usize| {
            let row = self.rows[*position].1 as usize;
            (trace.start[row], row)
        };
        #[expect(clippy::iter_over_hash_type, reason = "each list is sorted on its own")]
        for list in waiting.values_mut() {
            list.sort_by_key(by_start);
        }
        let mut order: Vec<usize> = (0..host_rows.len()).collect();
        order.sort_by_key(|&i| (trace.start[host_rows[i] as usize], host_rows[i]));
        let mut contexts = vec![Context::new(); host_rows.len()];
        for i in order {
            let row = host_rows[i] as usize;
            let Some(key) = queue_key(trace, row) else { continue };
            let next = taken.entry(key).or_default();
            let Some(&position) = waiting.get(&key).and_then(|list| list.get(*next)) else {
                continue;
            };
            if trace.start[self.rows[position].1 as usize] <= trace.start[row] {
                contexts[i] = self.nested(position);
                *next += 1;
            }
        }
        contexts
    }
}

/// What must agree between a queued operation and its operator. Sizes only where both sides
/// list the same tensor first.
fn queue_key(trace: &Trace, row: usize) -> Option<(CollectiveKind, u64)> {
    let kind = kind_of(trace.name_of(row))?;
    let in_place = matches!(kind, CollectiveKind::AllReduce | CollectiveKind::Broadcast);
    let elements = first_input_elements(trace.names.get(trace.shapes[row]));
    Some((kind, elements.filter(|_| in_place).unwrap_or(0)))
}

/// Rows that wait for a collective are written like collectives without data.
fn is_wait(trace: &Trace, row: usize) -> bool {
    trace.comm_args_of(row).is_some_and(|args| trace.names.get(args.collective) == "wait")
}

/// The runtime call that launched each device row.
fn launches(trace: &Trace, device_rows: &[u32]) -> Vec<Option<u32>> {
    let ids = device_rows.iter().map(|&row| trace.correlation[row as usize]);
    let wanted: FxHashSet<u64> = ids.clone().filter(|&id| id != 0).collect();
    let mut calls: FxHashMap<u64, u32> = FxHashMap::default();
    for row in 0..trace.len() {
        let id = trace.correlation[row];
        if trace.category[row] == Category::Runtime && wanted.contains(&id) {
            calls.entry(id).or_insert(row as u32);
        }
    }
    ids.map(|id| calls.get(&id).copied()).collect()
}
