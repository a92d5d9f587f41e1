//! From flows to the times of each step.

use foretrain_core::{Nanos, Result};
use foretrain_cost::congestion::{Concurrent, Conditions, CongestedTime, congestion};
use foretrain_cost::{CollectiveCall, Terms, collective_time};
use foretrain_hardware::Cluster;
use foretrain_hardware::topology::Degradation;

use super::super::answer::{Point, Sweep};
use super::placed::Placed;
use super::{Stage, Step, StepKind, StepPoint, culprit};

/// Flows this much longer than the closed form are worth a word.
const APART: f64 = 1.1;

impl Stage {
    /// More load and less to carry it: what looks like a gain is a lucky detour.
    fn never_gains(&self) -> bool {
        matches!(self.kind, StepKind::Concurrent | StepKind::Degrade)
    }
}

/// Adds the steps of `stages` to a sweep of the group at `placed`, and a note if flows already find
/// the cluster as it is slower than the closed form.
pub(super) fn add_steps(
    cluster: &Cluster,
    placed: &Placed,
    stages: &[Stage],
    sweep: &mut Sweep,
) -> Result<()> {
    let begin = |stage: &Stage| {
        let (kind, what) = (stage.kind, stage.what.clone());
        Step { kind, what, points: Vec::with_capacity(sweep.points.len()) }
    };
    let mut steps: Vec<Step> = stages.iter().map(begin).collect();
    let mut apart = None;
    for point in &sweep.points {
        let call = CollectiveCall::new(sweep.setting.kind, point.size);
        let own = point.predicted.terms;
        let mut flows = transfer(cluster, placed, call, &[])?.transfer;
        apart = Some((point.size, ratio(flows, own.transfer)));
        let mut now = own.transfer;
        for (stage, step) in stages.iter().zip(&mut steps) {
            let found = transfer(&stage.cluster, &stage.placed, call, &stage.degradations)
                .map_err(|error| culprit::named(error, stage, call))?;
            let mut change = ratio(found.transfer, flows);
            if stage.never_gains() {
                change = change.max(1.0);
            }
            // Where the closed form has not seen what a step removes, nothing is gained.
            now = now.scale(change).max(now.min(found.least_transfer));
            flows = found.transfer;
            let place = stage.place.as_ref();
            let terms = place.map(|place| collective_time(&call, &place.fabric).terms);
            step.points.push(step_point(point, whole(point, terms, now), found.bottleneck));
        }
    }
    sweep.steps = steps;
    let kind = sweep.setting.kind;
    sweep.notes.extend(apart.filter(|(_, ratio)| *ratio > APART).map(|(size, ratio)| {
        format!(
            "flow by flow, {kind} of {size} transfers {ratio:.2} times as long as the closed form says of \
             the cluster as it is; what-ifs start from the closed form"
        )
    }));
    Ok(())
}

fn ratio(now: Nanos, before: Nanos) -> f64 {
    if before > Nanos::ZERO { now.nanos() as f64 / before.nanos() as f64 } else { 1.0 }
}

/// The slowest group, flow by flow.
///
/// # Errors
/// If its ranks are cut off, or the network cannot be simulated.
pub(super) fn transfer(
    cluster: &Cluster,
    placed: &Placed,
    call: CollectiveCall,
    degradations: &[Degradation],
) -> Result<CongestedTime> {
    let groups: Vec<Concurrent> =
        placed.groups().map(|devices| Concurrent { devices, call, start: Nanos::ZERO }).collect();
    let conditions = Conditions { degradations: degradations.to_vec(), ..Conditions::default() };
    let times = congestion(cluster, &groups, &conditions)?;
    let slowest = times.into_iter().reduce(|a, b| if b.transfer > a.transfer { b } else { a });
    slowest.ok_or_else(|| foretrain_core::InputError::new("no group takes part"))
}

/// The time with another transfer, and launch, hops and reduction of `terms` if those are others.
fn whole(point: &Point, terms: Option<Terms>, transfer: Nanos) -> Nanos {
    let own = &point.predicted.terms;
    let fixed = |terms: &Terms| terms.launch + terms.propagation + terms.reduction;
    let more = terms.map_or(Nanos::ZERO, |terms| fixed(&terms) - fixed(own));
    point.predicted.time.value + more + (transfer - own.transfer)
}

fn step_point(point: &Point, time: Nanos, bottleneck: Option<String>) -> StepPoint {
    let predicted = &point.predicted;
    let own = predicted.time.value.nanos() as f64;
    let times = if own > 0.0 { time.nanos() as f64 / own } else { 1.0 };
    StepPoint {
        time: predicted.time.map(|ns| ns * times),
        bus_bandwidth: predicted.bus_bandwidth / times,
        times,
        bottleneck,
    }
}
