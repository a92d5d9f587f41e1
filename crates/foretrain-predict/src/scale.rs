//! From a recorded step to its time on another cluster at another size.

mod cost;
mod gradients;
mod held_up;
mod layout;
mod notes;
mod ranks;
mod steady;

use foretrain_core::estimate::Z80;
use foretrain_core::stats::{expected_normal_max, robust_std};
use foretrain_core::{Bytes, Estimate, Evidence, EvidenceKind, InputError, Nanos, Result};
use foretrain_cost::{Fabric, GroupPlacement};
use foretrain_graph::{Job, NodeId, RankClass, StepGraph};
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_rewrite::BucketCaps;
use foretrain_sim::Timeline;
use rustc_hash::FxHashMap;

use crate::answer::{HeldUp, Prediction, Recorded, SizePrediction};
use crate::breakdown::{Breakdown, Owner, breakdown};
use crate::devices::{ComputeScale, recorded_cluster};
use crate::recording::Recording;

use cost::{Cost, Machines};
use gradients::{has_backward, insert_gradients};
use held_up::held_up;
use notes::{describe_base, role_evidence, warn_about_answer};
use ranks::{Class, Ranks};
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
    let lead = base.ranks.lead();
    let one = base.simulate(lead.layout.replica_size, options)?.step_time();
    // The recorded size may not fit the cluster asked about; efficiency then counts from one replica.
    let recorded = base.simulate(lead.layout.world_size, options);
    let recorded = recorded.map_or(one, |simulated| simulated.step_time());
    let mut warnings = base.warnings.clone();
    let mut sizes = Vec::new();
    for &gpus in &options.gpus {
        let simulated = base.simulate(gpus, options)?;
        sizes.push(base.describe(&simulated, one, recorded, options)?);
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
    ranks: Ranks,
    from: Option<Cluster>,
    cluster: &'a Cluster,
    recorded: Recorded,
    noise: Noise,
    /// Relative spread of the base step.
    spread: f64,
    evidence: Vec<Evidence>,
    warnings: Vec<String>,
}

/// What makes real steps longer than the steps of typical times.
#[derive(Clone, Copy, Debug)]
struct Noise {
    /// Relative standard deviation of a rank's own step.
    sigma: f64,
    /// Time of the recorded step that its ranks' typical steps do not explain: ranks that are
    /// late at random, each step another.
    excess: Nanos,
    /// Ranks in the recorded job.
    ranks: u32,
}

impl Noise {
    /// Waiting for the slowest of `gpus` ranks that are late at random. The slowest of n
    /// independent ones is late by their deviation times e_n, the expected maximum of n standard
    /// normal values. What was recorded grows in this proportion; beyond the recorded size a rank
    /// that computes for `busy` adds at least its own noise.
    fn straggling(&self, gpus: u32, busy: Nanos) -> Nanos {
        let recorded = expected_normal_max(u64::from(self.ranks));
        let asked = expected_normal_max(u64::from(gpus));
        let known = if recorded > 0.0 { self.excess.scale(asked / recorded) } else { Nanos::ZERO };
        let more = busy.scale(self.sigma * (asked - recorded).max(0.0));
        known.max(self.excess.min(known) + more)
    }
}

/// One job size, simulated with usual times of communication.
struct Simulated {
    gpus: u32,
    replicas: u32,
    /// One class per simulated rank, the lead first.
    job: Job,
    /// Communication of each class.
    costs: Vec<Vec<(NodeId, Cost)>>,
    timeline: Timeline,
    /// Time between steps, without random lateness.
    settled: Nanos,
    converged: bool,
    breakdown: Breakdown,
    held_up: Vec<HeldUp>,
    straggling: Nanos,
}

impl Simulated {
    fn step_time(&self) -> Nanos {
        self.settled + self.straggling
    }
}

