//! Tables of fleets that mislead.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::support::{answer, finding, text, write};

fn audited(tables: &[&Path]) -> (Value, String) {
    let mut arguments = vec!["fleet", "audit"];
    arguments.extend(tables.iter().map(|table| text(table)));
    let page = answer(&arguments);
    arguments.push("--json");
    (serde_json::from_str(&answer(&arguments)).expect("JSON"), page)
}

/// Of a thousand jobs over 130 days, 13 have no id and 20 no end; before day 109 one in 300 has a
/// pod, from then on all do.
fn episodes(directory: &Path, unknown: &str) -> [std::path::PathBuf; 2] {
    let mut jobs = String::from("job_id,delay,start_time,end_time,gpus\n");
    let mut pods = String::from("pod,job_id,node,start,end\n");
    for job in 0..1000_u64 {
        let day = job * 130 / 1000;
        let start = day * 86_400 + 100;
        let id = if job < 13 { String::new() } else { format!("j{job}") };
        let end = match job {
            500..520 => unknown.to_owned(),
            _ => (start + 3_600).to_string(),
        };
        writeln!(jobs, "{id},{},{start},{end},1", job % 50).expect("memory");
        if day >= 109 || (day >= 4 && job % 300 == 0) {
            writeln!(pods, "p{job},j{job},n{},{start},{}", job % 7, start + 3_600).expect("memory");
        }
    }
    [write(directory, "jobs.csv", jobs), write(directory, "pods.csv", pods)]
}

#[test]
fn an_end_of_nothing_is_no_duration_and_pods_that_begin_late_are_seen() {
    for unknown in ["0", "-1", "", "None", "NaT", "0.0"] {
        let directory = tempfile::tempdir().unwrap();
        let [jobs, pods] = episodes(directory.path(), unknown);
        let (found, page) = audited(&[&jobs, &pods]);
        let table = &found["tables"][0];
        assert_eq!(table["rows"]["used"], 1000, "no row is lost for {unknown:?}");
        assert_eq!(table["run_times"]["used"], 980, "{unknown:?}");
        let numeric = unknown.parse::<f64>().is_ok();
        let times = if numeric { 20 } else { 0 };
        assert_eq!(finding(&found, "end-unknown").0, times, "{unknown:?}");
        assert_eq!(finding(&found, "end-before-start").0, 0, "{unknown:?}");
        assert_eq!(finding(&found, "no-id").0, 13);
        let ends = table["columns"].as_array().unwrap().iter().find(|c| c["field"] == "end");
        assert_eq!(ends.unwrap()["usable"]["used"], 980);

        let join = &found["joins"][0];
        assert_eq!(join["jobs_without_id"], 13);
        let periods = join["periods"].as_array().unwrap();
        let last = periods.last().unwrap();
        assert_eq!((&last["first_day"], &last["last_day"]), (&109.into(), &129.into()));
        assert_eq!(last["jobs"]["used"], last["jobs"]["total"]);
        let early: u64 = periods[..periods.len() - 1]
            .iter()
            .map(|period| period["jobs"]["used"].as_u64().unwrap())
            .sum();
        assert_eq!(early, 2, "jobs 300 and 600");
        // Coverage stands before any statistic of times.
        let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("no {what:?} in {page}"));
        assert!(at("109 to 129") < at("Capacity"), "{page}");
    }
}

#[test]
fn arrivals_are_not_made_up() {
    let directory = tempfile::tempdir().unwrap();
    let rows: String = (0..100).map(|job| format!("j{job},{},{}\n", job % 9, 60 + job)).collect();
    let table = write(directory.path(), "summary.csv", format!("job_id,delay,run_time\n{rows}"));
    let (found, page) = audited(&[&table]);
    assert_eq!(found["tables"][0]["arrivals"], "spans-only");
    assert!(page.contains("--column submit=COLUMN"), "{page}");
    assert!(found["allocated"].is_null() && found["machines"]["capacity_gpus"].is_null());

    // What lengths of time say is said, and what they do not.
    let page = answer(&["fleet", "characterise", text(&table)]);
    assert!(page.contains("run time (s)") && page.contains("wait (s)"), "{page}");
    assert!(page.contains("0 of 100 (0.0 %) rows have a time of submission"), "{page}");
    let shown = answer(&["fleet", "audit", text(&table), "--column", "submit=delay:s", "--json"]);
    let found: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(found["tables"][0]["arrivals"], "submitted", "the user's word counts");
}

