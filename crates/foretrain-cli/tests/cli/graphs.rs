//! Execution traces, Chakra files and saved graphs through the verbs.

use std::path::Path;

use foretrain::core::Nanos;
use foretrain::graph::StepGraph;
use foretrain_testkit::chakra::{file, sample};
use foretrain_testkit::events::repetitions;
use foretrain_testkit::execution_trace::{FIVE, new_style, old_style};
use serde_json::Value;

use crate::support::{
    TINY, answer, complaint, finding, foretrain, inspected, misfits, run, text, write,
};

const SCHEMA: &str = "1.1.1-chakra.0.0.4";

/// What `inspect` prints for relative paths: no page may depend on where the test runs.
fn page_in(directory: &Path, input: &str) -> String {
    let output = foretrain(&["inspect", input]).current_dir(directory).output();
    String::from_utf8(output.expect("the command starts").stdout).expect("UTF-8")
}

#[test]
fn the_page_of_an_execution_trace_and_of_chakra_files() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), "et.json", new_style(SCHEMA, &FIVE, ""));
    insta::assert_snapshot!("inspect_execution_trace", page_in(home.path(), "et.json"));
    for rank in [0, 1] {
        write(home.path(), &format!("run.{rank}.et"), file(SCHEMA, &sample()));
    }
    insta::assert_snapshot!("inspect_chakra", page_in(home.path(), "*.et"));
}

#[test]
fn the_answer_fits_its_schema() {
    let home = tempfile::tempdir().unwrap();
    let saved = home.path().join("step.parquet");
    assert_eq!(run(&["export", TINY, "--graph", text(&saved)]).code, 0);
    let schema: Value = serde_json::from_str(&answer(&["schema", "inspect-graph"])).unwrap();
    for path in [
        write(home.path(), "et.json", old_style("1.0.1", &FIVE)),
        write(home.path(), "run.0.et", file(SCHEMA, &sample())),
        saved,
    ] {
        let (code, document) = inspected(&path);
        assert_eq!((code, &document["schema"]), (0, &"foretrain/inspect-graph/1".into()));
        let found = misfits(&document, &schema, &schema, "$");
        assert!(found.is_empty(), "{found:#?}");
    }
}

#[test]
fn what_is_not_recorded_is_not_zero() {
    let home = tempfile::tempdir().unwrap();
    let path = write(home.path(), "et.json", old_style("1.0.1", &FIVE));
    let graph = inspected(&path).1["graphs"][0].take();
    assert_eq!((&graph["times"], &graph["total"]["time_ns"]), (&Value::Null, &Value::Null));
    assert_eq!(graph["operations"][0]["median_ns"], Value::Null);
    let page = answer(&["inspect", text(&path)]);
    assert!(page.contains("No durations recorded"), "{page}");
    let said = complaint(&["export", text(&path), "--perfetto", "/dev/null"], home.path());
    assert!(said.contains("no durations recorded, so there is no timeline"), "{said}");
}

#[test]
fn a_graph_is_the_same_after_export() {
    let home = tempfile::tempdir().unwrap();
    let source = write(home.path(), "run.3.et", file(SCHEMA, &sample()));
    let saved = home.path().join("saved");
    let again = home.path().join("again");
    for (from, to) in [(&source, &saved), (&saved, &again)] {
        let said = run(&["export", text(from), "--graph", text(to)]);
        assert_eq!((said.code, said.out.as_str()), (0, ""));
        assert!(said.err.contains(": rank 3, 7 nodes, "), "{}", said.err);
    }
    assert!(std::fs::read(&saved).unwrap() == std::fs::read(&again).unwrap());
    let (of_source, of_saved) = (inspected(&source).1, inspected(&saved).1);
    for key in ["kinds", "operations", "groups", "times", "rank", "world_size"] {
        assert_eq!(of_source["graphs"][0][key], of_saved["graphs"][0][key], "{key}");
    }
    assert_eq!(of_saved["graphs"][0]["made_from"], text(&source));
}

#[test]
fn a_saved_step_has_the_times_of_its_trace() {
    let home = tempfile::tempdir().unwrap();
    let saved = home.path().join("step.parquet");
    assert_eq!(run(&["export", TINY, "--graph", text(&saved)]).code, 0);
    let graph = StepGraph::load(&saved).unwrap();
    let times = inspected(&saved).1["graphs"][0]["times"].take();
    let path = graph.longest_path().unwrap().length;
    assert_eq!(times["longest_path_ns"], path.nanos());
    let recorded = Nanos::from_nanos(times["recorded_ns"].as_i64().unwrap());
    assert_eq!(Some(recorded), graph.meta.recorded_step);
    assert!(path <= recorded, "a path through the step is no longer than the step");
}

#[test]
fn a_graph_with_durations_gives_a_timeline() {
    let home = tempfile::tempdir().unwrap();
    let source = write(home.path(), "run.0.et", file(SCHEMA, &sample()));
    let out = home.path().join("timeline.json");
    let said = run(&["export", text(&source), "--perfetto", text(&out)]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("5 of 7 nodes have no duration"), "{}", said.err);
    let timeline: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let events = timeline["traceEvents"].as_array().unwrap();
    let end = |event: &Value| event["ts"].as_f64().unwrap() + event["dur"].as_f64().unwrap();
    let last = events.iter().filter(|event| event["ph"] == "X").map(end).fold(0.0, f64::max);
    assert_eq!(last, 2598.0 + 20_031.0, "the kernel, then the all-reduce on the same stream");
}

#[test]
fn profiler_traces_are_preferred_and_mixtures_refused() {
    let home = tempfile::tempdir().unwrap();
    let timeline = write(home.path(), "rank0.json", repetitions(3).text(""));
    let graph = write(home.path(), "et.json", old_style("1.0.1", &FIVE));
    let (code, found) = inspected(home.path());
    assert_eq!((code, &found["schema"]), (0, &"foretrain/inspect/1".into()));
    let (count, which) = finding(&found, "graph-file");
    assert!(count == 1 && which.contains("et.json (a PyTorch execution trace)"), "{which}");
    let page = answer(&["inspect", text(home.path())]);
    assert!(page.contains("set aside"), "{page}");

    let said = complaint(&["inspect", text(&timeline), text(&graph)], home.path());
    assert!(said.contains("different kinds: DIR/rank0.json is a PyTorch profiler trace"), "{said}");
    assert!(said.contains("DIR/et.json is a PyTorch execution trace"), "{said}");
}

#[test]
fn what_needs_times_says_so() {
    let home = tempfile::tempdir().unwrap();
    let graph = write(home.path(), "et.json", old_style("1.0.1", &FIVE));
    let predict = ["predict", text(&graph), "--on", "dgx-a100", "--gpus", "8"];
    let said = complaint(&predict, home.path());
    assert!(said.contains("the graph holds no durations"), "{said}");
    assert!(said.contains("(DIR/et.json)") && said.contains("give the profiler trace"), "{said}");
    for option in [["--steps", "0ms,1ms"], ["--window", "0ms..1ms"]] {
        let said = complaint(&["inspect", text(&graph), option[0], option[1]], home.path());
        assert!(
            said.contains("needs profiler traces; a graph has no timeline (DIR/et.json)"),
            "{said}"
        );
    }
}
