//! Passes that repeat parts of the step.

use super::*;

#[test]
fn deferred_accumulation_synchronises_once() {
    // Two micro-batches of 90 us; gradients of the second at 140, 160, 180; then as without.
    assert_eq!(step_us("accumulate(2)"), 90.0 + 118.0);
    let (graph, applied) = apply("accumulate(3)", &Line::new(4, 1));
    assert_eq!((applied.placed.len(), applied.gradients), (3, 3));
    assert_eq!(graph.node_count(), 7 + 2 * 6 + 3);
}

#[test]
fn each_micro_batch_may_synchronise() {
    // The next micro-batch waits for the exchanges of the one before: 113 + 113 + 5.
    assert_eq!(step_us("accumulate(2, deferred=false)"), 231.0);
}

#[test]
fn averages_now_and_then() {
    // Two steps of 95 us, then 63 us of parameters in the open, per step half of it.
    assert_eq!(step_us("local-sgd(2)"), (2.0 * 95.0 + 63.0) / 2.0);
    assert_eq!(step_us("local-sgd(10)"), 95.0 + 6.3);
}
