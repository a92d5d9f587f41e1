//! Reading the validation data where it lies.
#![expect(dead_code, reason = "each test and example uses its own part")]
#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use std::io::Read;
use std::path::{Path, PathBuf};

use foretrain_core::{Bytes, Estimate, Nanos};
use foretrain_cost::{CollectiveCall, Fabric, GroupPlacement, collective_time};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::Catalogue;

/// The data directory, or `None` after saying that the test is skipped.
pub(crate) fn data_dir() -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let dir = std::env::var_os("FORETRAIN_DATA").map_or(default, PathBuf::from);
    if dir.is_dir() {
        return Some(dir);
    }
    println!("skipped: no validation data at {} (set FORETRAIN_DATA)", dir.display());
    None
}

/// One row of an nccl-tests log.
pub(crate) struct Row {
    pub(crate) log: String,
    pub(crate) kind: CollectiveKind,
    pub(crate) ranks: u32,
    pub(crate) bytes: u64,
    pub(crate) time_us: f64,
}

/// Logs whose machine is in the catalogue, by prefix.
const MACHINES: &[(&str, &str)] = &[
    ("echo_azure_a100_40g", "azure-ndv4"),
    ("superbench_a100_40g", "azure-ndv4"),
    ("nvidia_dgxh100_1node", "dgx-h100"),
    ("amd_aac10_mi300x", "mi300x-8"),
    ("aws_p5_", "aws-p5"),
    ("amd_aac8_mi300x", "mi300x-8"),
];

impl Row {
    /// Prediction and measurement; `None` for a machine that is not in the catalogue.
    pub(crate) fn score(&self) -> Option<(Estimate<Nanos>, Nanos)> {
        let (_, machine) = MACHINES.iter().find(|(log, _)| self.log.starts_with(log))?;
        let cluster = Catalogue::builtin().cluster(machine).ok()?;
        let fabric = Fabric::for_group(&cluster, &GroupPlacement::contiguous(self.ranks)).ok()?;
        let call = CollectiveCall::new(self.kind, Bytes::new(self.bytes));
        Some((collective_time(&call, &fabric).time, Nanos::from_micros_f64(self.time_us)))
    }
}

/// Every row of at least 1 KiB and two ranks, with the better of in and out of place.
pub(crate) fn nccl_tests_rows(dir: &Path) -> Vec<Row> {
    let path = dir.join("measured/collectives_nccl_tests.csv.gz");
    let mut text = String::new();
    let file = std::fs::File::open(&path).expect("the data directory has its tables");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip text");
    let mut table = csv::Reader::from_reader(text.as_bytes());
    let header = table.headers().expect("a header").clone();
    let column = |name: &str| header.iter().position(|h| h == name).expect("a known column");
    let (log, kind, ranks) = (column("log_id"), column("collective"), column("n_ranks"));
    let (bytes, out, inplace) = (column("size_bytes"), column("oop_time_us"), column("ip_time_us"));
    let row = |f: csv::StringRecord| {
        let time = |i: usize| f[i].parse::<f64>().ok().filter(|t| *t > 0.0);
        Some(Row {
            log: f[log].to_owned(),
            kind: match &f[kind] {
                "all_reduce" => CollectiveKind::AllReduce,
                "all_gather" => CollectiveKind::AllGather,
                "reduce_scatter" => CollectiveKind::ReduceScatter,
                "alltoall" => CollectiveKind::AllToAll,
                "broadcast" => CollectiveKind::Broadcast,
                "reduce" => CollectiveKind::Reduce,
                "sendrecv" => CollectiveKind::SendRecv,
                _ => return None,
            },
            ranks: f[ranks].parse().ok().filter(|r| *r > 1)?,
            bytes: f[bytes].parse().ok().filter(|b| *b >= 1024)?,
            time_us: match (time(out), time(inplace)) {
                (Some(a), Some(b)) => a.min(b),
                (a, b) => a.or(b)?,
            },
        })
    };
    table
        .into_records()
        .map(|record| record.expect("the data as its README says"))
        .filter_map(row)
        .collect()
}

/// One all-reduce of Gloo.
pub(crate) struct LabRow {
    pub(crate) ranks: u32,
    /// `None` without a shaper.
    pub(crate) mbit: Option<f64>,
    pub(crate) bytes: u64,
    pub(crate) time_us: f64,
}

/// The plain all-reduces of our lab.
pub(crate) fn lab_rows(dir: &Path) -> Vec<LabRow> {
    let text = std::fs::read_to_string(dir.join("lab/allreduce.csv")).expect("lab/allreduce.csv");
    let row = |f: csv::StringRecord| {
        (f.iter().next_back()? == "allreduce").then_some(())?;
        Some(LabRow {
            ranks: f[0].parse().ok()?,
            mbit: f[1].parse().ok().filter(|m: &f64| m.is_finite()),
            bytes: f[2].parse().ok()?,
            time_us: f[3].parse().ok()?,
        })
    };
    csv::Reader::from_reader(text.as_bytes())
        .into_records()
        .map(|record| record.expect("the data as its README says"))
        .filter_map(row)
        .collect()
}

/// Errors of predictions.
#[derive(Default)]
pub(crate) struct Score {
    errors: Vec<f64>,
    covered: usize,
}

impl Score {
    pub(crate) fn len(&self) -> usize {
        self.errors.len()
    }
    pub(crate) fn mape(&self) -> f64 {
        self.errors.iter().map(|e| e.abs()).sum::<f64>() / self.errors.len().max(1) as f64
    }
    pub(crate) fn bias(&self) -> f64 {
        self.errors.iter().sum::<f64>() / self.errors.len().max(1) as f64
    }
    pub(crate) fn median(&self) -> f64 {
        let mut all: Vec<f64> = self.errors.iter().map(|e| e.abs()).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    }
    pub(crate) fn worst(&self) -> f64 {
        self.errors.iter().map(|e| e.abs()).fold(0.0, f64::max)
    }
    pub(crate) fn coverage(&self) -> f64 {
        self.covered as f64 / self.errors.len().max(1) as f64
    }
}

impl FromIterator<(Estimate<Nanos>, Nanos)> for Score {
    fn from_iter<I: IntoIterator<Item = (Estimate<Nanos>, Nanos)>>(rows: I) -> Self {
        let mut score = Self::default();
        for (predicted, actual) in rows {
            let (p, a) = (predicted.value.micros_f64(), actual.micros_f64());
            score.errors.push((p - a) / a);
            score.covered += usize::from(predicted.covers(actual));
        }
        score
    }
}
