//! From a recorded step to its time on another cluster at another size.

mod cost;
mod gradients;
mod layout;
mod notes;
mod steady;

use foretrain_core::estimate::Z80;
use foretrain_core::stats::{expected_normal_max, median, robust_std};
use foretrain_core::{Bytes, Estimate, Evidence, EvidenceKind, InputError, Nanos, Result};
use foretrain_cost::{Fabric, GroupPlacement};
use foretrain_graph::{Job, NodeId, StepGraph};
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_rewrite::BucketCaps;
use rustc_hash::FxHashMap;

use crate::answer::{CriticalPart, Prediction, Recorded, ScaledCollective, SizePrediction};
use crate::breakdown::{Breakdown, Owner, breakdown};
use crate::devices::{ComputeScale, recorded_cluster};
use crate::recording::Recording;
use crate::transfer::{Transfers, transfers};

use cost::{Cost, Machines};
use gradients::{has_backward, insert_gradients};
use layout::Layout;
use notes::{describe_base, role_evidence, warn_about_answer};
use steady::{critical_path, settled, settled_timeline};

/// What to predict.
#[derive(Clone, Debug)]
pub struct PredictOptions {
    /// Cluster the trace was recorded on; deduced from the device name if `None`.
    pub recorded_on: Option<Cluster>,
    /// Job sizes in devices.
    pub gpus: Vec<u32>,
    /// Samples (or tokens) that one replica processes per step, for throughput in samples.
    pub replica_batch: Option<f64>,
    /// When gradient buckets close, where they have to be built.
    pub buckets: BucketCaps,
    /// Gradient bytes of one replica's rank, where the trace does not show them.
    pub gradient_bytes: Option<Bytes>,
}

/// Noise beyond this is not that of independent ranks.
const MOST_NOISE: f64 = 0.05;

/// Predicts step times of a job recorded on one or more ranks.
///
/// # Errors
/// If the recording holds no step, a size does not fit the model's parallel layout or the cluster,
/// or gradients have to be synchronised whose sizes nobody knows.
pub fn predict(
    recordings: &[Recording],
    cluster: &Cluster,
    catalogue: &Catalogue,
    options: &PredictOptions,
) -> Result<Prediction> {
    let base = Base::new(recordings, cluster, catalogue, options)?;
    let one = base.simulate_size(base.layout.replica_size, options)?;
    // The recorded size may not fit the cluster asked about; efficiency then counts from one replica.
    let recorded = base.simulate_size(base.layout.world_size, options);
    let recorded = recorded.map_or(one.value, |size| size.value);
    let mut warnings = base.warnings.clone();
    let mut sizes = Vec::new();
    for &gpus in &options.gpus {
        let simulated = base.simulate_size(gpus, options)?;
        sizes.push(base.describe(gpus, simulated, one.value, recorded, options)?);
    }
    base.warn_about_synchronisation(&sizes, &mut warnings);
    warn_about_answer(&sizes, &mut warnings);
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

/// Everything that does not depend on the size asked for.
struct Base<'a> {
    graph: StepGraph,
    layout: Layout,
    transfers: Transfers,
    from: Option<Cluster>,
    cluster: &'a Cluster,
    recorded: Recorded,
    /// Relative standard deviation of a rank's own step.
    noise: f64,
    /// Relative spread of the base step.
    spread: f64,
    evidence: Vec<Evidence>,
    warnings: Vec<String>,
}

/// One size, simulated.
struct Simulated {
    value: Nanos,
    low: Nanos,
    high: Nanos,
    straggling: Nanos,
    converged: bool,
    breakdown: Breakdown,
    collectives: Vec<ScaledCollective>,
    critical_path: Vec<CriticalPart>,
}

impl<'a> Base<'a> {
    fn new(
        recordings: &[Recording],
        cluster: &'a Cluster,
        catalogue: &Catalogue,
        options: &PredictOptions,
    ) -> Result<Self> {
        let representative = representative(recordings)?;
        let recording = &recordings[representative];
        let mut graph = recording.steady().ok_or_else(|| no_step(recording))?;
        let layout = Layout::new(recording, &graph);
        let (mut evidence, mut warnings) = (Vec::new(), Vec::new());
        let times: Vec<f64> = recording.step_times().iter().map(|t| t.nanos() as f64).collect();
        let step_time = Nanos::from_nanos_f64(median(&times).unwrap_or(0.0));
        let spread = robust_std(&times).map(|s| s / step_time.nanos().max(1) as f64);
        let (replayed, _) = settled(&graph)?;
        let fidelity = relative_difference(replayed, step_time);
        describe_base(&times, spread, fidelity, &mut evidence, &mut warnings);
        let transfers = transfers(recordings, representative, &graph, &mut evidence);
        let from = match &options.recorded_on {
            Some(cluster) => Some(cluster.clone()),
            None => recorded_cluster(catalogue, recording, &mut evidence, &mut warnings),
        };
        let scale = ComputeScale::new(catalogue, recording, cluster, from.as_ref());
        let compute_spread = scale.apply(&mut graph, &mut evidence, &mut warnings);
        role_evidence(&graph, &layout, &mut evidence);
        let recorded = Recorded {
            sources: recordings.iter().map(|r| r.trace.meta.path.clone()).collect(),
            rank: recording.rank(),
            world_size: layout.world_size,
            replica_size: layout.replica_size,
            device: graph.meta.device.clone(),
            step_source: recording.steps.source.describe(),
            steps: times.len(),
            step_time,
            replayed,
        };
        let of_median = spread.unwrap_or(0.02) / (times.len().max(1) as f64).sqrt();
        Ok(Self {
            graph,
            layout,
            transfers,
            from,
            cluster,
            recorded,
            noise: spread.unwrap_or(0.0).min(MOST_NOISE),
            spread: of_median.hypot(fidelity).hypot(compute_spread).max(0.005),
            evidence,
            warnings,
        })
    }

