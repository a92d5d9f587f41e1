//! Tables of all kinds.

use std::io::Write as _;

use super::page;
use crate::support::{complaint, finding, run, text, write};

const JOBS: &str = "examples/fleet/jobs.csv";
const MACHINES: &str = "examples/fleet/machines.csv";
const SAMPLES: &str = "examples/fleet/samples.csv";

#[test]
fn examples() {
    let (page, found) = page("fleet-audit", &["fleet", "audit", JOBS, MACHINES, SAMPLES]);
    insta::assert_snapshot!("fleet_audit", page);
    let table = &found["tables"][0];
    assert_eq!((&table["repeated_ids"], &table["identical_rows"]), (&1.into(), &1.into()));
    assert_eq!(finding(&found, "end-before-start").0, 1);
}

#[test]
fn one_table_in_any_form_says_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let csv = "job_id,submit_time,duration_s,gpus\na,0,60,1\nb,10,120.5,8\nc,20,,0.5\n";
    let lines = concat!(
        "{\"job_id\": \"a\", \"submit_time\": 0, \"duration_s\": 60, \"gpus\": 1}\n",
        "{\"job_id\": \"b\", \"submit_time\": 10, \"duration_s\": 120.5, \"gpus\": 8}\n",
        "{\"job_id\": \"c\", \"submit_time\": 20, \"duration_s\": null, \"gpus\": 0.5}\n"
    );
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(csv.as_bytes()).unwrap();
    let forms: [(&str, Vec<u8>); 5] = [
        ("a.csv", csv.into()),
        ("a.tsv", csv.replace(',', "\t").into()),
        ("a.csv.gz", packed.finish().unwrap()),
        ("a.jsonl", lines.into()),
        ("a.json", format!("[{}]", lines.trim_end().replace('\n', ",\n")).into()),
    ];
    let mut first = None;
    for (name, bytes) in forms {
        let path = write(directory.path(), name, bytes);
        let (_, found) = page("fleet-audit", &["fleet", "audit", text(&path)]);
        let mut columns = found["tables"][0]["columns"].as_array().unwrap().clone();
        columns.sort_by_key(|column| column["field"].to_string());
        let said = (columns, found["tables"][0]["periods"].clone(), found["machines"].clone());
        assert_eq!(*first.get_or_insert_with(|| said.clone()), said, "{name}");
    }
}

#[test]
fn damage_costs_what_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let csv = "job_id,submit,duration\na,0,60\nb,10\nc,20,fast\nd,30,60,9\ne,40,60\n";
    let csv = write(directory.path(), "torn.csv", csv);
    let (_, found) = page("fleet-audit", &["fleet", "audit", text(&csv)]);
    assert_eq!(found["tables"][0]["rows"]["used"], 3);
    assert_eq!(found["tables"][0]["rows"]["total"], 5);
    assert_eq!(finding(&found, "ragged-row"), (2, "line 3: 2 cells instead of 3".into()));
    assert_eq!(finding(&found, "unreadable-value").0, 1);

    let lines = "{\"job_id\": 1, \"duration\": 5}\n{\"job_id\": 2, \"dur\n{\"job_id\": 3, \"duration\": 7}\n";
    let lines = write(directory.path(), "torn.jsonl", lines);
    let (_, found) = page("fleet-audit", &["fleet", "audit", text(&lines)]);
    assert_eq!(found["tables"][0]["rows"]["used"], 2);
    assert_eq!(finding(&found, "broken-row").0, 1);
}

#[test]
fn mistakes() {
    let directory = tempfile::tempdir().unwrap();
    let odd = write(directory.path(), "odd.csv", "colour,size\nred,3\n");
    let empty = write(directory.path(), "empty.csv", "");
    let binary = write(directory.path(), "picture", [0x89, b'P', 0, 1, 2]);
    let missing = directory.path().join("none.csv");
    let said = [
        complaint(&["fleet", "audit", text(&odd)], directory.path()),
        complaint(&["fleet", "audit", text(&odd), "--column", "submit=when"], directory.path()),
        complaint(&["fleet", "audit", text(&empty)], directory.path()),
        complaint(&["fleet", "audit", text(&binary)], directory.path()),
        complaint(&["fleet", "audit", text(&missing)], directory.path()),
        complaint(&["fleet", "characterise", MACHINES], directory.path()),
    ];
    insta::assert_snapshot!("fleet_mistakes", said.concat());
    for (arguments, hint) in [
        (["fleet", "audit", JOBS, "--schema=phily"], "did you mean \"philly\""),
        (["fleet", "audit", JOBS, "--column=sumbit=a"], "did you mean \"submit\""),
        (["fleet", "audit", JOBS, "--column=submit=a:parsecs"], "unknown unit"),
    ] {
        let said = run(&arguments);
        assert_eq!(said.code, 2);
        assert!(said.err.contains(hint), "{}", said.err);
    }
}

/// Rows that are there twice are said by every verb that counts them.
#[test]
fn repeated_rows_are_said_by_all_verbs() {
    let directory = tempfile::tempdir().unwrap();
    let rows = "job_id,submit_s,duration_s,gpus\na,0,60,1\nb,10,60,1\nb,10,60,1\n";
    let once = write(directory.path(), "once.csv", rows);
    let again = write(directory.path(), "again.csv", rows);
    let (_, found) = page("fleet-audit", &["fleet", "audit", text(&once), text(&again)]);
    assert_eq!(finding(&found, "identical-row").0, 2);
    assert_eq!(finding(&found, "row-in-two-tables").0, 3);
    let (_, found) = page("fleet-characterise", &["fleet", "characterise", text(&once)]);
    assert_eq!(finding(&found, "identical-row").0, 1);
}
