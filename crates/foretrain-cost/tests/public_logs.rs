//! The untuned priors against public logs, with loose bounds that catch a broken model.

mod support;

use foretrain_core::{Bandwidth, Bytes, Nanos};
use foretrain_cost::{CollectiveCall, Fabric, InterLink, Library, collective_time};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::NicKind;
use support::{Score, data_dir, lab_rows, nccl_tests_rows};

#[test]
fn azure_a100_ladder() {
    let Some(dir) = data_dir() else { return };
    let rows = nccl_tests_rows(&dir);
    let ladder: Vec<_> = rows.iter().filter(|r| r.log.starts_with("echo_")).collect();
    assert!(ladder.len() > 100, "the ladder has {} rows", ladder.len());
    let score: Score = ladder.into_iter().filter_map(support::Row::score).collect();
    assert!(score.mape() < 0.30, "mean absolute error {:.1} %", score.mape() * 100.0);
    assert!(score.bias().abs() < 0.25, "bias {:.1} %", score.bias() * 100.0);
    assert!(score.coverage() > 0.6, "coverage {:.0} %", score.coverage() * 100.0);
}

#[test]
fn gloo_over_shaped_links() {
    let Some(dir) = data_dir() else { return };
    let score: Score = lab_rows(&dir)
        .into_iter()
        // Where the link and not a starved core sets the time.
        .filter(|r| r.bytes >= 1 << 20 && r.mbit.is_some_and(|mbit| mbit <= 200.0))
        .map(|row| {
            let fabric = Fabric {
                ranks: row.ranks,
                nodes: row.ranks,
                inter: InterLink::new(
                    NicKind::Ethernet,
                    Bandwidth::from_gbit_per_sec(row.mbit.unwrap_or(0.0) / 1000.0 * 0.94),
                ),
                library: Library::Gloo,
                ..Fabric::single()
            };
            let call = CollectiveCall::new(CollectiveKind::AllReduce, Bytes::new(row.bytes));
            (collective_time(&call, &fabric).time, Nanos::from_micros_f64(row.time_us))
        })
        .collect();
    assert!(score.len() >= 20, "{} rows", score.len());
    assert!(score.mape() < 0.10, "mean absolute error {:.1} %", score.mape() * 100.0);
}
