//! Closed forms of what a step moves against what strategies place.

use foretrain_cost::{Synchronisation, SynchronisedStep, bus_factor};

use super::*;

/// Gradients of the test's step.
const ALL: u64 = 60_000;
/// The unit that is first in the backward pass: it is still there from the forward pass, so nothing
/// gathers it again. The closed form counts it.
const KEPT: f64 = 30_000.0;

/// What one rank sends over all its links per step, by the operations placed.
fn placed(text: &str, costs: &Line) -> f64 {
    let (_, applied) = apply(text, costs);
    let calls = applied.placed.iter().filter_map(|placed| placed.call);
    calls.map(|call| bus_factor(call.kind, call.scope.size) * call.bytes.as_f64()).sum()
}

fn step_of(way: Synchronisation, replicas: u32, per_node: u32, micro: u32) -> SynchronisedStep {
    SynchronisedStep {
        way,
        parameters: Bytes::new(ALL),
        gradients: Bytes::new(ALL),
        replicas,
        per_node,
        micro_batches: micro,
        deferred: true,
    }
}

#[test]
fn strategies_place_what_the_closed_forms_say() {
    use Synchronisation::{AllReduce, Zero1, Zero2, Zero3};
    for (replicas, micro) in [(4, 1), (8, 3), (16, 2)] {
        let costs = Line::new(replicas, 4);
        for (way, passes) in [
            (AllReduce, "ddp"),
            (AllReduce, "wfbp"),
            (AllReduce, "bsp"),
            (Zero1, "zero(1)"),
            (Zero2, "zero(2)"),
            (Zero3, "zero(3)"),
            (Zero3, "fully-shard"),
        ] {
            let expected = step_of(way, replicas, 4, micro).per_rank().total();
            let passes = match passes {
                // Presets fuse, which comes after the passes that change the step.
                "ddp" => format!("accumulate({micro}) | fuse(25MiB, first=1MiB)"),
                "wfbp" => format!("accumulate({micro}) | library"),
                "bsp" => format!("accumulate({micro}) | fuse(1TiB) | after-backward"),
                other => format!("accumulate({micro}) | {other}"),
            };
            let share = f64::from(replicas - 1) / f64::from(replicas);
            let kept = if way == Zero3 { f64::from(micro) * share * KEPT } else { 0.0 };
            let found = placed(&passes, &costs) + kept;
            assert!(
                (found / expected - 1.0).abs() < 1e-9,
                "{passes} on {replicas}: {found} {expected}"
            );
        }
    }
}

#[test]
fn hybrid_sharding_places_what_the_closed_form_says() {
    for (replicas, micro) in [(8, 1), (16, 3)] {
        let costs = Line::new(replicas, 4);
        let expected = step_of(Synchronisation::Hybrid, replicas, 4, micro);
        let passes = format!("accumulate({micro}) | fully-shard(hybrid=true)");
        let found = placed(&passes, &costs) + f64::from(micro) * 0.75 * KEPT;
        let volume = expected.per_rank().total();
        assert!((found / volume - 1.0).abs() < 1e-9, "{replicas}: {found} {volume}");
    }
}

#[test]
fn servers_send_what_the_closed_form_says() {
    for replicas in [8, 16, 32] {
        let costs = Line::new(replicas, 4);
        let (graph, applied) = apply("fuse(1GiB) | push-pull", &costs);
        let out = sent(&graph, &applied);
        let expected = step_of(Synchronisation::Servers, replicas, 4, 1).per_node().total();
        assert!((out as f64 - expected).abs() <= 2.0, "{replicas}: {out} {expected}");
    }
}
