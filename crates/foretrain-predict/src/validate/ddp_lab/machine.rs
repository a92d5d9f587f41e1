//! What was measured of the lab's machine, apart from the runs that are predicted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::sync::Arc;

use foretrain_core::stats::median;
use foretrain_core::{Bandwidth, Bytes, InputError, Result};
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_ingest::collective_log::{LogOptions, read_bytes};

use super::super::extrapolate::lab_cluster;
use super::super::lab::MeasuredRun;
use super::super::measured::{place, reader, unreadable};
use super::super::roots::Root;
use crate::collectives::calibrate::{CalibrateOptions, calibrate_collectives};

/// A rate that no process of the lab reaches, in Mbit/s, for links without shaping.
const UNSHAPED: u32 = 100_000;

/// Link rate (`None` without shaping) and share of a core.
type Setting = (Option<u32>, String);

/// The machine's all-reduce times, as one benchmark table per setting.
pub(super) struct Machine {
    tables: BTreeMap<Setting, String>,
}

impl Machine {
    /// The table under a root; `None` if it has none.
    pub(super) fn read(root: &Root) -> Result<Option<Self>> {
        let Some(path) = root.file(&["lab/allreduce.csv", "allreduce.csv"]) else {
            return Ok(None);
        };
        let text = fs::read_to_string(&path).map_err(|error| InputError::io(&error, &path))?;
        Self::parse(&text).map(Some).map_err(|error| error.in_file(&path))
    }

    /// Of two times per size the one without barriers between calls is taken, which is how
    /// collective benchmarks measure.
    fn parse(text: &str) -> Result<Self> {
        let mut reader = reader(text);
        let header = reader.headers().map_err(|error| unreadable(&error))?.clone();
        let mut tables: BTreeMap<Setting, String> = BTreeMap::new();
        for row in reader.records() {
            let row = row.map_err(|error| unreadable(&error))?;
            let get = |name: &str| row.get(header.iter().position(|field| field == name)?);
            if get("op") != Some("allreduce") {
                continue;
            }
            let read = || {
                let share: f64 = get("cpu_share")?.parse().ok()?;
                let setting = (get("bw_mbit")?.parse().ok(), share.to_string());
                Some((setting, get("world")?, get("bytes")?, get("back2back_us")?))
            };
            let (setting, world, bytes, time) = read().ok_or_else(|| {
                let needed = "a row needs world, bw_mbit, bytes, back2back_us, cpu_share and op";
                InputError::new(needed).at(place(&row))
            })?;
            let table = tables.entry(setting).or_insert_with(|| "world,bytes,time_us,op\n".into());
            let _ = writeln!(table, "{world},{bytes},{time},allreduce");
        }
        Ok(Self { tables })
    }

    /// The lab with one process per node at this setting, calibrated as `foretrain calibrate
    /// collectives` does from the part of the table that was measured there.
    pub(super) fn cluster(&self, mbit: Option<u32>, share: &str) -> Result<(Catalogue, Cluster)> {
        let Some(table) = self.tables.get(&(mbit, share.to_owned())) else {
            return Err(InputError::new("no all-reduce was measured at this setting"));
        };
        let (catalogue, mut cluster) = lab_cluster(mbit.unwrap_or(UNSHAPED))?;
        let options = LogOptions::default();
        let (log, _) = read_bytes(table.as_bytes(), "allreduce.csv", &options)?;
        let answer =
            calibrate_collectives(&cluster, &catalogue, &[log], &CalibrateOptions::default())?;
        cluster.collectives = Some(Arc::new(answer.file.calibration));
        Ok((catalogue, cluster))
    }
}

/// Gradient bytes over the time of copying them into buckets and back on a whole core: steps of one
/// process under DDP less those without, median over bucket sizes. Where a model's own difference
/// drowns in noise the other models stand in.
pub(super) fn copy_rate(measured: &[MeasuredRun], model: &str) -> Option<Bandwidth> {
    let rate = |is_asked: &dyn Fn(&str) -> bool| {
        let usual = median(&seconds_per_byte(measured, is_asked))?;
        (usual > 0.0 && usual.is_finite()).then(|| Bandwidth::from_bytes_per_sec(1.0 / usual))
    };
    rate(&|other| other == model).or_else(|| rate(&|other| other != model))
}

