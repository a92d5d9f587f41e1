//! From logs to observations.

use foretrain_cost::{CollectiveCall, Observation};
use foretrain_graph::CollectiveKind;
use foretrain_ingest::collective_log::{CollectiveLog, Run, Timing};

use super::super::runs::{Machine, OtherDevice, fastest, no_hosts, other_device, placed};
use super::super::setting::Place;

/// A run that took part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedRun {
    /// The log.
    pub source: String,
    /// First and last line of the run's table.
    pub lines: (u64, u64),
    /// Which operation.
    pub kind: CollectiveKind,
    /// Ranks.
    pub ranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// Rows of it that count.
    pub rows: usize,
    /// What a reader should know of this run.
    pub notes: Vec<String>,
}

/// Rows that took no part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOutRows {
    /// The log.
    pub source: String,
    /// First and last line that they are on.
    pub lines: (u64, u64),
    /// How many.
    pub rows: usize,
    /// Why, a lowercase fragment.
    pub why: String,
}

#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) observations: Vec<Observation>,
    pub(super) used: Vec<UsedRun>,
    pub(super) left_out: Vec<LeftOutRows>,
}

pub(super) fn rows(machine: &Machine<'_>, logs: &[CollectiveLog]) -> Rows {
    let mut rows = Rows::default();
    for log in logs {
        for run in &log.runs {
            match placed(machine, run).and_then(|place| Ok((place, device(machine, run)?))) {
                Ok((place, note)) => rows.add(&log.source, run, &place, note),
                Err(why) => rows.left_out.push(LeftOutRows {
                    source: log.source.clone(),
                    lines: run.lines,
                    rows: run.rows.len(),
                    why,
                }),
            }
        }
        if log.runs.is_empty() {
            rows.left_out.push(LeftOutRows {
                source: log.source.clone(),
                lines: (0, 0),
                rows: 0,
                why: "it has no table with times".into(),
            });
        }
    }
    rows
}

/// A note on another device of the cluster's make; other makes are refused.
fn device(machine: &Machine<'_>, run: &Run) -> Result<Option<String>, String> {
    let Some(OtherDevice { device, named }) = other_device(machine, run) else { return Ok(None) };
    let here = &machine.cluster.node.device;
    let same_make = (&device.vendor, &device.architecture) == (&here.vendor, &here.architecture);
    if same_make {
        Ok(Some(format!("measured on {named}, taken for {}", here.name)))
    } else {
        Err(format!("it was measured on {named}, but {} has {}", machine.cluster.name, here.name))
    }
}

impl Rows {
    fn add(&mut self, source: &str, run: &Run, place: &Place, device: Option<String>) {
        let before = self.observations.len();
        let mut refused: Vec<(&str, u64)> = Vec::new();
        for row in &run.rows {
            let call = CollectiveCall {
                dtype: run.dtype,
                ..CollectiveCall::new(run.kind.value, row.size)
            };
            let right = |timing: &Timing| !timing.is_wrong();
            let observed = match fastest(row, right) {
                _ if row.size.get() == 0 => Err("no data was moved"),
                None if fastest(row, |_| true).is_some() => {
                    Err("the benchmark found its results wrong")
                }
                None => Err("no time above zero"),
                Some(time) => Observation::new(call, place.fabric.clone(), time)
                    .map(|observed| observed.with_processor(row.processor))
                    .ok_or("the operation has no bandwidth to fit"),
            };
            match observed {
                Ok(observation) => self.observations.push(observation),
                Err(why) => refused.push((why, row.line)),
            }
        }
        self.refuse(source, refused);
        let count = self.observations.len() - before;
        if count == 0 {
            return;
        }
        let setting = place.setting(run.kind.value);
        let tells = self.observations[before..].iter().any(Observation::tells_processor);
        let processor = tells.then(|| "tells what calls take of processors (--cores)".to_owned());
        self.used.push(UsedRun {
            source: source.to_owned(),
            lines: run.lines,
            kind: setting.kind,
            ranks: setting.ranks,
            nodes: setting.nodes,
            rows: count,
            notes: device.into_iter().chain(no_hosts(&setting, run)).chain(processor).collect(),
        });
    }

    /// One entry per reason.
    fn refuse(&mut self, source: &str, mut refused: Vec<(&str, u64)>) {
        refused.sort_unstable();
        for alike in refused.chunk_by(|a, b| a.0 == b.0) {
            if let (Some(first), Some(last)) = (alike.first(), alike.last()) {
                self.left_out.push(LeftOutRows {
                    source: source.to_owned(),
                    lines: (first.1, last.1),
                    rows: alike.len(),
                    why: first.0.to_owned(),
                });
            }
        }
    }
}
