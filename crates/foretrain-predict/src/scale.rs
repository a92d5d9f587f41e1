//! From a recorded step to its time on another cluster at another size.

pub(crate) mod base;
mod captured;
mod contention;
mod copies;
pub(crate) mod cost;
mod given;
mod held_up;
mod layout;
pub(crate) mod links;
mod noise;
mod notes;
mod origin;
pub(crate) mod ranks;
pub(crate) mod simulate;
mod slowdown;
pub(crate) mod steady;
mod strip;
pub(crate) mod synchronise;
mod unprofiled;

use std::sync::Arc;

use foretrain_core::{Bytes, Evidence, Nanos, Result};
use foretrain_cost::Primitives;
use foretrain_cost::interference::OverlapModel;
use foretrain_cost::own::OwnCosts;
use foretrain_graph::StepGraph;
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_rewrite::BucketCaps;
use foretrain_rewrite::strategy::Strategy;
use foretrain_trace::Capture;

use crate::answer::Prediction;
use crate::recording::Recording;
use crate::roles::GivenRole;

use base::Base;
use captured::FromCapture;
pub use copies::BucketCopies;
use given::{warn_about_roles, warn_about_unused};
pub(crate) use layout::Layout;
use notes::warn_about_answer;
pub(crate) use origin::Origin;
pub(crate) use ranks::Ranks;

/// What to predict. What is left open is taken from the recordings' captures, where there are any.
#[derive(Clone, Debug, Default)]
pub struct PredictOptions {
    /// Cluster the trace was recorded on; deduced from the device name if `None`.
    pub recorded_on: Option<Cluster>,
    /// Step time of the recorded job without a profiler, if known: what the profiler cost on the
    /// host is then taken out.
    pub unprofiled_step: Option<Nanos>,
    /// Relative standard deviation of a rank's own steps, if known better than from the few that
    /// were recorded; ranks wait for the latest of them.
    pub step_spread: Option<f64>,
    /// Job sizes in devices.
    pub gpus: Vec<u32>,
    /// Samples (or tokens) that one replica processes per step, for throughput in samples.
    pub replica_batch: Option<f64>,
    /// How replicas are synchronised: in place of what was recorded, or where nothing was. `None`
    /// is PyTorch's DDP with the buckets and buffers below, where nothing was recorded.
    pub strategy: Option<Arc<Strategy>>,
    /// What summing and encoding gradients cost; assumed if `None`.
    pub primitives: Option<Primitives>,
    /// When gradient buckets close, where they have to be built.
    pub buckets: BucketCaps,
    /// Gradient bytes of one replica's rank, where the trace does not show them.
    pub gradient_bytes: Option<Bytes>,
    /// How fast gradients are copied into built buckets and back.
    pub bucket_copies: BucketCopies,
    /// Buffers that DDP broadcasts before every forward pass, where gradient buckets are built.
    pub buffer_bytes: Option<Bytes>,
    /// Cores, or a part of one, that all threads of a rank share, so that communication by a CPU
    /// library takes time from computing; `None` if it has cores of its own.
    pub cores: Option<f64>,
    /// What groups are for, where that is known better than the recording shows.
    pub roles: Vec<GivenRole>,
    /// How computation and communication on one device slow each other down; not at all if `None`.
    pub interference: Option<OverlapModel>,
    /// Times in place of those of the models here, where the user has better ones.
    pub costs: Option<Arc<dyn OwnCosts>>,
}

/// Predicts step times of a job recorded on one or more ranks.
///
/// # Errors
/// If the recording holds no step, a size does not fit the model's parallel layout or the cluster,
/// gradients have to be synchronised whose sizes nobody knows, or the recorded steps cannot be
/// reproduced (the replay takes less than half or more than twice as long).
pub fn predict(
    recordings: &[Recording],
    cluster: &Cluster,
    catalogue: &Catalogue,
    options: &PredictOptions,
) -> Result<Prediction> {
    predict_ranks(Start::of_recordings(recordings, &options.roles)?, cluster, catalogue, options)
}

