//! Ascend's `trace_view`: device and CANN events carry no category; the processes they belong
//! to tell what they are.

use foretrain_core::{Ledger, Severity};
use foretrain_trace::{Category, Trace};

/// What an uncategorised event of a process is.
fn category_of(process: &str, thread: &str, name: &str) -> Option<Category> {
    let lower = name.to_ascii_lowercase();
    Some(match process {
        "Ascend Hardware" if lower.contains("memcpy") => Category::Memcpy,
        "Ascend Hardware" if lower.contains("memset") => Category::Memset,
        "Ascend Hardware" if is_wait(&lower) => Category::DeviceSync,
        "Ascend Hardware" => Category::Kernel,
        "CANN" | "AscendCL" => Category::Runtime,
        // One thread per group holds the collectives, the planes below it their parts.
        "HCCL" | "Communication" if thread.ends_with("Communication") => Category::Kernel,
        // Sums over the other events, and counters.
        "Overlap Analysis" => Category::Span,
        _ => return None,
    })
}

fn is_wait(lower: &str) -> bool {
    ["event_wait", "event_record", "notify_wait", "notify_record"].iter().any(|w| lower.contains(w))
}

/// Gives uncategorised rows the category of their process. Gives how many became known.
pub(super) fn classify(
    trace: &mut Trace,
    processes: &[String],
    threads: &[String],
    ledger: &mut Ledger,
) -> u64 {
    let mut known = 0;
    for row in 0..trace.len() {
        if trace.category[row] != Category::Other {
            continue;
        }
        let track = trace.track[row].index();
        let name = trace.names.get(trace.name[row]);
        let Some(category) = category_of(&processes[track], &threads[track], name) else {
            continue;
        };
        trace.category[row] = category;
        known += 1;
    }
    ledger.record_many(
        Severity::Inferred,
        "category-from-process",
        "events without a category; taken from the process they belong to",
        known,
        None,
    );
    known
}
