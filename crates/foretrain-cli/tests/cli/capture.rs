//! Bundles of `foretrain.capture`: what verbs take from them, and what they refuse.

use std::fs;
use std::path::Path;

use foretrain_testkit::JobSpec;
use serde_json::{Value, json};

use crate::support::{answer, complaint, finding, foretrain, inspected, job, root, text, write};

/// A bundle in the repository, relative to its root.
const BUNDLE: &str = "examples/capture-tiny";

/// A copy of the bundle whose captures `edit` has changed.
fn bundle(edit: impl Fn(&mut Value)) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a directory");
    for rank in 0..2 {
        let trace = format!("rank{rank}.trace.json.gz");
        fs::copy(root().join(BUNDLE).join(&trace), copy.path().join(&trace)).expect("a trace");
        let mut capture = captured(rank);
        edit(&mut capture);
        write(copy.path(), &format!("rank{rank}.capture.json"), capture.to_string());
    }
    copy
}

fn captured(rank: u32) -> Value {
    let path = root().join(BUNDLE).join(format!("rank{rank}.capture.json"));
    serde_json::from_slice(&fs::read(path).expect("a capture")).expect("JSON")
}

/// A prediction's page for two ranks.
fn predicted(path: &Path, more: &[&str]) -> String {
    let mut arguments =
        vec!["predict", text(path), "--on", "cpu-node", "--recorded-on", "cpu-node"];
    arguments.extend(["--gpus", "2"]);
    arguments.extend(more);
    answer(&arguments)
}

