//! What each record of the file is within the nesting of operators.

use foretrain_graph::Phase;

use super::communication::{self, Level};
use super::flops;
use super::hierarchy::{self, Hierarchy};
use super::lower::has_time;
use super::record::Record;

/// What a record is within the nesting.
pub(super) struct Shape {
    pub(super) level: Vec<Option<Level>>,
    /// For a record that carries a communication operation: true.
    pub(super) carrier: Vec<bool>,
    pub(super) has_host_child: Vec<bool>,
    /// For an operator that does countable work of its own, whatever it encloses: true.
    pub(super) works: Vec<bool>,
    pub(super) device: Vec<bool>,
    pub(super) phase: Vec<Phase>,
    /// The file holds device activity, so host operators only launch.
    pub(super) device_times: bool,
}

impl Shape {
    pub(super) fn new(records: &[Record<'_>], hierarchy: &Hierarchy) -> Self {
        let device: Vec<bool> = records.iter().map(is_device).collect();
        let level: Vec<_> = records.iter().zip(&device).map(|(r, &d)| level(r, d)).collect();
        let mut carrier: Vec<bool> = level.iter().map(Option::is_some).collect();
        let mut has_host_child = vec![false; records.len()];
        let mut kernel_taken = vec![false; records.len()];
        let mut phase = vec![Phase::Unknown; records.len()];
        for &node in &hierarchy.order {
            let node = node as usize;
            let parent = hierarchy.parent[node].map(|p| p as usize);
            phase[node] = own_phase(&records[node].name)
                .unwrap_or_else(|| parent.map_or(Phase::Unknown, |p| phase[p]));
            let Some(parent) = parent else { continue };
            has_host_child[parent] |= !device[node] && !is_metadata(&records[node].name);
            if level[node].is_some() && level[node] > level[parent] && level[parent].is_some() {
                // Of several kernels of one operation the first carries it.
                let repeated = device[node] && std::mem::replace(&mut kernel_taken[parent], true);
                carrier[node] = !repeated;
                carrier[parent] = false;
            }
        }
        let device_times = records.iter().any(|r| is_device(r) && r.category.is_some());
        let works = works(records, hierarchy);
        Self { level, carrier, has_host_child, works, device, phase, device_times }
    }
}

/// The innermost operators with countable arithmetic. On a CPU a matrix product encloses the views
/// that it looks through. Where times are recorded, those of the enclosed operators stand for it.
fn works(records: &[Record<'_>], hierarchy: &Hierarchy) -> Vec<bool> {
    let mut works: Vec<bool> =
        records.iter().map(|record| !has_time(record) && flops::flops(record).is_some()).collect();
    let mut inside = vec![false; records.len()];
    for &node in hierarchy.order.iter().rev() {
        let node = node as usize;
        if let Some(parent) = hierarchy.parent[node] {
            inside[parent as usize] |= inside[node] || works[node];
        }
        works[node] &= !inside[node];
    }
    works
}

fn is_device(record: &Record<'_>) -> bool {
    record.kernel_backend.is_some()
        || record.category.as_deref().is_some_and(|category| {
            let category = category.to_ascii_lowercase();
            category == "kernel" || category.starts_with("gpu_mem")
        })
}

fn level(record: &Record<'_>, device: bool) -> Option<Level> {
    if device {
        communication::is_communication_kernel(&record.name).then_some(Level::Kernel)
    } else {
        communication::host_level(&record.name)
    }
}

/// Records that stand for no work: frames and lists of process groups.
pub(super) fn is_metadata(name: &str) -> bool {
    hierarchy::is_frame(name) || name.contains("process_group:init")
}

fn own_phase(name: &str) -> Option<Phase> {
    if name.starts_with("autograd::engine::evaluate_function") {
        Some(Phase::Backward)
    } else if name.starts_with("Optimizer.") || name.starts_with("## optimizer") {
        Some(Phase::Optimizer)
    } else {
        None
    }
}
