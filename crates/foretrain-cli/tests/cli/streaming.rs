//! `inspect` looks at one rank after the other and says what it would of all at once.

use std::path::Path;

use foretrain::core::Bytes;
use foretrain::ingest::{ReadOptions, read_ranks};
use foretrain::predict::Recording;
use foretrain::predict::inspect::{InspectedRank, inspect};
use foretrain::report::json::{self, InspectReport};
use foretrain_testkit::JobSpec;

use crate::support::{TINY, answer, complaint, job, root, text};

/// The answer from all recordings at once, and the most that one of them takes.
fn at_once(path: &Path) -> (String, Bytes) {
    let (traces, ledger) =
        read_ranks(&[path.to_path_buf()], &ReadOptions::default(), &|_| {}).expect("reads");
    let recordings: Vec<Recording> =
        traces.into_iter().map(|trace| Recording::analyse(trace, None)).collect();
    let most = recordings.iter().map(InspectedRank::memory).max().expect("ranks");
    (json::to_text(&InspectReport::new(&inspect(&recordings, &ledger))), most)
}

#[test]
fn one_rank_at_a_time_gives_the_bytes_of_all_at_once() {
    let generated = job(&JobSpec { ranks: 6, steps: 4, ..JobSpec::tiny_ddp() });
    for path in [root().join(TINY), generated.path().to_path_buf()] {
        let (expected, most) = at_once(&path);
        // Room for one rank, not for two.
        let tight = format!("{}B", most.get() * 3 / 2);
        for threads in ["1", "4"] {
            for cap in [tight.as_str(), "8GiB"] {
                let arguments =
                    ["inspect", text(&path), "--json", "--threads", threads, "--memory-cap", cap];
                assert!(answer(&arguments) == expected, "{threads} threads, cap {cap}");
            }
        }
    }
}

#[test]
fn a_cap_too_small_for_the_graph_of_one_rank_refuses() {
    let generated = job(&JobSpec { ranks: 3, ..JobSpec::tiny_ddp() });
    let (_, most) = at_once(generated.path());
    for threads in ["1", "4"] {
        let cap = format!("{}B", most.get() * 9 / 10);
        let said = complaint(
            &["inspect", text(generated.path()), "--threads", threads, "--memory-cap", &cap],
            generated.path(),
        );
        assert!(said.contains("memory cap") && said.contains("DIR/rank0.json"), "{said}");
        assert!(said.contains("hint:"), "{said}");
    }
}
