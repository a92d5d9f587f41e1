//! Which part of the step each host row belongs to.

use foretrain_core::{NameId, Nanos};
use foretrain_graph::Phase;

use crate::category::Category;
use crate::index::{NO_ROW, TraceIndex};
use crate::table::Trace;

/// What a name says about the phase of everything inside it.
pub(super) fn phase_of_name(name: &str) -> Option<Phase> {
    if name.starts_with("Optimizer.") || name.contains("optimizer_step") {
        Some(Phase::Optimizer)
    } else if name.contains("DataLoader") {
        Some(Phase::Input)
    } else if name.starts_with("torch.distributed.ddp.reducer") {
        Some(Phase::Sync)
    } else if name.starts_with("autograd::engine::evaluate_function")
        || name == "CompiledFunctionBackward"
        || is_backward_node(name)
    {
        Some(Phase::Backward)
    } else if name.starts_with("DistributedDataParallel.forward")
        || name.starts_with("FullyShardedDataParallel.forward")
    {
        Some(Phase::Forward)
    } else {
        None
    }
}

/// "AddmmBackward0" and the like: a word that ends in "Backward" and perhaps a number.
fn is_backward_node(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    stem.len() > "Backward".len() && stem.ends_with("Backward") && !stem.contains(' ')
}

/// Phases of the host rows of a trace.
pub(super) struct Phases {
    /// One per row; [`Phase::Unknown`] for rows that no name decides.
    of_row: Vec<Phase>,
}

impl Phases {
    pub(super) fn new(trace: &Trace, index: &TraceIndex) -> Self {
        let by_name: Vec<Option<Phase>> =
            trace.names.iter().map(|(_, name)| phase_of_name(name)).collect();
        let named = |name: NameId| by_name.get(name.index()).copied().flatten();
        let mut of_row = vec![Phase::Unknown; trace.len()];
        for thread in &index.threads {
            // Enclosing rows come first, so one pass hands phases down.
            for &row in &thread.rows {
                let row = row as usize;
                let parent = index.parent[row];
                of_row[row] = named(trace.name[row]).unwrap_or(if parent == NO_ROW {
                    Phase::Unknown
                } else {
                    of_row[parent as usize]
                });
            }
        }
        Self { of_row }
    }

    /// Phase of a host row as far as names tell.
    pub(super) fn named(&self, row: u32) -> Phase {
        self.of_row[row as usize]
    }

    /// Phase of a host row within a step in which backward work runs from `backward.0` to
    /// `backward.1`: rows that no name decides are forward before it and optimizer after it.
    pub(super) fn of(&self, row: u32, at: Nanos, backward: Option<(Nanos, Nanos)>) -> Phase {
        let phase = if row == NO_ROW { Phase::Unknown } else { self.of_row[row as usize] };
        match (phase, backward) {
            (Phase::Unknown, Some((start, _))) if at < start => Phase::Forward,
            (Phase::Unknown, Some((_, end))) if at >= end => Phase::Optimizer,
            (Phase::Unknown, Some(_)) => Phase::Backward,
            (Phase::Unknown, None) => Phase::Forward,
            (phase, _) => phase,
        }
    }

    /// From the first start to the last end of backward work in a window.
    pub(super) fn backward_span(
        &self,
        trace: &Trace,
        index: &TraceIndex,
        start: Nanos,
        end: Nanos,
    ) -> Option<(Nanos, Nanos)> {
        let mut span: Option<(Nanos, Nanos)> = None;
        for thread in &index.threads {
            let from = thread.rows.partition_point(|&row| trace.start[row as usize] < start);
            for &row in &thread.rows[from..] {
                let row = row as usize;
                if trace.start[row] >= end {
                    break;
                }
                if self.of_row[row] == Phase::Backward && trace.category[row] == Category::CpuOp {
                    let (s, e) = span.unwrap_or((trace.start[row], trace.end(row)));
                    span = Some((s.min(trace.start[row]), e.max(trace.end(row))));
                }
            }
        }
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_decide_phases() {
        for (name, want) in [
            ("Optimizer.step#SGD.step", Some(Phase::Optimizer)),
            ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", Some(Phase::Input)),
            ("autograd::engine::evaluate_function: MmBackward0", Some(Phase::Backward)),
            ("AddmmBackward0", Some(Phase::Backward)),
            ("aten::convolution_backward", None),
            ("DistributedDataParallel.forward", Some(Phase::Forward)),
            ("Backward", None),
        ] {
            assert_eq!(phase_of_name(name), want, "{name}");
        }
    }
}