/// The same from step graphs with times, one per rank: a Chakra trace, or a graph that was saved
/// and perhaps edited.
///
/// # Errors
/// As [`predict`], or if no graph holds times.
pub fn predict_graphs(
    graphs: &[StepGraph],
    cluster: &Cluster,
    catalogue: &Catalogue,
    options: &PredictOptions,
) -> Result<Prediction> {
    predict_ranks(Start::of_graphs(graphs, &options.roles)?, cluster, catalogue, options)
}

/// What was given, made ready to simulate.
#[derive(Clone)]
pub(crate) struct Start {
    pub(crate) ranks: Ranks,
    sources: Vec<String>,
    evidence: Vec<Evidence>,
    warnings: Vec<String>,
    /// Of the ranks that have one, in order.
    captures: Vec<Arc<Capture>>,
    captured: FromCapture,
}

impl Start {
    pub(crate) fn of_recordings(recordings: &[Recording], roles: &[GivenRole]) -> Result<Self> {
        let (mut evidence, mut warnings) = (Vec::new(), Vec::new());
        let ranks = Ranks::of_recordings(recordings, roles, &mut evidence, &mut warnings)?;
        warn_about_roles(&ranks, roles, &mut warnings);
        let sources = recordings.iter().map(|r| r.trace.meta.path.clone()).collect();
        let captures = recordings.iter().filter_map(|r| r.trace.meta.capture.clone()).collect();
        let captured = FromCapture::default();
        Ok(Self { ranks, sources, evidence, warnings, captures, captured })
    }

    pub(crate) fn of_graphs(graphs: &[StepGraph], roles: &[GivenRole]) -> Result<Self> {
        let (mut evidence, mut warnings) = (Vec::new(), Vec::new());
        let ranks = Ranks::of_graphs(graphs, roles, &mut evidence, &mut warnings)?;
        warn_about_roles(&ranks, roles, &mut warnings);
        let sources = graphs.iter().map(|graph| graph.meta.source.clone()).collect();
        let (captures, captured) = (Vec::new(), FromCapture::default());
        Ok(Self { ranks, sources, evidence, warnings, captures, captured })
    }
}

fn predict_ranks(
    mut start: Start,
    cluster: &Cluster,
    catalogue: &Catalogue,
    given: &PredictOptions,
) -> Result<Prediction> {
    let options = &start.complete(given);
    let base = Base::new(start, cluster, catalogue, options)?;
    let lead = base.ranks.lead();
    let (replica_size, world_size) = (lead.layout.replica_size, lead.layout.world_size);
    let mut known = vec![base.simulate(replica_size, options)?];
    if world_size != replica_size {
        // The recorded size may not fit the cluster asked about; efficiency then counts from one
        // replica.
        known.extend(base.simulate(world_size, options));
    }
    let one = known[0].step_time();
    let recorded = known[known.len() - 1].step_time();
    let mut warnings = base.warnings.clone();
    let mut sizes = Vec::new();
    let mut notes = Vec::new();
    for &gpus in &options.gpus {
        let asked;
        let simulated = match known.iter().find(|simulated| simulated.gpus == gpus) {
            Some(known) => known,
            None => {
                asked = base.simulate(gpus, options)?;
                &asked
            }
        };
        sizes.push(base.describe(simulated, one, recorded, options)?);
        notes = simulated.notes().to_vec();
    }
    warnings.extend(notes.into_iter().map(|note| format!("strategy: {note}")));
    base.warn_about_synchronisation(&sizes, &mut warnings);
    warn_about_answer(&sizes, &mut warnings);
    warn_about_unused(&base, given, &mut warnings);
    let mut evidence = base.evidence.clone();
    evidence.extend(base.collective_evidence(options));
    evidence.sort_by_key(|line| line.kind);
    Ok(Prediction {
        recorded: base.recorded,
        cluster: cluster.name.clone(),
        sizes,
        evidence,
        warnings,
    })
}
