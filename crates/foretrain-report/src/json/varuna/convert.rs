//! From answers to their JSON.

use foretrain_core::{Bytes, Nanos};
use foretrain_plan::varuna::compare::Compared;
use foretrain_plan::varuna::morph::{Cost, Morph, Morphing};
use foretrain_plan::varuna::plan::{Candidate, Owner, Plan, PlanOptions, Reason, Refused};
use foretrain_plan::varuna::profile::{Filled, Profile};
use foretrain_plan::varuna::simulate::Distribution;

use super::super::common::finite;
use super::{
    VarunaAccountReport, VarunaCandidateReport, VarunaCostReport, VarunaDistributionReport,
    VarunaFilledReport, VarunaMorphReport, VarunaMorphingReport, VarunaPlanReport,
    VarunaRefusedReport, VarunaScheduleReport, VarunaShareReport, VarunaSimulateReport,
    VarunaSlowReport, VarunaStageReport, VarunaTaskReport, VarunaUnusableReport,
};

impl VarunaPlanReport {
    /// A report of a plan.
    pub fn new(profile: &Profile, options: &PlanOptions, plan: &Plan) -> Self {
        Self {
            schema: "foretrain/varuna-plan/1".into(),
            model: profile.model.clone(),
            gpus: options.gpus,
            batch: options.batch,
            gpu_memory_bytes: options.gpu_memory.map(Bytes::get),
            ranked: plan.ranked.iter().map(Into::into).collect(),
            refused: plan.refused.iter().map(Into::into).collect(),
            filled: filled(&plan.filled),
            notes: plan.notes.clone(),
        }
    }
}

impl VarunaSimulateReport {
    /// A report of schedules of one pipeline.
    pub fn new(all: &[Compared]) -> Self {
        let first = all.first().map(|one| &one.step);
        Self {
            schema: "foretrain/varuna-simulate/1".into(),
            stages: first.map_or(0, |step| step.pipeline().stages().len()),
            micro_batches: first.map_or(0, foretrain_plan::varuna::simulate::Step::micro_batches),
            schedules: all.iter().map(Into::into).collect(),
        }
    }
}

impl VarunaMorphReport {
    /// A report of a job on preemptible machines.
    pub fn new(morph: &Morph) -> Self {
        let account = morph.account;
        let slow = morph.excluded.iter().map(|slow| VarunaSlowReport {
            machine: slow.name.clone(),
            stage: slow.stage.clone(),
            over_median: finite(slow.over_median),
        });
        let unusable = morph
            .unusable
            .iter()
            .map(|(gpus, reason)| VarunaUnusableReport { gpus: *gpus, reason: reason.clone() });
        Self {
            schema: "foretrain/varuna-morph/1".into(),
            length_ns: morph.length.nanos(),
            samples: morph.samples,
            account: VarunaAccountReport {
                training_ns: account.training.nanos(),
                lost_ns: account.lost.nanos(),
                checkpoints_ns: account.checkpoints.nanos(),
                restarting_ns: account.restarting.nanos(),
                starved_ns: account.starved.nanos(),
            },
            preemptible: morph.preemptible.into(),
            dedicated: morph.dedicated.map(Into::into),
            plans: morph.morphings.iter().map(Into::into).collect(),
            excluded: slow.collect(),
            unusable: unusable.collect(),
            filled: filled(&morph.filled),
        }
    }
}

fn filled(filled: &Filled) -> Vec<VarunaFilledReport> {
    let each = filled.notes.iter();
    each.map(|(kind, what)| VarunaFilledReport { kind: (*kind).into(), example: what.clone() })
        .collect()
}

fn share(owner: Owner, time: Nanos) -> VarunaShareReport {
    VarunaShareReport { owner: owner.as_str().into(), time_ns: time.nanos() }
}

