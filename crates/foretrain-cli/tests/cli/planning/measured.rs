//! Estimates and plans that rest on a user's own measurements.

use std::path::Path;

use serde_json::Value;

use super::{LAB, MODEL, document, words};
use crate::support::{answer, complaint, run, text, write};

/// Layouts that are measured, one that is not, and one much like them.
const MEASURED: [&str; 3] = ["zero=1,mbs=8", "tp=2,zero=1,sp,mbs=4", "pp=2,zero=1,mbs=2"];
const OTHER: &str = "tp=4,zero=1,sp,mbs=4";
const NEAR: &str = "zero=1,mbs=4";

fn ask(layout: &str, rest: &[&str]) -> Value {
    let line = format!("estimate {MODEL} --on {LAB} --gpus 8 --batch 64 --parallel {layout}");
    document(&[&words(&line)[..], rest].concat(), 0)
}

fn step(document: &Value, end: &str) -> f64 {
    document["layout"]["step_time"][end].as_f64().expect("a number")
}

/// Measured steps that take so many times the estimate.
fn steps(times: f64) -> String {
    let row = |layout: &&str| {
        let milliseconds = times * step(&ask(layout, &[]), "value_ns") / 1e6;
        format!(
            "[[step]]\nlayout = \"{layout}\"\ngpus = 8\nbatch = 64\nstep_time = \"{milliseconds:.3}ms\"\n"
        )
    };
    MEASURED.iter().map(row).collect()
}

#[test]
fn a_machine_that_is_slower_by_a_fifth_is_met_on_another_layout() {
    let home = tempfile::tempdir().unwrap();
    let file = write(home.path(), "steps.toml", steps(1.2));
    let (plain, calibrated) = (ask(OTHER, &[]), ask(OTHER, &["--measured", text(&file)]));
    let ratio = step(&calibrated, "value_ns") / step(&plain, "value_ns");
    assert!((ratio / 1.2 - 1.0).abs() < 0.05, "{ratio}");
    // Of a layout that spends its time as the measured ones the interval narrows, but not below what
    // a good model leaves; of one that communicates more it stays.
    let width = |document: &Value| step(document, "high_ns") / step(document, "low_ns");
    assert!(width(&calibrated) <= width(&plain) * 1.005);
    let near = [ask(NEAR, &[]), ask(NEAR, &["--measured", text(&file)])].map(|one| width(&one));
    assert!(near[1] < 0.97 * near[0] && near[1] > 1.1, "{near:?}");
    let rows = calibrated["calibrated"]["steps"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let error = |key: &str| row[key].as_f64().unwrap();
        assert!((error("error_before") + 1.0 / 6.0).abs() < 0.001, "{row}");
        assert!(error("error_after").abs() < 0.03, "{row}");
    }
    assert_eq!(calibrated["evidence"][0]["kind"], "measured");
}

/// Steps that are as estimated change nothing but the interval.
#[test]
fn a_machine_as_estimated_stays_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let file = write(home.path(), "steps.toml", steps(1.0));
    let (plain, calibrated) = (ask(OTHER, &[]), ask(OTHER, &["--measured", text(&file)]));
    let ratio = step(&calibrated, "value_ns") / step(&plain, "value_ns");
    assert!((ratio - 1.0).abs() < 0.005, "{ratio}");
}

#[test]
fn plans_and_tables_rest_on_the_same_steps() {
    let home = tempfile::tempdir().unwrap();
    let file = write(home.path(), "steps.toml", steps(1.2));
    let mut table = "layout,gpus,batch,step_time,cluster\n".to_owned();
    for layout in MEASURED {
        let measured = 1.2 * step(&ask(layout, &[]), "value_ns") / 1e6;
        table += &format!("{},8,64,{measured:.3} ms,lab\n", layout.replace(',', ";"));
    }
    let table = write(home.path(), "steps.csv", table);
    let by = |file: &Path| ask(OTHER, &["--measured", text(file)]);
    assert_eq!(by(&file)["layout"], by(&table)["layout"]);
    let line = format!("plan {MODEL} --on {LAB} --gpus 8 --batch 64 --pin cp=1,pp=1");
    let plan = document(&[&words(&line)[..], &["--measured", text(&table)]].concat(), 0);
    let winner = &plan["places"][0]["winner"];
    let layout = winner["text"].as_str().unwrap();
    assert_eq!(*winner, ask(layout, &["--measured", text(&table)])["layout"]);
    assert_eq!(plan["places"][0]["ranked"][0]["step_time"], winner["step_time"]);
    assert_eq!(plan["places"][0]["calibrated"]["cluster"], "lab");
    // Steps of one cluster say nothing of another.
    let said =
        run(&[&words(&line)[..], &["--on", "dgx-a100", "--measured", text(&table)]].concat());
    assert!(said.code == 0 && said.err.contains("not used for dgx-a100"), "{}", said.err);
}

