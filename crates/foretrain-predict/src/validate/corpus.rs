//! The recordings under one root, each read once and replayed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use foretrain_core::stats::median;
use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::StepGraph;
use foretrain_ingest::{ReadOptions, read_trace};
use foretrain_trace::steps::StepSource;
use rayon::prelude::*;

use super::collectives::Measured;
use super::e2e::Sources;
use super::measured::StepTable;
use super::report::{Row, SetOutcome, Skipped};
use super::roots::{Candidate, Found, Root};
use super::{OnProgress, Progress, guarded};
use crate::Recording;
use crate::replay::{HeldOutStep, predict_held_out_step, replay_step};

/// The files of one root and what came of reading them; shared by all sets.
pub struct Corpus<'a> {
    root: &'a Root,
    table: StepTable,
    found: Found,
    progress: OnProgress<'a>,
    files: OnceLock<Vec<FileResult>>,
    collectives: OnceLock<Arc<Measured>>,
    sources: OnceLock<Arc<Sources>>,
}

/// One file.
#[derive(Clone, Debug)]
pub(super) struct FileResult {
    pub(super) candidate: Candidate,
    /// Or why there is nothing to score.
    pub(super) replay: std::result::Result<FileReplay, String>,
}

/// A file's replayed steps.
#[derive(Clone, Debug)]
pub(super) struct FileReplay {
    pub(super) rank: u32,
    pub(super) world_size: u32,
    pub(super) steps: Vec<StepReplay>,
}

/// One step, replayed unchanged and predicted from the others. Times are in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct StepReplay {
    pub(super) name: String,
    pub(super) measured: f64,
    pub(super) replayed: std::result::Result<f64, String>,
    /// `None` if the file has one step only.
    pub(super) held_out: Option<std::result::Result<HeldOutStep, String>>,
    /// Median of the other steps.
    pub(super) others: Option<f64>,
    /// Why the other steps tell nothing about this one, if they do not.
    pub(super) differs: Option<String>,
    /// Why not to score it.
    pub(super) unusable: Option<String>,
    /// Name, start since the epoch and duration: no two steps share them.
    identity: (String, i64, i64),
}

impl<'a> Corpus<'a> {
    /// Lists the files of a root; reads the table of measured times, if there is one.
    ///
    /// # Errors
    /// If a directory or the table cannot be read.
    pub fn new(root: &'a Root, progress: OnProgress<'a>) -> Result<Self> {
        Ok(Self {
            table: root.step_table()?,
            found: root.candidates()?,
            root,
            progress,
            files: OnceLock::new(),
            collectives: OnceLock::new(),
            sources: OnceLock::new(),
        })
    }

    /// The root.
    pub fn root(&self) -> &Root {
        self.root
    }

    /// Measured step times from the root's table.
    pub fn table(&self) -> &StepTable {
        &self.table
    }

    /// What was left out before any file was opened.
    pub fn skipped(&self) -> &[Skipped] {
        &self.found.skipped
    }

    /// The measured tables of collectives, read once.
    pub(super) fn collectives(
        &self,
        read: impl FnOnce() -> Result<Measured>,
    ) -> Result<Arc<Measured>> {
        if let Some(known) = self.collectives.get() {
            return Ok(Arc::clone(known));
        }
        let fresh = Arc::new(read()?);
        Ok(Arc::clone(self.collectives.get_or_init(|| fresh)))
    }

    /// Sources of described runs, read once.
    pub(super) fn sources(&self, read: impl FnOnce() -> Sources) -> Arc<Sources> {
        Arc::clone(self.sources.get_or_init(|| Arc::new(read())))
    }

    /// Every file that may be a trace.
    pub(super) fn candidates(&self) -> &[Candidate] {
        &self.found.files
    }

    pub(super) fn report(&self, stage: &str, done: usize, total: usize) {
        (self.progress)(Progress { stage, done, total });
    }

    /// Every file in order of its name.
    pub(super) fn files(&self) -> &[FileResult] {
        self.files.get_or_init(|| {
            let (done, total) = (AtomicUsize::new(0), self.found.files.len());
            let mut files: Vec<FileResult> = self
                .found
                .files
                .par_iter()
                .map(|candidate| {
                    let replay = guarded(|| self.replay(candidate)).and_then(|replay| replay);
                    self.report(
                        "replaying traces",
                        done.fetch_add(1, Ordering::Relaxed) + 1,
                        total,
                    );
                    FileResult { candidate: candidate.clone(), replay }
                })
                .collect();
            mark_duplicates(&mut files);
            files
        })
    }

    /// Turns every step of the files with steps into a row, of which `predict` gives the
    /// prediction, or into a reason for leaving it out.
    pub(super) fn score_steps(
        &self,
        outcome: &mut SetOutcome,
        predict: impl Fn(&StepReplay) -> std::result::Result<Row, String>,
    ) {
        for file in self.files() {
            let steps = file.replay.iter().flat_map(|replay| &replay.steps);
            for step in steps {
                let (group, what) = (file.candidate.name.clone(), step.name.clone());
                match predict(step) {
                    Ok(row) => {
                        let measured = step.measured;
                        outcome.rows.push(Row { group, what, measured, ..row });
                    }
                    Err(why) => {
                        outcome.skipped.push(Skipped { what: format!("{group}: {what}"), why });
                    }
                }
            }
        }
    }

    fn replay(&self, candidate: &Candidate) -> std::result::Result<FileReplay, String> {
        let recording = analyse(candidate)?;
        let count = recording.graphs.len();
        let steps = (0..count).map(|step| self.replay_one(candidate, &recording, step)).collect();
        Ok(FileReplay { rank: recording.rank(), world_size: recording.world_size(), steps })
    }

