//! O17 to O20: what collectives take on several nodes.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::nccl_log::{GIB, Log, at};
use crate::support::{TINY, answer, run, text, write};

const P4D: &str = "NVIDIA A100-SXM4-40GB";

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(&[arguments, &["--json"]].concat())).expect("JSON")
}

/// The report of a calibration and the file it wrote.
fn calibrated(home: &Path, logs: &[PathBuf], on: &[&str]) -> (Value, String) {
    let file = text(&home.join("own.toml")).to_owned();
    let logs: Vec<&str> = logs.iter().map(|log| text(log)).collect();
    let arguments = [&["calibrate", "collectives"], &logs[..], on, &["-o", &file]].concat();
    (json(&arguments), file)
}

fn finding<'a>(report: &'a Value, code: &str) -> Option<&'a Value> {
    report["findings"].as_array().expect("a list").iter().find(|finding| finding["code"] == code)
}

fn message<'a>(report: &'a Value, code: &str) -> &'a str {
    finding(report, code).unwrap_or_else(|| panic!("no {code} in {report:#}"))["message"]
        .as_str()
        .expect("text")
}

fn holds(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// The predicted rows of an operation on so many GPUs.
fn predicted(on: &[&str], kind: &str, gpus: &str, sizes: &str) -> Vec<Value> {
    let ask = ["collectives", "--collective", kind, "--gpus", gpus, "--sizes", sizes];
    let sweeps = json(&[&ask, on].concat())["sweeps"].clone();
    let rows = |sweep: &Value| sweep["rows"].as_array().expect("a list").clone();
    sweeps.as_array().expect("a list").iter().flat_map(rows).collect()
}

fn millis(row: &Value) -> f64 {
    row["time"]["value_ns"].as_f64().expect("a number") / 1e6
}

fn bus(row: &Value) -> f64 {
    row["busbw_gb_per_s"]["value"].as_f64().expect("a number")
}

#[test]
fn o17_a_tree_of_two_nodes_beats_the_nics_and_does_not_become_their_rate() {
    let home = tempfile::tempdir().unwrap();
    let rows = at(true, 16, 57.0, &[1_000_000_000]);
    let log = Log { name: "all_reduce", ranks: 16, per_node: 8, device: P4D, rows };
    let (report, file) = calibrated(home.path(), &[log.write(home.path())], &["--on", "aws-p4d"]);
    // Taken, explained, and not taken for the NICs' rate.
    assert_eq!(report["used"][0]["rows"], 1);
    assert_eq!(report["residuals"][0]["kept"], true);
    let said = message(&report, "two-node-tree");
    holds(said, &["57.0 GB/s", "above", "tree of two nodes", "swaps two sums", "1.88 S"]);
    holds(said, &["not taken for the NICs' rate"]);
    let share = report["constants"].as_array().unwrap().iter();
    for constant in share.filter(|c| c["name"].as_str().unwrap().ends_with("net_share")) {
        assert!(constant["value"].as_f64().unwrap() <= 1.0, "{constant}");
    }
    // What was measured is met; four nodes stay below what their NICs carry.
    let rows = predicted(&["--on", &file], "all-reduce", "16,32", "1000MB");
    assert!((bus(&rows[0]) - 57.0).abs() < 0.6, "{}", rows[0]);
    assert!(bus(&rows[1]) <= 50.0, "{}", rows[1]);
    // The algorithm is named at each size.
    let page = answer(&["collectives", "--on", &file, "--gpus", "16,32", "--sizes", "64K..1G"]);
    let named = page.lines().filter(|l| l.contains(" Tree ") || l.contains(" Ring ")).count();
    assert!(named >= 30, "{named} rows name their algorithm\n{page}");
    assert_eq!(rows[0]["algorithm"], "Tree");
    assert_eq!(rows[1]["algorithm"], "Ring");
}

#[test]
fn o18_from_one_node_to_four() {
    let home = tempfile::tempdir().unwrap();
    let measured = [(8, 8142.6), (16, 35_215.0), (24, 64_782.0), (32, 70_253.0)];
    let logs: Vec<PathBuf> = measured
        .iter()
        .map(|&(ranks, us)| {
            let name = format!("all_reduce_{ranks}");
            let rows = vec![(GIB, us)];
            Log { name: &name, ranks, per_node: 8, device: P4D, rows }.write(home.path())
        })
        .collect();
    let (report, file) = calibrated(home.path(), &logs, &["--on", "aws-p4d"]);
    let rates = report["residuals"].as_array().unwrap().iter();
    let rates: Vec<f64> =
        rates.map(|row| row["measured_busbw_gb_per_s"].as_f64().unwrap()).collect();
    for (rate, right) in rates.iter().zip([230.8, 57.2, 31.8, 29.6]) {
        assert!((rate - right).abs() <= 0.1, "{rates:?}");
    }
    holds(message(&report, "drop"), &["57.2 GB/s on 2 nodes", "31.8 on 3", "lost its gain"]);
    let transport = message(&report, "shortfall");
    holds(transport, &["29.6 of 50.0 GB/s nominal", "transport problem", "not a scaling law"]);
    assert!(finding(&report, "odd-count").is_none(), "{report:#}");
    // A ring's 2(n-1)/n barely grows: no straight line to 140 ms.
    let eight = &predicted(&["--on", &file], "all-reduce", "64", "1G")[0];
    assert!((70.0..80.0).contains(&millis(eight)), "{eight}");
    assert!(eight["time"]["high_ns"].as_f64().unwrap() < 140e6, "{eight}");
}

const TWO_NICS: &str = "\
[nodes.two-nics]
based_on = \"dgx-h100\"
nics = 2
nic_bandwidth = \"400 Gbit/s\"
";

#[test]
fn o19_an_odd_number_of_nodes_is_no_trend() {
    let home = tempfile::tempdir().unwrap();
    let base = write(home.path(), "two-nics.toml", TWO_NICS);
    let sizes: Vec<u64> = (20..=30).step_by(2).map(|log| 1 << log).collect();
    let mut logs = Vec::new();
    for (ranks, bus) in [(16, 40.0), (24, 20.0), (32, 40.0)] {
        for kind in ["all_gather", "all_reduce"] {
            let name = format!("{kind}_{ranks}");
            let rows = at(kind == "all_reduce", ranks, bus, &sizes);
            let device = "NVIDIA H100 80GB HBM3";
            logs.push(Log { name: &name, ranks, per_node: 8, device, rows }.write(home.path()));
        }
    }
    let (report, file) = calibrated(home.path(), &logs, &["--on", text(&base)]);
    let said = message(&report, "odd-count");
    holds(said, &["3 nodes (24 GPUs) take 2.0x what 2 and 4 nodes agree on for all-gather"]);
    holds(said, &["An all-gather of 1 GiB costs 51.4", "Kept out of the trend"]);
    let found = finding(&report, "odd-count").unwrap();
    assert_eq!(found["kept_out"], true);
    let advice = found["advice"].as_str().unwrap();
    holds(advice, &["odd node count", "ring placement", "channel pairing"]);
    for row in report["residuals"].as_array().unwrap() {
        assert_eq!(row["kept"] == false, row["ranks"] == 24, "{row}");
    }
    // Other numbers of nodes do not inherit it; the same one pays it.
    let on = ["--on", &file, "--hardware", text(&base)];
    let rows = predicted(&on, "all-gather", "16,24,32,48", "1G");
    for (row, right) in rows.iter().zip([40.0, 20.0, 40.0, 40.0]) {
        assert!((bus(row) / right - 1.0).abs() < 0.05, "{right} GB/s: {row}");
    }
    // So does the step of a job.
    let job = json(&[&["predict", TINY, "--gpus", "24,32"], &on[..]].concat());
    let step = |at: usize| job["sizes"][at]["step_time"]["value_ns"].as_f64().unwrap();
    assert!(step(0) > 1.1 * step(1), "3 nodes {} ns, 4 nodes {} ns", step(0), step(1));
}

/// One GPU and one NIC per node, so that each link of a ring is between nodes.
const RING: &str = "\
[nodes.one]
based_on = \"dgx-a100\"
devices = 1
nics = 1
nic_bandwidth = \"400 Gbit/s\"
nic_efficiency = 1.0
[clusters.ring]
node = \"one\"
levels = [{ name = \"leaf\", nodes = 64, latency = \"5 us\" }]
";

#[test]
fn o20_late_links_cost_small_messages_and_spare_large_ones() {
    let home = tempfile::tempdir().unwrap();
    let ring = write(home.path(), "ring.toml", RING);
    let on = format!("{}#ring", text(&ring));
    let plot = home.path().join("bus.svg");
    let ask = |more: &[&str]| -> Vec<Value> {
        let what = ["collectives", "--on", &on, "--gpus", "32", "--sizes", "4M,64M,1G"];
        let late = ["--late-links", "2", "--latency", "20us,300us", "--json"];
        let said = run(&[&what[..], &late, more].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        let answer: Value = serde_json::from_str(&said.out).expect("JSON");
        answer["sweeps"].as_array().unwrap().clone()
    };
    let sweeps = ask(&["--plot", text(&plot)]);
    let number = |value: &Value| value.as_f64().unwrap();
    let mut minor_from = Vec::new();
    for (sweep, late_us) in sweeps.iter().zip([20, 300]) {
        assert_eq!(sweep["setting"]["extra_latency_ns"], late_us * 1000);
        assert_eq!(sweep["setting"]["inter_gb_per_s"], 50.0);
        let [small, .., large] = &sweep["rows"].as_array().unwrap()[..] else { unreachable!() };
        let peak = number(&sweep["plateau"]["busbw_gb_per_s"]);
        assert!(bus(large) > 0.95 * peak, "{late_us} us: 1 GiB is near the peak {peak}: {large}");
        assert!(bus(small) < 0.5 * peak, "{late_us} us: 4 MiB is far from it: {small}");
        let (small, large) = (number(&small["latency_share"]), number(&large["latency_share"]));
        assert!(small > 0.3 && large < 0.05, "{late_us} us: latency has {small}, {large}");
        minor_from.push(number(&sweep["latency_minor_from_bytes"]));
    }
    assert_eq!(sweeps[1]["rows"][0]["dominates"], "propagation");
    assert!(minor_from[0] > 64e6 && minor_from[1] > 1.5 * minor_from[0], "{minor_from:?}");
    // Said in words too.
    let page = answer(&[
        "collectives",
        "--on",
        &on,
        "--gpus",
        "32",
        "--sizes",
        "4M,1G",
        "--late-links",
        "2",
        "--latency",
        "300us",
        "--explain",
    ]);
    holds(&page, &["latency (launch and propagation)", "costs less than 10 %"]);
    // A line for each latency, drawn and in the legend.
    let picture = std::fs::read_to_string(&plot).unwrap();
    holds(&picture, &["+20 us", "+300 us"]);
    assert_eq!(picture.matches("class=\"curve\"").count(), 4, "{picture}");
    // A ring pays for all of its 2(n-1) steps.
    for sweep in ask(&["--algorithm", "ring"]) {
        let [small, .., large] = &sweep["rows"].as_array().unwrap()[..] else { unreachable!() };
        assert_eq!(
            (&small["algorithm"], &small["dominates"]),
            (&"Ring".into(), &"propagation".into())
        );
        assert!(number(&small["latency_share"]) > 0.5, "{small}");
        assert!(number(&large["latency_share"]) < 0.1, "{large}");
    }
    // What a connection may have in flight is a question of its own.
    let windowed = ask(&["--window", "1MiB"]);
    for (sweep, open) in windowed.iter().zip(&sweeps) {
        assert_eq!(sweep["plateau"]["limit"], "window");
        let rate = |sweep: &Value| number(&sweep["plateau"]["busbw_gb_per_s"]);
        assert!(rate(sweep) < 0.5 * rate(open), "{sweep}");
    }
}
