//! Prints the error of the uncalibrated collective model on public nccl-tests logs.
//!
//! `FORETRAIN_DATA=DIR cargo run -p foretrain-cost --example collective_error`
#![expect(clippy::print_stdout, reason = "the table is the program's output")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::BTreeMap;

use support::{Row, Score, data_dir, nccl_tests_rows};

fn main() {
    let Some(dir) = data_dir() else { return };
    let rows = nccl_tests_rows(&dir);
    let mut groups: BTreeMap<(&str, &str, u32), Vec<&Row>> = BTreeMap::new();
    for row in &rows {
        groups.entry((machine(&row.log), row.kind.as_str(), row.ranks)).or_default().push(row);
    }
    println!(
        "| log | collective | ranks | n | MAPE % | median % | worst % | bias % | in 80 % interval |"
    );
    println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for ((log, kind, ranks), rows) in groups {
        print(log, kind, &ranks.to_string(), rows.into_iter().filter_map(Row::score).collect());
    }
    let ladder = rows.iter().filter(|row| row.log.starts_with("echo_"));
    print("echo", "all-reduce", "all", ladder.filter_map(Row::score).collect());
}

/// The log's name up to its machine.
fn machine(log: &str) -> &str {
    log.match_indices('_').nth(1).map_or(log, |(at, _)| &log[..at])
}

fn print(log: &str, kind: &str, ranks: &str, score: Score) {
    if score.len() == 0 {
        return;
    }
    let percent = |share: f64| share * 100.0;
    println!(
        "| {log} | {kind} | {ranks} | {} | {:.1} | {:.1} | {:.0} | {:+.1} | {:.0} % |",
        score.len(),
        percent(score.mape()),
        percent(score.median()),
        percent(score.worst()),
        percent(score.bias()),
        percent(score.coverage()),
    );
}