impl<'a> Base<'a> {
    fn new(
        recordings: &[Recording],
        cluster: &'a Cluster,
        catalogue: &Catalogue,
        options: &PredictOptions,
    ) -> Result<Self> {
        let (mut evidence, mut warnings) = (Vec::new(), Vec::new());
        let mut ranks = Ranks::new(recordings, &mut evidence, &mut warnings)?;
        let recording = ranks.lead().recording(recordings);
        let times: Vec<f64> = recording.step_times().iter().map(|t| t.nanos() as f64).collect();
        let step_time = ranks.recorded_step(recordings);
        let spread = robust_std(&times).map(|s| s / step_time.nanos().max(1) as f64);
        let replayed = ranks.replayed;
        let fidelity = relative_difference(replayed, step_time);
        describe_base(&times, spread, fidelity, &mut evidence, &mut warnings);
        let from = match &options.recorded_on {
            Some(cluster) => Some(cluster.clone()),
            None => recorded_cluster(catalogue, recording, &mut evidence, &mut warnings),
        };
        let scale = ComputeScale::new(catalogue, recording, cluster, from.as_ref());
        let compute_spread = scale.apply(ranks.lead_graph(), &mut evidence, &mut warnings);
        for graph in ranks.other_graphs() {
            // The others' devices are the lead's; what is said of it holds for them.
            scale.apply(graph, &mut Vec::new(), &mut Vec::new());
        }
        let lead = ranks.lead();
        role_evidence(&lead.graph, &lead.layout, &mut evidence);
        let recorded = Recorded {
            sources: recordings.iter().map(|r| r.trace.meta.path.clone()).collect(),
            rank: lead.rank,
            simulated_ranks: ranks.classes.iter().map(|class| class.rank).collect(),
            world_size: lead.layout.world_size,
            replica_size: lead.layout.replica_size,
            device: lead.graph.meta.device.clone(),
            step_source: recording.steps.source.describe(),
            steps: times.len(),
            step_time,
            replayed,
        };
        let excess = if ranks.is_joint { step_time - replayed } else { Nanos::ZERO };
        let noise = Noise {
            sigma: spread.unwrap_or(0.0).min(MOST_NOISE),
            excess: excess.clamp_positive(),
            ranks: lead.layout.world_size,
        };
        let of_median = spread.unwrap_or(0.02) / (times.len().max(1) as f64).sqrt();
        Ok(Self {
            ranks,
            from,
            cluster,
            recorded,
            noise,
            spread: of_median.hypot(fidelity).hypot(compute_spread).max(0.005),
            evidence,
            warnings,
        })
    }

    fn machines<'b>(&'b self, class: &'b Class) -> Machines<'b> {
        Machines {
            layout: &class.layout,
            transfers: &class.transfers,
            from: self.from.as_ref(),
            to: self.cluster,
        }
    }

    /// Simulates one job size with usual times of communication.
    fn simulate(&self, gpus: u32, options: &PredictOptions) -> Result<Simulated> {
        let replicas = self.replicas(gpus)?;
        let positions = self.ranks.for_replicas(replicas);
        let (graphs, costs) = self.graphs(&positions, replicas, options)?;
        let each = (u64::from(gpus) / graphs.len() as u64).max(1);
        let classes = graphs.into_iter().map(|graph| RankClass { graph, multiplicity: each });
        let mut job = Job { classes: classes.collect() };
        set_communication(&mut job, &costs, |time| time.value);
        let (timeline, settled, converged) = settled_timeline(&job)?;
        let class = &timeline.classes[0];
        let to = class.iteration_end.last().copied().unwrap_or(settled);
        let waits: FxHashMap<NodeId, Nanos> =
            costs[0].iter().map(|(id, cost)| (*id, cost.wait)).collect();
        let wait = |id: NodeId| waits.get(&id).copied().unwrap_or(Nanos::ZERO);
        let mut parts = breakdown(&job.classes[0].graph, class, to - settled, to, &wait);
        let busy = parts.time(|owner| {
            matches!(owner, Owner::Compute | Owner::LaunchBound | Owner::Copy | Owner::Input)
        });
        let straggling = self.noise.straggling(gpus, busy);
        parts.add(Owner::StragglerWait, straggling);
        let window = (to - settled, to);
        Ok(Simulated {
            held_up: held_up(&job, &timeline, window, &self.ranks, &positions),
            gpus,
            replicas,
            job,
            costs,
            timeline,
            settled,
            converged,
            breakdown: parts,
            straggling,
        })
    }

    /// The graphs that stand for a job of `replicas` replicas, and what their communication costs.
    fn graphs(
        &self,
        positions: &[usize],
        replicas: u32,
        options: &PredictOptions,
    ) -> Result<(Vec<StepGraph>, Vec<Vec<(NodeId, Cost)>>)> {
        let (mut graphs, mut all_costs) = (Vec::new(), Vec::new());
        for &position in positions {
            let class = &self.ranks.classes[position];
            let mut graph = class.graph.clone();
            let mut costs = self.machines(class).costs(&graph, replicas)?;
            costs.extend(self.inserted_gradients(class, &mut graph, replicas, options)?);
            graphs.push(graph);
            all_costs.push(costs);
        }
        Ok((graphs, all_costs))
    }

    /// Step time without random lateness when all communication takes as long as `pick` says.
    fn settled_with(
        &self,
        simulated: &Simulated,
        pick: impl Fn(&Estimate<Nanos>) -> Nanos,
    ) -> Result<Nanos> {
        let changes = simulated
            .costs
            .iter()
            .flatten()
            .any(|(_, cost)| pick(&cost.time) != cost.time.value);
        if !changes {
            return Ok(simulated.settled);
        }
        let mut job = simulated.job.clone();
        set_communication(&mut job, &simulated.costs, pick);
        settled(&job).map(|(step, _)| step)
    }

