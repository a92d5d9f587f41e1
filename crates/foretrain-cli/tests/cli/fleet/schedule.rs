//! `fleet schedule`.

use serde_json::Value;

use super::page;
use crate::support::{answer, run};

const JOBS: &str = "examples/fleet/training.csv";
const ON: [&str; 4] = ["--on", "dgx-1-v100", "--nodes", "2"];

fn schedule<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["fleet", "schedule", JOBS][..], &ON, more].concat()
}

#[test]
fn policies_side_by_side() {
    let arguments = schedule(&["--policy", "fifo,srtf,horus", "--runs", "3"]);
    let (text, document) = page("fleet-schedule", &arguments);
    insta::assert_snapshot!(text);
    assert_eq!(document["policies"].as_array().map(Vec::len), Some(3));
    assert!(document["policies"][0]["savings"].is_null());
    let saved = &document["policies"][1]["savings"]["completion"];
    assert!(saved["mean"].as_f64() > Some(0.1) && saved["half_width"].is_number(), "{saved}");
}

#[test]
fn every_policy_finishes_every_job_and_says_the_same_again() {
    let all = "fifo,fifo+backfill,best-fit,sjf,ssf,smallest,srtf,srsf,tiresias,themis,gandiva,horus,\
               horus+,pollux,optimus,muri-s,muri-l";
    let arguments = schedule(&["--policy", all, "--runs", "1", "--elastic", "--json"]);
    let first = answer(&arguments);
    assert_eq!(first, answer(&arguments));
    let document: Value = serde_json::from_str(&first).unwrap();
    for policy in document["policies"].as_array().unwrap() {
        let table = &policy["table"];
        assert_eq!(table["finished"], 60, "{}", policy["name"]);
        let busy = table["allocated"].as_f64().unwrap();
        let computing = table["utilisation"].as_f64().unwrap();
        assert!(busy <= 1.0 && computing <= busy, "{}", policy["name"]);
    }
}

#[test]
fn files_hold_a_plot_and_what_became_of_the_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let (plot, jobs) = (folder.path().join("plot.svg"), folder.path().join("jobs.csv"));
    let (plot, jobs) = (plot.to_str().unwrap(), jobs.to_str().unwrap());
    answer(&schedule(&["--policy", "fifo,srtf", "--runs=1", "--plot", plot, "--jobs", jobs]));
    let drawn = std::fs::read_to_string(plot).unwrap();
    assert!(drawn.starts_with("<svg") && drawn.contains(">srtf<"), "{drawn}");
    let lines = std::fs::read_to_string(jobs).unwrap();
    assert_eq!(lines.lines().count(), 1 + 2 * 60);
    assert!(lines.lines().skip(1).all(|line| line.ends_with(",done")), "{lines}");
}

#[test]
fn failures_cost_and_are_counted() {
    let run = |more: &[&str]| {
        let arguments = schedule(&[&["--policy=fifo", "--runs=1", "--json"], more].concat());
        let document: Value = serde_json::from_str(&answer(&arguments)).unwrap();
        let table = document["policies"][0]["table"].clone();
        (table["failures"].as_u64().unwrap(), table["makespan_ns"].as_i64().unwrap())
    };
    let (none, fast) = run(&[]);
    let (some, slow) = run(&["--mtbf=4h", "--repair=30min", "--seed=2"]);
    assert_eq!(none, 0);
    assert!(some > 0 && slow > fast, "{some} {slow} {fast}");
}

#[test]
fn machines_come_from_a_table() {
    let arguments = [
        "fleet",
        "schedule",
        JOBS,
        "--machines",
        "examples/fleet/machines.csv",
        "--policy=fifo+backfill",
        "--runs=1",
    ];
    let text = answer(&arguments);
    assert!(text.contains("12 GPUs on 2 nodes: 1 x 4 A100, 1 x 8 A100"), "{text}");
    // Jobs of 16 GPUs never fit.
    assert!(text.contains("it asks for 16 GPUs of one kind; there are 12"), "{text}");
}

#[test]
fn mistakes_are_named() {
    let fails = |arguments: &[&str]| {
        let said = run(arguments);
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.out);
        said.err
    };
    let cases: [(&[&str], &str); 8] = [
        (&["--policy=fifoo"], "did you mean \"fifo\"?"),
        (&["--sharing=half"], "time-sliced, mps, none, or a factor"),
        (&["--interval=0s"], "a time above zero"),
        (&["--mtbf=4"], "has no unit"),
        (&["--repair=1h"], "--mtbf"),
        (&["--utilisation=450%"], "450"),
        (&["--gpus-per-node=8"], "cannot be used with"),
        (&["--runs=0"], "1..=1000"),
    ];
    for (more, expected) in cases {
        let error = fails(&schedule(more));
        assert!(error.contains(expected), "{more:?}: {error}");
    }
    let error = fails(&["fleet", "schedule", JOBS]);
    assert!(error.contains("--nodes"), "{error}");
    let error = fails(&["fleet", "schedule", "examples/fleet/machines.csv", "--nodes=1"]);
    assert!(error.contains("machines"), "{error}");
    let error = fails(&["fleet", "schedule", "examples/fleet/features.csv", "--nodes=1"]);
    assert!(
        error.contains("submission not known") && error.contains("--column submit="),
        "{error}"
    );
}
