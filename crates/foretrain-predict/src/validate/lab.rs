//! The lab's runs: what was set, what was recorded, what was measured.

use std::collections::BTreeMap;
use std::fs;

use foretrain_core::estimate::Z80;
use foretrain_core::{Bytes, InputError, Result};
use foretrain_rewrite::BucketCaps;

use super::measured::{place, reader, unreadable};
use super::roots::{Candidate, Root};

/// Settings that a run shares with the runs it can be compared with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Workload {
    pub(super) model: String,
    /// Share of a core that each rank has, as the file names spell it.
    pub(super) cpu_share: String,
}

/// A run of which there are recordings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RecordedRun {
    pub(super) workload: Workload,
    /// `plain` (one rank, no DDP) or `ddp`.
    pub(super) kind: String,
    pub(super) world: u32,
    /// Link rate in Mbit/s, `None` for a link without shaping.
    pub(super) mbit: Option<u32>,
    /// `bucket_cap_mb`, `None` if it was not passed.
    pub(super) bucket_mb: Option<u32>,
}

impl RecordedRun {
    /// Reads `MODEL_KIND_wWORLD_cCPU_bwBW_bBUCKET_rRANK.noet...`; also returns the rank.
    fn parse(name: &str) -> Option<(Self, u32)> {
        let stem = name.rsplit('/').next()?.split(".noet.").next()?;
        let mut parts = stem.rsplitn(7, '_');
        let mut number = |prefix: &str| parts.next()?.strip_prefix(prefix).map(str::to_owned);
        let rank = number("r")?.parse().ok()?;
        let bucket = number("b")?;
        let mbit: u32 = number("bw")?.parse().ok()?;
        let cpu_share = number("c")?;
        let world = number("w")?.parse().ok()?;
        let kind = parts.next()?.to_owned();
        let model = parts.next()?.to_owned();
        let workload = Workload { model, cpu_share: share(&cpu_share)? };
        let mbit = (mbit > 0).then_some(mbit);
        let bucket_mb = bucket.parse().ok().filter(|&mb| mb > 0);
        Some((Self { workload, kind, world, mbit, bucket_mb }, rank))
    }
}

/// Recordings of runs of which every rank is there, in order of rank.
pub(super) fn recorded_runs<'a>(
    files: impl Iterator<Item = &'a Candidate>,
) -> Vec<(RecordedRun, Vec<&'a Candidate>)> {
    let mut runs: BTreeMap<RecordedRun, Vec<(u32, &Candidate)>> = BTreeMap::new();
    for file in files {
        if let Some((run, rank)) = RecordedRun::parse(&file.name) {
            runs.entry(run).or_default().push((rank, file));
        }
    }
    runs.into_iter()
        .filter_map(|(run, mut ranks)| {
            ranks.sort_by_key(|(rank, _)| *rank);
            let whole = ranks.iter().map(|(rank, _)| *rank).eq(0..run.world);
            whole.then(|| (run, ranks.into_iter().map(|(_, file)| file).collect()))
        })
        .collect()
}

/// One row of the table of un-profiled step times.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MeasuredRun {
    pub(super) workload: Workload,
    pub(super) kind: String,
    pub(super) world: u32,
    pub(super) batch: u32,
    /// Link rate in Mbit/s, `None` for a link without shaping.
    pub(super) mbit: Option<u32>,
    /// `bucket_cap_mb` as given: `default` if it was not passed, empty without DDP.
    pub(super) bucket: String,
    /// Median step of rank 0 in milliseconds.
    pub(super) step_ms: f64,
    /// Relative standard deviation of its steps, from their 10 % and 90 % quantiles.
    pub(super) spread: Option<f64>,
    /// DDP's buckets in launch order; empty without DDP.
    pub(super) buckets: Vec<Bytes>,
}

impl MeasuredRun {
    /// When its buckets closed.
    pub(super) fn bucket_caps(&self) -> BucketCaps {
        match self.bucket.parse() {
            Ok(mib) => BucketCaps::uniform(Bytes::from_mib(mib)),
            Err(_) => BucketCaps::default(),
        }
    }

    /// What was set, as words for tables.
    pub(super) fn describe(&self) -> String {
        let link = self.mbit.map_or_else(|| "unshaped".into(), |m| format!("{m} Mbit/s"));
        format!("{} ranks, {link}, bucket_cap_mb {}", self.world, self.bucket)
    }
}

