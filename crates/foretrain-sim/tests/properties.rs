//! What must hold for any job.

use foretrain_core::Nanos;
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, Group, GroupId, Job, Node, NodeId, NodeKind, QueueId,
    QueueKind, StepGraph,
};
use foretrain_sim::{
    Demand, Discipline, FixedFactors, InitialBusy, Jitter, Path, Program, Resource, SimOptions,
    Stragglers, Timeline, Workspace, simulate,
};
use proptest::prelude::*;

const QUEUES: u32 = 4;

/// One class: per node (queue, work, priority); edges go from lower to higher ids unless they lead
/// to a later step; at most one collective stage, behind all nodes.
#[derive(Clone, Debug)]
struct Plan {
    nodes: Vec<(u32, i64)>,
    edges: Vec<(usize, usize, i64, u16)>,
    transfer: i64,
}

fn plan() -> impl Strategy<Value = Plan> {
    (2usize..14).prop_flat_map(|count| {
        let nodes = prop::collection::vec((0..QUEUES, 0i64..60), count);
        let edges = prop::collection::vec((0..count, 0..count, -15i64..25, 0u16..3), 0..3 * count);
        (nodes, edges, 0i64..40).prop_map(|(nodes, edges, transfer)| Plan {
            nodes,
            edges: edges
                .into_iter()
                .filter(|(src, dst, _, distance)| *distance > 0 || src < dst)
                .collect(),
            transfer,
        })
    })
}

/// `order[i]` is the id given to node i of the plan. Priorities are distinct and follow the plan.
fn graph(plan: &Plan, order: &[usize], chained: bool) -> StepGraph {
    let mut graph = StepGraph::new();
    for queue in 0..=QUEUES {
        graph.add_queue(format!("stream {queue}"), QueueKind::Stream);
    }
    let group = graph.add_group(Group {
        name: "world".into(),
        role: String::new(),
        size: 0,
        ranks: vec![],
    });
    let count = plan.nodes.len();
    let mut by_id = vec![0; count + 1];
    for (node, &id) in order.iter().enumerate() {
        by_id[id] = node;
    }
    for &node in &by_id {
        let row = if node == count { reduce(plan, group) } else { kernel(plan, node) };
        graph.add_node(row);
    }
    let mut edge = |src: usize, dst: usize, lag: i64, distance: u16| {
        let (src, dst) = (NodeId::from_index(order[src]), NodeId::from_index(order[dst]));
        let edge = Edge::new(src, dst, EdgeKind::Data);
        graph.add_edge(edge.with_lag(Nanos::from_nanos(lag)).with_distance(distance));
    };
    for &(src, dst, lag, distance) in &plan.edges {
        edge(src, dst, lag, distance);
    }
    for node in 0..count {
        edge(node, count, 0, 0);
    }
    if chained {
        for queue in 0..QUEUES {
            let on: Vec<_> = (0..count).filter(|&n| plan.nodes[n].0 == queue).collect();
            on.windows(2).for_each(|pair| edge(pair[0], pair[1], 0, 0));
            if let (Some(&first), Some(&last)) = (on.first(), on.last()) {
                edge(last, first, 0, 1);
            }
        }
        edge(count, count, 0, 1);
    }
    graph
}

fn kernel(plan: &Plan, node: usize) -> Node {
    let (queue, work) = plan.nodes[node];
    let work = Nanos::from_nanos(work);
    let name = foretrain_core::NameId::EMPTY;
    let mut row = Node::new(NodeKind::Kernel, name, QueueId::new(queue), work);
    row.priority = -(node as i32);
    row
}

fn reduce(plan: &Plan, group: GroupId) -> Node {
    let work = Nanos::from_nanos(plan.transfer);
    let name = foretrain_core::NameId::EMPTY;
    let mut row = Node::new(NodeKind::Collective, name, QueueId::new(QUEUES), work);
    row.group = Some(group);
    row.collective = Some(CollectiveKind::AllReduce);
    row.priority = -1000;
    row
}

fn identity(plan: &Plan) -> Vec<usize> {
    (0..=plan.nodes.len()).collect()
}

fn job(plans: &[Plan], chained: bool) -> Job {
    Job::from_ranks(plans.iter().map(|plan| graph(plan, &identity(plan), chained)))
}

