//! `fleet schedule`.

use serde_json::Value;

use super::page;
use crate::support::{answer, run, text, write};

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
    let cases: [(&[&str], &str); 11] = [
        (&["--policy=fifoo"], "did you mean \"fifo\"?"),
        (&["--sharing=half"], "time-sliced, mps, none, or a factor"),
        (&["--interval=0s"], "expected 1s or more"),
        (&["--interval=1us"], "expected 1s or more"),
        (&["--mtbf=4"], "has no unit"),
        (&["--repair=1h"], "--mtbf"),
        (&["--utilisation=450%"], "450"),
        (&["--gpus-per-node=8"], "cannot be used with"),
        (&["--runs=0"], "1..=1000"),
        (&["--rack=0"], "expected a number of nodes"),
        (&["--duration-error=1001%"], "0 to 1000 per cent"),
    ];
    for (more, expected) in cases {
        let error = fails(&schedule(more));
        assert!(error.contains(expected), "{more:?}: {error}");
    }
    let error = fails(&["fleet", "schedule", JOBS, "--nodes=0"]);
    assert!(error.contains("expected a number of nodes, at least 1"), "{error}");
    answer(&schedule(&["--duration-error=1000%", "--policy=sjf,srtf", "--runs=2"]));
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

/// A run of 90,000 may take a day or 90 seconds: the page says what it took it for, and how to say it.
#[test]
fn units_that_nobody_stated_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "job_id,submit,duration,num_gpus\na,0,90000,1\nb,5000,60000,1\n";
    let table = write(folder.path(), "jobs.csv", rows);
    let base =
        ["fleet", "schedule", text(&table), "--nodes=1", "--policy=fifo", "--runs=1", "--json"];
    let makespan = |more: &[&str]| {
        let document: Value = serde_json::from_str(&answer(&[&base[..], more].concat())).unwrap();
        let seconds =
            document["policies"][0]["table"]["makespan_ns"].as_i64().unwrap() / 1_000_000_000;
        let findings = document["ledger"]["findings"].as_array().unwrap();
        let guesses = findings.iter().find(|finding| finding["code"] == "unit-guessed");
        (seconds, guesses.map_or(0, |guesses| guesses["count"].as_u64().unwrap()))
    };
    let (seconds, guesses) = makespan(&[]);
    assert!(seconds >= 90_000, "{seconds}");
    assert_eq!(guesses, 2);
    let said = makespan(&["--column=submit=submit:ms", "--column=duration=duration:ms"]);
    assert!(said.0 < 200 && said.1 == 0, "{said:?}");
}

/// Names in tables come from anywhere.
#[test]
fn control_characters_of_tables_reach_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let rows =
        "job_id,submit_time,duration,num_gpus,\u{1b}[2J\na\u{1b}[31m,0,100,9,\nb\u{7},0,1,1,\n";
    let table = write(folder.path(), "jobs\u{1b}[1m.csv", rows);
    let jobs = folder.path().join("out.csv");
    let base =
        ["fleet", "schedule", text(&table), "--nodes=1", "--policy=muri-s,horus", "--runs=2"];
    let page = answer(&[&base[..], &["--jobs", text(&jobs)]].concat());
    let audit = answer(&["fleet", "audit", text(&table)]);
    let written = std::fs::read_to_string(&jobs).unwrap();
    for text in [&page, &audit, &written] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("job a?[31m: it asks for 9 GPUs"), "{page}");
    assert!(written.contains(r"a\u{1b}[31m") && written.contains(r"b\u{7}"), "{written}");
    // One is no plural, one policy no "they".
    assert!(page.contains("8 GPUs on 1 node:") && page.contains("1 of 2 jobs was never"), "{page}");
    assert!(page.contains("once as many jobs drawn"), "{page}");
    assert!(
        page.contains("muri-s knows how long") && page.contains("others, 2 are taken"),
        "{page}"
    );
}

#[test]
fn what_is_read_is_not_written_over() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("jobs.csv");
    let text = "job_id,submit_time,duration,num_gpus\na,0,100,8\n";
    std::fs::write(&table, text).unwrap();
    let path = table.to_str().unwrap();
    let schedule = ["fleet", "schedule", path, "--nodes=1"];
    let tries: [&[&str]; 4] = [
        &[&schedule[..], &["--jobs", path]].concat(),
        &[&schedule[..], &["--plot", path]].concat(),
        &[&schedule[..], &["--out", path]].concat(),
        &["fleet", "audit", path, "--out", path],
    ];
    for arguments in tries {
        let said = run(arguments);
        assert_eq!(said.code, 2, "{arguments:?}");
        assert!(said.err.contains("written over"), "{}", said.err);
    }
    assert_eq!(std::fs::read_to_string(&table).unwrap(), text);
    let both = folder.path().join("both");
    let both = both.to_str().unwrap();
    let said = run(&[&schedule[..], &["--jobs", both, "--plot", both]].concat());
    assert!(said.code == 2 && said.err.contains("two answers"), "{}", said.err);
}

