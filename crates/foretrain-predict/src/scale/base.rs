//! What a prediction starts from, and how a simulated size becomes an answer.

use std::sync::Arc;

use foretrain_core::estimate::Z80;
use foretrain_core::{Estimate, Evidence, EvidenceKind, InputError, Nanos, Result};
use foretrain_cost::interference::{DeviceLimits, OverlapModel};
use foretrain_cost::own::OwnCosts;
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_rewrite::backward_passes;

use super::captured::FromCapture;
use super::contention::contention_evidence;
use super::cost::Machines;
use super::links::take_out_sharing;
use super::noise::Noise;
use super::notes::{
    describe_base, role_evidence, synchronisation_evidence, warn_about_communication,
};
use super::origin::Origin;
use super::ranks::{Class, Ranks};
use super::simulate::Simulated;
use super::slowdown::{limits, take_out_slowdown};
use super::steady::critical_path;
use super::synchronise::has_backward;
use super::unprofiled::scale_host;
use super::{PredictOptions, Start};
use crate::answer::{Recorded, SizePrediction};
use crate::devices::{ComputeScale, recorded_cluster};
use crate::own;

/// Noise beyond this is not that of independent ranks.
pub(super) const MOST_NOISE: f64 = 0.05;
/// How uncertain the step is when host work was scaled, per unit of the factor's logarithm.
const HOST_FACTOR_SPREAD: f64 = 0.25;

/// Everything that does not depend on the size asked for. Cheap to clone, so that what-ifs share it.
#[derive(Clone)]
pub(crate) struct Base<'a> {
    pub(crate) ranks: Arc<Ranks>,
    pub(crate) from: Option<Cluster>,
    pub(crate) cluster: &'a Cluster,
    /// Factor on the latency of communication: 1 but for what-ifs.
    pub(crate) latency: f64,
    /// Cores that all threads of a rank share, if that matters.
    pub(crate) cores: Option<f64>,
    pub(crate) recorded: Recorded,
    pub(crate) noise: Noise,
    /// Relative spread of the base step.
    pub(crate) spread: f64,
    /// Whether kernels keep their recorded times.
    pub(crate) is_same_device: bool,
    /// The model of things that share a device, and what the device asked about offers.
    pub(crate) interference: Option<(Arc<OverlapModel>, DeviceLimits)>,
    /// Times that the user knows better.
    pub(crate) costs: Option<Arc<dyn OwnCosts>>,
    /// Which of the options are from captures.
    pub(crate) captured: FromCapture,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) warnings: Vec<String>,
}

impl<'a> Base<'a> {
    pub(crate) fn new(
        start: Start,
        cluster: &'a Cluster,
        catalogue: &Catalogue,
        options: &PredictOptions,
    ) -> Result<Self> {
        let Start { mut ranks, sources, mut evidence, mut warnings, captured, .. } = start;
        let origin = ranks.lead().origin.clone();
        let (recorded_step, replayed) = (ranks.recorded_step(), ranks.replayed);
        let spread = origin.spread();
        let mut fidelity = relative_difference(replayed, recorded_step);
        if !origin.is_like_a_step(replayed) {
            return Err(not_reproduced(&origin, recorded_step, replayed));
        }
        describe_base(&origin, fidelity, &mut evidence, &mut warnings);
        let mut step_time = recorded_step;
        if let Some(unprofiled) = options.unprofiled_step {
            let how = FromCapture::how(captured.step);
            match scale_host(&mut ranks, unprofiled) {
                Ok(factor) => {
                    // The longer the profiler made the step, the less is known of where.
                    fidelity = fidelity.min(HOST_FACTOR_SPREAD * factor.ln().abs());
                    evidence.push(Evidence::new(
                        EvidenceKind::Measured,
                        "step without profiler",
                        format!(
                            "{unprofiled} {how}: host work takes {factor:.2} of its recorded time"
                        ),
                        fidelity,
                    ));
                    step_time = unprofiled;
                }
                // Nobody asked for it, so the answer does without.
                Err(error) if captured.step => {
                    warnings
                        .push(format!("the capture's step time is not used: {}", error.message()));
                }
                Err(error) => return Err(error),
            }
        }
        let from = match &options.recorded_on {
            Some(cluster) => Some(cluster.clone()),
            None => recorded_cluster(catalogue, &origin, &mut evidence, &mut warnings),
        };
        take_out_sharing(&mut ranks, from.as_ref(), cluster, &mut evidence)?;
        let interference = options.interference.clone().map(|model| {
            let (recorded_on, target) = limits(catalogue, &origin.device, from.as_ref(), cluster);
            let model = Arc::new(model);
            take_out_slowdown(&mut ranks, &model, recorded_on, &mut evidence);
            (model, target)
        });
        let scale = ComputeScale::new(catalogue, &origin, cluster, from.as_ref());
        let compute_spread = scale.apply(ranks.lead_graph(), &mut evidence, &mut warnings);
        for graph in ranks.other_graphs() {
            // The others' devices are the lead's; what is said of it holds for them.
            scale.apply(graph, &mut Vec::new(), &mut Vec::new());
        }
        if let Some(costs) = &options.costs {
            evidence.extend(own::apply(&**costs, ranks.lead_graph()));
            for graph in ranks.other_graphs() {
                own::apply(&**costs, graph);
            }
        }
        let lead = ranks.lead();
        role_evidence(&lead.graph, &lead.layout, &mut evidence);
        warn_about_communication(&lead.graph, &lead.layout, &mut warnings);
        let recorded = Recorded {
            sources,
            rank: origin.rank,
            simulated_ranks: ranks.classes.iter().map(|class| class.origin.rank).collect(),
            world_size: lead.layout.world_size,
            replica_size: lead.layout.replica_size,
            device: lead.graph.meta.device.clone(),
            step_source: origin.step_source.clone(),
            steps: origin.step_times.len(),
            step_time: recorded_step,
            replayed,
        };
        if let Some(spread) = options.step_spread {
            evidence.push(Evidence::new(
                EvidenceKind::Measured,
                "spread of a rank's own steps",
                format!(
                    "{:.1} % {}: ranks wait for the latest",
                    spread * 100.0,
                    FromCapture::how(captured.spread)
                ),
                0.0,
            ));
        }
        let excess = if ranks.is_joint { step_time - ranks.replayed } else { Nanos::ZERO };
        let noise = Noise {
            sigma: options.step_spread.unwrap_or_else(|| spread.unwrap_or(0.0).min(MOST_NOISE)),
            excess: excess.clamp_positive(),
            ranks: lead.layout.world_size,
        };
        Ok(Self {
            ranks: Arc::new(ranks),
            from,
            cluster,
            latency: 1.0,
            cores: options.cores,
            recorded,
            noise,
            spread: origin.base_spread().hypot(fidelity).hypot(compute_spread).max(0.005),
            is_same_device: scale.is_none(),
            interference,
            costs: options.costs.clone(),
            captured,
            evidence,
            warnings,
        })
    }

