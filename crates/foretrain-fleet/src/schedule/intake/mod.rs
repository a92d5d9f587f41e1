//! From rows of a table to jobs that can be scheduled.

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::words::counted;
use foretrain_core::{Bytes, InputError, Nanos, Result};
use foretrain_cost::interference::colocation::JobLoad;

use super::cluster::Cluster;
use super::exchange::{DataParallel, Exchange};
use super::job::{Job, Share, Stages};
use crate::jobs;
use crate::utilisation::{Features, Predictor};

/// Takes rows one by one and says what it could not use.
#[derive(Debug)]
pub struct Intake<'a> {
    cluster: &'a Cluster,
    /// Where models are known: their synchronisation by the collective model.
    exchange: Option<Arc<Exchange>>,
    /// Whether jobs of known models may run at other sizes than they ask for.
    elastic: bool,
    /// Utilisation of jobs of which none is known.
    utilisation: Option<f64>,
    /// Tells it of models and batches, before that.
    predictor: Option<&'a Predictor>,
    /// What it told, by model and batch.
    predicted: BTreeMap<(String, u64), Option<Predicted>>,
    /// Bytes of gradients by the name of the model.
    gradients: BTreeMap<String, Option<Bytes>>,
    jobs: Vec<Job>,
    used: Used,
}

/// What rows told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// Rows seen.
    pub rows: u64,
    /// Rows left out, by the reason, a lowercase fragment.
    pub left_out: BTreeMap<&'static str, u64>,
    /// Jobs with a known submission, utilisation, kind of GPU in the cluster, model, and stages.
    pub known: [u64; 5],
    /// Jobs that ask for part of one GPU.
    pub parts: u64,
    /// Jobs whose utilisation was predicted.
    pub predicted: u64,
    /// Jobs that name a kind of GPU that the cluster, of several kinds, does not have; they run on any.
    pub other_kind: u64,
    /// Jobs that may run at other sizes than they ask for.
    pub elastic: u64,
}

/// What a predictor told of a job.
#[derive(Clone, Copy, Debug)]
struct Predicted {
    busy: f64,
    memory: Option<Bytes>,
}

/// What [`Used::known`] counts.
pub const KNOWN: [&str; 5] =
    ["submission", "utilisation", "kind of GPU", "model", "stages of a step"];

impl<'a> Intake<'a> {
    /// For jobs on this cluster.
    pub fn new(cluster: &'a Cluster) -> Self {
        Self {
            cluster,
            exchange: None,
            elastic: false,
            utilisation: None,
            predictor: None,
            predicted: BTreeMap::new(),
            gradients: BTreeMap::new(),
            jobs: Vec::new(),
            used: Used::default(),
        }
    }

    /// Gives jobs of models that are known by name, with known step times, the speeds that
    /// synchronisation leaves them where they are placed; and other sizes, if they are elastic.
    #[must_use]
    pub fn on(mut self, exchange: Option<Arc<Exchange>>, elastic: bool) -> Self {
        (self.exchange, self.elastic) = (exchange, elastic);
        self
    }

    /// Assumes this utilisation (0 to 1) where none is known.
    #[must_use]
    pub fn assuming(mut self, utilisation: Option<f64>) -> Self {
        self.utilisation = utilisation;
        self
    }

    /// Predicts utilisation and memory of jobs whose model and batch are known, where the table has
    /// none. What lies outside of what the predictor learnt from is not used.
    #[must_use]
    pub fn predicting(mut self, predictor: Option<&'a Predictor>) -> Self {
        self.predictor = predictor;
        self
    }

    /// Takes one row.
    pub fn add(&mut self, row: &jobs::Job) {
        self.used.rows += 1;
        match self.job(row) {
            Ok(job) => self.jobs.push(job),
            Err(why) => *self.used.left_out.entry(why).or_default() += 1,
        }
    }

