//! O05, O06, O09 and O16: which rank, which step, which clock.

use foretrain_testkit::events::{Events, own_clocks, rank, repetitions};
use serde_json::Value;

use crate::support::{complaint, finding, inspected, of_rank, run, text, write};

fn three_events() -> String {
    let mut events = Events::default();
    events.launch("cudaLaunchKernel", 0.0, 5.0, 1);
    events.kernel("gemm", 10.0, 20.0, 7, 1, "");
    events.add("cpu_op", "aten::mm", "0", "8", 1, "");
    events.text("")
}

#[test]
fn o05_a_lone_trace_is_rank_0_and_other_files_are_passed_over() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "trace.json", three_events());
    write(home.path(), "package.json", "{\"name\": \"left-pad\"}");
    let (code, answer) = inspected(home.path());
    let found = &answer["ranks"][0];
    assert_eq!((code, &found["rank"], &found["events"]), (0, &0.into(), &3.into()));
    assert_eq!(found["rank_source"], "assumed: only file");
    assert_eq!(finding(&answer, "rank-assumed").0, 1);
    let (ignored, which) = finding(&answer, "ignored-file");
    assert!(ignored == 1 && which.contains("package.json"), "{which}");
}

#[test]
fn o05_names_tell_ranks_and_no_two_files_share_one() {
    let home = tempfile::tempdir().unwrap();
    for name in ["rank0.json", "rank1.json"] {
        write(home.path(), name, three_events());
    }
    let (code, answer) = inspected(home.path());
    let ranks = answer["ranks"].as_array().unwrap();
    assert_eq!((code, ranks.len(), &ranks[1]["rank"]), (0, 2, &1.into()));
    assert_eq!(ranks[1]["rank_source"], "file name");
    assert_eq!(finding(&answer, "rank-from-name").0, 2);

    write(home.path(), "again-rank1.json", three_events());
    let said = complaint(&["inspect", text(home.path())], home.path());
    for path in ["DIR/rank1.json", "DIR/again-rank1.json"] {
        assert!(said.contains("two files claim rank 1") && said.contains(path), "{said}");
    }
}

#[test]
fn o06_steps_are_found_by_repetition() {
    let home = tempfile::tempdir().unwrap();
    let path = write(home.path(), "three.json", repetitions(3).text(""));
    let (code, answer) = inspected(&path);
    let found = &answer["ranks"][0];
    assert_eq!((code, found["steps"].as_array().unwrap().len()), (0, 3));
    let median = found["median_step_ns"].as_f64().unwrap() / 1e6;
    assert!((median - 10.0).abs() < 0.2, "{median} ms");
    let page = run(&["inspect", text(&path)]).out;
    assert!(page.contains("inferred boundaries") && page.contains("--steps"), "{page}");

    let by_hand = run(&["inspect", text(&path), "--steps", "0ms,15ms,30ms", "--json"]);
    let by_hand: Value = serde_json::from_str(&by_hand.out).unwrap();
    assert_eq!(by_hand["ranks"][0]["median_step_ns"], 15_000_000);
}

#[test]
fn o06_one_repetition_is_one_step_without_spread() {
    let home = tempfile::tempdir().unwrap();
    let path = write(home.path(), "one.json", repetitions(1).text(""));
    let (code, answer) = inspected(&path);
    assert_eq!((code, answer["ranks"][0]["steps"].as_array().unwrap().len()), (0, 1));
    assert_eq!(finding(&answer, "one-step").0, 1);
    let page = run(&["inspect", text(&path)]).out;
    assert!(page.contains("n=1, no spread"), "{page}");
}

/// An all-reduce of 4 KiB from `start` to `end` ms, with its backend's sequence number.
fn all_reduce(events: &mut Events, group: &str, ranks: &str, seq: u32, start: f64, end: f64) {
    let size = ranks.split(',').count();
    let args = format!(
        r#","Collective name":"allreduce","In msg nelems":1024,"Out msg nelems":1024,"dtype":"Float","Group size":{size},"Process Group Name":"{group}","Process Group Ranks":"[{ranks}]","Seq":{seq}"#
    );
    let name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)";
    events.kernel(name, start * 1000.0, (end - start) * 1000.0, 20, 0, &args);
}

#[test]
fn o09_collectives_are_paired_by_their_order_in_the_group() {
    let home = tempfile::tempdir().unwrap();
    let (mut zero, mut one) = (Events::default(), Events::default());
    all_reduce(&mut zero, "A", "0, 1", 2, 0.0, 5.0);
    all_reduce(&mut zero, "B", "0", 4, 10.0, 15.0);
    all_reduce(&mut zero, "A", "0, 1", 6, 20.0, 25.0);
    all_reduce(&mut one, "A", "0, 1", 2, 2.0, 5.0);
    all_reduce(&mut one, "A", "0, 1", 4, 23.0, 25.0);
    write(home.path(), "rank0.json", zero.text(&rank(0, 2)));
    write(home.path(), "rank1.json", one.text(&rank(1, 2)));
    let (code, answer) = inspected(home.path());
    let together = &answer["together"];
    assert_eq!((code, &together["matched"]), (0, &2.into()));
    assert_eq!(finding(&answer, "collective-sequence-disagrees").0, 1);
    // Rank 1 arrives 2 and 3 ms late; a wrong pairing would give 8 ms or more.
    assert_eq!(together["arrival_spread"]["max_ns"], 3_000_000);
    assert_eq!(of_rank(&together["ranks"], 1)["times_last"], 2);
}

#[test]
fn o16_clocks_are_aligned_and_the_late_rank_named() {
    let home = tempfile::tempdir().unwrap();
    for n in 0..4 {
        write(home.path(), &format!("rank{n}.json"), own_clocks(n).text(&rank(n, 4)));
    }
    let (code, answer) = inspected(home.path());
    let together = &answer["together"];
    assert_eq!((code, &together["matched"]), (0, &20.into()));
    let of = |rank| of_rank(&together["ranks"], rank);
    let ms = |value: &Value| value.as_f64().unwrap() / 1e6;
    assert!((ms(&of(2)["clock_offset_ns"]) - 11_560.0).abs() < 0.1, "{together}");
    assert!((of(3)["clock_drift_ppm"].as_f64().unwrap() - 20.0).abs() < 2.0, "{together}");
    assert!((ms(&of(1)["lateness_ns"]) - 1.6).abs() < 0.1, "{together}");
    assert_eq!((&of(1)["times_last"], &of(1)["lateness_is_claimed"]), (&20.into(), &true.into()));
    for n in [0, 2, 3] {
        assert_eq!(of(n)["lateness_is_claimed"], false, "{together}");
    }
    let page = run(&["inspect", text(home.path())]).out;
    assert!(page.contains("clocks aligned (") && page.contains("less is not claimed"), "{page}");
}

#[test]
fn o16_ranks_without_a_shared_collective_are_not_merged() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "rank0.json", own_clocks(0).text(&rank(0, 4)));
    write(home.path(), "rank1.json", repetitions(3).text(&rank(1, 4)));
    let (code, answer) = inspected(home.path());
    assert_eq!((code, &answer["together"]), (0, &Value::Null));
    let why = answer["cannot_merge"].as_str().unwrap();
    assert!(why.contains("ranks cannot be merged"), "{why}");
}
