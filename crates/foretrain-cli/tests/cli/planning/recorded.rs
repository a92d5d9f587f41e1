//! Plans from recordings.

use serde_json::Value;

use super::words;
use crate::support::{TINY, answer, complaint, misfits, run, text, write};

fn planned(line: &str) -> Value {
    let arguments = [&["plan", TINY, "--on", "dgx-a100"], &words(line)[..], &["--json"]].concat();
    serde_json::from_str(&answer(&arguments)).expect("JSON")
}

#[test]
fn pages() {
    let page =
        |line: &str| answer(&[&["plan", TINY, "--on", "dgx-a100"], &words(line)[..]].concat());
    let one = page("--gpus 16 --replica-batch 32 --explain zero-1 --top 5");
    assert!(one.lines().all(|line| line.chars().count() <= 100), "{one}");
    insta::assert_snapshot!("plan_recorded", one);
    let several = page(
        "--on dgx-h100 --gpus 8,64 --strategy ddp --strategy fsdp --price 2 --replica-batch 8",
    );
    insta::assert_snapshot!("plan_recorded_clusters", several);
}

#[test]
fn json_fits_its_schema_and_choices_hold_together() {
    let document = planned("--gpus 8,32 --explain zero-1 --top 100");
    let schema: Value = serde_json::from_str(&answer(&["schema", "plan-recorded"])).expect("JSON");
    let found = misfits(&document, &schema, &schema, "$");
    assert!(found.is_empty(), "{found:#?}");
    let cluster = &document["clusters"][0];
    assert_eq!((&cluster["complete"], &cluster["choices"]), (&true.into(), &cluster["looked_at"]));
    let sizes = cluster["sizes"].as_array().unwrap();
    assert_eq!(sizes.iter().map(|size| &size["gpus"]).collect::<Vec<_>>(), [8, 32]);
    let step = |choice: &Value| choice["outcome"]["step_time"]["value_ns"].as_i64().unwrap();
    for size in sizes {
        let ranked = size["ranked"].as_array().unwrap();
        assert_eq!(Some(ranked.len() as u64), size["ranked_count"].as_u64());
        let steps: Vec<i64> = ranked.iter().map(step).collect();
        assert!(steps.is_sorted(), "each replica keeps its batch: {steps:?}");
        for rival in [&size["runner_up"], &size["explained"]] {
            let more = rival["differences"].as_array().unwrap();
            let sum: i64 = more.iter().map(|part| part["time_ns"].as_i64().unwrap()).sum();
            assert_eq!(sum, step(&rival["choice"]) - steps[0]);
        }
        assert_eq!(size["explained"]["choice"]["strategy"], "zero-1");
    }
    // The choice is what predict says of it.
    let ddp = sizes[1]["ranked"].as_array().unwrap().iter().find(|one| one["strategy"] == "zero-1");
    let line =
        ["predict", TINY, "--on", "dgx-a100", "--gpus", "32", "--strategy", "zero-1", "--json"];
    let predicted: Value = serde_json::from_str(&answer(&line)).unwrap();
    let time = predicted["sizes"][0]["step_time"]["value_ns"].as_i64().unwrap();
    assert_eq!(time, step(ddp.unwrap()));
}

#[test]
fn a_saved_graph_is_a_recording_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("step.parquet");
    run(&["export", &format!("{TINY}/rank0.json.gz"), "--graph", text(&path)]);
    let line = ["plan", text(&path), "--on", "dgx-a100", "--gpus", "8", "--strategy", "ddp"];
    assert!(answer(&line).contains("1 choice looked at"));
}

#[test]
fn options_are_of_use_to_what_is_planned() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |subject: &str, rest: &str| {
        let line = format!("plan {subject} --on dgx-a100 --gpus 8 {rest}");
        complaint(&words(&line), directory.path())
    };
    for (option, hint) in [
        ("--batch 64", "--replica-batch"),
        ("--sequence 128", "as recorded"),
        ("--precision fp16", "whatif"),
        ("--software fsdp", "whatif"),
        ("--bucket 5MiB", "--strategy 'copies | fuse(25MiB)'"),
        ("--pin tp=2", "--strategy"),
        ("--memory 90%", "memory"),
        ("--tokens 1B", "samples/s"),
        ("--measured steps.toml", "measured times"),
        ("--write-scenarios x.jsonl", "described models"),
        ("--attention flash-2", "whatif"),
        ("--unbalanced-context", "whatif"),
        ("--shard 1/2", "--scenarios FILE"),
    ] {
        let said = refused(TINY, option);
        let name = option.split(' ').next().unwrap();
        assert!(said.contains(&format!("{name} is of no use to a recording")), "{said}");
        assert!(said.contains(hint), "{said}");
    }
    for option in [
        "--strategy ddp",
        "--replica-batch 4",
        "--recorded-on dgx-a100",
        "--ranks 0",
        "--shard 3/8",
        "--merge rows.jsonl",
    ] {
        let said = refused("llama-3-8b --batch 8", option);
        assert!(said.contains("of no use to the description of a model"), "{said}");
    }
    let said = refused(TINY, "--explain zero-9");
    assert!(said.contains("zero-9"), "{said}");
    let said = refused("llama-3-8b --batch 8", "--explain tpp=2");
    assert!(said.contains("did you mean"), "{said}");
}

#[test]
fn what_is_neither_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |subject: &str| {
        let line = ["plan", subject, "--on", "dgx-a100", "--gpus", "8", "--batch", "8"];
        complaint(&line[..6], directory.path())
    };
    assert!(refused("nowhere/rank0.json.gz").contains("no such file"));
    assert!(refused("lama-3-8b").contains("did you mean"));
    let empty = directory.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let said = refused(text(&empty));
    assert!(said.contains("DIR/empty") && said.contains("hint"), "{said}");
    let nothing = write(directory.path(), "nothing.json", "");
    let binary = write(directory.path(), "some.bin", [0xff, 0xfe, 0, 1, 2, 3]);
    for file in [&nothing, &binary] {
        let said = refused(text(file));
        assert!(said.contains("DIR/") && said.contains("hint"), "{said}");
    }
}

/// A directory that describes a model and holds recordings is the model; that is said.
#[test]
fn a_model_goes_before_a_recording() {
    let directory = tempfile::tempdir().unwrap();
    let config = r#"{"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "n_positions": 128, "vocab_size": 512}"#;
    write(directory.path(), "config.json", config);
    let trace = crate::support::root().join(TINY).join("rank0.json.gz");
    std::fs::copy(trace, directory.path().join("rank0.json.gz")).unwrap();
    let line = ["plan", text(directory.path()), "--on", "dgx-a100", "--gpus", "1", "--batch", "4"];
    let said = run(&line);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("the model is planned"), "{}", said.err);
}
