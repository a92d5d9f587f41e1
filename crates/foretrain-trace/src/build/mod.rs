//! From a trace to the step graph of one step, by the fidelity rules:
//!
//! * host threads are cut where they touch the rest of the system; the gaps stay (`host`);
//! * other threads and messages hang off the main thread where they begin (`blocks`), and the main
//!   thread waits for them where it stood still until they ended (`joins`);
//! * synchronising calls, and launch calls that met a full queue, end when the device work they
//!   waited for ends (`sync`);
//! * device work hangs off its launch, off its stream and off events of other streams; of all
//!   these constraints the one that bound in the recording keeps its recorded delay and the others
//!   get a typical one (`device`).
//!
//! All constraints hold in the recording and one of each node's is tight, so a replay of the
//! graph reproduces the recording; and because the others are there too, they take over where a
//! change makes them bind.

mod assemble;
mod blocks;
mod context;
mod device;
mod host;
mod joins;
mod phase;
mod steady;
mod sync;
mod typical;
mod usual;

pub use assemble::{STEP_BEGIN, STEP_END, TRACE_ROW};
pub use context::Context;
pub use steady::steady_step;
pub use typical::{DEFAULT_QUEUE_CAPACITY, Typical};

use foretrain_core::Ledger;
use foretrain_graph::StepGraph;

/// Builds the graphs of all steps of a prepared trace.
pub fn build_steps(context: &Context<'_>, ledger: &mut Ledger) -> Vec<StepGraph> {
    (0..context.steps.steps.len()).map(|step| build_step(context, step, ledger)).collect()
}

/// Builds the graph of step number `step` of a prepared trace.
///
/// # Panics
/// If the trace has no such step.
pub fn build_step(context: &Context<'_>, step: usize, ledger: &mut Ledger) -> StepGraph {
    let step = &context.steps.steps[step];
    let threads = host::host_threads(context, step);
    let work = device::device_work(context, step, ledger);
    let mut graph = assemble::assemble(context, step, &threads, &work);
    graph.shrink_to_fit();
    graph
}
