//! Small jobs whose times can be worked out by hand.

use foretrain_core::Nanos;
use foretrain_graph::{
    CollectiveKind, Edge, EdgeKind, Group, Job, Node, NodeId, NodeKind, QueueId, QueueKind,
    RankClass, StepGraph,
};
use foretrain_sim::{InitialBusy, SimError, SimOptions, simulate};

fn ns(n: i64) -> Nanos {
    Nanos::from_nanos(n)
}

struct Build {
    graph: StepGraph,
}

impl Build {
    fn new(queues: usize) -> Self {
        let mut graph = StepGraph::new();
        for queue in 0..queues {
            graph.add_queue(format!("stream {queue}"), QueueKind::Stream);
        }
        Self { graph }
    }
    fn node(&mut self, name: &str, queue: u32, work: i64) -> NodeId {
        let name = self.graph.names.intern(name);
        self.graph.add_node(Node::new(NodeKind::Kernel, name, QueueId::new(queue), ns(work)))
    }
    fn edge(&mut self, src: NodeId, dst: NodeId, lag: i64, distance: u16) {
        let edge = Edge::new(src, dst, EdgeKind::Data).with_lag(ns(lag)).with_distance(distance);
        self.graph.add_edge(edge);
    }
    fn collective(&mut self, group: &str, sequence: u32, queue: u32, work: i64) -> NodeId {
        let known = self.graph.groups.iter().position(|g| g.name == group);
        let group = known.map(foretrain_graph::GroupId::from_index).unwrap_or_else(|| {
            self.graph.add_group(Group {
                name: group.to_owned(),
                role: String::new(),
                size: 0,
                ranks: vec![],
            })
        });
        let name = self.graph.names.intern("all-reduce");
        let mut node = Node::new(NodeKind::Collective, name, QueueId::new(queue), ns(work));
        node.group = Some(group);
        node.collective = Some(CollectiveKind::AllReduce);
        node.sequence = sequence;
        self.graph.add_node(node)
    }
}

#[test]
fn a_chain_over_two_queues_repeats_with_the_period_of_its_cycle() {
    let mut b = Build::new(2);
    let host = b.node("launch", 0, 10);
    let kernel = b.node("kernel", 1, 100);
    b.edge(host, kernel, 5, 0);
    b.edge(host, host, 0, 1);
    b.edge(kernel, kernel, 0, 1);
    let timeline = simulate(&Job::uniform(b.graph, 1), &SimOptions::iterations(4)).unwrap();
    let class = &timeline.classes[0];
    assert_eq!(class.start[..4], [ns(0), ns(15), ns(10), ns(115)]);
    assert_eq!(timeline.makespan(), ns(15 + 400));
    let steady = timeline.steady_step_time();
    assert_eq!((steady.step, steady.before), (ns(100), Some(ns(100))));
    assert!(steady.converged(0.0));
    assert_eq!(timeline.mark_times(0, kernel), [ns(115), ns(215), ns(315), ns(415)]);
}

#[test]
fn a_negative_lag_overlaps_the_tail_but_never_starts_before_its_source() {
    let mut b = Build::new(3);
    let (a, c, d) = (b.node("a", 0, 100), b.node("c", 1, 10), b.node("d", 2, 10));
    b.edge(a, c, -30, 0);
    b.edge(c, d, -500, 0);
    let timeline = simulate(&Job::uniform(b.graph, 1), &SimOptions::iterations(1)).unwrap();
    assert_eq!(timeline.classes[0].start, [ns(0), ns(70), ns(70)]);
}

#[test]
fn a_queue_that_is_busy_at_first_delays_its_tasks() {
    let mut b = Build::new(1);
    b.node("a", 0, 10);
    let options = SimOptions {
        iterations: 1,
        initial_busy: vec![InitialBusy { class: 0, queue: QueueId::new(0), until: ns(7) }],
        ..SimOptions::default()
    };
    let timeline = simulate(&Job::uniform(b.graph, 1), &options).unwrap();
    assert_eq!((timeline.classes[0].start[0], timeline.makespan()), (ns(7), ns(17)));
}

#[test]
fn members_wait_for_the_last_and_end_together() {
    let rank = |work: i64, transfer: i64| {
        let mut b = Build::new(1);
        let kernel = b.node("kernel", 0, work);
        let reduce = b.collective("world", 0, 0, transfer);
        let after = b.node("after", 0, 1);
        b.edge(kernel, reduce, 0, 0);
        b.edge(reduce, after, 0, 0);
        b.edge(after, kernel, 0, 1);
        b.graph
    };
    let job = Job::from_ranks([rank(100, 20), rank(130, 25)]);
    let timeline = simulate(&job, &SimOptions::iterations(2)).unwrap();
    let (fast, slow) = (&timeline.classes[0], &timeline.classes[1]);
    assert_eq!((fast.start[1], fast.wait[1], fast.end[1]), (ns(100), ns(30), ns(155)));
    assert_eq!((slow.start[1], slow.wait[1], slow.end[1]), (ns(130), ns(0), ns(155)));
    assert_eq!(timeline.makespan(), ns(2 * 156));
}

