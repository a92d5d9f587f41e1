//! Tables of jobs that shared a device.
//!
//! A table of pairs is comma-separated with a title line. Needed are `model_a`, `batch_a`,
//! `model_b`, `batch_b`, `gpu`, `slowdown_a` and `slowdown_b`; `flag`, `source`, `gpu_util_a` and
//! `gpu_util_b` (percent) are used where they are. Rows that a flag calls not measured or suspect
//! are left out; those clamped to the speed alone are kept apart.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use foretrain_core::{InputError, Result};
use foretrain_cost::interference::colocation::{JobLoad, Measured};

/// A job on a device: model and batch size, in hundredths; batchless jobs have 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Job {
    /// Model family.
    pub model: String,
    batch: i64,
}

/// One job of a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct PairRow {
    /// The device, as the table names it.
    pub gpu: String,
    /// The job whose slow-down it is.
    pub victim: Job,
    /// The one beside it.
    pub other: Job,
    /// Utilisation of the device by each alone, 0 to 1, where the table says.
    pub busy: [Option<f64>; 2],
    /// Time beside the other over time alone.
    pub slowdown: f64,
    /// Whether the measurement was cut off at the speed alone.
    pub clamped: bool,
    /// Line of the table.
    pub line: u64,
}

/// A table of pairs.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// One row per measured job.
    pub rows: Vec<PairRow>,
    /// Rows left out, by reason.
    pub left_out: BTreeMap<String, usize>,
}

/// Slow-downs outside this range are slips of a table.
const POSSIBLE: std::ops::RangeInclusive<f64> = 0.5..=100.0;

/// Tables beyond this size are refused: real ones have some hundred kB.
const LARGEST: u64 = 64 << 20;

/// The text of a table, packed by gzip if its name says so.
///
/// # Errors
/// If it cannot be read, or is larger than 64 MiB.
pub fn read_text(path: &Path) -> Result<String> {
    let failed = |error: std::io::Error| InputError::io(&error, path);
    let file = File::open(path).map_err(failed)?;
    let is_packed = path.extension().is_some_and(|ending| ending == "gz");
    let mut text = String::new();
    let read = if is_packed {
        MultiGzDecoder::new(file).take(LARGEST + 1).read_to_string(&mut text)
    } else {
        file.take(LARGEST + 1).read_to_string(&mut text)
    };
    if read.map_err(failed)? as u64 > LARGEST {
        return Err(InputError::new("the table is larger than 64 MiB").in_file(path));
    }
    Ok(text)
}

impl Job {
    /// A job of this model and batch size, `None` for models without one.
    pub fn new(model: impl Into<String>, batch: Option<f64>) -> Self {
        let batch = batch.filter(|batch| batch.is_finite()).unwrap_or(0.0);
        Self { model: model.into(), batch: (batch.clamp(0.0, 1e12) * 100.0).round() as i64 }
    }

    /// The batch size, 0 without one.
    pub fn batch(&self) -> f64 {
        self.batch as f64 / 100.0
    }
}

impl std::fmt::Display for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.batch {
            0 => write!(f, "{}", self.model),
            _ => write!(f, "{} (batch {})", self.model, self.batch()),
        }
    }
}

impl Pairs {
    /// Reads a table, of which only rows whose `source` begins with `source` are taken.
    ///
    /// # Errors
    /// If a column is missing or a figure is no number, with the line.
    pub fn read(text: &str, source: &str) -> Result<Self> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let titles = reader.headers().map_err(|error| bad_table(&error))?.clone();
        let column = |name: &str| titles.iter().position(|title| title.trim() == name);
        let needed = |name: &str| column(name).ok_or_else(|| missing(name));
        let sides = [Side::new("a", &needed, &column)?, Side::new("b", &needed, &column)?];
        let (gpu, flag, from) = (needed("gpu")?, column("flag"), column("source"));
        let mut pairs = Self::default();
        for row in reader.records() {
            let row = row.map_err(|error| bad_table(&error))?;
            let get = |at: usize| row.get(at).unwrap_or_default().trim();
            if !from.is_none_or(|at| get(at).starts_with(source)) {
                continue;
            }
            let line = row.position().map_or(0, csv::Position::line);
            let flag = flag.map_or("", get);
            let mut leave_out = |why: &str| *pairs.left_out.entry(why.to_owned()).or_insert(0) += 1;
            if flag.starts_with("not_") || flag.starts_with("suspect") {
                leave_out(flag.split('(').next().unwrap_or(flag));
                continue;
            }
            for (own, other) in [(0, 1), (1, 0)] {
                let (own, other) = (&sides[own], &sides[other]);
                let Some(slowdown) = number(get(own.slowdown), line)? else {
                    leave_out("one of the two was not measured");
                    continue;
                };
                if !POSSIBLE.contains(&slowdown) {
                    leave_out("no possible slow-down");
                    continue;
                }
                let job = |side: &Side| -> Result<Job> {
                    Ok(Job::new(get(side.model), number(get(side.batch), line)?))
                };
                let busy = |side: &Side| -> Result<Option<f64>> {
                    let percent = side.busy.map(|at| number(get(at), line)).transpose()?.flatten();
                    Ok(percent.map(|percent| (percent / 100.0).clamp(0.0, 1.0)))
                };
                pairs.rows.push(PairRow {
                    gpu: get(gpu).to_owned(),
                    victim: job(own)?,
                    other: job(other)?,
                    busy: [busy(own)?, busy(other)?],
                    slowdown,
                    clamped: flag.starts_with("clamped") && slowdown == 1.0,
                    line,
                });
            }
        }
        Ok(pairs)
    }
}

