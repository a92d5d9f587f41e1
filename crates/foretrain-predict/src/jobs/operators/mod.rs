//! What the operators of a recorded step compute and move, counted from their shapes.
//!
//! Every kernel (without a device: every innermost operator) is work of the operators around it. Of
//! an operator that computes (`products`) the FLOPs are counted, of any other the bytes (`moved`);
//! each operator once, however many kernels it launched. What cannot be counted is weighed by its
//! time.

mod moved;
mod operand;
mod products;
mod tables;

use foretrain_core::Nanos;
use foretrain_cost::KernelClass;
use foretrain_trace::index::NO_ROW;
use foretrain_trace::steps::Step;
use foretrain_trace::{Category, Trace};
use rustc_hash::FxHashSet;

use crate::described::is_view;
use crate::inspect::covered;
use crate::jobs::figure::Tally;
use crate::recording::Recording;

use operand::operands;
use products::{Product, Results};
pub(super) use tables::Tables;

/// What was counted.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// FLOPs of compute-bound work.
    pub(super) compute: Tally,
    /// Bytes of memory-bound work.
    pub(super) memory: Tally,
    /// Embedding tables that were looked up.
    pub(super) tables: Tables,
    /// How long any of the step's device work lasts.
    pub(super) device_time: Nanos,
    /// Attention was among it, counted as if every query saw every key.
    pub(super) attends: bool,
}

/// Counts one step.
pub(super) fn count(recording: &Recording, step: &Step) -> Counted {
    let trace = &recording.trace;
    let results =
        Results::of(operators(recording, step).map(|row| (name(trace, row), operands(trace, row))));
    let mut counting =
        Counting { recording, results, seen: FxHashSet::default(), found: Counted::default() };
    for (row, nanos) in work(recording, step) {
        counting.add(row, nanos);
    }
    let mut found = counting.found;
    found.tables = tables(recording, step);
    found.device_time = device_time(recording, step);
    found
}

/// Tables that are looked up. An operator that calls another of the kind looks up the same table.
fn tables(recording: &Recording, step: &Step) -> Tables {
    let (trace, index) = (&recording.trace, &recording.index);
    let (mut tables, mut met) = (Tables::default(), FxHashSet::default());
    for row in operators(recording, step) {
        let mut above = index.parent[row as usize];
        while above != NO_ROW && !met.contains(&above) {
            above = index.parent[above as usize];
        }
        if above == NO_ROW && tables.meet(name(trace, row), &operands(trace, row)) {
            met.insert(row);
        }
    }
    tables
}

/// How long any of the device work lasts that a step launches; nothing without a device.
fn device_time(recording: &Recording, step: &Step) -> Nanos {
    let trace = &recording.trace;
    let rows = device_work(recording, step);
    covered(rows.map(|row| (trace.start[row as usize], trace.end(row as usize))).collect())
}

/// Device work that a step launches. What a stream does before anything whose launch was recorded was
/// launched before the recording began.
fn device_work<'a>(recording: &'a Recording, step: &'a Step) -> impl Iterator<Item = u32> + 'a {
    let index = &recording.index;
    let rows = index.streams.iter().flat_map(|stream| {
        let launched = |row: &u32| index.launch[*row as usize] != NO_ROW;
        let first = stream.rows.iter().position(launched).unwrap_or(0);
        &stream.rows[first..]
    });
    rows.copied().filter(|&row| begins_in(launched_at(recording, row), step))
}

/// When the host launched device work; when it began if that is not recorded.
fn launched_at(recording: &Recording, row: u32) -> Nanos {
    match recording.index.launch[row as usize] {
        NO_ROW => recording.trace.start[row as usize],
        launch => recording.trace.start[launch as usize],
    }
}

fn name(trace: &Trace, row: u32) -> &str {
    let name = trace.name_of(row as usize);
    name.strip_prefix("aten::").unwrap_or(name)
}

/// Operators that begin in a step.
fn operators<'a>(recording: &'a Recording, step: &'a Step) -> impl Iterator<Item = u32> + 'a {
    let trace = &recording.trace;
    let rows = recording.index.threads.iter().flat_map(|thread| thread.rows.iter().copied());
    rows.filter(move |&row| {
        trace.category[row as usize] == Category::CpuOp
            && begins_in(trace.start[row as usize], step)
    })
}

fn begins_in(at: Nanos, step: &Step) -> bool {
    step.start <= at && at < step.end
}