#[test]
fn mistakes_in_the_file_have_their_place() {
    let home = tempfile::tempdir().unwrap();
    let refused = |name: &str, content: &[u8]| {
        let file = write(home.path(), name, content);
        let line = format!("estimate {MODEL} --on {LAB} --gpus 8 --batch 64 --measured");
        complaint(&[&words(&line)[..], &[text(&file)]].concat(), home.path())
    };
    let good = "[[step]]\nlayout = \"tp=2\"\ngpus = 8\nbatch = 64\nstep_time = \"1s\"\n";
    for (from, to, place, hint) in [
        ("1s", "1", "line 5 of DIR/s.toml", "unit"),
        ("tp=2", "tp=3", "line 1 of DIR/s.toml", "does not divide"),
        ("gpus = 8", "gpus = nan", "line 3 of DIR/s.toml", ""),
        ("gpus = 8", "gpus = 512", "line 1 of DIR/s.toml", "hint"),
        ("1s", "1ns", "line 1 of DIR/s.toml", "unit"),
        ("batch = 64", "batch = 7", "line 1 of DIR/s.toml", "hint"),
        ("batch = 64", "batches = 64", "line 4 of DIR/s.toml", "batch"),
        ("[[step]]", "software = \"torch\"\n[[step]]", "line 2 of DIR/s.toml", "hint"),
        ("[[step]]", "precision = \"fp7\"\n[[step]]", "line 2 of DIR/s.toml", "hint"),
        ("[[step]]", "model = \"lama-3-8b\"\n[[step]]", "lama-3-8b", "did you mean"),
        ("[[step]]", "cluster = \"dgx-h100\"\n[[step]]", "measured on dgx-h100", "hint"),
    ] {
        let said = refused("s.toml", good.replacen(from, to, 1).as_bytes());
        assert!(said.contains(place) && said.contains(hint), "{to}: {said}");
    }
    let missing = refused("s.csv", b"layout,gpus,step_time\ntp=2,8,1s\n");
    assert!(missing.contains("no column batch (line 1 of DIR/s.csv)"), "{missing}");
    let commas = refused("s.csv", b"layout,gpus,batch,step_time\ntp=2,pp=2,8,64,1s\n");
    assert!(commas.contains("line 2 of DIR/s.csv") && commas.contains("quotes"), "{commas}");
    assert!(refused("empty.toml", b"").contains("no measured step"));
    assert!(refused("binary.toml", &[0xff, 0, 1, 2]).contains("DIR/binary.toml"));
}

/// A sweep in which the A100's products take a tenth longer than shipped.
fn kernels(home: &Path) -> std::path::PathBuf {
    let file = home.join("kernels.toml");
    let rows = "gpu,dtype,m,n,k,time_us\n\
                NVIDIA A100-SXM4-80GB,bf16,4096,4096,4096,800\n\
                NVIDIA A100-SXM4-80GB,bf16,8192,4096,4096,1600\n\
                NVIDIA A100-SXM4-80GB,bf16,8192,8192,8192,6400\n\
                NVIDIA A100-SXM4-80GB,bf16,2048,4096,4096,400\n\
                NVIDIA A100-SXM4-80GB,bf16,2048,8192,2048,400\n";
    let sweep = write(home, "sweep.csv", rows);
    answer(&["calibrate", "kernels", text(&sweep), "-o", text(&file)]);
    file
}

#[test]
fn measured_kernels_are_used_and_named() {
    let home = tempfile::tempdir().unwrap();
    let file = kernels(home.path());
    let part = |document: &Value, wanted: &str| {
        let parts = document["layout"]["parts"].as_array().unwrap().iter();
        let mut of = parts.filter(|part| part["part"] == wanted);
        of.next().map_or(0, |part| part["time_ns"].as_i64().unwrap())
    };
    let (plain, own) = (ask(MEASURED[0], &[]), ask(MEASURED[0], &["--kernels", text(&file)]));
    assert!(part(&own, "gemm") > part(&plain, "gemm"));
    assert_eq!(part(&own, "elementwise"), part(&plain, "elementwise"));
    let evidence = own["evidence"][0]["source"].as_str().unwrap();
    assert!(evidence.contains("5 shapes measured on a100-sxm4-80gb (sweep.csv"), "{evidence}");
    // Another device's are refused for one cluster, and left out with a note for one of several.
    let line = "estimate llama-3-8b --on dgx-h100 --gpus 8 --batch 8 --parallel fsdp --kernels";
    let said = complaint(&[&words(line)[..], &[text(&file)]].concat(), home.path());
    assert!(said.contains("measured on a100-sxm4-80gb, not on h100"), "{said}");
    assert!(said.contains("kernels.toml") && said.contains("hint: leave them out"), "{said}");
    let line = format!("plan {MODEL} --on {LAB} --on dgx-h100 --gpus 8 --batch 64 --pin cp=1,pp=1");
    let said = run(&[&words(&line)[..], &["--kernels", text(&file)]].concat());
    assert!(said.code == 0 && said.err.contains("not used for dgx-h100"), "{}", said.err);
}

/// Scenarios are run with the kernels that were measured; rows differ from those without.
#[test]
fn scenarios_take_measured_kernels() {
    let home = tempfile::tempdir().unwrap();
    let (file, study) = (kernels(home.path()), home.path().join("study.jsonl"));
    let line = format!("plan {MODEL} --on {LAB} --gpus 8 --batch 64 --pin cp=1,pp=1");
    run(&[&words(&line)[..], &["--write-scenarios", text(&study)]].concat());
    let rows = |rest: &[&str]| answer(&[&["plan", "--scenarios", text(&study)], rest].concat());
    let step = |rows: &str| {
        serde_json::from_str::<Value>(rows).expect("a row")["step_ns"].as_i64().expect("a step")
    };
    assert!(step(&rows(&["--kernels", text(&file)])) > step(&rows(&[])));
    let line = [&words(&line)[..], &["--write-scenarios", "x.jsonl", "--kernels", text(&file)]];
    assert!(complaint(&line.concat(), home.path()).contains("hold no measurements"));
    let both = ["plan", "--scenarios", text(&study), "--measured", text(&file)];
    assert!(complaint(&both, home.path()).contains("--measured"));
}
