//! `estimate`.

use serde_json::Value;

use super::{LAB, MODEL, document, words};
use crate::support::{answer, complaint, run, text};

fn page(line: &str) -> String {
    answer(&[&["estimate", MODEL, "--on", LAB], &words(line)[..]].concat())
}

fn estimated(line: &str) -> Value {
    document(&[&["estimate", MODEL, "--on", LAB], &words(line)[..]].concat(), 0)
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
fn pages() {
    let short = page("--gpus 8 --parallel tp=2,zero=1,sp --batch 64");
    insta::assert_snapshot!("estimate", short);
    let long = page("--gpus 8 --parallel pp=4,mbs=2 --batch 64 --tokens 20B --price 2 --explain");
    assert!(long.lines().all(|line| line.chars().count() <= 100), "{long}");
    insta::assert_snapshot!("estimate_explained", long);
}

/// The parts add up to the step, memory items to what is allocated, and rates follow from times.
#[test]
fn figures_add_up() {
    for layout in
        ["tp=2,zero=1,sp", "pp=4,vpp=2,mbs=1", "zero=3,recompute=full,mbs=4", "cp=2,mbs=1"]
    {
        let line = format!("--gpus 8 --parallel {layout} --batch 64 --tokens 20B");
        let document = estimated(&line);
        assert_eq!(document["schema"], "foretrain/estimate/1");
        let laid = &document["layout"];
        let step = number(&laid["step_time"]["value_ns"]);
        let parts = laid["parts"].as_array().unwrap();
        let sum: f64 = parts.iter().map(|part| number(&part["time_ns"])).sum();
        assert_eq!(sum, step, "{layout}");
        let (low, high) =
            (number(&laid["step_time"]["low_ns"]), number(&laid["step_time"]["high_ns"]));
        assert!(0.0 < low && low < step && step < high);
        for stage in laid["memory"].as_array().unwrap() {
            let outside = ["context", "communicators"];
            let items = stage["items"].as_array().unwrap().iter();
            let inside = items.filter(|item| !outside.contains(&item["item"].as_str().unwrap()));
            let sum: f64 = inside.map(|item| number(&item["bytes"])).sum();
            assert_eq!(sum, number(&stage["allocated"]["value_bytes"]), "{layout}");
            let of = |which: &str| number(&stage[which]["value_bytes"]);
            assert!(of("allocated") <= of("reserved") && of("reserved") <= of("used"));
        }
        assert_eq!(number(&laid["tokens_per_step"]), 64.0 * 2048.0);
        let rate = number(&laid["tokens_per_second"]);
        assert!((rate * step / 1e9 / (64.0 * 2048.0) - 1.0).abs() < 1e-9);
        let work = number(&laid["model_flops_per_step"]);
        let mfu = work / (step / 1e9 * 8.0 * number(&document["peak_flops_per_s"]));
        assert!((mfu - number(&laid["mfu"])).abs() < 1e-9 && mfu < 1.0);
        let to_finish = &document["to_finish"];
        assert_eq!(number(&to_finish["steps"]), (20e9_f64 / (64.0 * 2048.0)).ceil());
        let seconds = number(&to_finish["seconds"]["value"]);
        // Two nodes at six dollars an hour.
        assert!((number(&to_finish["dollars"]) / (seconds / 3600.0 * 12.0) - 1.0).abs() < 1e-6);
    }
}

/// What does not fit is answered with no, and with what would fit.
#[test]
fn what_would_make_it_fit() {
    let line = "estimate gpt-3-13b --on dgx-a100 --gpus 8 --batch 64 --parallel tp=2,mbs=2";
    let said = run(&words(line));
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    insta::assert_snapshot!("estimate_too_large", said.out);
    let document = document(&words(line), 1);
    let changes = document["remedies"]["changes"].as_array().unwrap();
    assert!(!changes.is_empty());
    let times: Vec<i64> =
        changes.iter().map(|change| change["step_time"]["value_ns"].as_i64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    for change in changes {
        let layout = change["layout"].as_str().unwrap();
        let line =
            format!("estimate gpt-3-13b --on dgx-a100 --gpus 8 --batch 64 --parallel {layout}");
        let again = super::document(&words(&line), 0);
        assert_eq!(again["layout"]["step_time"], change["step_time"], "{layout}");
        assert_eq!(again["layout"]["fits"], change["fits"], "{layout}");
    }
}

#[test]
fn timelines_and_graphs_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let (timeline, graph) =
        (directory.path().join("step.json"), directory.path().join("step.parquet"));
    let said = run(&[
        "estimate",
        MODEL,
        "--on",
        LAB,
        "--gpus",
        "4",
        "--batch",
        "8",
        "--parallel",
        "pp=2,dp=2",
        "--timeline",
        text(&timeline),
        "--graph",
        text(&graph),
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    let trace: Value = serde_json::from_str(&std::fs::read_to_string(&timeline).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let end = |event: &Value| Some(event["ts"].as_f64()? + event["dur"].as_f64()?);
    let last = events.iter().filter_map(end).fold(0.0, f64::max);
    let line = "--gpus 4 --batch 8 --parallel pp=2,dp=2";
    let step = number(&estimated(line)["layout"]["step_time"]["value_ns"]) / 1e3;
    assert!((last / step - 1.0).abs() < 0.01, "{last} us of {step} us");
    for stage in 0..2 {
        let file = directory.path().join(format!("step.{stage}.parquet"));
        let page = answer(&["inspect", text(&file)]);
        assert!(page.contains("stage"), "{page}");
    }
}

/// Options of the software change what they should.
#[test]
fn software_can_be_corrected() {
    let time = |line: &str| {
        // Short sequences, so that the host has to hurry.
        let line = format!("--gpus 8 --batch 16 --sequence 256 {line}");
        number(&estimated(&line)["layout"]["step_time"]["value_ns"])
    };
    let plain = time("--parallel mbs=1");
    assert!(time("--parallel mbs=1 --cuda-graphs") < plain);
    assert!(time("--parallel mbs=1 --no-overlap-gradients") > plain);
    assert!(
        time("--parallel mbs=1 --attention written-out --cuda-graphs")
            > time("--parallel mbs=1 --cuda-graphs")
    );
    assert!(
        time("--parallel mbs=1 --no-overlap-gradients --reduce-in bf16")
            < time("--parallel mbs=1 --no-overlap-gradients")
    );
    let tensor = "--parallel tp=4,sp,mbs=1 --cuda-graphs";
    assert!(time(&format!("{tensor} --overlap-tensor")) < time(tensor));
    let lora = estimated("--gpus 8 --batch 16 --lora 16,attention");
    assert_eq!(lora["training"]["lora_rank"], 16);
    let states = |document: &Value| {
        let items = document["layout"]["memory"][0]["items"].as_array().unwrap().clone();
        items
            .iter()
            .find(|item| item["item"] == "optimiser")
            .map_or(0.0, |item| number(&item["bytes"]))
    };
    assert!(states(&lora) < 0.05 * states(&estimated("--gpus 8 --batch 16")));
}

/// What was asked for and cannot be is refused, with what to do instead.
#[test]
fn what_the_device_or_the_model_lacks_is_refused() {
    for (line, message, hint) in [
        ("gpt-2 --on dgx-1-v100 --gpus 8 --batch 64", "has no bf16 units", "fp16 or fp32"),
        ("gpt-2 --on dgx-1-v100 --gpus 8 --batch 64 --precision fp8", "units", "--precision fp16"),
        (
            "resnet-50 --on dgx-a100 --gpus 8 --batch 64 --lora 16",
            "no layers for adapters",
            "leave",
        ),
        (
            "mixtral-8x7b --on dgx-h100 --gpus 64 --batch 64 --parallel ep=8,etp=2",
            "etp = 2 is more than tp = 1",
            "",
        ),
        (
            "llama-3-8b --on dgx-h100 --gpus 8 --batch 1099511627776 --parallel pp=8",
            "more than a year",
            "check the batch",
        ),
    ] {
        let refused = run(&[&["estimate"], &words(line)[..]].concat());
        assert_eq!(refused.code, 2, "{line}");
        let said = &refused.err;
        assert!(said.contains(message) && said.contains(hint), "{line}: {said}");
    }
}

/// Pairs count their own lengths, and frozen weights no gradients.
#[test]
fn model_flops_count_what_is_trained() {
    let flops = |line: &str| {
        let line = format!("estimate {line} --on dgx-h100 --gpus 8 --batch 64");
        number(&document(&words(&line), 0)["layout"]["model_flops_per_step"])
    };
    let pair = |source, target| {
        flops(&format!("t5-3b --sequence {source} --target-sequence {target} --parallel mbs=1"))
    };
    // Both halves are a little more than doubled: attention grows with the square.
    let ratio = pair(1024, 256) / pair(512, 128);
    assert!((2.0..2.3).contains(&ratio), "{ratio}");
    assert!(pair(512, 256) > pair(512, 128));
    let whole = flops("gpt-3-1.3b --parallel zero=1");
    assert_eq!(flops("gpt-3-1.3b --parallel zero=1 --lora 16") * 1.5, whole);
}

/// A price per device is paid for each that is taken; the catalogue's, for whole nodes.
#[test]
fn devices_are_paid_one_by_one() {
    let hourly = |more: &str| {
        let line = format!("estimate {MODEL} --on {LAB} --gpus 6 --batch 48 {more}");
        number(&document(&words(&line), 0)["layout"]["dollars_per_hour"])
    };
    assert_eq!(hourly("--price 2"), 12.0);
    assert_eq!(hourly(""), 12.0, "of 8 at 1.50 each");
}

#[test]
fn graphs_that_are_too_large_are_refused_before_a_file_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("step");
    for option in ["--timeline", "--graph"] {
        let line = format!("estimate {MODEL} --on {LAB} --gpus 1 --batch 1000000 --parallel mbs=1");
        let line = [&words(&line)[..], &[option, text(&file)]].concat();
        let said = complaint(&line, directory.path());
        assert!(said.contains("nodes, more than") && said.contains("smaller batch"), "{said}");
        assert!(!file.exists(), "{option}");
    }
}

/// What is no file is written to, not replaced; a link still leads to what it led to.
#[cfg(unix)]
#[test]
fn devices_and_links_stay_what_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let line = format!("estimate {MODEL} --on {LAB} --gpus 1 --batch 1 --graph");
    let save = |path: &std::path::Path| {
        let said = run(&[&words(&line)[..], &[text(path)]].concat());
        assert_ne!(said.code, 2, "{}", said.err);
    };
    for is_there in [true, false] {
        let target = directory.path().join(format!("target-{is_there}.parquet"));
        let link = directory.path().join(format!("link-{is_there}.parquet"));
        if is_there {
            std::fs::write(&target, "old").unwrap();
        }
        std::os::unix::fs::symlink(&target, &link).unwrap();
        save(&link);
        assert!(link.is_symlink());
        assert!(std::fs::read(&target).unwrap().starts_with(b"PAR1"));
    }
    let null = directory.path().join("null");
    std::os::unix::fs::symlink("/dev/null", &null).unwrap();
    save(&null);
    assert!(null.is_symlink() && !null.metadata().unwrap().is_file());
}
