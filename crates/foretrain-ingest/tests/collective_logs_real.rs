//! Every benchmark log of the validation data against the rows that were parsed from it
//! independently.

#![expect(clippy::print_stdout, reason = "the counts are the point of this test")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use foretrain_core::{Bandwidth, DType, Nanos};
use foretrain_graph::CollectiveKind;
use foretrain_ingest::collective_log::{self, LogOptions, Row, Run, Timing};
use foretrain_ingest::{FileKind, sniff};

fn data() -> Option<PathBuf> {
    let home = std::env::var_os("FORETRAIN_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let measured = home.join("measured");
    if measured.is_dir() {
        return Some(measured);
    }
    println!("skipped: no validation data at {}", measured.display());
    None
}

/// One row as somebody else read it.
struct Expected {
    kind: Option<CollectiveKind>,
    ranks: u32,
    size: u64,
    count: Option<u64>,
    dtype: Option<DType>,
    /// Time in microseconds, two bandwidths in GB/s, for both placements.
    figures: [[Option<f64>; 3]; 2],
    /// The number of ranks is in doubt.
    uncertain: bool,
}

fn expected(measured: &Path) -> BTreeMap<String, Vec<Expected>> {
    let mut text = String::new();
    let packed = std::fs::File::open(measured.join("collectives_nccl_tests.csv.gz"))
        .expect("the data as its README says");
    flate2::read::GzDecoder::new(packed)
        .read_to_string(&mut text)
        .expect("the data as its README says");
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let titles = table.headers().expect("the data as its README says").clone();
    let column = |name: &str| {
        titles.iter().position(|title| title == name).expect("the data as its README says")
    };
    let figures = ["oop", "ip"].map(|placement| {
        ["time_us", "algbw_GBps", "busbw_GBps"].map(|what| column(&format!("{placement}_{what}")))
    });
    let (log, kind, ranks) = (column("log_id"), column("collective"), column("n_ranks"));
    let (size, count, dtype, flag) =
        (column("size_bytes"), column("count"), column("dtype"), column("flag"));
    let mut logs: BTreeMap<String, Vec<Expected>> = BTreeMap::new();
    for line in table.records() {
        let line = line.expect("the data as its README says");
        logs.entry(line[log].to_owned()).or_default().push(Expected {
            kind: collective_log::kind_of(&line[kind]),
            ranks: line[ranks].parse().expect("the data as its README says"),
            size: line[size].parse().expect("the data as its README says"),
            count: line[count].parse().ok(),
            dtype: DType::parse(&line[dtype]),
            figures: figures.map(|placement| placement.map(|at| line[at].parse().ok())),
            uncertain: line[flag].contains("uncertain") || line[flag].contains("DO NOT USE"),
        });
    }
    logs
}

fn same_figures(timing: Option<&Timing>, want: [Option<f64>; 3]) -> bool {
    let rate = |rate: Option<f64>| rate.map(Bandwidth::from_gb_per_sec);
    timing.map_or([None; 3].map(rate) == want.map(rate), |timing| {
        want[0].map(Nanos::from_micros_f64) == Some(timing.time)
            && (timing.algbw, timing.busbw) == (rate(want[1]), rate(want[2]))
    })
}

fn logs(measured: &Path) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(measured.join("nccl_logs")).expect("the data as its README says");
    let mut logs: Vec<PathBuf> =
        entries.map(|entry| entry.expect("the data as its README says").path()).collect();
    logs.retain(|path| path.extension().is_some_and(|ending| ending == "log"));
    logs.sort();
    logs
}

#[test]
fn every_row_of_every_real_log_is_read() {
    let Some(measured) = data() else { return };
    let expected = expected(&measured);
    let (mut agree, mut total, mut other_tools) = (0, 0, 0);
    let mut disagreeing = Vec::new();
    for path in logs(&measured) {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read(&path).unwrap();
        assert_eq!(sniff(&text, &name), FileKind::CollectiveLog, "{name}");
        let (log, ledger) = collective_log::read(&path, &LogOptions::default()).unwrap();
        assert_eq!(ledger.count("row-lost"), 0, "{name}: {ledger:?}");
        if ["algbw-disagrees", "ranks-contradict"].iter().any(|code| ledger.count(code) > 0) {
            disagreeing.push(name.clone());
        }
        let rows = || log.runs.iter().flat_map(|run| run.rows.iter().map(move |row| (run, row)));
        let Some(want) = expected.get(&name) else {
            // The tables hold nccl-tests and rccl-tests only.
            assert!(name.starts_with("nccom") && rows().count() > 0, "{name}");
            other_tools += rows().count();
            continue;
        };
        assert_eq!(rows().count(), want.len(), "{name}");
        total += want.len();
        agree += rows().zip(want).filter(|((run, row), want)| same(run, row, want)).count();
    }
    println!("{agree} of {total} rows agree; {other_tools} rows of other tools read");
    assert_eq!(agree, total);
    // Its source says itself not to use it: the bandwidths belong to no number of ranks.
    assert_eq!(disagreeing, ["azure_gb300_72ranks_allreduce_excerpt"]);
}

fn same(run: &Run, row: &Row, want: &Expected) -> bool {
    // What others flagged has ranks that nobody is sure of.
    let ranks = run.ranks.as_ref().map(|known| known.value);
    (row.size.get(), row.count, run.dtype) == (want.size, want.count, want.dtype)
        && Some(run.kind.value) == want.kind
        && (want.uncertain || ranks == Some(want.ranks))
        && same_figures(row.out_of_place.as_ref(), want.figures[0])
        && same_figures(row.in_place.as_ref(), want.figures[1])
}
