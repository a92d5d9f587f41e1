//! Tables of kernels and collectives that ran alone and beside each other, as `python -m
//! foretrain.capture.comm` measures them.
//!
//! Comma-separated with a title line; lines that begin with `#` are comments. Needed are `kernel`
//! (`gemm`, `elementwise` ...), `kernel_us`, `kernel_beside_us`, `op`, `world`, `bytes`, `comm_us`,
//! `comm_beside_us` and `device`; `kernel_bytes`, what a kernel reads and writes, is used where it is.

use std::collections::BTreeMap;

use foretrain_core::stats::median;
use foretrain_core::units::significant;
use foretrain_core::{Bytes, InputError, Nanos, Result};
use foretrain_cost::KernelClass;
use foretrain_cost::interference::{DeviceLimits, KernelLoad, OverlapSample, TransferLoad};
use foretrain_hardware::Catalogue;
use foretrain_ingest::collective_log::kind_of;

use super::loads::device_limits;
use super::samples::{Sample, Samples};

/// Slow-downs outside this range are slips of a table.
const POSSIBLE: std::ops::RangeInclusive<f64> = 0.5..=100.0;
/// Microseconds that are believed: an hour at most.
const LONGEST_US: f64 = 3.6e9;

/// Whether a text is such a table, by its titles.
pub fn is_table(text: &str) -> bool {
    let titles = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    titles.is_some_and(|titles| {
        let has = |name: &str| titles.split(',').any(|title| title.trim() == name);
        has("kernel_us") && has("kernel_beside_us")
    })
}

/// The samples of a table. Rows that cannot be used are counted in the notes.
///
/// # Errors
/// If a column is missing, a figure is no number, or everything was measured on processors, whose
/// kernels are no kernels of a device.
pub fn read_samples(text: &str, source: &str, catalogue: &Catalogue) -> Result<Samples> {
    let mut reader =
        csv::ReaderBuilder::new().comment(Some(b'#')).flexible(true).from_reader(text.as_bytes());
    let titles = reader.headers().map_err(|error| unreadable(&error))?.clone();
    let columns = Columns::of(&titles)?;
    let mut found = Samples { source: source.to_owned(), ..Samples::default() };
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    let mut numbers: BTreeMap<(String, u64), usize> = BTreeMap::new();
    let mut transfers = Vec::new();
    let (mut rows, mut on_processors) = (0_usize, 0_usize);
    for row in reader.records() {
        let row = row.map_err(|error| unreadable(&error))?;
        let row = columns.row(&row)?;
        rows += 1;
        if row.device.eq_ignore_ascii_case("cpu") {
            on_processors += 1;
            continue;
        }
        match row.sample(catalogue, &mut numbers) {
            Ok(sample) => {
                transfers.push(row.comm_beside / row.comm);
                found.samples.push(sample);
            }
            Err(why) => *left_out.entry(why.to_owned()).or_insert(0) += 1,
        }
    }
    if rows > 0 && on_processors == rows {
        let error = InputError::new("the table was measured on processors");
        return Err(error.hint(
            "there communication takes processor time from computing, which `foretrain predict \
             --cores` tells; calibrate from a table of GPUs",
        ));
    }
    let notes = left_out.into_iter().map(|(why, count)| format!("{count} rows left out: {why}"));
    found.notes.extend(notes);
    if let Some(usual) = median(&transfers) {
        found.notes.push(format!(
            "transfers beside the kernels took {} times as long as alone (median of {} rows), to \
             which nothing is fitted",
            significant(usual, 3),
            transfers.len()
        ));
    }
    Ok(found)
}

/// Where the columns are.
struct Columns {
    kernel: usize,
    kernel_bytes: Option<usize>,
    op: usize,
    device: usize,
    world: usize,
    bytes: usize,
    /// Kernel and collective, alone and beside.
    times: [usize; 4],
}

/// A row; times in microseconds.
struct Row {
    line: u64,
    kernel: String,
    kernel_bytes: Option<f64>,
    alone: f64,
    beside: f64,
    op: String,
    world: f64,
    bytes: f64,
    comm: f64,
    comm_beside: f64,
    device: String,
}

impl Columns {
    fn of(titles: &csv::StringRecord) -> Result<Self> {
        let at = |name: &str| titles.iter().position(|title| title.trim() == name);
        let needed = |name: &str| {
            at(name).ok_or_else(|| {
                InputError::new(format!("the table has no column {name:?}"))
                    .hint("`python -m foretrain.capture.comm` writes such tables")
            })
        };
        Ok(Self {
            kernel: needed("kernel")?,
            kernel_bytes: at("kernel_bytes"),
            op: needed("op")?,
            device: needed("device")?,
            world: needed("world")?,
            bytes: needed("bytes")?,
            times: [
                needed("kernel_us")?,
                needed("kernel_beside_us")?,
                needed("comm_us")?,
                needed("comm_beside_us")?,
            ],
        })
    }

    fn row(&self, row: &csv::StringRecord) -> Result<Row> {
        let line = row.position().map_or(0, csv::Position::line);
        let get = |at: usize| row.get(at).unwrap_or_default().trim();
        let figure = |at: usize, most: f64| {
            let value: Option<f64> = get(at).parse().ok();
            value.filter(|value| (0.0..=most).contains(value)).ok_or_else(|| {
                InputError::new(format!("{:?} is no figure that can be", get(at)))
                    .at(format!("line {line}"))
            })
        };
        let [alone, beside, comm, comm_beside] = self.times.map(|at| figure(at, LONGEST_US));
        let kernel_bytes = self.kernel_bytes.filter(|&at| !get(at).is_empty());
        Ok(Row {
            line,
            kernel: get(self.kernel).to_owned(),
            kernel_bytes: kernel_bytes.map(|at| figure(at, 1e15)).transpose()?,
            alone: alone?,
            beside: beside?,
            op: get(self.op).to_owned(),
            world: figure(self.world, 1e6)?,
            bytes: figure(self.bytes, 1e15)?,
            comm: comm?,
            comm_beside: comm_beside?,
            device: get(self.device).to_owned(),
        })
    }
}

