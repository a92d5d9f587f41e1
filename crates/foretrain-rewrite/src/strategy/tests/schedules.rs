//! Fusing, splitting, ordering, shrinking.

use super::*;

#[test]
fn every_gradient_as_it_is_ready() {
    // 50-81, 81-102, 102-113, then the optimiser.
    assert_eq!(step_us("library"), 118.0);
    assert_eq!(step_us("wfbp"), 118.0);
}

#[test]
fn buckets() {
    // One bucket: 90 + 61 + 5.
    assert_eq!(step_us("fuse(1GiB)"), 156.0);
    // 30 and 20 kB close a bucket at 70: 70-121, 121-132.
    assert_eq!(step_us("fuse(50kB)"), 137.0);
    // A small first bucket lets the first go at 50: 50-81; the others at 90-121.
    assert_eq!(step_us("fuse(50kB, first=1kB)"), 126.0);
}

#[test]
fn after_the_backward_pass() {
    assert_eq!(step_us("after-backward"), 90.0 + 31.0 + 21.0 + 11.0 + 5.0);
    assert_eq!(step_us("bsp"), 156.0);
}

#[test]
fn horovod_waits_for_the_end_of_a_cycle() {
    // Cycles of 30 us counted from half a cycle before 50: [35, 65) holds 50, [65, 95) holds 70
    // and 90. Sent at 65 + 2 (31 us: 98) and 95 + 2, when the link is busy until 98: 98-129.
    let text = "horovod(buffer=1MiB, cycle=30us, negotiation=2us)";
    assert_eq!(step_us(text), 134.0);
    // A buffer of 20 kB splits the second: 98-119, 119-130.
    assert_eq!(step_us("horovod(buffer=20kB, cycle=30us, negotiation=2us)"), 135.0);
}

#[test]
fn merging_trades_latency_against_waiting() {
    // At 1 us of latency: 50 + 31 = 81 > 70 + 51 - 21 = 100? No: the first goes alone and ends at
    // 81. The second would end at 102 > 90 + 31 - 11 = 110? No. So nothing is merged.
    assert_eq!(step_us("merge"), 118.0);
}

#[test]
fn parts_pay_latency_each() {
    // 3 + 2 + 1 parts of 11 us: 50-83, 83-105, 105-116.
    assert_eq!(step_us("partition(10kB)"), 121.0);
    let (_, applied) = apply("partition(7kB)", &Line::new(4, 1));
    assert_eq!(applied.placed.len(), 5 + 3 + 2);
}

#[test]
fn front_layers_overtake() {
    // Parts of 11 us: g3 50-61, 61-72; g2 72-83, 83-94; g1 94-105; g3's last 105-116.
    // The optimiser runs at 90; the next step begins when g1 is there, at 105.
    assert_eq!(step_us("partition(10kB) | priority"), 105.0);
    // Two parts in flight hide the latency: 10 us on the link each. g3 50-60, 60-70, g2 70-80,
    // 80-90, g1 90-100 and 1 us more on the way.
    assert_eq!(step_us("partition(10kB) | priority(credit=20kB)"), 101.0);
}

#[test]
fn staleness_hides_all_that_fits() {
    // 63 us of communication behind 95 us of computation.
    assert_eq!(step_us("stale(1)"), 95.0);
    // The communication of a step takes longer than its computation and binds.
    let slow = "fuse(1GiB) | stale(2)";
    assert_eq!(step_us(slow), 95.0);
}

#[test]
fn compression_pays_for_coding() {
    // Half: encode 50-52, 16 us 52-68, decode 68-71; 70-72, 72-83, 83-86; 90-92, 92-98, 98-101.
    assert_eq!(step_us("compress(half)"), 106.0);
    // Signs cannot be added: 4 replicas gather 4 * 1/32 of each and decode 4 times 3 us.
    // g1: 90-92, 1 + 1.252 us (rounded up to whole bytes), 12 us of decoding; the lane for coding
    // is shared: g3 52-56.752 +12, g2 72-75.5 +12 -> 87.5; g1 94.252 + 12, optimiser 5.
    let us = step_us("compress(one-bit)");
    assert!((us - (92.0 + 2.252 + 12.0 + 5.0)).abs() < 1e-9, "{us}");
    // Top-k of a twentieth leaves a tenth.
    let (graph, applied) = apply("compress(top-k, kept=0.05)", &Line::new(4, 1));
    let bytes = graph.node(applied.placed[1].id).bytes;
    assert_eq!(bytes, Some(Bytes::new(4 * 3_000)));
}

#[test]
fn selective_compression_leaves_out_what_does_not_pay() {
    let costs = Line::new(4, 1);
    let (_, applied) = apply("compress(half, selective=true)", &costs);
    // Ring of 4 in 4 parts, ns: raw 6 (1000 + M/4) + 3 * 4000; compressed 6 (1000 + M/8) +
    // 4 * 2000 + 4 * 3000 + 12000: pays if 6 M/8 > 20000, so only above 26.7 kB.
    assert_eq!(applied.notes, ["half compression of 1 of 3 exchanges pays"]);
}