    fn replay_one(&self, candidate: &Candidate, recording: &Recording, at: usize) -> StepReplay {
        let step = &recording.steps.steps[at];
        let message = |error: InputError| error.message().to_owned();
        let several = recording.graphs.len() > 1;
        let sizes: Vec<usize> = recording.graphs.iter().map(size).collect();
        StepReplay {
            name: step.name.clone(),
            measured: self.measured(&candidate.name, &step.name, step.duration()),
            replayed: replay_step(&recording.graphs[at]).map(Nanos::millis_f64).map_err(message),
            held_out: several.then(|| predict_held_out_step(recording, at).map_err(message)),
            others: others(recording, at),
            differs: differs(&sizes, at),
            unusable: step.incomplete.then(|| "device events of this step were rejected".into()),
            identity: (
                step.name.clone(),
                recording.trace.meta.base_nanos.saturating_add(step.start.nanos()),
                step.duration().nanos(),
            ),
        }
    }

    /// Measured step time in milliseconds: the table's where it has one, else the trace's marks.
    pub(super) fn measured(&self, file: &str, step: &str, recorded: Nanos) -> f64 {
        self.table.step_ms(file, step).unwrap_or_else(|| recorded.millis_f64())
    }
}

/// Reads and analyses one file, if it has steps.
pub(super) fn analyse(candidate: &Candidate) -> std::result::Result<Recording, String> {
    let read = read_trace(&candidate.path, &ReadOptions::default());
    let (trace, _) = read.map_err(|error| error.message().to_owned())?;
    let recording = Recording::analyse(trace, None);
    if recording.graphs.is_empty() {
        return Err("no steps: the trace holds no work".into());
    }
    if recording.steps.source == StepSource::WholeWindow {
        let host = if recording.steps.main.is_none() { ", and no host thread" } else { "" };
        return Err(format!("no steps found{host}: a whole window is not a step"));
    }
    Ok(recording)
}

/// Nodes of a step's own work.
fn size(graph: &StepGraph) -> usize {
    graph.node_ids().filter(|&id| !graph.is_carried_in(id)).count()
}

/// Steps of one program are alike in what they do; where a step does a tenth more or less than
/// the others, it is another program (an evaluation, a stub where recording stopped).
const SAME_WORK: f64 = 0.1;

fn differs(sizes: &[usize], at: usize) -> Option<String> {
    let others: Vec<f64> =
        sizes.iter().enumerate().filter(|&(i, _)| i != at).map(|(_, &n)| n as f64).collect();
    let usual = median(&others)?;
    let own = sizes[at] as f64;
    let far = (own - usual).abs() > SAME_WORK * usual.max(own);
    far.then(|| "does a tenth more or less work (graph nodes) than the other steps".into())
}

fn others(recording: &Recording, at: usize) -> Option<f64> {
    let steps = recording.steps.steps.iter().enumerate();
    let times: Vec<f64> = steps
        .filter(|&(i, step)| i != at && !step.incomplete)
        .map(|(_, step)| step.duration().millis_f64())
        .collect();
    median(&times)
}

/// One recording may lie in several places, whole or in part. Each step counts once, in the file
/// that holds most steps (the first by name of equals).
fn mark_duplicates(files: &mut [FileResult]) {
    let steps = |file: &FileResult| file.replay.as_ref().map_or(0, |replay| replay.steps.len());
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(steps(&files[i])), i));
    let mut owner: BTreeMap<(String, i64, i64), String> = BTreeMap::new();
    for i in order {
        let file = &mut files[i];
        let Ok(replay) = &mut file.replay else { continue };
        for step in &mut replay.steps {
            if let Some(first) = owner.get(&step.identity) {
                step.unusable = Some(format!("the same step as in {first}"));
            } else {
                owner.insert(step.identity.clone(), file.candidate.name.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, steps: &[(i64, i64)]) -> FileResult {
        let step = |&(start, duration): &(i64, i64)| StepReplay {
            name: "s".into(),
            measured: 1.0,
            replayed: Ok(1.0),
            held_out: None,
            others: None,
            differs: None,
            unusable: None,
            identity: ("s".into(), start, duration),
        };
        FileResult {
            candidate: Candidate { name: name.into(), path: name.into() },
            replay: Ok(FileReplay {
                rank: 0,
                world_size: 1,
                steps: steps.iter().map(step).collect(),
            }),
        }
    }

    fn unusable(file: &FileResult) -> Vec<bool> {
        file.replay.as_ref().expect("steps").steps.iter().map(|s| s.unusable.is_some()).collect()
    }

    #[test]
    fn a_step_counts_once_in_the_fullest_file() {
        let mut files = [
            file("a", &[(0, 5), (5, 6)]),
            file("b", &[(0, 5), (5, 6), (11, 5)]),
            file("c", &[(0, 5), (9, 6)]),
        ];
        mark_duplicates(&mut files);
        assert_eq!(unusable(&files[0]), [true, true]);
        assert_eq!(unusable(&files[1]), [false, false, false]);
        assert_eq!(unusable(&files[2]), [true, false]);
    }

    #[test]
    fn steps_that_do_other_work_differ() {
        assert_eq!(differs(&[100, 105, 98], 1), None);
        assert!(differs(&[100, 100, 4], 2).is_some());
        assert!(differs(&[100, 100, 4], 0).is_some(), "half of the others are not like it");
        assert!(differs(&[100, 100, 100, 4], 0).is_none());
        assert_eq!(differs(&[7], 0), None);
        assert_eq!(differs(&[0, 0], 0), None);
    }
}
