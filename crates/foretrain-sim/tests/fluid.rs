//! Tasks that share a device or a resource, against closed forms.

use std::sync::Arc;

use foretrain_core::{NameId, Nanos};
use foretrain_graph::{Job, Node, NodeId, NodeKind, QueueKind, StepGraph};
use foretrain_sim::{Demand, FixedFactors, Resource, Sharing, SimOptions, simulate};
use proptest::prelude::*;

fn side_by_side(tasks: &[(NodeKind, i64)]) -> StepGraph {
    let mut graph = StepGraph::new();
    for &(kind, work) in tasks {
        let queue = graph.add_queue("stream", QueueKind::Stream);
        graph.add_node(Node::new(kind, NameId::EMPTY, queue, Nanos::from_nanos(work)));
    }
    graph
}

fn overlap(a: i64, b: i64, compute: f64, communication: f64) -> Nanos {
    let graph = side_by_side(&[(NodeKind::Kernel, a), (NodeKind::Collective, b)]);
    let factors = FixedFactors { compute, communication, while_waiting: false };
    let options = SimOptions {
        iterations: 1,
        interference: Some(Arc::new(factors)),
        ..SimOptions::default()
    };
    simulate(&Job::uniform(graph, 1), &options).expect("the job is sound").makespan()
}

/// The formula in Galvatron's cost model for backward computation `bct` over communication
/// `msg * dc`, one coefficient for both.
fn galvatron(bct: f64, msg: f64, dc: f64, coe: f64) -> f64 {
    let (comm, compute) = (msg * dc * coe, bct * coe);
    if comm > compute {
        compute + (msg - compute / (dc * coe)) * dc
    } else {
        comm + (bct - comm / coe)
    }
}

proptest! {
    #[test]
    fn two_kernels_follow_the_closed_form(
        a in 1i64..10_000_000, b in 1i64..10_000_000, fc in 1.0f64..8.0, fm in 1.0f64..3.0,
    ) {
        let (x, y) = (a as f64, b as f64);
        let want = if x * fc <= y * fm { x * fc + (y - x * fc / fm) } else { y * fm + (x - y * fm / fc) };
        let got = overlap(a, b, fc, fm).nanos() as f64;
        prop_assert!((got - want).abs() <= 1.0, "{} against {}", got, want);
    }

    #[test]
    fn the_formula_of_galvatron_is_a_special_case(
        bct in 1i64..1_000_000, message in 1i64..1_000_000, coefficient in 1.0f64..2.0,
    ) {
        let want = galvatron(bct as f64, message as f64 / 4.0, 4.0, coefficient);
        let got = overlap(bct, message, coefficient, coefficient).nanos() as f64;
        prop_assert!((got - want).abs() <= 1.0, "{} against {}", got, want);
    }
}

fn ends(
    works: &[i64],
    demands: &[(usize, usize, f64)],
    capacities: &[f64],
    sharing: Sharing,
) -> Vec<i64> {
    let tasks: Vec<_> = works.iter().map(|&work| (NodeKind::Copy, work)).collect();
    let graph = side_by_side(&tasks);
    let resources = capacities.iter().map(|&capacity| Resource { name: "link".into(), capacity });
    let demands = demands.iter().map(|&(node, resource, amount)| Demand {
        class: 0,
        node: NodeId::from_index(node),
        resource,
        amount,
    });
    let options = SimOptions {
        iterations: 1,
        resources: resources.collect(),
        demands: demands.collect(),
        sharing,
        ..SimOptions::default()
    };
    let timeline = simulate(&Job::uniform(graph, 1), &options).expect("the job is sound");
    timeline.classes[0].end.iter().map(|end| end.nanos()).collect()
}

#[test]
fn a_link_is_shared_by_max_min() {
    let demands = [(0, 0, 10.0), (1, 0, 10.0), (2, 0, 2.0)];
    // The small flow takes its 2, the others 4 each until one of them ends.
    let got = ends(&[1000, 400, 1000], &demands, &[10.0], Sharing::Usage);
    // Second: 400 / 0.4 = 1000. Third: 1000 at full rate. First then has 600 left, alone.
    assert_eq!(got, [1600, 1000, 1000]);
    // Equal rates: 22 of demand on 10, so 10/22 each.
    let got = ends(&[1000, 1000, 1000], &demands, &[10.0], Sharing::Rate);
    assert_eq!(got, [2200, 2200, 2200]);
}

#[test]
fn the_classic_three_flows_over_two_links() {
    // Flow 0 crosses both links, 1 and 2 one each. Link 0 has 6, link 1 has 12: on link 0 each
    // gets 3, and flow 2 gets the 9 left of link 1.
    let demands = [(0, 0, 12.0), (0, 1, 12.0), (1, 0, 12.0), (2, 1, 12.0)];
    let got = ends(&[3000, 3000, 9000], &demands, &[6.0, 12.0], Sharing::Usage);
    assert_eq!(got, [12_000, 12_000, 12_000]);
}
