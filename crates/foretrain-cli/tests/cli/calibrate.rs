//! Calibrating a cluster, and using it by its file.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::nccl_log::{Log, at};
use crate::support::{TINY, answer, complaint, misfits, root, run, text, write};

const DEVICE: &str = "NVIDIA A100-SXM4-80GB";

/// A sweep on one node: 20 us, then up to 230 GB/s.
fn one_node(home: &Path) -> PathBuf {
    let rows: Vec<(u64, f64)> =
        at(true, 8, 230.0, &sizes()).into_iter().map(|(bytes, us)| (bytes, us + 20.0)).collect();
    Log { name: "one_all_reduce", ranks: 8, per_node: 8, device: DEVICE, rows }.write(home)
}

/// A sweep on two nodes with a size that took five times as long as it should have.
fn two_nodes(home: &Path) -> PathBuf {
    let rows = at(true, 16, 150.0, &sizes()).into_iter().map(|(bytes, us)| {
        let time = us + 60.0;
        (bytes, if bytes == 16 << 20 { time * 5.0 } else { time })
    });
    let rows = rows.collect();
    Log { name: "two_all_reduce", ranks: 16, per_node: 8, device: DEVICE, rows }.write(home)
}

fn sizes() -> Vec<u64> {
    (12..33).map(|log| 1 << log).collect()
}

fn calibrate<'a>(logs: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [&["calibrate", "collectives"], logs, &["--on", "dgx-a100"], more].concat()
}

#[test]
fn a_page_says_what_was_found() {
    let home = tempfile::tempdir().unwrap();
    let (one, two) = (one_node(home.path()), two_nodes(home.path()));
    let page = answer(&calibrate(&[text(&one), text(&two)], &[]));
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    // What follows is of reading the logs, and names their directory.
    let (page, _) = page.split_once("\nCoverage\n").unwrap();
    insta::assert_snapshot!("calibrate_two_nodes", page);
    let page = answer(&calibrate(&[text(&one)], &[]));
    assert!(page.contains("one node    nothing is known of the network"), "{page}");
}

#[test]
fn json_fits_its_schema() {
    let home = tempfile::tempdir().unwrap();
    let (one, two) = (one_node(home.path()), two_nodes(home.path()));
    let read = |text: &str| -> Value { serde_json::from_str(text).expect("JSON") };
    let document = read(&answer(&calibrate(&[text(&one), text(&two)], &["--json"])));
    let schema = read(&answer(&["schema", "calibrate-collectives"]));
    let found = misfits(&document, &schema, &schema, "$");
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(document["schema"], "foretrain/calibrate-collectives/1");
    let out: Vec<&Value> =
        document["residuals"].as_array().unwrap().iter().filter(|r| r["kept"] == false).collect();
    assert_eq!(out.len(), 1, "{out:#?}");
    assert_eq!((&out[0]["size_bytes"], &out[0]["ranks"]), (&(16 << 20).into(), &16.into()));
    assert_eq!(document["findings"][0]["code"], "outlier");
    // Outside of what was measured the interval widens.
    for trust in document["trust"].as_array().unwrap() {
        let widths: Vec<f64> = trust["intervals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|interval| interval["half_width"].as_f64().unwrap())
            .collect();
        assert!(widths.len() > 1 && widths[1..].iter().all(|w| *w > widths[0]), "{trust}");
    }
}

#[test]
fn a_file_is_kept_once() {
    let home = tempfile::tempdir().unwrap();
    let log = one_node(home.path());
    let file = home.path().join("own.toml");
    let ask = |more: &[&str]| {
        let arguments = [&["--name", "our-room", "-o", text(&file)], more].concat();
        run(&calibrate(&[text(&log)], &arguments))
    };
    let first = ask(&[]);
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    assert!(first.out.contains("use it as --on"), "the report is not in the file: {}", first.out);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.starts_with("# our-room: dgx-a100 with its collectives as measured"), "{kept}");
    assert!(kept.contains("one_all_reduce.log") && kept.contains("\n[clusters.our-room]\n"));
    let second = ask(&[]);
    assert_eq!((second.code, second.out.as_str()), (2, ""));
    assert!(second.err.contains("--force"), "{}", second.err);
    assert_eq!(ask(&["--force"]).code, 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), kept);
    // --out is the long form, and a calibrated cluster can be calibrated again.
    let again = home.path().join("again.toml");
    let arguments = ["calibrate", "collectives", text(&log), "--on", text(&file), "--out"];
    answer(&[&arguments[..], &[text(&again)]].concat());
    let again = std::fs::read_to_string(&again).unwrap();
    assert!(again.contains("[clusters.my-dgx-a100]\nnode = \"dgx-a100\""), "{again}");
}