const MACHINES: &str = "machineId,number of GPUs,single GPU mem\nm51,2,12GB\nm52,8,24GB\n";

/// A job on all eight GPUs of a machine that is listed with two.
fn philly(machines: &[&str]) -> String {
    let jobs: Vec<String> = machines
        .iter()
        .map(|machine| {
            let gpus: Vec<String> = (0..8).map(|gpu| format!("\"gpu{gpu}\"")).collect();
            format!(
                r#"{{"status": "Pass", "vc": "a", "jobid": "on_{machine}", "user": "u", "attempts":
                [{{"start_time": "2017-10-03 00:00:00", "end_time": "2017-10-03 01:00:00", "detail":
                [{{"ip": "{machine}", "gpus": [{}]}}]}}], "submitted_time": "2017-10-02 23:59:00"}}"#,
                gpus.join(", ")
            )
        })
        .collect();
    format!("[{}]", jobs.join(",\n"))
}

/// An hour of samples each minute of eight GPUs of two machines, in another zone than UTC.
fn samples() -> String {
    let titles: Vec<String> = (0..8).map(|gpu| format!("gpu{gpu}_util")).collect();
    let mut log = format!("time,machineId,{}\n", titles.join(","));
    for minute in 0..60 {
        for machine in ["m51", "m52"] {
            let busy = ["90.0"; 8].join(",");
            writeln!(log, "2017-10-03 00:{minute:02}:00 PDT,{machine},{busy}").expect("memory");
        }
    }
    log
}

#[test]
fn machines_have_what_most_of_them_is_seen_of() {
    let directory = tempfile::tempdir().unwrap();
    let machines = write(directory.path(), "machines", MACHINES);
    let jobs = write(directory.path(), "jobs", philly(&["m51", "m52"]));
    let log = write(directory.path(), "log", samples());
    let (found, page) = audited(&[&machines, &jobs, &log]);
    let conflicts = found["machines"]["conflicting"].as_array().unwrap();
    assert_eq!(conflicts.len(), 1);
    let [listed, jobs, log, taken] =
        ["listed", "jobs", "log", "taken"].map(|key| conflicts[0][key].as_u64());
    assert_eq!((conflicts[0]["machine"].as_str(), listed), (Some("m51"), Some(2)));
    assert_eq!([jobs, log, taken], [Some(8); 3]);
    assert_eq!(found["machines"]["capacity_gpus"], 16.0);
    assert!(page.contains("10 GPUs of 2 machines"), "the list is shown too: {page}");
    // Both machines are full, and no fuller.
    assert_eq!(found["allocated"]["share"], 1.0);
    assert_eq!(found["gap"]["job_table_incomplete"], false);
    assert_eq!(found["gap"]["compared"], 960, "samples and jobs are by one clock");
}

#[test]
fn a_table_that_lacks_jobs_is_called_incomplete_with_the_size_of_the_gap() {
    let directory = tempfile::tempdir().unwrap();
    let machines = write(directory.path(), "machines", MACHINES);
    let jobs = write(directory.path(), "jobs", philly(&["m51"]));
    let log = write(directory.path(), "log", samples());
    let (found, page) = audited(&[&log, &jobs, &machines]);
    let gap = &found["gap"];
    assert_eq!(
        (&gap["job_table_incomplete"], &gap["unexplained_share"]),
        (&true.into(), &0.5.into())
    );
    assert_eq!(gap["machines"][0]["machine"], "m52");
    assert_eq!(finding(&found, "job-table-incomplete").0, 1);
    assert!(page.contains("job table incomplete: 50.0 %"), "{page}");
}

