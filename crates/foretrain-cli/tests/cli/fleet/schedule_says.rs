//! `fleet schedule`: what it counts and what it says of what it could not do.

use std::path::Path;

use serde_json::Value;

use crate::support::{answer, run, text, write};

fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(arguments)).expect("JSON")
}

/// A table of jobs and the arguments that play it on one node.
fn on_one_node<'a>(table: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let base = ["fleet", "schedule", text(table), "--runs=1", "--restart=0s"];
    [&base[..], more].concat()
}

#[test]
fn several_slices_are_left_out_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let rows =
        "job_id,submit_s,duration_s,gpus,gpu_type\na,0,100,1,MIG-1g.5gb\nb,0,100,8,MIG-1g.5gb\n";
    let table = write(folder.path(), "jobs.csv", rows);
    let more = ["--on=dgx-a100", "--nodes=1", "--policy=fifo"];
    let page = answer(&on_one_node(&table, &more));
    assert!(page.contains("1 of 2 rows: several isolated slices asked for"), "{page}");
}

#[test]
fn times_that_nothing_holds_are_not_none() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "job_id,submit_s,duration_s,gpus\na,0,1e300,1\nb,0,100,1\n";
    let table = write(folder.path(), "jobs.csv", rows);
    let document = document(&on_one_node(&table, &["--nodes=1", "--policy=fifo", "--json"]));
    assert_eq!(document["left_out"]["duration not known"], 1, "{document}");
    let findings = document["ledger"]["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["code"] == "runs-for-decades"), "{document}");
}

#[test]
fn memory_of_machines_counts() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "job_id,submit_s,duration_s,gpus,gpu_memory_gb\na,0,100,1,200\nb,0,100,1,20\n";
    let table = write(folder.path(), "jobs.csv", rows);
    let machines = "machine,gpus,gpu_type,gpu_memory_gb\nn1,2,A100,40\n";
    let machines = write(folder.path(), "machines.csv", machines);
    let page = answer(&on_one_node(&table, &["--machines", text(&machines), "--policy=fifo"]));
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("1 of 2 jobs was never started"), "{page}");
    let many = write(folder.path(), "many.csv", "machine,gpus\nn1,99999999999\n");
    let said = run(&on_one_node(&table, &["--machines", text(&many)]));
    assert!(said.code == 2 && said.err.contains("from 1 to 65535"), "{}", said.err);
}

/// Shared GPUs are given once, and what jobs cost each other is no work.
#[test]
fn gpu_time_is_conserved_whatever_shares_gpus() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("jobs.csv");
    let policies = "fifo,srtf,gandiva,horus,muri-s";
    let arguments = [
        "fleet",
        "schedule",
        "examples/fleet/training.csv",
        "--on=dgx-1-v100",
        "--nodes=2",
        "--runs=1",
        "--policy",
        policies,
        "--jobs",
        text(&out),
        "--json",
    ];
    let document = document(&arguments);
    let held = |policy: &str| -> f64 {
        let mut table = csv::Reader::from_path(&out).expect("written");
        let rows = table.records().map(|row| row.expect("a row"));
        let own = rows.filter(|row| &row[0] == policy);
        own.map(|row| row[9].parse::<f64>().expect("gpu_seconds")).sum()
    };
    let mut computed = Vec::new();
    for policy in document["policies"].as_array().unwrap() {
        let (name, table) = (policy["name"].as_str().unwrap(), &policy["table"]);
        let whole = 16.0 * table["makespan_ns"].as_f64().unwrap() / 1e9;
        let given = table["allocated"].as_f64().unwrap() * whole;
        assert!((held(name) / given - 1.0).abs() < 1e-6, "{name}: {} of {given}", held(name));
        computed.push(table["utilisation"].as_f64().unwrap() * whole);
    }
    let most = computed.iter().copied().fold(0.0, f64::max);
    assert!(computed.iter().all(|seconds| seconds / most > 0.98), "{computed:?}");
}

