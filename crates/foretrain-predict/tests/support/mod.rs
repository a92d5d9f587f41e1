//! What several tests share.

use foretrain_ingest::{ReadOptions, read_trace_bytes};
use foretrain_predict::Recording;
use foretrain_testkit::Generated;

/// The ranks of a generated job, read and analysed.
pub(crate) fn recordings(job: &Generated) -> Vec<Recording> {
    (0..job.ranks.len())
        .map(|rank| {
            let name = format!("rank{rank}.json");
            let read = read_trace_bytes(&job.ranks[rank], &name, &ReadOptions::default());
            Recording::analyse(read.expect("generated traces are well formed").0, None)
        })
        .collect()
}
