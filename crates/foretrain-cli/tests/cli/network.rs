//! What-ifs of the network.

use std::path::Path;

use serde_json::Value;

use crate::support::{answer, complaint, misfits};

const RACKS: &str = "crates/foretrain-cli/tests/cli/racks.toml";

fn on_racks<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["collectives", "--hardware", RACKS, "--on", "racks"], arguments].concat()
}

#[test]
fn a_slow_nic_stands_beside_the_healthy_cluster() {
    let page = answer(&on_racks(&[
        "--gpus",
        "32",
        "--sizes",
        "64K,16M,1G",
        "--degrade",
        "node=3,nic=1,rate=0.5",
        "--degrade",
        "link=leaf0-spine0,down",
        "--explain",
    ]));
    insta::assert_snapshot!("network_degraded", page);
}

#[test]
fn each_what_if_stands_on_those_before_it() {
    let page = answer(&on_racks(&[
        "--gpus",
        "8,16",
        "--sizes",
        "1M,1G",
        "--collective",
        "all-gather,all-to-all,broadcast",
        "--topology",
        "torus",
        "--scatter",
        "1",
        "--concurrent",
        "4",
        "--degrade",
        "node=0,rate=0.5",
        "--explain",
    ]));
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    insta::assert_snapshot!("network_steps", page);
}

#[test]
fn json_has_every_step() {
    let ask =
        |arguments: &[&str]| -> Value { serde_json::from_str(&answer(arguments)).expect("JSON") };
    let document = ask(&on_racks(&[
        "--gpus",
        "8..64",
        "--sizes",
        "1K..1G",
        "--topology",
        "fat-tree,leaf=2,oversubscription=2",
        "--scatter",
        "3",
        "--degrade",
        "node=1,nic=0,down",
        "--json",
        "--concurrent",
        "2",
        "--collective",
        "send-recv,all-gather",
    ]));
    let schema = ask(&["schema", "collectives"]);
    let found = misfits(&document, &schema, &schema, "$");
    assert!(found.is_empty(), "{found:#?}");
    for sweep in document["sweeps"].as_array().unwrap() {
        let steps = sweep["what_ifs"].as_array().unwrap();
        let kinds: Vec<&str> = steps.iter().map(|step| step["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["topology", "scatter", "concurrent", "degrade"]);
        assert_eq!(steps[3]["what"], "node=1,nic=0,down");
        for step in steps {
            let rows = step["rows"].as_array().unwrap();
            for (row, plain) in rows.iter().zip(sweep["rows"].as_array().unwrap()) {
                assert_eq!(row["size_bytes"], plain["size_bytes"]);
                let times = row["times"].as_f64().unwrap();
                let ns = |row: &Value| row["time"]["value_ns"].as_f64().unwrap();
                assert!((ns(row) / ns(plain) - times).abs() < 1e-6, "{row} {plain}");
            }
        }
    }
}

#[test]
fn who_cuts_ranks_off_is_said() {
    let ask = |arguments: &[&str]| complaint(&on_racks(arguments), Path::new("/no/such/directory"));
    let cut = ask(&["--gpus", "16", "--degrade", "node=0,rate=0.5", "--degrade", "node=2,down"]);
    assert!(cut.contains("dead links cut off rank 8 (device 0 of node 2)"), "{cut}");
    assert!(cut.contains("(at `node=2,down`)"), "{cut}");
    assert!(ask(&["--gpus", "16", "--degrade", "node=9,down"]).contains("they are 0 to 3"));
    assert!(ask(&["--gpus", "16", "--degrade", "node=0"]).contains("neither `rate=` nor `down`"));
    assert!(
        ask(&["--gpus", "32", "--degrade", "link=leaf0-spine99,down"]).contains("did you mean")
    );
    assert!(ask(&["--gpus", "16", "--concurrent", "3"]).contains("that divides 4"));
    assert!(ask(&["--gpus", "16", "--concurrent", "2", "--stride", "2"]).contains("--stride"));
    assert!(ask(&["--gpus", "16", "--topology", "ring"]).contains("write single-switch"));
    assert!(ask(&["--gpus", "16", "--topology", "torus,dimensions=2"]).contains("4 are needed"));
    let window = ask(&["--gpus", "16", "--scatter", "1", "--window", "1MiB"]);
    assert!(window.contains("exclude each other"), "{window}");
}