#[test]
fn elastic_jobs_get_past_a_size_that_is_slower() {
    let folder = tempfile::tempdir().unwrap();
    let seconds = |row: &str, policy: &str| {
        let table = format!("job_id,submit_s,gpus,model,steps,step_time_ms\n{row}\n");
        let table = write(folder.path(), "jobs.csv", &table);
        let more = ["--on=dgx-1-v100", "--nodes=1", "--elastic", "--json", "--policy", policy];
        let document = document(&on_one_node(&table, &more));
        document["policies"][0]["table"]["makespan_ns"].as_f64().expect("a time") / 1e9
    };
    for policy in ["optimus", "pollux"] {
        // 5,000 s on one GPU, 1,161 s on eight.
        let took = seconds("a,0,1,vgg-16,100000,50", policy);
        assert!(took < 1_600.0, "{policy}: {took}");
        // 2,000 s on the four that it asks for.
        let took = seconds("a,0,4,vgg-16,100000,20", policy);
        assert!(took < 2_300.0, "{policy}: {took}");
    }
}

#[test]
fn runs_say_why_they_ended_and_give_no_times_of_some() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "job_id,submit_s,duration_s,gpus\na,0,100,1\nb,0,3600000,1\n";
    let table = write(folder.path(), "jobs.csv", rows);
    let base = ["--nodes=1", "--gpus-per-node=2", "--policy=fifo"];
    let words = |more: &[&str]| {
        let said = run(&on_one_node(&table, &[&base[..], more].concat()));
        said.out.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let cut = words(&["--until=200s"]);
    assert!(cut.contains("1 of 2 jobs had not finished when the run was cut; no times"), "{cut}");
    let failing = ["--mtbf=60s", "--checkpoint=1h", "--repair=1s"];
    let page = words(&failing);
    assert!(page.contains("when it was given up: nodes fail so often"), "{page}");
    let json = document(&on_one_node(&table, &[&base[..], &["--until=200s", "--json"]].concat()));
    let table = &json["policies"][0]["table"];
    assert_eq!((&table["ending"], &table["finished"]), (&"cut".into(), &1.into()));
    assert!(table["completion"].is_null() && table["wait"].is_null(), "{table}");
}

#[test]
fn tables_that_are_cut_short_are_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let cut =
        "[{\"job_id\":\"a\",\"submit_s\":0,\"duration_s\":60,\"gpus\":1},{\"job_id\":\"b\",\"sub";
    let table = write(folder.path(), "jobs.json", cut);
    let page = answer(&on_one_node(&table, &["--nodes=1", "--policy=fifo"]));
    assert!(page.contains("1 of 1 row; a file is cut short, more may be missing"), "{page}");
}

#[test]
fn waits_after_the_first_start_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    // The long one waits for 100 s after its first start.
    let rows = "job_id,submit_s,duration_s,gpus\nlong,0,1000,1\nshort,100,100,1\n";
    let table = write(folder.path(), "jobs.csv", rows);
    let more = ["--nodes=1", "--gpus-per-node=1", "--policy=fifo,srtf", "--json"];
    let document = document(&on_one_node(&table, &more));
    let srtf = &document["policies"][1];
    assert_eq!(srtf["table"]["wait"]["mean_ns"], 0);
    assert_eq!(srtf["table"]["waited"]["mean_ns"], 50_000_000_000_i64);
    assert_eq!(srtf["savings"]["wait"]["mean"], 1.0);
    // Of 450 s on average under fifo, 50 are left.
    let saved = srtf["savings"]["waited"]["mean"].as_f64().unwrap();
    assert!((saved - 8.0 / 9.0).abs() < 1e-9, "{saved}");
}

#[test]
fn the_note_on_unknown_utilisation_says_what_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "job_id,submit_s,duration_s,gpus\na,0,100,1\nb,0,100,1\n";
    let table = write(folder.path(), "jobs.csv", rows);
    let note = |policy: &str| {
        let page = answer(&on_one_node(&table, &["--nodes=1", "--policy", policy]));
        page.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let horus = note("horus");
    assert!(
        !horus.contains("never pays") && horus.contains("where too few GPUs are idle"),
        "{horus}"
    );
    assert!(note("gandiva").contains("gandiva packs none of them"));
}
