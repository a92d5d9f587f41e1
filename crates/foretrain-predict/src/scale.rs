//! From a recorded step to its time on another cluster at another size.

use foretrain_core::stats::{expected_normal_max, median, robust_std};
use foretrain_core::{Bytes, Estimate, Evidence, EvidenceKind, InputError, Nanos, Result};
use foretrain_cost::{CollectiveCall, Fabric, GroupPlacement, Rescaled, rescale};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{CollectiveKind, Group, Job, NodeId, NodeKind, Phase, StepGraph};
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_rewrite::{BucketCaps, CollectiveNode, collectives, insert_ddp};
use foretrain_sim::{SimOptions, Timeline};
use rustc_hash::FxHashMap;

use crate::answer::{CriticalPart, Prediction, Recorded, ScaledCollective, SizePrediction};
use crate::breakdown::{Breakdown, Owner, breakdown};
use crate::devices::{ComputeScale, recorded_cluster};
use crate::recording::Recording;
use crate::replay::run;
use crate::roles::{GroupRole, Role, group_roles};
use crate::transfer::{Transfers, transfers};

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

/// A distribution of iterations: enough for the launch queue and the streams to settle.
const ITERATIONS: u32 = 8;
/// Tried when the first did not settle.
const MORE_ITERATIONS: u32 = 32;
/// Settled: successive steps differ by less than this fraction.
const TOLERANCE: f64 = 0.005;
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
    let recorded = base.simulate_size(base.layout.world_size, options);
    let recorded_time = recorded.as_ref().map_or(one.value, |size| size.value);
    let mut warnings = base.warnings.clone();
    let mut sizes = Vec::new();
    for &gpus in &options.gpus {
        let simulated = base.simulate_size(gpus, options)?;
        sizes.push(base.describe(gpus, &simulated, one.value, recorded_time, options)?);
    }
    warn_about_answer(&sizes, &mut warnings);
    let mut evidence = base.evidence.clone();
    evidence.extend(base.collective_evidence(options));
    evidence.sort_by(|a, b| a.kind.cmp(&b.kind));
    Ok(Prediction {
        recorded: base.recorded,
        cluster: cluster.name.clone(),
        sizes,
        evidence,
        warnings,
    })
}

/// How ranks are laid out in the recorded job.
#[derive(Clone, Debug)]
struct Layout {
    world_size: u32,
    replica_size: u32,
    roles: Vec<GroupRole>,
}

