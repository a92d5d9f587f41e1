//! The steady step of small recordings.

use foretrain_core::Ledger;

use super::*;
use crate::build::{Context, build_steps};
use crate::category::Category;
use crate::collectives::recognise;
use crate::collectives::testing::Builder;
use crate::index::TraceIndex;
use crate::steps::find_steps;

/// Steps of eight operators of 100 us, one of which takes longer: `(which, by how many us)`.
fn steady(pauses: &[(usize, i64)]) -> StepGraph {
    let mut b = Builder::new();
    let mut at = 0;
    for (number, &(paused, pause)) in pauses.iter().enumerate() {
        b.row(Category::UserAnnotation, &format!("ProfilerStep#{number}"), 0, (at, 800 + pause));
        for operator in 0..8 {
            let time = if operator == paused { 100 + pause } else { 100 };
            b.row(Category::CpuOp, &format!("aten::op{operator}"), 0, (at, time));
            at += time;
        }
    }
    let mut ledger = Ledger::new();
    let index = TraceIndex::new(&b.trace, &mut ledger);
    let collectives = recognise(&b.trace, &mut ledger);
    let steps = find_steps(&b.trace, &index, None, &mut ledger);
    let context = Context::new(&b.trace, &index, &collectives, &steps);
    let graphs = build_steps(&context, &mut ledger);
    steady_step(&graphs, &steps, &context.typical, None).expect("steps")
}

fn total_micros(graph: &StepGraph) -> i64 {
    graph.node_ids().map(|id| graph.work(id).nanos()).sum::<i64>() / 1000
}

#[test]
fn pauses_that_meet_other_operators_in_every_step_are_not_lost() {
    // By operator, no pause is usual; by step, one of 4 ms is.
    let graph = steady(&[(1, 4000), (5, 4100)]);
    let total = total_micros(&graph);
    assert!((4790..=4810).contains(&total), "{total} us");
}

#[test]
fn steps_with_a_rare_pause_count_for_nothing() {
    let graph = steady(&[(1, 10), (2, 0), (3, 9000), (4, 20), (3, 7000)]);
    let total = total_micros(&graph);
    assert!((800..=820).contains(&total), "{total} us");
    assert!(graph.meta.step.contains("3 steps"), "{}", graph.meta.step);
}