impl Row {
    fn sample(
        &self,
        catalogue: &Catalogue,
        numbers: &mut BTreeMap<(String, u64), usize>,
    ) -> std::result::Result<Sample, &'static str> {
        let slowdown = self.beside / self.alone;
        if !POSSIBLE.contains(&slowdown) || self.comm <= 0.0 {
            return Err("no possible slow-down");
        }
        let kind = kind_of(&self.op).ok_or("no known operation")?;
        let class = [
            KernelClass::Gemm,
            KernelClass::Convolution,
            KernelClass::Attention,
            KernelClass::Elementwise,
            KernelClass::Reduction,
            KernelClass::Indexing,
            KernelClass::Copy,
        ]
        .into_iter()
        .find(|class| class.as_str() == self.kernel)
        .ok_or("no known kind of kernel")?;
        let next = numbers.len();
        let same = (self.kernel.clone(), self.kernel_bytes.unwrap_or(0.0) as u64);
        let kernel = *numbers.entry(same).or_insert(next);
        let device = device_limits(catalogue.device_by_product_name(&self.device));
        Ok(Sample {
            what: format!("line {}: {} beside {}", self.line, self.kernel, self.op),
            kernel,
            overlap: self.overlap(class, kind, device),
        })
    }

    fn overlap(
        &self,
        class: KernelClass,
        kind: foretrain_graph::CollectiveKind,
        device: DeviceLimits,
    ) -> OverlapSample {
        let micros = |us: f64| Nanos::from_nanos_f64(us * 1e3);
        OverlapSample {
            device,
            kernel: KernelLoad {
                alone: micros(self.alone),
                class,
                blocks: 0,
                threads: 0,
                bandwidth: self.kernel_bytes.map(|bytes| bytes / (self.alone * 1e-6)),
            },
            beside: TransferLoad {
                transfer: micros(self.comm),
                kind,
                bytes: Some(Bytes::from_f64(self.bytes)),
                ranks: self.world as u32,
                channels: 0,
                moving: 1.0,
            },
            overlapped: 1.0,
            recorded: micros(self.beside),
        }
    }
}

fn unreadable(error: &csv::Error) -> InputError {
    InputError::new(format!("the table cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::calibrate::calibrate_overlap;
    use super::*;

    const TITLES: &str = "kernel,kernel_bytes,kernel_us,kernel_beside_us,op,world,bytes,comm_us,\
                          comm_beside_us,device,n\n";

    fn read(rows: &str) -> Result<Samples> {
        let text = format!("# nccl on a GPU\n{TITLES}{rows}");
        assert!(is_table(&text));
        read_samples(&text, "interference.csv", Catalogue::builtin())
    }

    #[test]
    fn rows_become_samples_that_a_model_is_fitted_to() {
        let gpu = "NVIDIA A100-SXM4-80GB";
        let rows = format!(
            "gemm,12582912,100,130,all_reduce,8,67108864,900,990,{gpu},50\n\
             elementwise,50331648,40,44,all_gather,8,67108864,500,550,{gpu},50\n\
             gemm,12582912,100,120,all_gather,8,67108864,500,600,{gpu},50\n"
        );
        let found = read(&rows).unwrap();
        let kernels: Vec<usize> = found.samples.iter().map(|sample| sample.kernel).collect();
        assert_eq!(kernels, [0, 1, 0]);
        let first = &found.samples[0].overlap;
        assert!((first.slowdown() - 1.3).abs() < 1e-9);
        assert!(first.device.multiprocessors == 108 && first.beside.ranks == 8, "{first:?}");
        assert!((first.kernel.bandwidth.unwrap() / 1.258e11 - 1.0).abs() < 1e-2);
        assert!(found.notes[0].contains("1.10 times as long"), "{:?}", found.notes);
        let fitted = calibrate_overlap(&[found], "none").unwrap();
        assert_eq!(fitted.domain, "kernels beside communication");
        assert!(fitted.file.text().contains("interference.csv"));
    }

    #[test]
    fn what_cannot_be_used_is_told() {
        let bad =
            read("gemm,1,100,9e5,all_reduce,2,8,1,1,X,1\nknitting,1,1,1,all_reduce,2,8,1,1,X,1\n");
        let notes = bad.unwrap().notes.join("; ");
        assert!(notes.contains("1 rows left out: no possible slow-down"), "{notes}");
        assert!(notes.contains("1 rows left out: no known kind of kernel"), "{notes}");
        let error = read("gemm,1,x,1,all_reduce,2,8,1,1,X,1\n").unwrap_err();
        assert_eq!(error.place(), Some("line 3"));
        let error = read("gemm,1,1,1,all_reduce,2,8,1,1,cpu,1\n").unwrap_err();
        assert!(error.hints()[0].contains("--cores"), "{error}");
        let short = "kernel,kernel_us,kernel_beside_us\n";
        let error = read_samples(short, "x", Catalogue::builtin()).unwrap_err();
        assert!(error.message().contains("no column \"op\""), "{error}");
        assert!(!is_table("model_a,batch_a\n") && !is_table(""));
    }

    proptest! {
        #[test]
        fn no_rows_make_it_panic(rows in "((gemm|copy|x)?,([-0-9.e]{0,5},){3}(all_reduce|x)?,([0-9]{0,3},){4}[a-z]{0,3},?\n){0,8}") {
            let _ = read(&rows);
        }
    }
}