#[test]
fn a_task_behind_a_waiting_collective_is_held() {
    let mut first = Build::new(2);
    first.collective("world", 0, 0, 10);
    let kernel = first.node("short", 1, 5);
    let held = first.node("held", 0, 1);
    first.edge(kernel, held, 0, 0);
    let mut second = Build::new(1);
    let slow = second.node("slow", 0, 50);
    let reduce = second.collective("world", 0, 0, 10);
    second.edge(slow, reduce, 0, 0);
    let job = Job::from_ranks([first.graph, second.graph]);
    let timeline = simulate(&job, &SimOptions::iterations(1)).unwrap();
    assert_eq!(timeline.classes[0].start[held.index()], ns(60));
}

#[test]
fn a_missing_member_is_named_before_the_run() {
    let mut present = Build::new(1);
    present.collective("dp", 0, 0, 10);
    let mut missing = Build::new(1);
    missing.node("kernel", 0, 1);
    missing.graph.groups = present.graph.groups.clone();
    let job = Job::from_ranks([present.graph, missing.graph]);
    let error = simulate(&job, &SimOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "all-reduce number 0 of group \"dp\" is issued by class 0 but never by class 1, which is \
         in the group too"
    );
}

#[test]
fn a_cycle_and_a_cross_over_of_collectives_are_named() {
    let mut b = Build::new(1);
    let (x, y) = (b.node("x", 0, 1), b.node("y", 0, 1));
    b.node("free", 0, 1);
    b.edge(x, y, 0, 0);
    b.edge(y, x, 0, 0);
    let error = simulate(&Job::uniform(b.graph, 1), &SimOptions::iterations(1)).unwrap_err();
    let SimError::Deadlock { finished, total, stuck } = error else { panic!("{error}") };
    assert_eq!((finished, total, stuck.len()), (1, 3, 3));

    let rank = |order: [u32; 2]| {
        let mut b = Build::new(1);
        let first = b.collective("world", order[0], 0, 1);
        let second = b.collective("world", order[1], 0, 1);
        b.edge(first, second, 0, 0);
        b.graph
    };
    let job = Job::from_ranks([rank([0, 1]), rank([1, 0])]);
    let error = simulate(&job, &SimOptions::iterations(1)).unwrap_err();
    let SimError::Deadlock { stuck, .. } = error else { panic!("{error}") };
    assert!(stuck.len() >= 3, "{stuck:?}");
}

#[test]
fn messages_meet_by_sender_and_number() {
    let stage = |send_first: bool| {
        let mut b = Build::new(2);
        let send = b.collective("pair", 0, 0, 10);
        let receive = b.collective("pair", 0, 1, 10);
        let kernel = b.node("kernel", 1, 100);
        for (id, kind) in [(send, CollectiveKind::Send), (receive, CollectiveKind::Recv)] {
            let mut node = b.graph.node(id);
            node.kind = NodeKind::PointToPoint;
            node.collective = Some(kind);
            b.graph.set_node(id, node);
        }
        if send_first {
            b.edge(send, kernel, 0, 0);
            b.edge(kernel, receive, 0, 0);
        } else {
            b.edge(receive, kernel, 0, 0);
            b.edge(kernel, send, 0, 0);
        }
        b.graph
    };
    let job = Job::from_ranks([stage(true), stage(false)]);
    let timeline = simulate(&job, &SimOptions::iterations(1)).unwrap();
    assert_eq!(timeline.makespan(), ns(10 + 100 + 10));
}

#[test]
fn times_saturate_and_too_many_tasks_are_refused() {
    let mut b = Build::new(1);
    let node = b.node("long", 0, i64::MAX);
    b.edge(node, node, i64::MAX, 1);
    let job = Job { classes: vec![RankClass { graph: b.graph, multiplicity: u64::MAX }] };
    let timeline = simulate(&job, &SimOptions::iterations(3)).unwrap();
    assert_eq!(timeline.makespan(), Nanos::MAX);
    let error = simulate(&job, &SimOptions::iterations(u32::MAX)).unwrap_err();
    assert!(matches!(error, SimError::TooLarge { .. }), "{error}");
}

#[test]
fn the_critical_path_crosses_queues_and_classes() {
    use foretrain_sim::StartReason::{Edge, Free, LastMember, Queue};
    let rank = |host: i64| {
        let mut b = Build::new(2);
        let launch = b.node("launch", 0, host);
        let kernel = b.node("kernel", 1, 50);
        let second = b.node("second", 1, 60);
        let reduce = b.collective("world", 0, 1, 10);
        b.edge(launch, kernel, 5, 0);
        b.edge(launch, second, 6, 0);
        b.edge(second, reduce, 0, 0);
        b.graph
    };
    let job = Job::from_ranks([rank(10), rank(30)]);
    let timeline = simulate(&job, &SimOptions::iterations(1)).unwrap();
    let path = timeline.critical_path(&job, 0, 0).unwrap();
    let short: Vec<_> = path.iter().map(|t| (t.class, t.node.get(), t.reason, t.gap)).collect();
    let want = [
        (1, 0, Free, ns(0)),
        (1, 1, Edge, ns(5)),
        (1, 2, Queue, ns(0)),
        (1, 3, Edge, ns(0)),
        (0, 3, LastMember, ns(0)),
    ];
    assert_eq!(short, want);
    assert!(timeline.critical_path(&job, 2, 0).unwrap().is_empty());
    assert!(timeline.critical_path(&job, 0, 1).unwrap().is_empty());
}
