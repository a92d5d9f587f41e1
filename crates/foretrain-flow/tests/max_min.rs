//! Properties that define max-min fairness, on random networks.

use foretrain_flow::{Demand, Fair, Paths, max_min};
use proptest::prelude::*;

/// Relative slack for sums of floating-point numbers.
const SLACK: f64 = 1e-9;

#[derive(Clone, Debug)]
struct Case {
    capacities: Vec<f64>,
    rows: Vec<(Vec<(u32, f64)>, Demand)>,
}

impl Case {
    fn paths(&self) -> Paths {
        let mut paths = Paths::new();
        for (hops, _) in &self.rows {
            paths.push(hops.iter().copied());
        }
        paths
    }
    fn demands(&self) -> Vec<Demand> {
        self.rows.iter().map(|(_, demand)| *demand).collect()
    }
    fn fair(&self) -> Vec<Fair> {
        max_min(&self.capacities, &self.paths(), &self.demands())
    }
    fn used(&self, fair: &[Fair]) -> Vec<f64> {
        let mut used = vec![0.0; self.capacities.len()];
        for ((hops, demand), got) in self.rows.iter().zip(fair) {
            for &(link, share) in hops {
                used[link as usize] += got.rate * demand.count * share;
            }
        }
        used
    }
}

fn case() -> impl Strategy<Value = Case> {
    let capacity = prop_oneof![1 => Just(0.0), 20 => 1e-3..1e3f64, 5 => Just(7.0)];
    prop::collection::vec(capacity, 1..12).prop_flat_map(|capacities| {
        let links = capacities.len();
        let share = prop_oneof![3 => Just(1.0), 1 => 0.05..1.0f64];
        let hops = prop::collection::btree_map(0..links as u32, share, 1..=links.min(5));
        let weight = prop_oneof![3 => Just(1.0), 1 => 1e-3..1e3f64];
        let cap = prop_oneof![2 => Just(f64::INFINITY), 1 => 1e-3..100.0f64];
        let demand = (weight, cap, 1u8..4).prop_map(|(weight, cap, count)| Demand {
            weight,
            cap,
            count: f64::from(count),
        });
        let row = (hops.prop_map(|hops| hops.into_iter().collect()), demand);
        let rows = prop::collection::vec(row, 0..24);
        (Just(capacities), rows).prop_map(|(capacities, rows)| Case { capacities, rows })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_link_carries_more_than_it_can(case in case()) {
        for (used, capacity) in case.used(&case.fair()).iter().zip(&case.capacities) {
            prop_assert!(*used <= capacity * (1.0 + SLACK), "{} of {}", used, capacity);
        }
    }

    /// The definition: each flow has all it can use, or a full link on which none rose further.
    #[test]
    fn each_flow_has_a_bottleneck(case in case()) {
        let fair = case.fair();
        let used = case.used(&fair);
        for ((hops, demand), got) in case.rows.iter().zip(&fair) {
            prop_assert!(got.rate <= demand.cap);
            let Some(limit) = got.limit else {
                prop_assert_eq!(got.rate, demand.cap);
                continue;
            };
            prop_assert!(hops.iter().any(|(link, _)| *link == limit), "not on its path");
            let link = limit as usize;
            prop_assert!(used[link] >= case.capacities[link] * (1.0 - SLACK), "not full");
            for ((others, other), theirs) in case.rows.iter().zip(&fair) {
                if others.iter().any(|(link, _)| *link == limit) {
                    let (own, their) = (got.rate / demand.weight, theirs.rate / other.weight);
                    prop_assert!(their <= own * (1.0 + SLACK), "{} above {}", their, own);
                }
            }
        }
    }

    #[test]
    fn the_order_of_flows_does_not_matter(case in case(), turn in 0usize..24) {
        let mut turned = case.clone();
        let turn = turn % case.rows.len().max(1);
        turned.rows.rotate_left(turn);
        let mut fair = turned.fair();
        fair.rotate_right(turn);
        for (a, b) in case.fair().iter().zip(&fair) {
            prop_assert!((a.rate - b.rate).abs() <= SLACK * a.rate, "{} and {}", a.rate, b.rate);
        }
    }

    #[test]
    fn equal_input_gives_equal_bits(case in case()) {
        prop_assert_eq!(case.fair(), case.fair());
    }

    #[test]
    fn a_count_is_as_many_flows(case in case()) {
        let mut apart = case.clone();
        apart.rows.clear();
        for (hops, demand) in &case.rows {
            for _ in 0..demand.count as usize {
                apart.rows.push((hops.clone(), Demand { count: 1.0, ..*demand }));
            }
        }
        let fair = apart.fair();
        let mut at = 0;
        for ((_, demand), together) in case.rows.iter().zip(case.fair()) {
            let one = fair[at].rate;
            prop_assert!((one - together.rate).abs() <= SLACK * one, "{} and {}", one, together.rate);
            at += demand.count as usize;
        }
    }
}

#[test]
fn the_classic_three_flows() {
    let rows = [vec![(0, 1.0), (1, 1.0)], vec![(0, 1.0)], vec![(1, 1.0)]];
    let case = Case {
        capacities: vec![6.0, 12.0],
        rows: rows.map(|hops| (hops, Demand::default())).into(),
    };
    let rates: Vec<f64> = case.fair().iter().map(|fair| fair.rate).collect();
    assert_eq!(rates, [3.0, 3.0, 9.0]);
}

#[test]
fn a_flow_without_links_has_what_it_can_use() {
    let mut paths = Paths::new();
    paths.push([]);
    paths.push([(0, 0.0)]);
    let demands = [Demand { cap: 5.0, ..Demand::default() }, Demand::default()];
    let fair = max_min(&[1.0], &paths, &demands);
    assert_eq!(fair, [5.0, f64::INFINITY].map(|rate| Fair { rate, limit: None }));
}
