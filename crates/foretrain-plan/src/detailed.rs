//! An estimate with everything that belongs beside it.

use foretrain_core::{Bytes, FlopRate, Result};
use serde::Serialize;

use crate::advice::{Advice, advice};
use crate::calibrate::Calibrated;
use crate::estimate::Answer;
use crate::horizon::Horizon;
use crate::layout::Layout;
use crate::memory::Fit;
use crate::plan::{Candidate, Question, search};
use crate::rhythm::Rhythm;
use crate::step::Job;
use crate::training::Training;

/// An estimate of one layout, and what goes with it.
#[derive(Clone, Debug, Serialize)]
pub struct Detailed {
    /// The model.
    pub model: String,
    /// Its trainable numbers.
    pub parameters: u64,
    /// Those that one position meets.
    pub active_parameters: u64,
    /// The cluster.
    pub cluster: String,
    /// The device.
    pub device: String,
    /// Its dense peak for the passes' number format, FLOP/s.
    pub peak: Option<f64>,
    /// The software.
    pub software: String,
    /// What is trained.
    pub training: Training,
    /// Measured steps that its times rest on.
    pub calibrated: Option<Calibrated>,
    /// The estimate.
    pub answer: Answer,
    /// How the stages of a pipeline take turns.
    pub rhythm: Option<Rhythm>,
    /// What it takes to finish the tokens asked for.
    pub horizon: Option<Horizon>,
    /// What would make it fit, where it does not.
    pub remedies: Option<Remedies>,
}

/// What would make a layout fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remedies {
    /// Single changes, fastest first.
    pub changes: Vec<Advice>,
    /// Where no single change will do, the fastest layout of the same devices that fits.
    pub plan: Option<Candidate>,
    /// Where none fits, the one that comes nearest and what it needs.
    pub nearest: Option<(Layout, Bytes)>,
}

/// Everything about one layout. `tokens` are to be finished.
///
/// # Errors
/// If the layout does not go with the model, the batch or the cluster.
pub fn detailed(
    question: &Question<'_>,
    job: &Job<'_>,
    layout: &Layout,
    tokens: Option<f64>,
) -> Result<Detailed> {
    let Question { model, training, software, cluster, .. } = *question;
    let answer = question.ask(job, layout)?;
    let rhythm = job.lay(layout)?.rhythm(&answer.step)?;
    let remedies =
        (answer.fit() == Fit::No).then(|| remedies(question, job, layout)).transpose()?;
    Ok(Detailed {
        model: model.name.clone(),
        parameters: model.parameters(),
        active_parameters: model.active_parameters(),
        cluster: cluster.name.clone(),
        device: cluster.node.device.name.clone(),
        peak: cluster.node.device.peak(training.precision.compute).map(FlopRate::get),
        software: software.name.clone(),
        training: training.clone(),
        calibrated: question.calibrated.cloned(),
        rhythm,
        horizon: tokens.and_then(|tokens| answer.horizon(tokens)),
        remedies,
        answer,
    })
}

fn remedies(question: &Question<'_>, job: &Job<'_>, layout: &Layout) -> Result<Remedies> {
    let changes = advice(question, job, layout);
    if !changes.is_empty() {
        return Ok(Remedies { changes, plan: None, nearest: None });
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    let found = search(question, &stop, &|_| {})?;
    let plan = found.ranked.into_iter().next();
    let nearest = found.nearest.filter(|_| plan.is_none());
    Ok(Remedies { changes, plan, nearest })
}
