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

#[test]
fn copies_delay_the_backward_pass_and_the_optimiser() {
    // Copies of 2 us. The second gradient is ready at 50 + 2 + 20 + 2 = 74, the third at 96.
    let mut costs = Line::new(4, 1);
    costs.primitives.copy = LinearCost::new(2e3, 0.0);
    // 52-83, 83-104, 104-115, each copied back as it comes: the last at 115-117.
    assert_eq!(step_us_among("copies", &costs), 117.0 + 5.0);
    // One bucket: 96 + 61 + 2 + 5.
    assert_eq!(step_us_among("copies | fuse(1GiB)", &costs), 164.0);
    // Slow ones hide all communication: three in, three out.
    costs.primitives.copy = LinearCost::new(40e3, 0.0);
    assert_eq!(step_us_among("copies", &costs), 90.0 + 6.0 * 40.0 + 5.0);
}

#[test]
fn buffers_are_waited_for() {
    // 118 us, and 1 + 4 us before the forward pass.
    assert_eq!(step_us("buffers(4kB)"), 123.0);
}