/// Four jobs on eight GPUs: a from 0 to 100, b from 100 to 300, c to 350, d to 360.
fn four_jobs(folder: &std::path::Path) -> String {
    let table = folder.join("four.csv");
    let rows = "a,0,100,8\nb,10,200,4\nc,20,50,8\nd,30,10,4\n";
    let text = format!("job_id,submit_time,duration,num_gpus\n{rows}");
    std::fs::write(&table, text).expect("it can be written");
    table.to_str().expect("a plain name").to_owned()
}

fn first_policy(arguments: &[&str]) -> Value {
    let document: Value = serde_json::from_str(&answer(arguments)).expect("JSON");
    document["policies"][0].clone()
}

#[test]
fn a_run_that_is_cut_counts_up_to_its_end_and_compares_no_times() {
    let folder = tempfile::tempdir().unwrap();
    let table = four_jobs(folder.path());
    let plain = ["fleet", "schedule", &table, "--nodes=1", "--runs=1", "--restart=0s", "--json"];
    let cut = [&plain[..], &["--policy=fifo,srtf", "--until=90s"]].concat();
    let document: Value = serde_json::from_str(&answer(&cut)).unwrap();
    let fifo = &document["policies"][0];
    assert_eq!(fifo["table"]["allocated"], 1.0, "{fifo}");
    assert!(fifo["means"].get("completion_mean").is_none(), "{fifo}");
    assert!(document["policies"][1]["savings"].is_null());
    // Whole, the middle of 100, 290, 330 and 330 is 310.
    let whole = first_policy(&[&plain[..], &["--policy=fifo"]].concat());
    assert_eq!(whole["table"]["completion"]["median_ns"], 310_000_000_000_i64);
}

#[test]
fn starting_up_is_not_computing() {
    let folder = tempfile::tempdir().unwrap();
    let table = four_jobs(folder.path());
    let run = first_policy(&[
        "fleet",
        "schedule",
        &table,
        "--nodes=1",
        "--runs=1",
        "--restart=1h",
        "--json",
        "--policy=fifo",
    ]);
    let computing = run["table"]["utilisation"].as_f64().unwrap();
    let makespan = run["table"]["makespan_ns"].as_i64().unwrap() as f64 / 1e9;
    // 800 + 800 + 400 + 40 GPU-seconds of work.
    assert!((computing * 8.0 * makespan - 2_040.0).abs() < 1e-3, "{computing} {makespan}");
}

#[test]
fn parts_of_a_gpu_run_under_every_policy() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("parts.csv");
    let rows = "a,0,10,0.5\nb,0,10,0.5\nc,0,10,0.3\nd,5,10,1\n";
    std::fs::write(&table, format!("job_id,submit_time,duration,num_gpus\n{rows}")).unwrap();
    let policies =
        "fifo,best-fit,sjf,srtf,tiresias,themis,gandiva,horus,horus+,pollux,optimus,muri-s";
    let arguments = [
        "fleet",
        "schedule",
        table.to_str().unwrap(),
        "--nodes=1",
        "--runs=1",
        "--restart=0s",
        "--json",
        "--policy",
        policies,
    ];
    let document: Value = serde_json::from_str(&answer(&arguments)).unwrap();
    for policy in document["policies"].as_array().unwrap() {
        assert_eq!(policy["table"]["finished"], 4, "{}", policy["name"]);
    }
    // Parts do not slow each other down.
    assert_eq!(document["policies"][0]["table"]["makespan_ns"], 15_000_000_000_i64);
}

#[test]
fn machines_that_fail_faster_than_jobs_work_end_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let table = four_jobs(folder.path());
    let arguments = [
        "fleet",
        "schedule",
        &table,
        "--nodes=1",
        "--runs=1",
        "--policy=fifo",
        "--mtbf=1s",
        "--json",
    ];
    let said = run(&arguments);
    assert_eq!(said.code, 1, "nothing finished: {}", said.err);
    assert!(said.out.contains("\"unfinished\": 4"), "{}", said.out);
}