    /// The jobs, and what rows told.
    ///
    /// # Errors
    /// If no row can be used, or none says when its job was submitted.
    pub fn finish(self) -> Result<(Vec<Job>, Used)> {
        let Self { mut jobs, mut used, .. } = self;
        if jobs.is_empty() {
            let mut error =
                InputError::new(format!("none of {} can be scheduled", counted(used.rows, "row")));
            for (why, count) in &used.left_out {
                error = error.hint(format!("{count}: {why}"));
            }
            if used.left_out.contains_key(NO_GPUS) {
                error = error.hint("name the column with --column gpus=COLUMN");
            }
            if used.left_out.contains_key(NO_SUBMIT) {
                error = error.hint(
                    "name the column with --column submit=COLUMN[:UNIT]; arrivals are not made up",
                );
            }
            return Err(error);
        }
        let first = jobs.iter().map(|job| job.submit).min().unwrap_or(Nanos::ZERO);
        let before = jobs.len();
        jobs.retain(|job| job.submit.saturating_sub(first) <= LONGEST);
        let late = before - jobs.len();
        if late > 0 {
            used.left_out.insert("submitted more than ten years after the first", late as u64);
        }
        for job in &mut jobs {
            job.submit -= first;
        }
        // Jobs are numbered by their place, and queues go by number; tables may be in any order.
        jobs.sort_by_key(|job| job.submit);
        Ok((jobs, used))
    }

    fn job(&mut self, row: &jobs::Job) -> std::result::Result<Job, &'static str> {
        let submit = row.submit.ok_or(NO_SUBMIT)?;
        let gpus = row.gpus.ok_or(NO_GPUS)?;
        if gpus <= 0.0 {
            return Err("no GPU asked for");
        }
        let unknown = if row.is_unfinished() { UNFINISHED } else { "duration not known" };
        let duration = duration(row, gpus).ok_or(unknown)?;
        if duration <= Nanos::ZERO {
            return Err("it ran for no time");
        }
        // Steps and GPU-time may tell of more than the table's own times.
        if duration > LONGEST {
            return Err("longer than ten years");
        }
        let (share, whole) = if let Some(sevenths) = jobs::slice_of(&row.gpu_kind) {
            // A process sees one isolated slice, and NCCL joins none.
            if gpus > 1.0 {
                return Err(SEVERAL_SLICES);
            }
            (Share::Slice(sevenths), 1)
        } else if gpus < 1.0 {
            (Share::Part(((gpus * 1e3).ceil() as u16).clamp(1, 1_000)), 1)
        } else {
            (Share::Whole, gpus.ceil().min(f64::from(u32::MAX)) as u32)
        };
        let mut job = Job { share, ..Job::new(row.id.clone(), submit, whole, duration) };
        job.kind = self.kind(&row.gpu_kind);
        job.memory = row.gpu_memory.unwrap_or(Bytes::ZERO);
        let step = row.step_time.filter(|step| *step > Nanos::ZERO);
        job.stages = stages(row, step);
        let utilisation = row.utilisation.or_else(|| {
            let stages = job.stages?;
            Some((stages.compute.secs_f64() / stages.step.secs_f64()).min(1.0))
        });
        let predicted = self.predicted(row);
        if job.memory == Bytes::ZERO {
            job.memory = predicted.and_then(|predicted| predicted.memory).unwrap_or(Bytes::ZERO);
        }
        self.used.predicted += u64::from(utilisation.is_none() && predicted.is_some());
        let utilisation = utilisation.or(predicted.map(|predicted| predicted.busy));
        let second = Nanos::from_millis(1_000);
        if let Some(busy) = utilisation.or(self.utilisation) {
            let step = step.unwrap_or(second);
            job.load = Some(JobLoad { step, busy, launch: step });
            job.peak = busy;
        }
        let is_known = [
            true,
            utilisation.is_some(),
            job.kind.is_some(),
            self.scale(row, step, &mut job),
            job.stages.is_some(),
        ];
        for (count, known) in self.used.known.iter_mut().zip(is_known) {
            *count += u64::from(known);
        }
        self.used.parts += u64::from(share != Share::Whole);
        Ok(job)
    }

    /// What the predictor tells of a job, per GPU.
    fn predicted(&mut self, row: &jobs::Job) -> Option<Predicted> {
        let predictor = self.predictor?;
        // Tables of jobs count samples per GPU.
        let batch = row.batch.filter(|batch| *batch >= 1.0)?.round() as u64;
        let of = |name: &str| {
            let model = foretrain_workload::named(name).ok()?;
            let told = predictor.predict(&Features::of(&model, batch).ok()?);
            let busy = (told.utilisation.value / 100.0).clamp(0.0, 1.0);
            let memory = told.memory.map(|memory| Bytes::from_f64(memory.value));
            told.outside.is_empty().then_some(Predicted { busy, memory })
        };
        let asked = (row.model.clone(), batch);
        *self.predicted.entry(asked).or_insert_with_key(|(name, _)| of(name))
    }

    /// The cluster's kind of this name. Other names are nothing to ask for.
    fn kind(&mut self, name: &str) -> Option<u32> {
        let plain = |name: &str| -> String {
            name.chars()
                .filter(char::is_ascii_alphanumeric)
                .collect::<String>()
                .to_ascii_lowercase()
        };
        let wanted = plain(name);
        let mut kinds = self.cluster.kinds().iter().zip(0u32..);
        // Where all GPUs are alike there is nothing to choose.
        if self.cluster.kinds().len() < 2 || wanted.is_empty() {
            return None;
        }
        let found = kinds.find(|(kind, _)| plain(&kind.name) == wanted).map(|(_, number)| number);
        self.used.other_kind += u64::from(found.is_none());
        found
    }

    /// Whether the job's model is known, so that its speed follows from where it is.
    fn scale(&mut self, row: &jobs::Job, step: Option<Nanos>, job: &mut Job) -> bool {
        let (Some(exchange), Some(step)) = (&self.exchange, step) else { return false };
        if row.model.is_empty() || job.share != Share::Whole {
            return false;
        }
        let gradients = self.gradients.entry(row.model.clone()).or_insert_with(|| {
            let model = foretrain_workload::named(&row.model).ok()?;
            // Gradients are exchanged as single-precision numbers, unless somebody says otherwise.
            Some(Bytes::new(model.parameters().saturating_mul(4)))
        });
        let Some(gradients) = *gradients else { return false };
        let sizes = if self.elastic { (1, self.cluster.gpus()) } else { (job.gpus, job.gpus) };
        let step = step.secs_f64();
        let scaling = DataParallel::new(exchange.clone(), gradients, step, job.gpus, sizes);
        let Ok(scaling) = scaling else { return false };
        job.scaling = Some(Arc::new(scaling));
        self.used.elastic += u64::from(self.elastic);
        true
    }
}