/// A job whose queues are in order, the first `hosts` of each class host threads, and what it
/// shares. `demands` are class, node and amount.
fn contended(
    plans: &[Plan],
    hosts: u32,
    demands: &[(usize, usize, u32)],
    interference: bool,
    busy: i64,
) -> (Job, SimOptions) {
    let mut job = job(plans, true);
    for class in &mut job.classes {
        for queue in &mut class.graph.queues[..hosts as usize] {
            queue.kind = QueueKind::Thread;
        }
    }
    let there = demands.iter().filter(|(class, node, _)| {
        job.classes.get(*class).is_some_and(|class| *node < class.graph.node_count())
    });
    let demands = there.map(|&(class, node, amount)| Demand {
        class,
        node: NodeId::from_index(node),
        resource: 0,
        amount: f64::from(amount),
    });
    let factors = FixedFactors { compute: 1.7, communication: 1.2, while_waiting: true };
    let options = SimOptions {
        resources: vec![Resource { name: "link".into(), capacity: 7.0 }],
        demands: demands.collect(),
        interference: interference.then(|| std::sync::Arc::new(factors) as _),
        initial_busy: vec![InitialBusy {
            class: 0,
            queue: QueueId::new(0),
            until: Nanos::from_nanos(busy),
        }],
        ..SimOptions::default()
    };
    (job, options)
}

fn options(iterations: u32) -> SimOptions {
    SimOptions { iterations, ..SimOptions::default() }
}

/// Latest end if queues and meetings cost nothing, by relaxation in order of iteration and id.
fn longest_path(plan: &Plan, iterations: usize) -> i64 {
    let nodes = plan.nodes.len();
    let mut start = vec![0i64; nodes * iterations];
    let mut latest = 0;
    for task in 0..nodes * iterations {
        let (iteration, node) = (task / nodes, task % nodes);
        let end = start[task] + plan.nodes[node].1;
        latest = latest.max(end);
        for &(src, dst, lag, distance) in plan.edges.iter().filter(|edge| edge.0 == node) {
            let target = (iteration + distance as usize) * nodes + dst;
            if target < start.len() {
                assert_eq!(src, node);
                start[target] = start[target].max(end + lag);
            }
        }
    }
    latest
}

