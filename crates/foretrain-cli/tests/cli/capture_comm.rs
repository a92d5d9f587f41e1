//! Measuring communication with plain processes, and from there to a calibrated cluster.

use std::path::Path;

use serde_json::Value;

use crate::support::{answer, complaint, misfits, text, write};

const CLUSTER: &str = "\
[devices.core]
kind = \"cpu\"
vendor = \"other\"
memory = \"8 GiB\"
memory_bandwidth = \"10 GB/s\"
peak = { f32 = \"50 GFLOP/s\" }
source = \"a test\"

[nodes.here]
device = \"core\"
devices = 8
intra = \"socket\"
intra_bandwidth = \"10 GB/s\"
source = \"a test\"
";

fn captured(out: &Path, more: &[&str]) -> String {
    let asked = ["capture", "comm", "--sizes", "4K,64K", "--budget", "10s", "-o", text(out)];
    answer(&[&asked[..], more].concat())
}

#[test]
fn what_is_measured_calibrates_a_cluster() {
    let home = tempfile::tempdir().unwrap();
    let bundle = home.path().join("bundle");
    let page = captured(&bundle, &["--procs", "2,3", "--ops", "all-reduce,sendrecv"]);
    for part in ["all-reduce, 3 ranks", "all-reduce, 2 ranks", "send-recv, 2 ranks", "1 node"] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    let table = bundle.join("comm.csv");
    let hardware = write(home.path(), "here.toml", CLUSTER);
    let cluster = home.path().join("cluster.toml");
    let calibrate = ["calibrate", "collectives", text(&table), "--on", "here", "--hardware"];
    answer(&[&calibrate[..], &[text(&hardware), "-o", text(&cluster)]].concat());
    assert!(std::fs::read_to_string(&cluster).unwrap().contains("comm.csv"));
    // What is there stays, unless it is asked for.
    let refused = complaint(&["capture", "comm", "-o", text(&bundle)], home.path());
    assert!(refused.contains("there is such a file already"), "{refused}");
    captured(&bundle, &["--ops", "broadcast", "--force"]);
    assert!(!std::fs::read_to_string(&table).unwrap().contains("all_reduce"));
}

#[test]
fn json_is_that_of_any_log() {
    let home = tempfile::tempdir().unwrap();
    let found = captured(home.path(), &["--ops", "all_gather", "--json"]);
    let document: Value = serde_json::from_str(&found).expect("JSON");
    let schema = serde_json::from_str(&answer(&["schema", "inspect-log"])).expect("JSON");
    let misfits = misfits(&document, &schema, &schema, "$");
    assert!(misfits.is_empty(), "{misfits:#?}");
    assert_eq!(document["runs"][0]["nodes"], 1);
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let place = text(home.path());
    for (more, word) in [
        (&["--procs", "1"][..], "nobody to communicate with"),
        (&["--ops", "gossip"], "expected one of all_reduce"),
        (&["--listen", "127.0.0.1:0"], "--machines"),
        (&["--listen", "nowhere", "--machines", "2"], "as in 10.0.0.1:7000"),
        (&["--machines", "2"], "--listen"),
        (&["--python", "python3"], "--backend"),
        (&["--backend", "gloo", "--python", "/no/such/python"], "no Python to measure with"),
        (&["--sizes", "1T"], "more than is measured"),
        (&["--listen", "127.0.0.1:0", "--machines", "2", "--procs", "3"], "spread evenly"),
    ] {
        let said = complaint(&[&["capture", "comm", "-o", place], more].concat(), home.path());
        assert!(said.contains(word), "{more:?}: {said}");
    }
    let alone = complaint(&["capture", "comm", "--connect", "127.0.0.1:1"], home.path());
    assert!(alone.contains("cannot take part"), "{alone}");
    let rank = complaint(&["measurement-rank", "127.0.0.1:1", "1", "0"], home.path());
    assert!(rank.contains("of no use alone"), "{rank}");
}

#[test]
fn kernels_beside_collectives_make_a_model() {
    let home = tempfile::tempdir().unwrap();
    let table = "kernel,kernel_bytes,kernel_us,kernel_beside_us,op,world,bytes,comm_us,comm_beside_us,device,n
gemm,12582912,100,130,all_reduce,8,67108864,900,990,NVIDIA A100-SXM4-80GB,50
elementwise,50331648,40,44,all_gather,8,67108864,500,550,NVIDIA A100-SXM4-80GB,50
";
    let file = write(home.path(), "interference.csv", table);
    let page = answer(&["calibrate", "interference", text(&file)]);
    assert!(page.contains("1.10 times as long as alone"), "{page}");
    let on_cpu = write(home.path(), "cpu.csv", table.replace("NVIDIA A100-SXM4-80GB", "cpu"));
    let said = complaint(&["calibrate", "interference", text(&on_cpu)], home.path());
    assert!(said.contains("measured on processors") && said.contains("--cores"), "{said}");
}
