//! From plans to their wire form.

use foretrain_plan::plan::{
    Candidate, Choice, Explained, Needs, Place, Plan, Reasons, Rival, Sensitivity,
};
use foretrain_plan::{Software, Training};

use super::{
    AtBatchReport, CandidateReport, CrossoverReport, ExplainedReport, FrontReport,
    LeftOutPlaceReport, NeedsReport, PlaceReport, PlanReport, RivalReport, SensitivityReport,
};
use crate::json::common::finite;
use crate::json::estimate::{PartReport, TrainingReport, fit};

impl PlanReport {
    /// The report of a plan; `top` layouts of each place are listed.
    pub fn new(
        model: &str,
        training: &Training,
        software: &Software,
        plan: &Plan,
        top: usize,
    ) -> Self {
        let best = plan.best.map(|best| &plan.places[best]);
        let winner = best.and_then(|place| place.winner.as_ref());
        let reasons = plan.reasons.as_ref();
        let rival = |of: fn(&Reasons) -> Option<&Rival>| reasons.and_then(of).map(Into::into);
        let front = plan.front.iter().map(|item| {
            let place = &plan.places[item.place];
            FrontReport {
                place: item.place,
                candidate: candidate(place, &place.found.ranked[item.rank]),
            }
        });
        let left_out = plan.left_out.iter().map(|out| LeftOutPlaceReport {
            cluster: out.cluster.clone(),
            devices: out.devices,
            reason: out.reason.clone(),
        });
        Self {
            schema: "foretrain/plan/1".into(),
            model: model.into(),
            software: software.name.clone(),
            training: TrainingReport::of(training),
            complete: plan.complete,
            goal_tokens: plan.goal.tokens.map(finite),
            goal_seconds: plan.goal.within.map(finite),
            places: plan.places.iter().map(|place| report(place, top)).collect(),
            best: plan.best,
            choice: word(plan.choice).into(),
            left_out: left_out.collect(),
            front: front.collect(),
            runner_up: rival(|reasons| reasons.runner_up.as_ref()),
            other_split: rival(|reasons| reasons.other_split.as_ref()),
            sensitivity: reasons
                .map(|reasons| reasons.sensitivity.iter().map(Into::into).collect())
                .unwrap_or_default(),
            needs: plan.needs.as_ref().map(Into::into),
            explained: plan.explained.as_ref().map(Into::into),
            evidence: winner
                .map(|winner| winner.evidence.iter().map(Into::into).collect())
                .unwrap_or_default(),
        }
    }
}

const fn word(choice: Choice) -> &'static str {
    match choice {
        Choice::Only => "only",
        Choice::Fastest => "fastest",
        Choice::Cheapest => "cheapest",
        Choice::CheapestInTime => "cheapest-in-time",
        Choice::NoneInTime => "none-in-time",
    }
}

fn report(place: &Place, top: usize) -> PlaceReport {
    let found = &place.found;
    PlaceReport {
        cluster: place.cluster.clone(),
        devices: place.devices,
        capacity_bytes: place.capacity.get(),
        limit_bytes: place.limit.get(),
        layouts: found.all,
        looked_at: found.looked_at,
        illegal: found.refused.illegal,
        too_large: found.refused.too_large,
        hopeless: found.refused.hopeless,
        ranked: found.ranked.iter().take(top).map(|one| candidate(place, one)).collect(),
        ranked_count: found.ranked.len(),
        fastest: place.fastest.as_ref().map(|one| candidate(place, one)),
        winner: place.winner.as_ref().map(Into::into),
        to_finish: place.horizon.as_ref().map(Into::into),
        calibrated: place.calibrated.as_ref().map(Into::into),
    }
}

fn candidate(place: &Place, one: &Candidate) -> CandidateReport {
    let (rates, time) = (&place.rates, one.time.value);
    CandidateReport {
        layout: one.layout.to_string(),
        step_time: one.time.into(),
        ties: place.ties(one),
        tokens_per_second: finite(rates.tokens_per_second(time)),
        mfu: rates.mfu(time).map(finite),
        dollars_per_million_tokens: rates.dollars_per_million(time).map(finite),
        memory_bytes: one.memory.get(),
        fits: fit(one.fit),
    }
}

impl From<&Rival> for RivalReport {
    fn from(rival: &Rival) -> Self {
        let differences =
            rival.comparison.differences.iter().map(|(part, time)| PartReport::of(*part, *time));
        let crossovers = rival.crossovers.iter().map(|crossover| CrossoverReport {
            what: crossover.what.into(),
            unit: crossover.unit.into(),
            at: crossover.at.map(finite),
            now: finite(crossover.now),
            from: finite(crossover.range.0),
            to: finite(crossover.range.1),
        });
        let by_batch = rival.by_batch.iter().map(|at| AtBatchReport {
            global_batch: at.global_batch,
            winner_ns: at.winner.nanos(),
            rival_ns: at.rival.nanos(),
        });
        Self {
            layout: (&rival.answer).into(),
            differences: differences.collect(),
            crossovers: crossovers.collect(),
            by_batch: by_batch.collect(),
        }
    }
}

impl From<&Sensitivity> for SensitivityReport {
    fn from(one: &Sensitivity) -> Self {
        Self { what: one.what.into(), saved_percent: finite(one.saved_percent) }
    }
}

impl From<&Needs> for NeedsReport {
    fn from(needs: &Needs) -> Self {
        let more = needs.more_devices.as_ref();
        Self {
            layout: needs.layout.to_string(),
            memory_bytes: needs.memory.get(),
            changes: needs.advice.iter().map(Into::into).collect(),
            more_devices: more.map(|(devices, _)| *devices),
            layout_on_more_devices: more.map(|(_, candidate)| candidate.layout.to_string()),
        }
    }
}

impl From<&Explained> for ExplainedReport {
    fn from(explained: &Explained) -> Self {
        let refused = explained.refused.as_ref();
        Self {
            asked: explained.asked.clone(),
            refused: refused.map(|(reason, _)| reason.clone()),
            hints: refused.map(|(_, hints)| hints.clone()).unwrap_or_default(),
            layout: explained.answer.as_ref().map(Into::into),
            rank: explained.rank,
            beside_winner: explained.rival.as_ref().map(Into::into),
            changes: explained.advice.iter().map(Into::into).collect(),
        }
    }
}