fn seconds_per_byte(measured: &[MeasuredRun], is_asked: &dyn Fn(&str) -> bool) -> Vec<f64> {
    let alone = |run: &&MeasuredRun| {
        run.world == 1 && run.workload.cpu_share == "1" && is_asked(&run.workload.model)
    };
    let under_ddp = measured.iter().filter(alone).filter(|run| run.kind == "ddp");
    let per_byte = under_ddp.filter_map(|ddp| {
        let without = |run: &&MeasuredRun| run.kind == "plain" && run.workload == ddp.workload;
        let plain = measured.iter().filter(alone).find(without)?;
        let bytes: Bytes = ddp.buckets.iter().copied().sum();
        Some((ddp.step_ms - plain.step_ms) * 1e-3 / bytes.as_f64())
    });
    per_byte.collect()
}

/// Buffers of the lab's models, which its script registers: running statistics of 15 batch
/// normalisations over 1,120 channels with a count each, and a table of 2 x 36 indices.
pub(super) fn buffer_bytes(model: &str) -> Option<Bytes> {
    match model {
        "resnet" => Some(Bytes::new(1_120 * 2 * 4 + 15 * 8)),
        "rec" => Some(Bytes::new(2 * 36 * 8)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use foretrain_cost::{CollectiveCall, Fabric, GroupPlacement, collective_time};
    use foretrain_graph::CollectiveKind;

    use super::super::super::lab::Workload;
    use super::*;

    const TABLE: &str = "world,bw_mbit,bytes,time_us,p10,p90,back2back_us,n,cpu_share,op
2,200,1048576,44360,43252,47050,44778,23,1.0,allreduce
2,200,4194304,179065,178367,179641,178844,5,1.0,allreduce
2,200,4194304,178805,178605,179344,179997,5,1.0,allreduce_x4
2,inf,4194304,4171,2958,6890,5332,30,0.5,allreduce
";

    fn alone(model: &str, kind: &str, step_ms: f64, gradients: u64) -> MeasuredRun {
        let workload = Workload { model: model.into(), cpu_share: "1".into() };
        MeasuredRun {
            workload,
            kind: kind.into(),
            world: 1,
            batch: 4,
            mbit: None,
            bucket: "25".into(),
            step_ms,
            spread: None,
            buckets: (gradients > 0).then(|| Bytes::new(gradients)).into_iter().collect(),
        }
    }

    #[test]
    fn copies_show_where_one_process_runs_under_ddp() {
        let measured = [
            alone("a", "plain", 10.0, 0),
            alone("a", "ddp", 12.0, 4_000_000),
            alone("b", "plain", 10.0, 0),
            alone("b", "ddp", 9.5, 4_000_000),
        ];
        let two = Some(Bandwidth::from_gb_per_sec(2.0));
        let close = |rate: Option<Bandwidth>| {
            rate.zip(two).is_some_and(|(a, b)| (a.get() / b.get() - 1.0).abs() < 1e-9)
        };
        assert!(close(copy_rate(&measured, "a")));
        assert!(close(copy_rate(&measured, "b")), "its own difference is noise");
        assert_eq!(copy_rate(&measured[2..], "b"), None);
    }

    #[test]
    fn measured_times_come_back_at_their_own_setting_only() {
        let machine = Machine::parse(TABLE).expect("a table");
        let (_, cluster) = machine.cluster(Some(200), "1").expect("measured");
        let fabric = Fabric::for_group(&cluster, &GroupPlacement::contiguous(2)).expect("fits");
        let call = CollectiveCall::new(CollectiveKind::AllReduce, Bytes::from_mib(4));
        let time = collective_time(&call, &fabric).time.value.millis_f64();
        assert!((time / 178.844 - 1.0).abs() < 0.005, "{time}");
        assert!(machine.cluster(Some(200), "0.5").is_err());
        assert!(machine.cluster(None, "0.5").is_ok());
        let cut = Machine::parse(&TABLE.replace("44778,23,1.0", "44778,23,"));
        assert_eq!(
            cut.err().and_then(|error| error.place().map(str::to_owned)).as_deref(),
            Some("line 2")
        );
    }
}
