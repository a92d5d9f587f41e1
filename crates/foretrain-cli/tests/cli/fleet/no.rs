//! Answers that there is nothing to say: exit code 1, and why.

use serde_json::Value;

use crate::support::{Said, misfits, run, text, write};

/// What was said with exit code 1 and nothing beside it; the JSON fits its schema all the same.
fn no(arguments: &[&str], schema: &str) -> (String, Value) {
    let said = |more: &[&str]| {
        let Said { code, out, err } = run(&[arguments, more].concat());
        assert_eq!((code, err.as_str()), (1, ""), "{arguments:?}: {out}");
        out
    };
    let document: Value = serde_json::from_str(&said(&["--json"])).expect("JSON");
    let published: Value = serde_json::from_str(&run(&["schema", schema]).out).expect("JSON");
    let found = misfits(&document, &published, &published, "$");
    assert!(found.is_empty(), "{found:#?}");
    (said(&[]), document)
}

#[test]
fn tables_without_rows_or_features_cannot_be_timed() {
    let home = tempfile::tempdir().unwrap();
    let titles = "job_id,class,cnodes,flops,memory_access_bytes,input_bytes,weight_traffic_bytes\n";
    let empty = write(home.path(), "empty.csv", titles);
    let bare = write(home.path(), "bare.csv", format!("{titles}a,PS/Worker,4,,,,\n"));
    for verb in ["project", "sweep"] {
        let schema = format!("fleet-{verb}");
        let (page, found) = no(&["fleet", verb, text(&empty)], &schema);
        assert!(page.contains("warning: the table has no row"), "{page}");
        assert_eq!(found["rows"]["timed"]["total"], 0);
        assert!(!page.contains("speed-up"), "nothing is headed: {page}");
        let (page, _) = no(&["fleet", verb, text(&bare)], &schema);
        assert!(page.contains("warning: no row could be timed (1 row read)"), "{page}");
        assert!(page.contains("class, FLOPs"), "findings say what is missing: {page}");
    }
    let (page, _) = no(&["fleet", "characterise", text(&empty)], "fleet-characterise");
    assert!(page.contains("warning: the table has no row"), "{page}");
    // Times and GPUs can be described without features.
    assert_eq!(run(&["fleet", "characterise", text(&bare)]).code, 0);
}

#[test]
fn jobs_that_can_run_nowhere_else_do_not_move() {
    let home = tempfile::tempdir().unwrap();
    let table = "job_id,class,cnodes,flops,memory_access_bytes,input_bytes,weight_traffic_bytes\n\
                 a,AllReduce-Local,8,1e12,1e10,1e7,1e8\n";
    let table = write(home.path(), "jobs.csv", table);
    let project = ["fleet", "project", text(&table), "--to"];
    let (page, _) = no(&[&project[..], &["AllReduce-Local"]].concat(), "fleet-project");
    assert!(page.contains("are of the class asked for"), "{page}");
    let (page, _) = no(&[&project[..], &["AllReduce-Cluster"]].concat(), "fleet-project");
    assert!(page.contains("no job can run in another class"), "{page}");
    assert!(page.contains("weights not in the table"), "{page}");
}

#[test]
fn a_device_with_too_little_memory_runs_nothing() {
    let edge = ["fleet", "edge", "examples/fleet/edge.toml", "--memory"];
    let (page, found) = no(&[&edge[..], &["1GB"]].concat(), "fleet-edge");
    // A frame of people and the runtime.
    assert_eq!(found["least_memory_bytes"], 1_800_000_000_u64);
    assert!(page.contains("warning: no batch fits") && page.contains("1.676 GiB"), "{page}");
    assert_eq!(
        (&found["runs"][0]["fits"], &found["runs"][0]["time_ns"]),
        (&false.into(), &Value::Null)
    );
    let enough = [&edge[..], &["1GB", "--memory", "1.8GB"]].concat();
    assert_eq!(run(&enough).code, 0, "it does at one of the sizes");
}

#[test]
fn jobs_of_one_family_score_no_predictor() {
    let home = tempfile::tempdir().unwrap();
    let rows = "model,batch,utilisation\nresnet-50,8,50\nresnet-50,16,70\n";
    let table = write(home.path(), "one.csv", rows);
    let evaluate = ["fleet", "utilisation", "evaluate", text(&table)];
    let (page, found) = no(&evaluate, "fleet-utilisation");
    assert!(page.contains("warning: all jobs are of one family"), "{page}");
    assert_eq!(found["splits"].as_array().map(Vec::len), Some(0));
}