    /// How many model replicas a job of `gpus` devices holds.
    fn replicas(&self, gpus: u32) -> Result<u32> {
        let size = self.ranks.lead().layout.replica_size;
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
        class: &Class,
        graph: &mut StepGraph,
        replicas: u32,
        options: &PredictOptions,
    ) -> Result<Vec<(NodeId, Cost)>> {
        if class.layout.synchronises() || replicas <= 1 || !has_backward(graph) {
            return Ok(Vec::new());
        }
        let placement = GroupPlacement::strided(replicas, class.layout.replica_size);
        let fabric = Fabric::for_group(self.cluster, &placement)?;
        let mut name = format!("data-parallel ({replicas} replicas)");
        if self.ranks.classes.len() > 1 {
            // Each rank of a replica synchronises its own part of the model.
            name = format!("{name} of rank {}", class.rank);
        }
        let buckets = options.buckets;
        let inserted =
            insert_gradients(graph, name, replicas, &fabric, buckets, options.gradient_bytes)?;
        let cost = |time| Cost { time, wait: Nanos::ZERO, ratio: 1.0, ranks: replicas };
        Ok(inserted.into_iter().map(|(id, time)| (id, cost(time))).collect())
    }

    fn describe(
        &self,
        simulated: &Simulated,
        one: Nanos,
        recorded: Nanos,
        options: &PredictOptions,
    ) -> Result<SizePrediction> {
        let Simulated { gpus, replicas, .. } = *simulated;
        let step = simulated.step_time();
        let value = step.nanos().max(1) as f64;
        let mut communication: f64 = 0.0;
        for end in [
            self.settled_with(simulated, |time| time.low)?,
            self.settled_with(simulated, |time| time.high)?,
        ] {
            let end = (end + simulated.straggling).nanos().max(1) as f64;
            communication = communication.max((end / value).ln().abs() / Z80);
        }
        // The noise model is as uncertain as half of what it adds.
        let straggling = 0.5 * simulated.straggling.nanos() as f64 / value;
        // T(1) and T(N) share the recording's own uncertainty; between them only the rest counts.
        let beyond_base = communication.hypot(straggling);
        let step_time = Estimate::with_relative_spread(step, self.spread.hypot(beyond_base));
        let throughput: Estimate<f64> = step_time.map(|ns| f64::from(replicas) * 1e9 / ns.max(1.0));
        let lead = self.ranks.lead();
        let graph = &simulated.job.classes[0].graph;
        Ok(SizePrediction {
            gpus,
            nodes: self.cluster.nodes_for(u64::from(gpus))?,
            replicas,
            step_time,
            throughput,
            samples_per_second: options.replica_batch.map(|b| throughput.map(|r| r * b)),
            scaling_factor: Estimate::with_relative_spread(one.nanos() as f64 / value, beyond_base),
            efficiency: recorded.nanos() as f64 / value,
            breakdown: simulated.breakdown.clone(),
            held_up: simulated.held_up.clone(),
            collectives: self.machines(lead).summary(graph, &simulated.costs[0]),
            critical_path: critical_path(
                &simulated.timeline,
                &simulated.job,
                simulated.timeline.iterations - 1,
            ),
            converged: simulated.converged,
        })
    }

    /// Replicas that nothing synchronises are not a training job.
    fn warn_about_synchronisation(&self, sizes: &[SizePrediction], warnings: &mut Vec<String>) {
        let several = sizes.iter().any(|size| size.replicas > 1);
        if several && !self.ranks.lead().layout.synchronises() && !has_backward(&self.ranks.lead().graph) {
            warnings.push(
                "the recorded step has no backward pass, so there are no gradients to synchronise: more replicas run side by side without communication between them"
                    .into(),
            );
        }
    }

    fn collective_evidence(&self, options: &PredictOptions) -> Vec<Evidence> {
        let largest = options.gpus.iter().max().copied().unwrap_or(1);
        let Ok(replicas) = self.replicas(largest) else { return Vec::new() };
        let lead = self.ranks.lead();
        let costs = self.machines(lead).costs(&lead.graph, replicas).unwrap_or_default();
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
        if !lead.layout.synchronises() && replicas > 1 && has_backward(&lead.graph) {
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

/// Sets the time of every communication node to what `pick` takes of its estimate.
fn set_communication(
    job: &mut Job,
    costs: &[Vec<(NodeId, Cost)>],
    pick: impl Fn(&Estimate<Nanos>) -> Nanos,
) {
    for (class, costs) in job.classes.iter_mut().zip(costs) {
        for (id, cost) in costs {
            class.graph.set_work(*id, pick(&cost.time) + cost.wait);
        }
    }
}

fn relative_difference(a: Nanos, b: Nanos) -> f64 {
    if b == Nanos::ZERO { 0.0 } else { ((a - b).nanos() as f64 / b.nanos() as f64).abs() }
}