#[test]
fn a_job_without_an_end_explains_what_its_gpus_do() {
    let directory = tempfile::tempdir().unwrap();
    let machines = write(directory.path(), "machines", MACHINES);
    let jobs = philly(&["m51", "m52"]);
    // The last end, of the job on m52, is not known.
    let at = jobs.rfind("\"2017-10-03 01:00:00\"").unwrap();
    let jobs = format!("{}null{}", &jobs[..at], &jobs[at + 21..]);
    let jobs = write(directory.path(), "jobs", jobs);
    let log = write(directory.path(), "log", samples());
    let (found, page) = audited(&[&machines, &jobs, &log]);
    assert_eq!(found["gap"]["job_table_incomplete"], false, "{page}");
    assert_eq!(found["gap"]["open_ended_jobs"], 1);
    assert_eq!(found["tables"][1]["run_times"]["used"], 1);
    assert!(page.contains("the gap may be larger"), "{page}");
}

#[test]
fn a_cluster_without_machines_in_its_job_table_is_compared_as_a_whole() {
    let directory = tempfile::tempdir().unwrap();
    // Jobs hold 4 of the 10 GPUs that samples see busy; two samples lie outside of the table.
    let jobs = "job_id,user,node_num,gpu_num,type,state,submit_time,start_time,end_time,duration,queue\n\
        1,u,1,4,Other,COMPLETED,2023-07-01 08:00:00+08:00,2023-07-01 08:00:00+08:00,2023-07-01 09:00:00+08:00,3600,0\n";
    let mut log = String::from("Time");
    (0..10).for_each(|node| write!(log, ",10.140.1.{node}").unwrap());
    for at in ["07:59:45", "08:00:00", "08:00:15", "08:30:00", "09:00:00"] {
        write!(log, "\n2023-07-01 {at}+08:00").unwrap();
        (0..10).for_each(|_| log.push_str(",80.5"));
    }
    let jobs = write(directory.path(), "trace_seren.csv", jobs);
    let log = write(directory.path(), "GPU_UTIL.csv", log);
    let (found, _) = audited(&[&jobs, &log]);
    let gap = &found["gap"];
    assert_eq!((&gap["compared"], &gap["outside"]), (&30.into(), &20.into()));
    assert_eq!((&gap["mean_busy_gpus"], &gap["mean_held_gpus"]), (&10.0.into(), &4.0.into()));
    assert_eq!(gap["unexplained_share"], 0.6);
    assert_eq!(gap["job_table_incomplete"], true);
}

#[test]
fn machines_that_no_list_has_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let machines = write(directory.path(), "machines.csv", "machine,gpus\nm1,8\n");
    let jobs = "job_id,start,end,machine,gpus\na,0,100,m1;m2,16\nb,50,150,m3,12\n";
    let jobs = write(directory.path(), "jobs.csv", jobs);
    let (found, page) = audited(&[&machines, &jobs]);
    assert_eq!(found["machines"]["missing_names"], serde_json::json!(["m2", "m3"]));
    // m1 and m2 have the 16 that one job held of them, m3 the 12 of the other.
    assert_eq!(found["machines"]["capacity_from"], "machines");
    assert_eq!(found["machines"]["capacity_gpus"], 28.0);
    assert!(page.contains("m2, m3"), "{page}");
    assert!(found["allocated"]["share"].as_f64().unwrap() <= 1.0);
}

#[test]
fn units_that_differ_within_a_table_are_said() {
    let directory = tempfile::tempdir().unwrap();
    let mut jobs = String::from("job_id,start_time,end_time,TITLE\n");
    for job in 0..20 {
        let start = 1_700_000_000 + job * 60;
        writeln!(jobs, "j{job},{start},{},{}", start + 600, 600_000).unwrap();
    }
    // One row has its start in milliseconds.
    writeln!(jobs, "late,1700001200000,1700001800,600000").unwrap();
    // A title says its unit, whatever start and end leave.
    for (title, unit, conflicts) in [("duration", "ms", 0), ("duration_s", "s", 21)] {
        let jobs = write(directory.path(), "jobs.csv", jobs.replace("TITLE", title));
        let (found, _) = audited(&[&jobs]);
        assert_eq!(finding(&found, "time-in-another-unit").0, 1);
        assert_eq!(found["tables"][0]["run_times"]["used"], 21);
        let units: Vec<(&str, &str)> = found["tables"][0]["columns"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|column| Some((column["field"].as_str()?, column["unit"].as_str()?)))
            .collect();
        assert_eq!(units, [("start", "s"), ("end", "s"), ("duration", unit)]);
        assert_eq!(finding(&found, "duration-in-another-unit").0, conflicts);
    }
}
