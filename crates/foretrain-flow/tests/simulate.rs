//! Simulated ends against closed forms and bounds.

use foretrain_core::{Bandwidth, Nanos};
use foretrain_flow::{Flow, Flows, simulate};
use proptest::prelude::*;

fn gb(rate: f64) -> Bandwidth {
    Bandwidth::from_gb_per_sec(rate)
}

fn flow(start: i64, size: f64) -> Flow {
    Flow { start: Nanos::from_nanos(start), ..Flow::new(size) }
}

/// Start, size and hops of each flow.
type Rows = Vec<(i64, f64, Vec<(u32, f64)>)>;

fn flows(rows: &Rows) -> Flows {
    let mut flows = Flows::new();
    for (start, size, hops) in rows {
        flows.push(flow(*start, *size), hops);
    }
    flows
}

fn network() -> impl Strategy<Value = (Vec<f64>, Rows)> {
    prop::collection::vec(0.1..10.0f64, 1..8).prop_flat_map(|capacities| {
        let links = capacities.len();
        let hops = prop::collection::btree_map(0..links as u32, 0.1..=1.0f64, 1..=links.min(4));
        let size = prop_oneof![1 => Just(0.0), 9 => 1.0..1e6f64];
        let row = (0i64..100_000, size, hops.prop_map(|hops| hops.into_iter().collect()));
        (Just(capacities), prop::collection::vec(row, 1..20))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// A link that always has work is never idle: no byte is lost, none is carried twice.
    #[test]
    fn one_link_is_busy_for_its_bytes(
        rows in prop::collection::vec((0i64..100_000, 1.0..1e6f64), 1..30), rate in 0.1..10.0f64,
    ) {
        let mut flows = Flows::new();
        let mut arrivals = rows.clone();
        arrivals.sort_by_key(|row| row.0);
        let mut free = 0.0f64;
        for (start, size) in arrivals {
            free = free.max(start as f64) + size / rate;
        }
        for &(start, size) in &rows {
            flows.push(flow(start, size), &[(0, 1.0)]);
        }
        let ends = simulate(&[gb(rate)], &flows, 0.0).ends;
        let last = ends.iter().max().unwrap().nanos() as f64;
        // Half a nanosecond per event.
        prop_assert!((last - free).abs() <= 1.0 + rows.len() as f64, "{} against {}", last, free);
    }

    #[test]
    fn no_flow_beats_its_narrowest_link_and_no_link_its_load((rates, rows) in network()) {
        let capacities: Vec<_> = rates.iter().copied().map(gb).collect();
        let flows = flows(&rows);
        let ends = simulate(&capacities, &flows, 0.0).ends;
        for ((start, size, hops), end) in rows.iter().zip(&ends) {
            let alone = hops.iter().map(|(link, share)| size * share / rates[*link as usize]);
            let alone = alone.fold(0.0, f64::max);
            prop_assert!(end.nanos() as f64 >= *start as f64 + alone * (1.0 - 1e-9) - 2.0);
        }
        let first = rows.iter().map(|row| row.0).min().unwrap() as f64;
        let last = ends.iter().max().unwrap().nanos() as f64;
        for (load, rate) in flows.loads(rates.len()).iter().zip(&rates) {
            prop_assert!(last - first >= load / rate * (1.0 - 1e-9) - rows.len() as f64);
        }
    }

    #[test]
    fn order_does_not_matter_and_runs_repeat((rates, rows) in network(), turn in 0usize..20) {
        let capacities: Vec<_> = rates.iter().copied().map(gb).collect();
        let outcome = simulate(&capacities, &flows(&rows), 0.0);
        prop_assert_eq!(&outcome, &simulate(&capacities, &flows(&rows), 0.0));
        let turn = turn % rows.len();
        let mut turned = rows.clone();
        turned.rotate_left(turn);
        let mut ends = simulate(&capacities, &flows(&turned), 0.0).ends;
        ends.rotate_right(turn);
        for (a, b) in outcome.ends.iter().zip(&ends) {
            prop_assert!((a.nanos() - b.nanos()).abs() <= 2, "{} and {}", a, b);
        }
    }
}

#[test]
fn two_flows_share_while_both_run() {
    let mut flows = Flows::new();
    flows.push(flow(0, 1000.0), &[(0, 1.0)]);
    flows.push(Flow { latency: Nanos::from_nanos(7), ..flow(500, 1000.0) }, &[(0, 1.0)]);
    let outcome = simulate(&[gb(1.0)], &flows, 0.0);
    // Alone until 500; half each until the first has moved its other 500; then alone again.
    assert_eq!(outcome.ends.map_nanos(), [1500, 2007]);
    assert_eq!(outcome.limits, [Some(0), Some(0)]);
}

#[test]
fn equal_flows_are_one_row_and_keep_their_places() {
    let mut flows = Flows::new();
    for size in [300.0, 100.0, 300.0, 300.0] {
        flows.push(flow(0, size), &[(0, 1.0), (1, 0.5)]);
    }
    assert_eq!((flows.len(), flows.entries()), (4, 4));
    assert_eq!(flows.loads(2), [1000.0, 500.0]);
    assert_eq!(
        simulate(&[gb(1.0), gb(1.0)], &flows, 0.0).ends.map_nanos(),
        [1000, 400, 1000, 1000]
    );
}

#[test]
fn a_dead_link_lets_nothing_through() {
    let mut flows = Flows::new();
    flows.push(flow(0, 10.0), &[(0, 1.0), (1, 1.0)]);
    flows.push(flow(0, 10.0), &[(1, 1.0)]);
    flows.push(flow(3, 0.0), &[(0, 1.0)]);
    let outcome = simulate(&[gb(0.0), gb(1.0)], &flows, 0.0);
    assert_eq!(outcome.ends, [Nanos::MAX, Nanos::from_nanos(10), Nanos::from_nanos(3)]);
}

#[test]
fn a_cap_and_a_weight_hold() {
    let mut flows = Flows::new();
    flows.push(Flow { cap: gb(1.0), ..flow(0, 100.0) }, &[(0, 1.0)]);
    flows.push(Flow { weight: 2.0, ..flow(0, 200.0) }, &[(0, 1.0)]);
    flows.push(flow(0, 100.0), &[(0, 1.0)]);
    // One of the ten is capped; the others get 6 and 3.
    let ends = simulate(&[gb(10.0)], &flows, 0.0).ends.map_nanos();
    assert_eq!(ends, [100, 33, 33]);
}

trait MapNanos {
    fn map_nanos(&self) -> Vec<i64>;
}

impl MapNanos for Vec<Nanos> {
    fn map_nanos(&self) -> Vec<i64> {
        self.iter().map(|end| end.nanos()).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_coarse_run_is_off_by_its_precision_at_most(
        sizes in prop::collection::vec(1e4..1e6f64, 2..20), precision in 1e-4..0.05f64,
    ) {
        let mut flows = Flows::new();
        for &size in &sizes {
            flows.push(flow(0, size), &[(0, 1.0)]);
        }
        let exact = simulate(&[gb(1.0)], &flows, 0.0);
        let coarse = simulate(&[gb(1.0)], &flows, precision);
        prop_assert!(coarse.settlings <= exact.settlings);
        for (coarse, exact) in coarse.ends.iter().zip(&exact.ends) {
            let late = coarse.nanos() as f64 / exact.nanos() as f64 - 1.0;
            // Each event may be late by the precision, and there are no more than sizes.
            prop_assert!(late > -1e-6 && late <= precision * sizes.len() as f64, "{}", late);
        }
    }
}
