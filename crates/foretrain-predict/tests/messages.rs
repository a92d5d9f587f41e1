//! Ranks of a pipeline on a host backend replayed together: a send is done before its data has
//! arrived.
#![expect(clippy::unwrap_used, reason = "tests")]

use foretrain_core::{Ledger, Nanos};
use foretrain_graph::{NodeId, NodeKind};
use foretrain_ingest::{ReadOptions, read_trace_bytes};
use foretrain_predict::Recording;
use foretrain_predict::replay::{JointReplay, replay_ranks};

/// Events of one rank's only thread, as `(category, name, start, end)` in microseconds.
type Events = [(&'static str, &'static str, i64, i64)];

fn rank(rank: u32, events: &Events) -> Recording {
    let events: Vec<String> = events
        .iter()
        .map(|(cat, name, start, end)| {
            let dur = end - start;
            let dims = if name.contains("c10d") { "[[[64]],[],[],[]]" } else { "[[64]]" };
            let types = r#"["float"]"#;
            format!(
                r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":1,"tid":1,"ts":{start},"dur":{dur},"args":{{"Input Dims":{dims},"Input type":{types}}}}}"#
            )
        })
        .collect();
    let head = format!(
        r#""distributedInfo":{{"backend":"gloo","rank":{rank},"world_size":2,"pg_config":[{{"pg_name":"0","pg_desc":"default_pg","backend_config":"cpu:gloo","pg_size":2,"ranks":[0,1]}}]}}"#
    );
    let text = format!(r#"{{"schemaVersion":1,{head},"traceEvents":[{}]}}"#, events.join(","));
    let name = format!("rank{rank}.json");
    let (trace, _) = read_trace_bytes(text.as_bytes(), &name, &ReadOptions::default()).unwrap();
    Recording::analyse(trace, None)
}

const MARK: (&str, &str, i64, i64) = ("user_annotation", "ProfilerStep#1", 0, 40_000);

/// Sends after 10 ms and goes on at once.
const SENDS_AND_GOES_ON: [(&str, &str, i64, i64); 5] = [
    MARK,
    ("cpu_op", "aten::mm", 0, 10_000),
    ("cpu_op", "c10d::send", 10_000, 10_020),
    ("user_annotation", "gloo:send", 10_010, 10_060),
    ("cpu_op", "aten::mm", 10_100, 40_000),
];

fn together(sender: &Events, receiver: &Events) -> JointReplay {
    let recordings = [rank(0, sender), rank(1, receiver)];
    replay_ranks(&recordings, 0, &mut Ledger::new()).unwrap()
}

fn assert_replays(joint: &JointReplay) {
    assert_eq!(joint.matched, 1);
    for rank in &joint.ranks {
        let off = (rank.replayed - rank.measured).nanos().abs();
        assert!(off <= 1_000, "rank {}: {} for {}", rank.rank, rank.replayed, rank.measured);
    }
}

/// When a rank's thread came to the last of its work.
fn last_work(joint: &JointReplay, class: usize) -> Nanos {
    let graph = &joint.job.classes[class].graph;
    let on_thread = |&id: &NodeId| graph.queues[graph.queue(id).index()].name == "main thread";
    let last = graph
        .node_ids()
        .filter(on_thread)
        .filter(|&id| graph.kind(id) != NodeKind::Mark)
        .last()
        .unwrap();
    joint.timeline.classes[class].start[last.index()]
}

#[test]
fn data_arrives_after_its_sender_is_done() {
    let receiver = [
        MARK,
        ("cpu_op", "aten::mm", 0, 5_000),
        ("cpu_op", "c10d::recv_", 5_000, 5_020),
        ("user_annotation", "gloo:recv", 5_010, 25_000),
        ("cpu_op", "aten::mm", 25_010, 40_000),
    ];
    let joint = together(&SENDS_AND_GOES_ON, &receiver);
    assert_replays(&joint);
    let came = last_work(&joint, 1);
    assert!((came - Nanos::from_micros(25_000)).nanos().abs() < 100_000, "{came}");
}

#[test]
fn a_sender_that_is_done_before_anybody_asks_does_not_wait() {
    let receiver = [
        MARK,
        ("cpu_op", "aten::mm", 0, 30_000),
        ("cpu_op", "c10d::recv_", 30_000, 30_020),
        ("user_annotation", "gloo:recv", 30_010, 32_000),
        ("cpu_op", "aten::mm", 32_010, 40_000),
    ];
    let joint = together(&SENDS_AND_GOES_ON, &receiver);
    assert_replays(&joint);
    let went_on = last_work(&joint, 0);
    assert!((went_on - Nanos::from_micros(10_060)).nanos().abs() < 100_000, "{went_on}");
    let came = last_work(&joint, 1);
    assert!((came - Nanos::from_micros(32_000)).nanos().abs() < 100_000, "{came}");
}

#[test]
fn a_send_under_which_the_sender_computes_waits_for_its_receiver_only_where_it_is_waited_for() {
    let sender = [
        MARK,
        ("cpu_op", "c10d::send", 1_000, 1_020),
        ("user_annotation", "gloo:send", 1_010, 21_000),
        ("cpu_op", "aten::mm", 1_100, 11_000),
        ("cpu_op", "aten::mm", 21_010, 40_000),
    ];
    let receiver = [
        MARK,
        ("cpu_op", "aten::mm", 0, 20_000),
        ("cpu_op", "c10d::recv_", 20_000, 20_020),
        ("user_annotation", "gloo:recv", 20_010, 30_000),
        ("cpu_op", "aten::mm", 30_010, 40_000),
    ];
    let joint = together(&sender, &receiver);
    assert_replays(&joint);
    let went_on = last_work(&joint, 0);
    assert!((went_on - Nanos::from_micros(21_000)).nanos().abs() < 100_000, "{went_on}");
}