/// Columns of one side.
struct Side {
    model: usize,
    batch: usize,
    slowdown: usize,
    busy: Option<usize>,
}

impl Side {
    fn new(
        side: &str,
        needed: &impl Fn(&str) -> Result<usize>,
        column: &impl Fn(&str) -> Option<usize>,
    ) -> Result<Self> {
        Ok(Self {
            model: needed(&format!("model_{side}"))?,
            batch: needed(&format!("batch_{side}"))?,
            slowdown: needed(&format!("slowdown_{side}"))?,
            busy: column(&format!("gpu_util_{side}")),
        })
    }
}

impl PairRow {
    /// The row with the loads of both jobs; `None` if one is not known alone. A utilisation that
    /// the table states counts more than an estimate.
    pub fn measured(&self, loads: &BTreeMap<Job, JobLoad>) -> Option<Measured> {
        let load = |job: &Job, stated: Option<f64>| {
            let load = *loads.get(job)?;
            Some(JobLoad { busy: stated.unwrap_or(load.busy), ..load })
        };
        Some(Measured {
            victim: load(&self.victim, self.busy[0])?,
            other: load(&self.other, self.busy[1])?,
            slowdown: self.slowdown,
        })
    }
}

pub(super) fn number(text: &str, line: u64) -> Result<Option<f64>> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(Some(value)),
        _ => Err(InputError::new(format!("expected a number, found \"{text}\""))
            .at(format!("line {line}"))),
    }
}

pub(super) fn missing(name: &str) -> InputError {
    InputError::new(format!("the table has no column {name}"))
        .at("line 1")
        .hint("docs/interference.md says what the tables hold")
}

pub(super) fn bad_table(error: &csv::Error) -> InputError {
    InputError::new(format!("not a table of comma-separated values: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "model_a,batch_a,model_b,batch_b,gpu,slowdown_a,slowdown_b,gpu_util_a,flag\n\
        LM,5,A3C,,V100,1.5,2.5,40,\n\
        LM,5,LM,10,V100,0,0,40,not_runnable\n\
        LM,5,LM,20,V100,1.2,1.0,,clamped_to_isolated\n\
        LM,5,LM,40,V100,3.0,,,b_not_measured\n";

    #[test]
    fn each_measured_job_is_a_row_with_its_flags() {
        let pairs = Pairs::read(TABLE, "").expect("a table");
        let got: Vec<(String, f64, bool)> = pairs
            .rows
            .iter()
            .map(|row| (row.victim.to_string(), row.slowdown, row.clamped))
            .collect();
        let want = [
            ("LM (batch 5)", 1.5, false),
            ("A3C", 2.5, false),
            ("LM (batch 5)", 1.2, false),
            ("LM (batch 20)", 1.0, true),
            ("LM (batch 5)", 3.0, false),
        ];
        assert_eq!(got, want.map(|(name, slowdown, clamped)| (name.to_owned(), slowdown, clamped)));
        assert_eq!(pairs.rows[0].busy, [Some(0.4), None]);
        assert_eq!(pairs.rows[1].busy, [None, Some(0.4)]);
        assert_eq!(pairs.left_out.values().sum::<usize>(), 2);
    }

    #[test]
    fn damaged_tables_are_refused_with_their_line() {
        let error = Pairs::read(&TABLE.replace("1.5", "fast"), "").expect_err("no number");
        assert_eq!(error.place(), Some("line 2"));
        let error = Pairs::read(&TABLE.replace("slowdown_b", "b"), "").expect_err("no column");
        assert!(error.message().contains("slowdown_b"), "{error}");
    }
}