#[test]
fn every_verb_takes_the_file_for_its_cluster() {
    let home = tempfile::tempdir().unwrap();
    let (one, two) = (one_node(home.path()), two_nodes(home.path()));
    let file = home.path().join("own.toml");
    answer(&calibrate(&[text(&one), text(&two)], &["-o", text(&file)]));
    let own = text(&file);
    let twice = write(home.path(), "twice.toml", {
        let text = std::fs::read_to_string(&file).unwrap();
        let head = text.find("[clusters").unwrap();
        format!("{text}\n{}", text[head..].replace("my-dgx-a100", "other"))
    });
    let verbs: [&[&str]; 4] = [
        &["predict", TINY, "--gpus", "16", "--on"],
        &["collectives", "--gpus", "16", "--sizes", "1M", "--on"],
        &["calibrate", "collectives", text(&one), "--on"],
        &["predict", TINY, "--gpus", "16", "--on", "dgx-h100", "--recorded-on"],
    ];
    for verb in verbs {
        let ask = |on: &str| run(&[verb, &[on]].concat());
        let said = ask(own);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{verb:?}");
        let one_of = format!("{}#other", text(&twice));
        assert_eq!(ask(&one_of).code, 0, "{verb:?}");
        let several = ask(text(&twice));
        assert_eq!(several.code, 2, "{verb:?}: {}", several.out);
        let wanted = ["defines 2 clusters: my-dgx-a100, other", "#my-dgx-a100`", "--hardware"];
        for word in wanted {
            assert!(several.err.contains(word), "{word} is not in {}", several.err);
        }
    }
    // By its name as well, and where entries are shown.
    let named = ["--hardware", own, "--on", "my-dgx-a100"];
    answer(&[&["collectives", "--gpus", "16", "--sizes", "1M"], &named[..]].concat());
    let shown = answer(&["hardware", "show", own]);
    assert!(shown.starts_with("Cluster my-dgx-a100"), "{shown}");
    assert!(shown.contains("calibrated from one_all_reduce.log, two_all_reduce.log"), "{shown}");
    // The answer rests on it.
    let page = answer(&["collectives", "--on", own, "--gpus", "16", "--sizes", "1M"]);
    assert!(page.contains("calibrated from one_all_reduce.log, two_all_reduce.log"), "{page}");
}

/// A directory may hold what else was recorded and measured in the same run.
#[test]
fn a_bundle_is_named_as_a_whole() {
    let home = tempfile::tempdir().unwrap();
    let bundle = home.path();
    write(
        bundle,
        "comm.csv",
        "world,bytes,time_us,op,n,nodes\n8,1048576,40,all_reduce,50,1\n8,16777216,150,all_reduce,50,1\n",
    );
    // Sending is a primitive as well as an operation of the benchmarks.
    let primitives = write(
        bundle,
        "primitives.csv",
        "operation,bytes,time_us\nsend,4096,9\naggregate,4096,5\nencode half,4096,7\n",
    );
    write(bundle, "interference.csv", "kernel,kernel_us,op,world,bytes,comm_us,device,n\n");
    let trace = root().join("examples/capture-tiny/rank0.trace.json.gz");
    std::fs::copy(&trace, bundle.join("rank0.trace.json.gz")).unwrap();
    let page = answer(&calibrate(&[text(bundle)], &[]));
    assert!(page.contains("comm.csv") && !page.contains("primitives.csv"), "{page}");
    let said = complaint(&calibrate(&[text(&trace)], &[]), bundle);
    assert!(said.contains("this is a PyTorch profiler trace, not the log"), "{said}");
    let said = complaint(&["inspect", text(&primitives)], bundle);
    assert!(said.contains("`foretrain calibrate primitives` reads"), "{said}");
    std::fs::remove_file(bundle.join("rank0.trace.json.gz")).unwrap();
    assert!(answer(&["inspect", text(bundle)]).contains("all-reduce, 8 ranks"));
}

#[test]
fn what_cannot_be_used_is_said() {
    let home = tempfile::tempdir().unwrap();
    let ask = |logs: &[&str], more: &[&str]| complaint(&calibrate(logs, more), home.path());
    let rows = || at(true, 8, 100.0, &[1 << 20, 1 << 24]);
    let log = |name, ranks, device| {
        Log { name, ranks, per_node: 8, device, rows: rows() }.write(home.path())
    };
    let unnamed = log("bench", 8, DEVICE);
    let said = ask(&[text(&unnamed)], &[]);
    assert!(
        said.contains("does not name the operation") && said.contains("--collective"),
        "{said}"
    );
    answer(&calibrate(&[text(&unnamed)], &["--collective", "all-reduce"]));
    let other = log("volta_all_reduce", 8, "Tesla V100-SXM2-32GB");
    let said = ask(&[text(&other)], &[]);
    assert!(said.contains("v100") && said.contains("a100"), "{said}");
    let alone = log("alone_all_reduce", 1, DEVICE);
    assert!(ask(&[text(&alone)], &[]).contains("single rank"));
    let good = one_node(home.path());
    let said = ask(&[text(&good)], &["--name", "no good name"]);
    assert!(said.contains("is no valid name"), "{said}");
    assert!(ask(&[TINY], &[]).contains("found no log"));
    assert!(ask(&[text(&good)], &["--force"]).contains("--out"));
    // What is wrong in a log costs its own rows only.
    let wrong = std::fs::read_to_string(&good).unwrap().replacen("      0", "      7", 2);
    let wrong = write(home.path(), "wrong_all_reduce.log", wrong);
    let page = answer(&calibrate(&[text(&wrong), text(&other)], &[]));
    assert!(page.contains("1 row on line 16: the benchmark found its results wrong"), "{page}");
    assert!(page.contains("- volta_all_reduce.log, 2 rows on lines"), "{page}");
    // A version that a log states is passed on.
    let debug = root().join("crates/foretrain-cli/tests/cli/nccl_debug.log");
    let page = answer(&calibrate(&[text(&debug)], &["--collective", "all-reduce"]));
    assert!(page.contains("it ran with NCCL 2."), "{page}");
}
