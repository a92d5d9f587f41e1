//! Topologies.

use super::*;

fn one(text: &str, replicas: u32, per_node: u32) -> f64 {
    // All gradients in one exchange of 60 kB at 90 us; what follows after it is 5 us.
    step_us_among(&format!("fuse(1GiB) | {text}"), &Line::new(replicas, per_node)) - 95.0
}

#[test]
fn an_unrolled_ring_takes_its_formula() {
    // 2 (n-1) steps of 1 + 60/4 us, the first three with a sum of 4 us behind them.
    assert_eq!(one("ring(unrolled=true)", 4, 1), 6.0 * 16.0 + 3.0 * 4.0);
    assert_eq!(one("ring", 4, 1), 61.0);
    assert_eq!(one("tree", 4, 1), 61.0);
}

#[test]
fn a_hierarchy_works_on_shards_between_machines() {
    // Reduce-scatter 61, all-reduce of a quarter 16, all-gather 61.
    assert_eq!(one("hierarchical", 8, 4), 61.0 + 16.0 + 61.0);
    // One machine needs no hierarchy.
    assert_eq!(one("hierarchical", 4, 4), 61.0);
}

#[test]
fn levels_of_a_hierarchy_overlap() {
    // Local: g3 31, g2 21, g1 11; between, a quarter: 8.5, 6, 3.5. Reduce-scatters 50-81, 81-102,
    // 102-113 keep the local links busy; the gathers come as each is ready, first come, first
    // served: g3 ready at 89.5, after g1's scatter 113-144; g2 at 108, 144-165; g1 165-176.
    let us = step_us_among("hierarchical", &Line::new(8, 4));
    assert_eq!(us, 181.0);
}

#[test]
fn servers_of_their_own() {
    // Four workers, one server: its NIC takes 4 * 60 kB each way; 3 sums of 4 us.
    assert_eq!(one("servers(count=1)", 4, 1), 241.0 + 12.0 + 241.0);
    // As many servers as workers: M each way, a quarter summed on each (flat 4 us here).
    assert_eq!(one("servers(count=4)", 4, 1), 61.0 + 12.0 + 61.0);
    // On the workers: 3/4 M out and in, twice.
    assert_eq!(one("servers(colocated=true)", 4, 1), 46.0 + 12.0 + 46.0);
}

#[test]
fn parts_use_both_directions_of_servers() {
    // 6 parts of 10 kB, all ready at 90: pushes 10 us each on the way out; every pull can go when
    // its sum is there. Last push ends at 150, +1 latency, 12 us of sums, 10 + 1 us of pulling.
    let us = step_us_among("fuse(1GiB) | partition(10kB) | servers(count=4)", &Line::new(4, 1));
    assert_eq!(us, 150.0 + 1.0 + 12.0 + 11.0 + 5.0 + waiting_for_sums());
}

/// Sums of 12 us come faster than pushes of 10 us end, so they queue: the sixth begins at
/// 101 + 5 * 12 = 161 instead of 151.
fn waiting_for_sums() -> f64 {
    10.0
}

#[test]
fn byteps_splits_between_spare_machines_and_workers() {
    // Four workers, two spare: each serves (n-k)/(n^2+kn-2k) = 2/20 of the gradient. Out: 54 kB
    // as a worker; in: 3 * 6 kB as a server, beside it. Answers the other way.
    assert_eq!(one("push-pull(spare=2)", 4, 1), 55.0 + 12.0 + 55.0);
    // The links carry 72 kB each way in all: 2n(n-1)/(n^2+kn-2k) M = 24/20 M.
    let (graph, applied) = apply("fuse(1GiB) | push-pull(spare=2)", &Line::new(4, 1));
    assert_eq!(sent(&graph, &applied), 72_000);
    // Without spare machines it is servers on the workers, with as many nothing is left to them.
    assert_eq!(one("push-pull", 4, 1), one("servers(colocated=true)", 4, 1));
    assert_eq!(one("push-pull(spare=4)", 4, 1), one("servers(count=4)", 4, 1));
    // Machines of two: 61 + 61 within; two workers between, half of M out and in, twice.
    assert_eq!(one("push-pull", 4, 2), 61.0 + 31.0 + 4.0 + 31.0 + 61.0);
}