/// Tables of longer ones hold a time that is none.
const LONGEST: Nanos = Nanos::from_millis(3_653 * 86_400_000);
/// Why they are left out.
const SEVERAL_SLICES: &str =
    "several isolated slices asked for, which no one process can use together";
/// Why they are left out: what they took so far is not what they take.
const UNFINISHED: &str = "it had not ended when the table was written";
/// Why rows without it are left out.
const NO_GPUS: &str = "number of GPUs not known";
/// Why rows without it are left out.
const NO_SUBMIT: &str = "submission not known";

/// How long a job runs, by whatever tells.
fn duration(row: &jobs::Job, gpus: f64) -> Option<Nanos> {
    let by_steps = || {
        let (steps, step) = (row.steps?, row.step_time?);
        Some(Nanos::from_secs_f64(steps * step.secs_f64()))
    };
    // Between attempts it did not run.
    let by_ends = || match row.attempts.is_empty() {
        true => Some(row.end? - row.start?),
        false => row.run_time(),
    };
    let by_service = || Some(Nanos::from_secs_f64(row.gpu_time?.secs_f64() / gpus));
    by_steps().or(row.duration).or_else(by_ends).or_else(by_service)
}

fn stages(row: &jobs::Job, step: Option<Nanos>) -> Option<Stages> {
    let (step, compute) = (step?, row.stages[1]?);
    let or_none = |part: Option<Nanos>| part.unwrap_or(Nanos::ZERO);
    Some(Stages { input: or_none(row.stages[0]), compute, network: or_none(row.stages[2]), step })
}

#[cfg(test)]
mod tests;