    fn machines(&self) -> Machines<'_> {
        Machines {
            layout: &self.layout,
            transfers: &self.transfers,
            from: self.from.as_ref(),
            to: self.cluster,
        }
    }

    /// Simulates one job size; communication at its central, low and high time.
    fn simulate_size(&self, gpus: u32, options: &PredictOptions) -> Result<Simulated> {
        let replicas = self.replicas(gpus)?;
        let mut graph = self.graph.clone();
        let mut costs = self.machines().costs(&graph, replicas)?;
        costs.extend(self.inserted_gradients(&mut graph, replicas, options)?);
        let set = |graph: &mut StepGraph, pick: &dyn Fn(&Estimate<Nanos>) -> Nanos| {
            for (id, cost) in &costs {
                graph.set_work(*id, pick(&cost.time) + cost.wait);
            }
        };
        set(&mut graph, &|e| e.low);
        let (low, _) = settled(&graph)?;
        set(&mut graph, &|e| e.high);
        let (high, _) = settled(&graph)?;
        set(&mut graph, &|e| e.value);
        let job = Job::uniform(graph, u64::from(gpus));
        let (timeline, value, converged) = settled_timeline(&job)?;
        let graph = &job.classes[0].graph;
        let last = timeline.iterations - 1;
        let to = timeline.iteration_finish(last);
        let waits: FxHashMap<NodeId, Nanos> =
            costs.iter().map(|(id, cost)| (*id, cost.wait)).collect();
        let wait = |id: NodeId| waits.get(&id).copied().unwrap_or(Nanos::ZERO);
        let mut parts = breakdown(graph, &timeline.classes[0], to - value, to, &wait);
        let straggling = self.straggling(&parts, gpus, replicas);
        parts.add(Owner::StragglerWait, straggling);
        Ok(Simulated {
            value: value + straggling,
            low: low + straggling,
            high: high + straggling,
            straggling,
            converged,
            breakdown: parts,
            collectives: self.machines().summary(graph, &costs),
            critical_path: critical_path(&timeline, &job, last),
        })
    }

    /// How many model replicas a job of `gpus` devices holds.
    fn replicas(&self, gpus: u32) -> Result<u32> {
        let size = self.layout.replica_size;
        if gpus == 0 || !gpus.is_multiple_of(size) {
            let below = (gpus / size) * size;
            let near =
                if below == 0 { size.to_string() } else { format!("{below} or {}", below + size) };
            return Err(InputError::new(format!(
                "{gpus} devices cannot hold whole replicas: the recorded model replica takes {size}"
            ))
            .hint(format!("ask for {near} devices")));
        }
        self.cluster.nodes_for(u64::from(gpus))?;
        Ok(gpus / size)
    }

    /// Gradient buckets where the recording has one replica and the size asked for more.
    fn inserted_gradients(
        &self,
        graph: &mut StepGraph,
        replicas: u32,
        options: &PredictOptions,
    ) -> Result<Vec<(NodeId, Cost)>> {
        if self.layout.synchronises() || replicas <= 1 || !has_backward(graph) {
            return Ok(Vec::new());
        }
        let placement = GroupPlacement::strided(replicas, self.layout.replica_size);
        let fabric = Fabric::for_group(self.cluster, &placement)?;
        let inserted =
            insert_gradients(graph, replicas, &fabric, options.buckets, options.gradient_bytes)?;
        let cost = |time| Cost { time, wait: Nanos::ZERO, ratio: 1.0, ranks: replicas };
        Ok(inserted.into_iter().map(|(id, time)| (id, cost(time))).collect())
    }

    /// How much longer the slowest of more independent ranks takes than the slowest recorded one:
    /// sigma (e_N - e_N0), with e_n the expected maximum of n standard normal values.
    fn straggling(&self, parts: &Breakdown, gpus: u32, replicas: u32) -> Nanos {
        if replicas <= 1 || self.noise <= 0.0 || gpus <= self.layout.world_size {
            return Nanos::ZERO;
        }
        let busy = parts.time(|owner| {
            matches!(owner, Owner::Compute | Owner::LaunchBound | Owner::Copy | Owner::Input)
        });
        let more = expected_normal_max(u64::from(gpus))
            - expected_normal_max(u64::from(self.layout.world_size));
        busy.scale(self.noise * more.max(0.0))
    }

    fn describe(
        &self,
        gpus: u32,
        simulated: Simulated,
        one: Nanos,
        recorded: Nanos,
        options: &PredictOptions,
    ) -> Result<SizePrediction> {
        let replicas = self.replicas(gpus)?;
        let value = simulated.value.nanos().max(1) as f64;
        let spread_to = |end: Nanos| (end.nanos().max(1) as f64 / value).ln().abs() / Z80;
        let communication = spread_to(simulated.low).max(spread_to(simulated.high));
        // The noise model is as uncertain as half of what it adds.
        let straggling = 0.5 * simulated.straggling.nanos() as f64 / value;
        // T(1) and T(N) share the recording's own uncertainty; between them only the rest counts.
        let beyond_base = communication.hypot(straggling);
        let step_time =
            Estimate::with_relative_spread(simulated.value, self.spread.hypot(beyond_base));
        let throughput: Estimate<f64> = step_time.map(|ns| f64::from(replicas) * 1e9 / ns.max(1.0));
        Ok(SizePrediction {
            gpus,
            nodes: self.cluster.nodes_for(u64::from(gpus))?,
            replicas,
            step_time,
            throughput,
            samples_per_second: options.replica_batch.map(|b| throughput.map(|r| r * b)),
            scaling_factor: Estimate::with_relative_spread(one.nanos() as f64 / value, beyond_base),
            efficiency: recorded.nanos() as f64 / value,
            breakdown: simulated.breakdown,
            collectives: simulated.collectives,
            critical_path: simulated.critical_path,
            converged: simulated.converged,
        })
    }

    /// Replicas that nothing synchronises are not a training job.
    fn warn_about_synchronisation(&self, sizes: &[SizePrediction], warnings: &mut Vec<String>) {
        let several = sizes.iter().any(|size| size.replicas > 1);
        if several && !self.layout.synchronises() && !has_backward(&self.graph) {
            warnings.push(
                "the recorded step has no backward pass, so there are no gradients to synchronise: more replicas run side by side without communication between them"
                    .into(),
            );
        }
    }

    fn collective_evidence(&self, options: &PredictOptions) -> Vec<Evidence> {
        let largest = options.gpus.iter().max().copied().unwrap_or(1);
        let Ok(replicas) = self.replicas(largest) else { return Vec::new() };
        let costs = self.machines().costs(&self.graph, replicas).unwrap_or_default();
        let carried = costs.iter().filter(|(_, c)| c.ratio != 1.0 && c.ratio > 0.0).count();
        let mut evidence = Vec::new();
        if carried > 0 {
            evidence.push(Evidence::new(
                EvidenceKind::Inferred,
                "collective times at other sizes",
                format!("{carried} recorded transfers times the model's ratio of fabrics"),
                0.15,
            ));
        }
        if !self.layout.synchronises() && replicas > 1 && has_backward(&self.graph) {
            evidence.push(Evidence::new(
                EvidenceKind::Assumed,
                "gradient synchronisation",
                "DDP buckets in ready order, all-reduce times from uncalibrated priors; bucket copies not included",
                0.3,
            ));
        }
        evidence
    }
}

/// The recording that stands for all: the one with the median step time.
fn representative(recordings: &[Recording]) -> Result<usize> {
    let mut order: Vec<(Nanos, usize)> = recordings
        .iter()
        .enumerate()
        .filter(|(_, r)| !r.graphs.is_empty())
        .map(|(i, r)| {
            let times: Vec<f64> = r.step_times().iter().map(|t| t.nanos() as f64).collect();
            (Nanos::from_nanos_f64(median(&times).unwrap_or(0.0)), i)
        })
        .collect();
    order.sort_unstable();
    match (order.get(order.len() / 2), recordings.first()) {
        (Some(&(_, i)), _) => Ok(i),
        (None, Some(first)) => Err(no_step(first)),
        (None, None) => Err(InputError::new("no trace given")),
    }
}

fn no_step(recording: &Recording) -> InputError {
    InputError::new("the trace holds no host or device work, so there is no step to predict from")
        .in_file(&recording.trace.meta.path)
        .hint("record with ProfilerActivity.CPU (and CUDA) around at least one whole step")
}

fn relative_difference(a: Nanos, b: Nanos) -> f64 {
    if b == Nanos::ZERO { 0.0 } else { ((a - b).nanos() as f64 / b.nanos() as f64).abs() }
}