impl From<&Candidate> for VarunaCandidateReport {
    fn from(one: &Candidate) -> Self {
        let stages = one.stages.iter().enumerate().map(|(index, stage)| VarunaStageReport {
            first_cut_point: stage.cut_points.start,
            cut_points: stage.cut_points.len(),
            forward_ns: stage.time.forward.nanos(),
            backward_ns: stage.time.backward.nanos(),
            activation_bytes: stage.activation.map(Bytes::get),
            message_ns: one.pipeline.messages().get(index).map(|time| time.nanos()),
        });
        let shares = Owner::ALL.into_iter().map(|owner| share(owner, one.shares.of(owner)));
        Self {
            schedule: one.schedule.as_str().into(),
            dealt: one.balance.as_str().into(),
            stages: stages.collect(),
            replicas: one.replicas,
            idle_gpus: one.idle_gpus,
            micro_batch: one.micro_batch,
            micro_batches: one.micro_batches,
            samples: one.samples,
            dropped: one.dropped,
            step_ns: one.step.nanos(),
            pipeline_ns: one.makespan.nanos(),
            all_reduce_ns: one.all_reduce.nanos(),
            update_ns: one.update.nanos(),
            throughput: finite(one.throughput()),
            bubble: finite(one.bubble),
            distribution: one.distribution.as_ref().map(Into::into),
            memory_bytes: one.memory.map(Bytes::get),
            shares: shares.collect(),
            slower: finite(one.slower),
            lost_to: one.lost_to.map(|(owner, time)| share(owner, time)),
        }
    }
}

impl From<&Distribution> for VarunaDistributionReport {
    fn from(found: &Distribution) -> Self {
        Self {
            draws: found.draws,
            seed: found.jitter.seed(),
            compute_sigma_ns: found.jitter.compute().nanos(),
            network_sigma_ns: found.jitter.network().nanos(),
            p5_ns: found.p5.nanos(),
            p50_ns: found.p50.nanos(),
            p95_ns: found.p95.nanos(),
            mean_ns: found.mean.nanos(),
        }
    }
}

impl From<&Refused> for VarunaRefusedReport {
    fn from(why: &Refused) -> Self {
        let (kind, over) = match &why.reason {
            Reason::Gpus { .. } => ("gpus", None),
            Reason::Batch { .. } => ("batch", None),
            Reason::Memory { needed, there, .. } => ("memory", Some((*needed - *there).get())),
            Reason::Unknown(_) => ("unknown", None),
        };
        Self {
            schedule: why.schedule.as_str().into(),
            stages: why.stages,
            dealt: why.balance.as_str().into(),
            micro_batch: why.micro_batch,
            kind: kind.into(),
            over_bytes: over,
            reason: why.reason.to_string(),
        }
    }
}

impl From<&Compared> for VarunaScheduleReport {
    fn from(one: &Compared) -> Self {
        let tasks = one.run.slices.iter().map(|slice| VarunaTaskReport {
            stage: slice.stage,
            work: slice.task.work.as_str().into(),
            micro_batch: slice.task.micro_batch,
            start_ns: slice.start.nanos(),
            end_ns: slice.end.nanos(),
        });
        Self {
            schedule: one.step.schedule().as_str().into(),
            pipeline_ns: one.run.makespan.nanos(),
            step_ns: one.time().nanos(),
            bubble: finite(one.run.bubble()),
            busy_ns: one.run.busy.iter().map(|time| time.nanos()).collect(),
            in_flight: one.run.in_flight.clone(),
            distribution: one.distribution.as_ref().map(Into::into),
            timeline: tasks.collect(),
        }
    }
}

impl From<Cost> for VarunaCostReport {
    fn from(cost: Cost) -> Self {
        Self {
            gpus: finite(cost.gpus),
            goodput: finite(cost.goodput),
            gpu_hour: cost.gpu_hour.map(finite),
            per_million_samples: cost.per_million.map(finite),
        }
    }
}

impl From<&Morphing> for VarunaMorphingReport {
    fn from(one: &Morphing) -> Self {
        Self {
            at_ns: one.at.nanos(),
            cause: one.cause.as_str().into(),
            resumed_ns: one.resumed.nanos(),
            gpus: one.gpus,
            stages: one.stages,
            replicas: one.replicas,
            micro_batch: one.micro_batch,
            micro_batches: one.micro_batches,
            throughput: finite(one.throughput),
            lost_steps: one.lost_steps,
        }
    }
}