/// Rows that take time, and how long: device work that a step launches, or else the innermost
/// operators of the host. Communication is left out.
fn work(recording: &Recording, step: &Step) -> Vec<(u32, f64)> {
    let (trace, index) = (&recording.trace, &recording.index);
    let found = &recording.collectives;
    let others: FxHashSet<u32> =
        found.ops.iter().chain(&found.unclassified).map(|op| op.row).collect();
    let timed = |row: u32| (row, trace.duration[row as usize].nanos().max(1) as f64);
    if !index.streams.is_empty() {
        let rows = device_work(recording, step).filter(|row| !others.contains(row));
        return rows.map(timed).collect();
    }
    let parents: FxHashSet<u32> = index
        .threads
        .iter()
        .flat_map(|thread| &thread.rows)
        .filter(|&&row| trace.category[row as usize] == Category::CpuOp)
        .map(|&row| index.parent[row as usize])
        .collect();
    let innermost = operators(recording, step).filter(|row| !parents.contains(row));
    let computes = |row: &u32| {
        let name = trace.name_of(*row as usize);
        name.starts_with("aten::") && !is_view(name) && !others.contains(row)
    };
    innermost.filter(computes).map(timed).collect()
}

struct Counting<'a> {
    recording: &'a Recording,
    results: Results,
    /// Operators whose work is counted.
    seen: FxHashSet<u32>,
    found: Counted,
}

impl Counting<'_> {
    fn add(&mut self, row: u32, nanos: f64) {
        let trace = &self.recording.trace;
        match trace.category[row as usize] {
            Category::Memcpy | Category::Memset => return self.add_copy(row, nanos),
            _ => {}
        }
        let chain = self.chain(row);
        let named = chain.iter().filter_map(|&row| Some((row, Product::named(name(trace, row))?)));
        // The outermost operator of an attention or a convolution has the plainest shapes.
        let computing = named.reduce(|inner, outer| if outer.1.is_whole() { outer } else { inner });
        if let Some((operator, product)) = computing {
            self.found.attends |= product.attends();
            return self.compute(operator, product, nanos);
        }
        if is_compute_bound(trace.name_of(row as usize)) {
            return self.found.compute.lack(nanos);
        }
        self.memory(chain.first().copied(), nanos);
    }

    /// The operators around a row, the innermost first.
    fn chain(&self, row: u32) -> Vec<u32> {
        let (trace, index) = (&self.recording.trace, &self.recording.index);
        let on_host = trace.category[row as usize] == Category::CpuOp;
        let mut at = if on_host { row } else { index.launch[row as usize] };
        let mut chain = Vec::new();
        while at != NO_ROW {
            if trace.category[at as usize] == Category::CpuOp {
                chain.push(at);
            }
            at = index.parent[at as usize];
        }
        chain
    }

    fn compute(&mut self, operator: u32, product: Product, nanos: f64) {
        let trace = &self.recording.trace;
        if !self.seen.insert(operator) {
            return self.found.compute.add(0.0, nanos);
        }
        match product.flops(&operands(trace, operator), &mut self.results) {
            Some(flops) => self.found.compute.add(flops, nanos),
            None => {
                self.seen.remove(&operator);
                self.found.compute.lack(nanos);
            }
        }
    }

    fn memory(&mut self, operator: Option<u32>, nanos: f64) {
        let trace = &self.recording.trace;
        let Some(operator) = operator else { return self.found.memory.lack(nanos) };
        if self.seen.contains(&operator) {
            return self.found.memory.add(0.0, nanos);
        }
        match moved::bytes(name(trace, operator), &operands(trace, operator)) {
            Some(bytes) => {
                self.seen.insert(operator);
                self.found.memory.add(bytes, nanos);
            }
            None => self.found.memory.lack(nanos),
        }
    }

    /// Copies between host and device cross PCIe, not the memory alone: they are input.
    fn add_copy(&mut self, row: u32, nanos: f64) {
        let trace = &self.recording.trace;
        let name = trace.name_of(row as usize);
        let passes = match trace.category[row as usize] {
            Category::Memset => 1.0,
            _ if within_device(name) => 2.0,
            _ => return,
        };
        match trace.copy_args_of(row as usize).and_then(|copy| copy.bytes) {
            Some(bytes) => self.found.memory.add(passes * bytes as f64, nanos),
            None => self.found.memory.lack(nanos),
        }
    }
}

/// Whether a kernel is compute-bound by its name.
pub(super) fn is_compute_bound(name: &str) -> bool {
    matches!(
        KernelClass::of(name),
        KernelClass::Gemm | KernelClass::Convolution | KernelClass::Attention
    )
}

/// `Memcpy DtoD (Device -> Device)`, `CopyDeviceToDevice`.
fn within_device(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("dtod") || name.contains("devicetodevice")
}
