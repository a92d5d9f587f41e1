//! Every second size of one node's log from the others.

use super::super::ValidationSet;
use super::super::corpus::Corpus;
use super::super::report::SetOutcome;
use super::tables::MeasuredRow;
use super::{Split, on_tables, usable};

/// Logs of one node.
pub(in super::super) struct SingleNode;

/// Fewer sizes are no sweep.
const FEWEST: usize = 8;

impl ValidationSet for SingleNode {
    fn name(&self) -> &'static str {
        "collectives-single-node"
    }

    fn about(&self) -> &'static str {
        "Every log of one node with at least eight sizes, and one collective at a time: calibrated \
         on every second size from 1 KiB, asked for the sizes in between."
    }

    fn unit(&self) -> &'static str {
        "us"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        on_tables(corpus, |measured, outcome| {
            let rows: Vec<&MeasuredRow> = measured
                .rows
                .iter()
                .filter(|row| row.table == "collectives_nccl_tests" && row.nodes == 1)
                .filter(usable)
                .collect();
            for log in rows.chunk_by(|a, b| (&a.system, a.kind) == (&b.system, b.kind)) {
                let mut log = log.to_vec();
                log.sort_by_key(|row| row.bytes);
                if log.len() < FEWEST {
                    continue;
                }
                let part = |odd: usize| log.iter().copied().skip(odd).step_by(2).collect();
                let Some(cluster) = log[0].cluster else { continue };
                let group = log[0].system.clone();
                Split { group, cluster, given: part(0), asked: part(1) }.score(outcome);
            }
            Ok(())
        })
    }
}