/// A page without line breaks and spaces of tables, to look for sentences.
fn words(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn inspect_on_a_bundle() {
    insta::assert_snapshot!("inspect_capture", answer(&["inspect", BUNDLE]));
}

#[test]
fn predict_on_a_bundle() {
    let on = ["--on", "cpu-node", "--recorded-on", "cpu-node", "--gpus", "2,4"];
    let page = answer(&[&["predict", BUNDLE][..], &on].concat());
    insta::assert_snapshot!("predict_capture", page);
}

#[test]
fn options_take_the_place_of_the_capture() {
    let page = predicted(&root().join(BUNDLE), &[]);
    assert!(page.contains("from the capture"), "{page}");
    assert!(page.contains("Samples/s"), "{page}");
    let given = ["--step-time", "41ms", "--step-spread", "2%", "--replica-batch", "8"];
    let page = predicted(&root().join(BUNDLE), &given);
    assert!(!page.contains("from the capture"), "{page}");
    assert!(words(&page).contains("41.00 ms as given"), "{page}");
}

#[test]
fn a_bundle_says_what_options_would() {
    // The median of both ranks' medians of 20 steps each.
    let median = |rank| {
        let capture = captured(rank);
        let times = capture["steps"]["unprofiled"]["wall_ns"].as_array().expect("times");
        let mut times: Vec<f64> = times.iter().map(|time| time.as_f64().expect("ns")).collect();
        times.sort_unstable_by(f64::total_cmp);
        (0.5 * (times[9] + times[10])).round()
    };
    let step = format!("{}ns", (0.5 * (median(0) + median(1))).round());
    let on = ["--on", "cpu-node", "--recorded-on", "cpu-node", "--gpus", "2,4", "--json"];
    let by_capture = answer(&[&["predict", BUNDLE][..], &on].concat());
    let bare = bundle(|capture| {
        *capture = json!({"foretrain_capture": 1, "rank": capture["rank"], "world_size": 2});
    });
    let given = ["--step-time", &step, "--step-spread", "5%", "--replica-batch", "64"];
    let by_options = answer(&[&["predict", text(bare.path())][..], &on, &given].concat());
    let sizes = |page: &str| serde_json::from_str::<Value>(page).expect("JSON")["sizes"].clone();
    assert_eq!(sizes(&by_capture), sizes(&by_options));
}

#[test]
fn what_ifs_start_from_the_captured_step() {
    let page = answer(&[
        "whatif",
        BUNDLE,
        "--on",
        "cpu-node",
        "--recorded-on",
        "cpu-node",
        "--change",
        "gpus=2",
    ]);
    assert!(words(&page).contains("from the capture"), "{page}");
}

#[test]
fn a_step_that_cannot_be_is_left_out() {
    let bundle = bundle(|capture| {
        capture["steps"]["unprofiled"]["wall_ns"] =
            json!([9_000_000_000_u64, 9_000_000_000_u64, 9_000_000_000_u64]);
    });
    let page = words(&predicted(bundle.path(), &[]));
    assert!(
        page.contains("warning: the capture's step time is not used: a step of 9.000 s"),
        "{page}"
    );
    // Who asks for it is told.
    let more = ["--on", "cpu-node", "--gpus", "2", "--step-time", "9s"];
    foretrain(&[&["predict", BUNDLE][..], &more].concat()).assert().code(2);
}

/// A trace of one process without DDP, and a capture beside it.
fn alone(capture: Value) -> tempfile::TempDir {
    let directory = job(&JobSpec { ranks: 1, ..JobSpec::tiny_ddp() });
    write(directory.path(), "rank0.capture.json", capture.to_string());
    directory
}

fn of_one_rank(parallel: Value) -> Value {
    json!({"foretrain_capture": 1, "rank": 0, "world_size": 1, "parallel": parallel,
        "model": {"class": "Net", "parameters": [
            {"name": "w", "bytes": 40_000_000, "requires_grad": true},
            {"name": "frozen", "bytes": 10_000_000, "requires_grad": false}],
            "buffers": {"bytes": 5000}}})
}

#[test]
fn captures_of_one_process_tell_how_ddp_would_be() {
    let evidence = |directory: &Path, more: &[&str]| -> Vec<String> {
        let on = ["predict", text(directory), "--on", "dgx-a100", "--gpus", "8", "--json"];
        let page: Value = serde_json::from_str(&answer(&[&on[..], more].concat())).expect("JSON");
        let lines = page["evidence"].as_array().expect("evidence").iter();
        let told = |line: &Value, key: &str| line[key].as_str().expect("text").to_owned();
        lines.map(|line| format!("{}: {}", told(line, "what"), told(line, "source"))).collect()
    };
    let has = |lines: &[String], line: &str| {
        assert!(lines.iter().any(|known| known == line), "{line} is not in {lines:#?}");
    };
    let plain = alone(of_one_rank(json!({"kind": "none"})));
    let lines = evidence(plain.path(), &[]);
    has(&lines, "broadcast of buffers: 4.883 KiB from the capture, before every forward pass");
    let settings = alone(of_one_rank(json!({"kind": "ddp", "ddp": {
        "bucket_cap_bytes": 4_194_304, "bucket_cap_is_default": false,
        "gradient_as_bucket_view": true, "broadcast_buffers": false}})));
    let lines = evidence(settings.path(), &[]);
    has(&lines, "cap of gradient buckets: 4.000 MiB from the capture");
    has(&lines, "copies into gradient buckets and back: none, from the capture");
    assert!(!lines.iter().any(|line| line.contains("forward pass")), "{lines:#?}");
    let given = ["--bucket-cap-mb", "25", "--bucket-copies", "5GB/s", "--buffer-bytes", "1KiB"];
    let lines = evidence(settings.path(), &given);
    assert!(!lines.iter().any(|line| line.contains("capture")), "{lines:#?}");
    has(&lines, "broadcast of buffers: 1.000 KiB as given, before every forward pass");
}

#[test]
fn gradients_are_the_trace_s_or_else_the_model_s() {
    let page = |spec: JobSpec| {
        let directory = job(&JobSpec { ranks: 1, ..spec });
        let capture = of_one_rank(json!({"kind": "none"})).to_string();
        write(directory.path(), "rank0.capture.json", capture);
        words(&answer(&["predict", text(directory.path()), "--on", "dgx-a100", "--gpus", "8"]))
    };
    // The trained parameters have 40 MB, the trace's model has fewer.
    let shown = page(JobSpec::tiny_ddp());
    assert!(shown.contains("the capture's model has 38.15 MiB: the trace's are used"), "{shown}");
    let hidden = page(JobSpec { record_shapes: false, ..JobSpec::tiny_ddp() });
    assert!(hidden.contains("gradient bytes 38.15 MiB from the capture"), "{hidden}");
    assert!(!hidden.contains("the trace's are used"), "{hidden}");
}

#[test]
fn hooks_that_saw_another_backward_pass_are_told() {
    let page = |last: u64| {
        let directory = bundle(|capture| {
            capture["steps"]["unprofiled"]["wall_ns"] = json!(vec![40_000_000_u64; 20]);
            capture["steps"]["hooked"]["wall_ns"] = json!(vec![40_000_000_u64; 3]);
            let first = 12_000_000_u64;
            let times: Vec<u64> = (0..6).map(|i| first + (last - first) * i / 5).collect();
            capture["gradients"]["ready_ns"] = json!(times);
        });
        words(&answer(&["inspect", text(directory.path())]))
    };
    assert!(!page(20_000_000).contains("buckets may be ready at other times"));
    let late = page(38_000_000);
    assert!(late.contains("and over 65 % by the capture's hooks: buckets may be ready"), "{late}");
}

#[test]
fn captures_that_are_wrong_are_refused_by_file_and_key() {
    for (slip, says) in [
        (json!({"steps": {"unprofiled": {"wall_ns": ["fast"]}}}), "steps.unprofiled.wall_ns[0]"),
        (json!({"foretrain_capture": 7}), "version 7 of the format is not known, only 1"),
        (json!({"rank": 1, "world_size": 1}), "rank 1 of 1"),
        (
            json!({"rank": 1, "world_size": 2}),
            "this is the capture of rank 0, by its content of rank 1",
        ),
        (json!({"replica_batch": {"samples": -4}}), "replica_batch.samples"),
    ] {
        let directory = bundle(|capture| {
            if capture["rank"] == 0 {
                for (key, value) in slip.as_object().expect("keys") {
                    capture[key] = value.clone();
                }
            }
        });
        let path = text(directory.path());
        let graph = directory.path().join("graph.parquet");
        let verbs = [&["inspect", path][..], &["export", path, "--graph", text(&graph)]];
        for arguments in verbs {
            let said = complaint(arguments, directory.path());
            assert!(said.contains(says) && said.contains("rank0.capture.json"), "{said}");
        }
    }
    let torn = bundle(|_| {});
    let whole = fs::read_to_string(torn.path().join("rank1.capture.json")).expect("text");
    write(torn.path(), "rank1.capture.json", &whole[..whole.len() / 2]);
    let said = complaint(&["inspect", text(torn.path())], torn.path());
    assert!(said.contains("broken off while copied"), "{said}");
}

#[test]
fn captures_without_traces_are_told() {
    let directory = bundle(|_| {});
    fs::remove_file(directory.path().join("rank1.trace.json.gz")).expect("was there");
    let (code, answer) = inspected(directory.path());
    assert_eq!(code, 0);
    let (count, place) = finding(&answer, "lone-capture");
    assert!(count == 1 && place.ends_with("rank1.capture.json"), "{place}");
    fs::remove_file(directory.path().join("rank0.trace.json.gz")).expect("was there");
    let said = complaint(&["inspect", text(directory.path())], directory.path());
    assert!(said.contains("a capture without a profiler trace"), "{said}");
    // A capture that is named is no mistake beside its trace.
    let directory = bundle(|_| {});
    let files =
        ["rank0.capture.json", "rank0.trace.json.gz"].map(|name| directory.path().join(name));
    let page = crate::support::answer(&["inspect", text(&files[0]), text(&files[1])]);
    assert!(page.contains("step without profiler"), "{page}");
}

#[test]
fn two_captures_of_a_rank_are_refused() {
    let directory = bundle(|_| {});
    write(directory.path(), "rank0.copy.json", captured(0).to_string());
    let said = complaint(&["inspect", text(directory.path())], directory.path());
    assert!(said.contains("two captures claim rank 0"), "{said}");
}

#[test]
fn what_is_missing_or_went_wrong_is_told() {
    let directory = bundle(|capture| {
        capture["missing"] = json!(["execution: 0 of 1 steps"]);
        capture["notes"] = json!([{"about": "topology", "message": "TimeoutExpired\u{1b}[31m"}]);
    });
    let page = answer(&["inspect", text(directory.path())]);
    assert!(page.contains("all ranks: incomplete: execution: 0 of 1 steps"), "{page}");
    assert!(page.contains("all ranks: topology: TimeoutExpired?[31m"), "{page}");
    let (_, answer) = inspected(directory.path());
    assert_eq!(answer["ranks"][1]["capture"]["missing"][0], "execution: 0 of 1 steps");
    assert_eq!(answer["ranks"][0]["capture"]["layout"]["kind"], "ddp");
}