    pub(crate) fn machines<'b>(&'b self, class: &'b Class) -> Machines<'b> {
        Machines {
            layout: &class.layout,
            transfers: &class.transfers,
            alone: &class.alone,
            from: self.from.as_ref(),
            to: self.cluster,
            latency: self.latency,
            cores: self.cores,
            costs: self.costs.as_deref(),
        }
    }

    /// How many model replicas a job of `gpus` devices holds.
    pub(crate) fn replicas(&self, gpus: u32) -> Result<u32> {
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

    pub(crate) fn describe(
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
        let work = f64::from(replicas) * f64::from(simulated.batches()) * 1e9;
        let throughput: Estimate<f64> = step_time.map(|ns| work / ns.max(1.0));
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
    pub(crate) fn warn_about_synchronisation(
        &self,
        sizes: &[SizePrediction],
        warnings: &mut Vec<String>,
    ) {
        let lead = self.ranks.lead();
        if lead.layout.synchronises() || sizes.iter().all(|size| size.replicas <= 1) {
            return;
        }
        if !lead.layout.lacks_synchronisation() {
            warnings.push(format!(
                "{} replicas were recorded and no gradient synchronisation among them was recognised: what there is keeps its recorded time at every size",
                lead.layout.world_size / lead.layout.replica_size.max(1)
            ));
        } else if !has_backward(&lead.graph) {
            warnings.push(
                "the recorded step has no backward pass, so there are no gradients to synchronise: more replicas run side by side without communication between them"
                    .into(),
            );
        }
    }

    pub(crate) fn collective_evidence(&self, options: &PredictOptions) -> Vec<Evidence> {
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
        let built = lead.layout.lacks_synchronisation() || options.strategy.is_some();
        let synchronised = built && replicas > 1 && has_backward(&lead.graph);
        if synchronised {
            let when = match backward_passes(&lead.graph) {
                1 => String::new(),
                n => format!(" after the last of {n} backward passes (as under no_sync)"),
            };
            evidence.extend(synchronisation_evidence(self, lead, options, &when));
        }
        if synchronised || costs.iter().any(|(_, cost)| cost.host > 0.0) {
            evidence.extend(contention_evidence(self.cluster, options.cores));
        }
        evidence
    }
}

/// What is not understood cannot be extrapolated.
fn not_reproduced(origin: &Origin, recorded: Nanos, replayed: Nanos) -> InputError {
    InputError::new(format!(
        "the recorded steps cannot be reproduced, so nothing is predicted from them: they take {recorded}, and the usual step of rank {} replays in {replayed}",
        origin.rank
    ))
    .in_file(&origin.path)
    .hint("steps of different kinds, or boundaries in the wrong places? name the boundaries with --steps")
    .hint("record several steps of one kind, after warm-up, with profiler.step() between them")
}

fn relative_difference(a: Nanos, b: Nanos) -> f64 {
    if b == Nanos::ZERO { 0.0 } else { ((a - b).nanos() as f64 / b.nanos() as f64).abs() }
}