/// The table under a root; `None` if it has none.
///
/// # Errors
/// If it cannot be read or a row does not say what was run.
pub(super) fn measured_runs(root: &Root) -> Result<Option<Vec<MeasuredRun>>> {
    let Some(path) = root.file(&["lab/ground_truth.csv", "ground_truth.csv"]) else {
        return Ok(None);
    };
    let text = fs::read_to_string(&path).map_err(|error| InputError::io(&error, &path))?;
    parse(&text).map(Some).map_err(|error| error.in_file(&path))
}

fn parse(text: &str) -> Result<Vec<MeasuredRun>> {
    let mut reader = reader(text);
    let header = reader.headers().map_err(|error| unreadable(&error))?.clone();
    reader
        .records()
        .map(|row| {
            let row = row.map_err(|error| unreadable(&error))?;
            let get = |name: &str| row.get(header.iter().position(|field| field == name)?);
            let whole = |name: &str| get(name)?.parse().ok();
            let time = |name: &str| get(name)?.parse::<f64>().ok();
            let spread = || {
                let spread = (time("p90")? - time("p10")?) / (2.0 * Z80 * time("median_step_ms")?);
                (spread.is_finite() && spread >= 0.0).then_some(spread)
            };
            let buckets = get("bucket_bytes").unwrap_or_default().split('|');
            let read = || -> Option<MeasuredRun> {
                Some(MeasuredRun {
                    workload: Workload {
                        model: get("model")?.to_owned(),
                        cpu_share: share(get("cpu_share")?)?,
                    },
                    kind: get("kind")?.to_owned(),
                    world: whole("world")?,
                    batch: whole("batch")?,
                    mbit: whole("bw_mbit"),
                    bucket: get("bucket_mb")?.to_owned(),
                    step_ms: time("median_step_ms")?,
                    spread: spread(),
                    buckets: buckets.filter_map(|b| b.parse().ok()).map(Bytes::new).collect(),
                })
            };
            read().ok_or_else(|| {
                InputError::new(
                    "a row needs model, cpu_share, kind, world, batch, bw_mbit, bucket_mb and median_step_ms",
                )
                .at(place(&row))
            })
        })
        .collect()
}

/// "1" and "1.0" are one share.
fn share(text: &str) -> Option<String> {
    let share: f64 = text.parse().ok()?;
    (share.is_finite() && share > 0.0).then(|| share.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_tell_what_was_set() {
        let (run, rank) =
            RecordedRun::parse("lab/traces/gpt_ddp_w4_c0.25_bw200_b25_r3.noet.pt.trace.json.gz")
                .expect("named by the scheme");
        assert_eq!((run.workload.model.as_str(), run.workload.cpu_share.as_str()), ("gpt", "0.25"));
        assert_eq!((run.kind.as_str(), run.world, rank), ("ddp", 4, 3));
        assert_eq!((run.mbit, run.bucket_mb), (Some(200), Some(25)));
        let (run, _) = RecordedRun::parse("rec_plain_w1_c1_bw0_b0_r0.noet.x").expect("named");
        assert_eq!((run.mbit, run.bucket_mb), (None, None));
        assert_eq!(RecordedRun::parse("lab/traces/pp_gpt_1f1b_m4_w2_c1_bw0_r0.noet.x"), None);
    }

    #[test]
    fn only_whole_runs_count() {
        let names = ["m_ddp_w2_c1_bw50_b1_r1.noet.x", "m_ddp_w2_c1_bw50_b1_r0.noet.x"];
        let file = |name: &&str| Candidate { name: (*name).into(), path: name.into() };
        let both: Vec<Candidate> = names.iter().map(file).collect();
        let runs = recorded_runs(both.iter());
        assert_eq!(runs.len(), 1);
        assert!(runs[0].1[0].name.contains("_r0"));
        assert!(recorded_runs(both[..1].iter()).is_empty());
    }

    #[test]
    fn damaged_tables_are_refused_with_their_line() {
        let head = "model,world,bw_mbit,bucket_mb,batch,median_step_ms,cpu_share,kind";
        let more = format!("{head},p10,p90,bucket_bytes");
        let good = format!("{more}\ngpt,2,inf,default,4,61.5,1.0,ddp,60,64,3072|1024\n");
        let good = parse(&good).expect("table");
        assert_eq!((good[0].mbit, good[0].step_ms), (None, 61.5));
        assert_eq!(good[0].buckets, [Bytes::new(3072), Bytes::new(1024)]);
        assert!((good[0].spread.expect("quantiles") - 4.0 / 61.5 / 2.5631).abs() < 1e-4);
        assert_eq!(good[0].workload.cpu_share, "1");
        let error = parse(&format!("{head}\ngpt,two,inf,25,4,61.5,1.0,ddp\n")).expect_err("bad");
        assert_eq!(error.place(), Some("line 2"));
    }
}