/// Everything that does not depend on the size asked for.
struct Base<'a> {
    graph: StepGraph,
    layout: Layout,
    transfers: Transfers,
    from: Option<Cluster>,
    cluster: &'a Cluster,
    recorded: Recorded,
    noise: f64,
    base_spread: f64,
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
        let layout = layout(recording, &graph);
        let mut warnings = Vec::new();
        let mut evidence = Vec::new();
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
        let noise = spread.unwrap_or(0.0).min(MOST_NOISE);
        let n = (times.len().max(1) as f64).sqrt();
        let base_spread =
            (spread.unwrap_or(0.02) / n).hypot(fidelity).hypot(compute_spread).max(0.005);
        role_evidence(&graph, &layout, &mut evidence);
        Ok(Self {
            graph,
            layout,
            transfers,
            from,
            cluster,
            recorded,
            noise,
            base_spread,
            evidence,
            warnings,
        })
    }

    /// Simulates one job size; communication at its central, low and high time.
    fn simulate_size(&self, gpus: u32, options: &PredictOptions) -> Result<Simulated> {
        let replicas = self.replicas(gpus)?;
        let mut graph = self.graph.clone();
        let mut costs = self.costs(&graph, gpus, replicas)?;
        let inserted = self.insert_gradients(&mut graph, gpus, replicas, options, &mut costs)?;
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
        let job = Job::uniform(graph, u64::from(gpus.max(1)));
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
        let critical_path = critical_path(&timeline, &job, last);
        let collectives = self.summary(graph, &costs, gpus, replicas, inserted);
        Ok(Simulated {
            value: value + straggling,
            low: low + straggling,
            high: high + straggling,
            straggling,
            converged,
            breakdown: parts,
            collectives,
            critical_path,
        })
    }

    fn replicas(&self, gpus: u32) -> Result<u32> {
        let size = self.layout.replica_size;
        if gpus == 0 || gpus % size != 0 {
            let below = (gpus / size) * size;
            let near =
                if below == 0 { format!("{size}") } else { format!("{below} or {}", below + size) };
            return Err(InputError::new(format!(
                "{gpus} devices cannot hold whole replicas: the recorded model replica takes {size}"
            ))
            .hint(format!("ask for {near} devices")));
        }
        self.cluster.nodes_for(u64::from(gpus))?;
        Ok(gpus / size)
    }

    /// Time of every recorded collective at a size.
    fn costs(&self, graph: &StepGraph, gpus: u32, replicas: u32) -> Result<Vec<(NodeId, Cost)>> {
        let mut fabrics: FxHashMap<Option<u32>, Fabrics> = FxHashMap::default();
        let mut costs = Vec::new();
        for node in collectives(graph) {
            let key = node.group.map(|g| g.get());
            if !fabrics.contains_key(&key) {
                fabrics.insert(key, self.fabrics(graph, &node, replicas)?);
            }
            costs.push((node.id, self.cost(&node, &fabrics[&key], gpus)));
        }
        Ok(costs)
    }

    /// Measured first: on the fabric it was measured on a transfer keeps its time, on another it is
    /// scaled by the model's ratio; only where neither is possible does the model speak alone.
    fn cost(&self, node: &CollectiveNode, fabrics: &Fabrics, gpus: u32) -> Cost {
        let transfer = self.transfers.of(node.id, node.work);
        let wait = (node.work - transfer).clamp_positive();
        let ranks = fabrics.to.as_ref().map_or(gpus, |to| to.ranks);
        if ranks <= 1 && fabrics.to.is_some() {
            // A group of one member neither moves data nor waits.
            return Cost {
                time: Estimate::exact(Nanos::ZERO),
                wait: Nanos::ZERO,
                ratio: 0.0,
                ranks,
            };
        }
        let call =
            node.bytes.map(|bytes| CollectiveCall { kind: node.kind, bytes, dtype: node.dtype });
        match (call, &fabrics.from, &fabrics.to) {
            (Some(call), Some(from), Some(to)) => {
                let Rescaled { time, ratio, .. } = rescale(transfer, &call, from, to);
                Cost { time, wait, ratio, ranks }
            }
            (Some(call), None, Some(to)) if !fabrics.same_size => Cost {
                time: foretrain_cost::collective_time(&call, to).time,
                wait,
                ratio: 1.0,
                ranks,
            },
            _ => {
                let spread = if fabrics.same_size { 0.1 } else { 0.3 };
                let time = Estimate::with_relative_spread(transfer, spread);
                Cost { time, wait, ratio: 1.0, ranks }
            }
        }
    }

    /// The fabric under a node's group, as recorded and as asked for.
    fn fabrics(&self, graph: &StepGraph, node: &CollectiveNode, replicas: u32) -> Result<Fabrics> {
        let Some(group) = node.group else {
            return Ok(Fabrics { from: None, to: None, same_size: true });
        };
        let (recorded, scaled) = self.placements(graph, group.index(), replicas);
        let from = match &self.from {
            Some(from) => Some(Fabric::for_group(from, &recorded)?),
            None => None,
        };
        let to = Fabric::for_group(self.cluster, &scaled)?;
        Ok(Fabrics { from, to: Some(to), same_size: recorded.ranks() == scaled.ranks() })
    }

    fn placements(
        &self,
        graph: &StepGraph,
        group: usize,
        replicas: u32,
    ) -> (GroupPlacement, GroupPlacement) {
        let role = self.role(group);
        let members = graph.groups.get(group);
        let size = members.map_or(self.layout.world_size, |g| g.size).max(1);
        let stride = members.and_then(|g| stride(&g.ranks)).unwrap_or(if role.grows() {
            self.layout.replica_size
        } else {
            1
        });
        let scaled = if role.grows() { replicas } else { size };
        (GroupPlacement::strided(size, stride), GroupPlacement::strided(scaled, stride))
    }

    fn role(&self, group: usize) -> Role {
        self.layout.roles.get(group).map_or(Role::Unknown, |r| r.role)
    }

    /// Builds gradient buckets where the recording has one replica and the size asked for more.
    fn insert_gradients(
        &self,
        graph: &mut StepGraph,
        gpus: u32,
        replicas: u32,
        options: &PredictOptions,
        costs: &mut Vec<(NodeId, Cost)>,
    ) -> Result<usize> {
        let synchronises = self.layout.roles.iter().any(|r| r.role.grows());
        if synchronises || replicas <= 1 || !has_backward(graph) {
            return Ok(0);
        }
        if let Some(bytes) = options.gradient_bytes {
            spread_gradients(graph, bytes);
        }
        let placement = GroupPlacement::strided(replicas, self.layout.replica_size);
        let fabric = Fabric::for_group(self.cluster, &placement)?;
        let group = Group {
            name: format!("data-parallel ({replicas} replicas)"),
            role: Role::DataParallel.as_str().into(),
            size: replicas,
            ranks: Vec::new(),
        };
        let mut times = Vec::new();
        let inserted = insert_ddp(graph, options.buckets, group, &mut |bytes| {
            let call = CollectiveCall::new(CollectiveKind::AllReduce, bytes);
            let time = foretrain_cost::collective_time(&call, &fabric).time;
            times.push(time);
            time.value
        })?;
        for (&id, time) in inserted.nodes.iter().zip(times) {
            costs.push((id, Cost { time, wait: Nanos::ZERO, ratio: 1.0, ranks: replicas }));
        }
        debug_assert!(gpus >= replicas);
        Ok(inserted.nodes.len())
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
        simulated: &Simulated,
        one: Nanos,
        recorded: Nanos,
        options: &PredictOptions,
    ) -> Result<SizePrediction> {
        let replicas = self.replicas(gpus)?;
        let value = simulated.value.nanos().max(1) as f64;
        let half = |end: Nanos| {
            (end.nanos().max(1) as f64 / value).ln().abs() / foretrain_core::estimate::Z80
        };
        let communication = half(simulated.low).max(half(simulated.high));
        let straggling = 0.5 * simulated.straggling.nanos() as f64 / value;
        let spread = self.base_spread.hypot(communication).hypot(straggling);
        let step_time = Estimate::with_relative_spread(simulated.value, spread);
        // T(1) and T(N) share the recording's own uncertainty; only what differs counts.
        let difference = communication.hypot(straggling);
        let factor = one.nanos() as f64 / value;
        let per_second: Estimate<f64> = step_time.map(|ns| f64::from(replicas) * 1e9 / ns.max(1.0));
        Ok(SizePrediction {
            gpus,
            nodes: self.cluster.nodes_for(u64::from(gpus))?,
            replicas,
            step_time,
            throughput: per_second,
            samples_per_second: options.replica_batch.map(|b| per_second.map(|r| r * b)),
            scaling_factor: Estimate::with_relative_spread(factor, difference),
            efficiency: recorded.nanos() as f64 / value,
            breakdown: simulated.breakdown.clone(),
            collectives: simulated.collectives.clone(),
            critical_path: simulated.critical_path.clone(),
            converged: simulated.converged,
        })
    }

    fn summary(
        &self,
        graph: &StepGraph,
        costs: &[(NodeId, Cost)],
        gpus: u32,
        replicas: u32,
        inserted: usize,
    ) -> Vec<ScaledCollective> {
        debug_assert!(inserted <= costs.len() && gpus >= replicas);
        let mut found: Vec<ScaledCollective> = Vec::new();
        for (id, cost) in costs {
            let node = graph.node(*id);
            let kind = node.collective.unwrap_or(CollectiveKind::Unknown);
            let group = node.group.map(|g| g.index());
            let name = group.map_or("", |g| graph.groups[g].name.as_str());
            let like = found
                .iter_mut()
                .find(|c| c.kind == kind && c.group == name && c.bytes == node.bytes);
            match like {
                Some(like) => like.count += 1,
                None => found.push(ScaledCollective {
                    kind,
                    group: name.to_owned(),
                    role: group
                        .map_or(Role::Unknown, |g| {
                            if g < self.layout.roles.len() {
                                self.role(g)
                            } else {
                                Role::DataParallel
                            }
                        })
                        .as_str(),
                    ranks: cost.ranks,
                    bytes: node.bytes,
                    count: 1,
                    each: cost.time,
                }),
            }
        }
        found.sort_by_key(|c| std::cmp::Reverse(c.each.value.nanos() * c.count as i64));
        found
    }

    fn collective_evidence(&self, options: &PredictOptions) -> Vec<Evidence> {
        let asked = options.gpus.iter().max().copied().unwrap_or(1);
        let Ok(replicas) = self.replicas(asked) else { return Vec::new() };
        let Ok(costs) = self.costs(&self.graph, asked, replicas) else { return Vec::new() };
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
        if !self.layout.roles.iter().any(|r| r.role.grows())
            && replicas > 1
            && has_backward(&self.graph)
        {
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

/// The fabric under a group: where it was recorded, and where it is asked for.
struct Fabrics {
    from: Option<Fabric>,
    to: Option<Fabric>,
    /// Whether the group has as many members as recorded.
    same_size: bool,
}

/// The cost of one communication node at one size.
#[derive(Clone, Debug)]
struct Cost {
    time: Estimate<Nanos>,
    wait: Nanos,
    ratio: f64,
    ranks: u32,
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
    match order.get(order.len() / 2) {
        Some(&(_, i)) => Ok(i),
        None => Err(recordings.first().map_or_else(|| InputError::new("no trace given"), no_step)),
    }
}

fn no_step(recording: &Recording) -> InputError {
    InputError::new("the trace holds no host or device work, so there is no step to predict from")
        .in_file(&recording.trace.meta.path)
        .hint("record with ProfilerActivity.CPU (and CUDA) around at least one whole step")
}

fn layout(recording: &Recording, graph: &StepGraph) -> Layout {
    let roles = group_roles(graph);
    let world_size = recording.world_size();
    let size = |r: &GroupRole| graph.groups[r.group].size.max(1);
    let growing = roles.iter().filter(|r| r.role.grows()).map(size).max();
    let fixed = |role: Role| roles.iter().filter(|r| r.role == role).map(size).max().unwrap_or(1);
    let replica_size = match growing {
        Some(growing) => (world_size / growing.max(1)).max(1),
        None => {
            let product = fixed(Role::TensorParallel).saturating_mul(fixed(Role::PipelineParallel));
            product.clamp(1, world_size)
        }
    };
    Layout { world_size, replica_size, roles }
}

fn role_evidence(graph: &StepGraph, layout: &Layout, evidence: &mut Vec<Evidence>) {
    for role in &layout.roles {
        let group = &graph.groups[role.group];
        evidence.push(Evidence::new(
            EvidenceKind::Inferred,
            format!("group {} is {}", group.name, role.role.as_str()),
            role.reason.clone(),
            0.0,
        ));
    }
}

fn describe_base(
    times: &[f64],
    spread: Option<f64>,
    fidelity: f64,
    evidence: &mut Vec<Evidence>,
    warnings: &mut Vec<String>,
) {
    let n = times.len();
    let source = match spread {
        Some(spread) => format!("median of {n} recorded steps, spread {:.1} %", spread * 100.0),
        None => format!("{n} recorded step, spread unknown"),
    };
    evidence.push(Evidence::new(EvidenceKind::Measured, "step", source, spread.unwrap_or(0.02)));
    let source = format!("replay differs from the recording by {:.1} %", fidelity * 100.0);
    evidence.push(Evidence::new(EvidenceKind::Measured, "step graph", source, fidelity));
    if spread.is_none() {
        warnings.push("one recorded step only: its noise is unknown, and waiting for the slowest of more ranks is not included".into());
    }
    if fidelity > 0.05 {
        warnings.push(format!(
            "the steady step replays {:.0} % off the recorded median: the recorded steps differ from each other, or the run had not settled",
            fidelity * 100.0
        ));
    }
}

fn warn_about_answer(sizes: &[SizePrediction], warnings: &mut Vec<String>) {
    let Some(first) = sizes.first() else { return };
    let total = first.breakdown.total().nanos().max(1) as f64;
    let share = |time: Nanos| time.nanos() as f64 / total;
    let idle = share(first.breakdown.time(|o| matches!(o, Owner::LaunchBound | Owner::Host)));
    let on_path: Nanos =
        first.critical_path.iter().filter(|part| part.kind == "host").map(|part| part.time).sum();
    let has_device = first.critical_path.iter().any(|part| part.kind == "kernel")
        || first.breakdown.time(|o| *o == Owner::LaunchBound) > Nanos::ZERO;
    if has_device && (idle > 0.3 || share(on_path) > 0.5) {
        warnings.push(format!(
            "host-bound: host work makes up {:.0} % of the critical path and the device idles {:.0} % of the step; a faster device or network will not shorten it (launch less: CUDA graphs, fused or larger kernels, less Python per step)",
            share(on_path).min(1.0) * 100.0,
            idle * 100.0
        ));
    }
    let input = first.breakdown.time(|o| *o == Owner::Input);
    if share(input) > 0.1 {
        warnings
            .push(format!("input-bound: {:.0} % of the step waits for data", share(input) * 100.0));
    }
    if sizes.iter().any(|s| !s.converged) {
        warnings.push("simulated step times had not settled; the last one is shown".into());
    }
}

/// The steady step time of a graph.
fn settled(graph: &StepGraph) -> Result<(Nanos, bool)> {
    let job = Job::uniform(graph.clone(), 1);
    settled_timeline(&job).map(|(_, step, converged)| (step, converged))
}

fn settled_timeline(job: &Job) -> Result<(Timeline, Nanos, bool)> {
    let source = &job.classes[0].graph.meta.source;
    for iterations in [ITERATIONS, MORE_ITERATIONS] {
        let timeline = run(job, &SimOptions::iterations(iterations), source)?;
        let steady = timeline.steady_step_time();
        if steady.converged(TOLERANCE) || iterations == MORE_ITERATIONS {
            let converged = steady.converged(TOLERANCE);
            return Ok((timeline, steady.step, converged));
        }
    }
    Err(InputError::new("no iterations were simulated"))
}

fn critical_path(timeline: &Timeline, job: &Job, iteration: usize) -> Vec<CriticalPart> {
    let graph = &job.classes[0].graph;
    let Ok(path) = timeline.critical_path(job, 0, iteration) else { return Vec::new() };
    let class = &timeline.classes[0];
    let mut parts: Vec<CriticalPart> = Vec::new();
    let mut slots: FxHashMap<(String, &str), usize> = FxHashMap::default();
    for step in &path {
        if step.iteration != iteration {
            continue;
        }
        let row = class.row(step.iteration, step.node);
        let time = class.end[row] - class.start[row];
        let name: String = graph.name(step.node).chars().take(80).collect();
        let kind = graph.kind(step.node).as_str();
        let slot = *slots.entry((name.clone(), kind)).or_insert_with(|| {
            let part = CriticalPart { name, kind: kind.into(), time: Nanos::ZERO, count: 0 };
            parts.push(part);
            parts.len() - 1
        });
        parts[slot].time += time;
        parts[slot].count += 1;
    }
    parts.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
    parts
}

fn relative_difference(a: Nanos, b: Nanos) -> f64 {
    if b == Nanos::ZERO { 0.0 } else { ((a - b).nanos() as f64 / b.nanos() as f64).abs() }
}

fn has_backward(graph: &StepGraph) -> bool {
    graph.node_ids().any(|id| {
        let node = graph.node(id);
        node.phase == Phase::Backward
            && matches!(node.kind, NodeKind::HostSegment | NodeKind::Kernel)
    })
}

/// Spreads gradient bytes of unknown position evenly over the backward pass.
fn spread_gradients(graph: &mut StepGraph, bytes: Bytes) {
    let points: Vec<NodeId> = graph
        .node_ids()
        .filter(|&id| {
            let node = graph.node(id);
            node.phase == Phase::Backward && node.kind == NodeKind::HostSegment
        })
        .collect();
    let count = points.len().max(1) as u64;
    for (i, id) in points.into_iter().enumerate() {
        let share = bytes.get() / count + u64::from((i as u64) < bytes.get() % count);
        let share = i64::try_from(share).unwrap_or(i64::MAX);
        graph.node_attributes.set_i64(well_known::GRADIENT_BYTES, id.index(), share);
    }
}

/// Distance between neighbouring ranks of a group, if it is constant.
fn stride(ranks: &[u32]) -> Option<u32> {
    let step = ranks.get(1)?.checked_sub(*ranks.first()?)?;
    ranks.windows(2).all(|w| w[1].checked_sub(w[0]) == Some(step)).then_some(step)
}