fn check_rules(job: &Job, timeline: &Timeline) -> Result<(), TestCaseError> {
    for (class, times) in job.classes.iter().zip(&timeline.classes) {
        let graph = &class.graph;
        for edge in graph.edges() {
            for iteration in 0..timeline.iterations {
                let target = iteration + edge.distance as usize;
                if target < timeline.iterations {
                    let end = times.end[times.row(iteration, edge.src)];
                    prop_assert!(times.start[times.row(target, edge.dst)] >= end + edge.lag);
                }
            }
        }
        for queue in 0..graph.queues.len() {
            let mut spans: Vec<_> = (0..times.start.len())
                .filter(|row| graph.queue(NodeId::from_index(row % times.nodes)).index() == queue)
                .map(|row| (times.start[row], times.end[row]))
                .collect();
            spans.sort_unstable();
            prop_assert!(spans.windows(2).all(|pair| pair[0].1 <= pair[1].0), "overlap");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn edges_and_queues_are_respected_and_work_is_conserved(
        plans in prop::collection::vec(plan(), 1..4),
        discipline in prop::sample::select(
            vec![Discipline::Fifo, Discipline::InOrder, Discipline::Priority]),
    ) {
        let job = job(&plans, false);
        let timeline = simulate(&job, &SimOptions { discipline, ..options(3) }).unwrap();
        check_rules(&job, &timeline)?;
        let transfer = plans.iter().map(|plan| plan.transfer).max().unwrap_or(0);
        for (plan, class) in plans.iter().zip(&timeline.classes) {
            for row in 0..class.start.len() {
                let node = row % class.nodes;
                let work = plan.nodes.get(node).map_or(transfer, |n| n.1);
                let busy = class.end[row] - class.start[row] - class.wait[row];
                prop_assert_eq!(busy.nanos(), work);
            }
        }
    }

    #[test]
    fn the_run_is_between_the_longest_path_and_everything_in_a_row(
        plans in prop::collection::vec(plan(), 1..4),
    ) {
        let makespan = simulate(&job(&plans, false), &options(3)).unwrap().makespan().nanos();
        let serial: i64 = plans.iter().map(|plan| {
            let works: i64 = plan.nodes.iter().map(|n| n.1).sum();
            works + plan.transfer + plan.edges.iter().map(|e| e.2.max(0)).sum::<i64>()
        }).sum();
        prop_assert!(makespan <= 3 * serial, "{} over {}", makespan, 3 * serial);
        for plan in &plans {
            prop_assert!(makespan >= longest_path(plan, 3));
        }
    }

    #[test]
    fn both_paths_give_the_same_times(
        plans in prop::collection::vec(plan(), 1..4),
        multiplicity in 1u64..50,
        spread in prop::sample::select(vec![0.0, 0.3]),
    ) {
        let mut job = job(&plans, false);
        job.classes[0].multiplicity = multiplicity;
        let jitter = Jitter {
            spread,
            stragglers: Some(Stragglers { probability: 0.1, factor: 1.5 }),
            ..Jitter::default()
        };
        let auto = SimOptions { jitter, ..options(4) };
        let general = SimOptions { path: Path::General, ..auto.clone() };
        prop_assert_eq!(simulate(&job, &auto).unwrap(), simulate(&job, &general).unwrap());
    }

    #[test]
    fn all_paths_agree_where_edges_fix_the_order_of_queues(
        plans in prop::collection::vec(plan(), 1..4), iterations in 1u32..14,
    ) {
        let job = job(&plans, true);
        let on = |path| simulate(&job, &SimOptions { path, ..options(iterations) }).unwrap();
        let auto = on(Path::Auto);
        prop_assert_eq!(&auto, &on(Path::Fast));
        prop_assert_eq!(&auto, &on(Path::General));
        let program = Program::compile(&job).unwrap();
        let steady = program.steady_step(&options(iterations)).unwrap();
        prop_assert_eq!(steady, auto.steady_step_time());
        let mut used = Workspace::default();
        for _ in 0..2 {
            let options = options(iterations);
            prop_assert_eq!(program.steady_step_in(&options, &mut used).unwrap(), steady);
            let again = program.run_in(&options, &mut used).unwrap();
            prop_assert_eq!(&again, &auto);
            used.recycle(again);
        }
    }

    #[test]
    fn sharing_on_ordered_queues_is_the_same_on_all_paths(
        plans in prop::collection::vec(plan(), 1..4), hosts in 0..=QUEUES,
        demands in prop::collection::vec((0usize..4, 0usize..15, 1u32..6), 0..8),
        interference in any::<bool>(), busy in 0i64..50, iterations in 1u32..6,
    ) {
        let (job, options) = contended(&plans, hosts, &demands, interference, busy);
        let auto = SimOptions { iterations, ..options };
        let general = SimOptions { path: Path::General, ..auto.clone() };
        prop_assert_eq!(simulate(&job, &auto).unwrap(), simulate(&job, &general).unwrap());
    }

    #[test]
    fn a_run_that_ends_where_iterations_repeat_is_the_head_of_a_longer_one(
        plans in prop::collection::vec(plan(), 1..4), hosts in 0..=QUEUES,
        demands in prop::collection::vec((0usize..4, 0usize..15, 1u32..6), 0..8),
        interference in any::<bool>(), busy in 0i64..50,
    ) {
        let (mut job, options) = contended(&plans, hosts, &demands, interference, busy);
        // No queue runs ahead for ever, or the end of the run would reach back as far.
        for class in &mut job.classes {
            let reduce = NodeId::from_index(class.graph.node_count() - 1);
            for node in class.graph.node_ids().collect::<Vec<_>>() {
                let edge = Edge::new(reduce, node, EdgeKind::Data);
                class.graph.add_edge(edge.with_distance(2));
            }
        }
        let shorter = SimOptions { iterations: 16, until_repeats: Some(3), ..options.clone() };
        let longer = SimOptions { iterations: 32, path: Path::General, ..options };
        let shorter = simulate(&job, &shorter).unwrap();
        let longer = simulate(&job, &longer).unwrap();
        // Where nothing repeats, the end of the run shows.
        let shown = if shorter.iterations < 16 { shorter.iterations } else { 10 };
        prop_assert!(shorter.iterations >= 3);
        for (shorter, longer) in shorter.classes.iter().zip(&longer.classes) {
            let shown = shown * shorter.nodes;
            prop_assert_eq!(&shorter.end[..shown], &longer.end[..shown]);
        }
        let steps = longer.iteration_finish(19) - longer.iteration_finish(18);
        if shorter.iterations < 16 {
            prop_assert_eq!(shorter.steady_step_time().step, steps);
        }
    }

    #[test]
    fn the_order_of_nodes_changes_no_time_if_priorities_are_distinct(
        plan in plan(), seed in any::<u64>(),
        discipline in prop::sample::select(
            vec![Discipline::Fifo, Discipline::InOrder, Discipline::Priority]),
    ) {
        let mut order = identity(&plan);
        let mut state = seed;
        for i in (1..order.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            order.swap(i, (state >> 33) as usize % (i + 1));
        }
        let options = SimOptions { discipline, ..options(3) };
        let one = simulate(&Job::uniform(graph(&plan, &identity(&plan), false), 1), &options);
        let two = simulate(&Job::uniform(graph(&plan, &order, false), 1), &options);
        let (one, two) = (one.unwrap(), two.unwrap());
        for (node, &id) in order.iter().enumerate() {
            let (node, id) = (NodeId::from_index(node), NodeId::from_index(id));
            prop_assert_eq!(one.mark_times(0, node), two.mark_times(0, id));
        }
    }

    #[test]
    fn less_work_never_delays_anything_on_ordered_queues(
        plans in prop::collection::vec(plan(), 1..4), percent in 0i64..100,
    ) {
        // With first-ready-first-run queues this is false (Graham's anomalies); a fixed order on
        // every queue makes all times maxima of sums, which are monotone. Negative lags that reach
        // back before their source are clamped by its work, so they are left out.
        let forward = |plan: &Plan| Plan {
            edges: plan.edges.iter().map(|e| (e.0, e.1, e.2.max(0), e.3)).collect(),
            ..plan.clone()
        };
        let plans: Vec<_> = plans.iter().map(forward).collect();
        let faster: Vec<_> = plans.iter().map(|plan| Plan {
            nodes: plan.nodes.iter().map(|n| (n.0, n.1 * percent / 100)).collect(),
            ..plan.clone()
        }).collect();
        let slow = simulate(&job(&plans, true), &options(3)).unwrap();
        let fast = simulate(&job(&faster, true), &options(3)).unwrap();
        for (slow, fast) in slow.classes.iter().zip(&fast.classes) {
            prop_assert!(slow.end.iter().zip(&fast.end).all(|(slow, fast)| fast <= slow));
        }
    }

    #[test]
    fn members_of_a_collective_end_together(plans in prop::collection::vec(plan(), 2..5)) {
        let factors = FixedFactors { compute: 1.7, communication: 1.2, while_waiting: true };
        let options = SimOptions {
            interference: Some(std::sync::Arc::new(factors)), ..options(3)
        };
        let timeline = simulate(&job(&plans, false), &options).unwrap();
        for iteration in 0..3 {
            let ends: Vec<_> = timeline.classes.iter()
                .map(|class| class.end[(iteration + 1) * class.nodes - 1]).collect();
            prop_assert!(ends.windows(2).all(|pair| pair[0] == pair[1]), "{:?}", ends);
        }
    }

    #[test]
    fn a_shared_link_moves_its_whole_load_and_never_faster_than_its_capacity(
        works in prop::collection::vec((1i64..5000, 1u32..20), 1..8), capacity in 1u32..30,
    ) {
        // Flows on queues of their own, all from time 0: the link is full until the last flows
        // are limited by themselves, and everything is moved.
        let mut graph = StepGraph::new();
        let mut demands = Vec::new();
        for &(work, amount) in &works {
            let queue = graph.add_queue("link", QueueKind::Link);
            let work = Nanos::from_nanos(work);
            let name = foretrain_core::NameId::EMPTY;
            let node = graph.add_node(Node::new(NodeKind::Copy, name, queue, work));
            demands.push(Demand { class: 0, node, resource: 0, amount: f64::from(amount) });
        }
        let resources =
            vec![Resource { name: "link".into(), capacity: f64::from(capacity) }];
        let options = SimOptions { resources, demands, ..options(1) };
        let end = simulate(&Job::uniform(graph, 1), &options).unwrap().makespan().nanos() as f64;
        let load: f64 = works.iter().map(|(work, amount)| *work as f64 * f64::from(*amount)).sum();
        let alone = works.iter().map(|(work, amount)| {
            *work as f64 * (f64::from(*amount) / f64::from(capacity)).max(1.0)
        });
        let bound = alone.fold(load / f64::from(capacity), f64::max);
        let slack = works.len() as f64;
        prop_assert!(end >= bound - slack, "{} below {}", end, bound);
        let serial: f64 = works.iter().map(|(work, amount)| {
            *work as f64 * (f64::from(*amount) / f64::from(capacity)).max(1.0)
        }).sum();
        prop_assert!(end <= serial + slack, "{} above {}", end, serial);
    }
}
