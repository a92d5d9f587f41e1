//! What changes would buy.

use serde_json::Value;

use crate::support::{TINY, answer, complaint, misfits, text, write};

fn ask(arguments: &[&str]) -> String {
    answer(&[&["whatif", TINY], arguments].concat())
}

fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&ask(&[arguments, &["--json"]].concat())).expect("JSON")
}

#[test]
fn the_standard_list() {
    insta::assert_snapshot!("whatif_standard", ask(&[]));
}

#[test]
fn several_changes_and_what_each_is_worth() {
    let page = ask(&["--change", "bandwidth x2 + kernel(*gemm*) x0.5", "--change", "input x0"]);
    insta::assert_snapshot!("whatif_waterfall", page);
}

#[test]
fn the_example_of_the_guide() {
    let page = ask(&["--scenarios", "examples/whatif.toml", "--replica-batch", "32"]);
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    insta::assert_snapshot!("whatif_file", page);
}

#[test]
fn json_fits_its_schema_and_its_times_belong_together() {
    let found = document(&["--scenarios", "examples/whatif.toml"]);
    let schema: Value = serde_json::from_str(&answer(&["schema", "whatif"])).expect("JSON");
    let misfits = misfits(&found, &schema, &schema, "$");
    assert!(misfits.is_empty(), "{misfits:#?}");
    assert_eq!(found["schema"], "foretrain/whatif/1");
    let before = found["baseline"]["step_time"]["value_ns"].as_i64().unwrap();
    let scenarios = found["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), 2 + 9);
    for scenario in scenarios {
        let step = scenario["outcome"]["step_time"]["value_ns"].as_i64().unwrap();
        assert_eq!(scenario["saving_ns"].as_i64().unwrap(), before - step);
        let owners = scenario["outcome"]["breakdown"].as_array().unwrap();
        let owned: i64 = owners.iter().map(|owner| owner["time_ns"].as_i64().unwrap()).sum();
        assert_eq!(owned, step, "{scenario}");
    }
    assert_eq!(scenarios[0]["waterfall"].as_array().unwrap().len(), 3);
}

#[test]
fn threads_change_no_byte() {
    let on = |threads| {
        ask(&[
            "--sweep",
            "gpus=2,4,8",
            "--sweep",
            "kernel x1..0.5:20",
            "--json",
            "--threads",
            threads,
        ])
    };
    assert_eq!(on("1"), on("3"));
}

#[test]
fn a_saved_graph_is_asked_like_its_trace() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("step.parquet");
    let trace = format!("{TINY}/rank0.json.gz");
    crate::support::run(&["export", &trace, "--graph", text(&path)]);
    let saving = |input: &str| -> Value {
        let arguments = ["whatif", input, "--change", "kernel x0.5", "--json"];
        serde_json::from_str::<Value>(&answer(&arguments)).unwrap()["scenarios"][0]["saving_ns"]
            .clone()
    };
    assert_eq!(saving(text(&path)), saving(&trace));
}

#[test]
fn mistakes_say_where_and_what() {
    let directory = tempfile::tempdir().unwrap();
    let refused =
        |arguments: &[&str]| complaint(&[&["whatif", TINY], arguments].concat(), directory.path());
    let said = refused(&["--change", "bandwith x2"]);
    assert!(said.contains("did you mean `bandwidth x2`?"), "{said}");
    let said = refused(&["--change", "kernel(*gemmm*) x0.5"]);
    assert!(said.contains("no node matches kernel(\"*gemmm*\")"), "{said}");
    assert!(said.contains("hint: did you mean"), "{said}");
    let file = write(
        directory.path(),
        "ours.toml",
        "[[scenario]]\nchanges = [\n  \"fuse\",\n  \"gpus=many\",\n]\n",
    );
    let said = refused(&["--scenarios", text(&file)]);
    assert!(said.contains("expected a number of GPUs"), "{said}");
    assert!(said.contains("(line 4 of DIR/ours.toml)"), "{said}");
    let said = refused(&["--change", "cluster=dgx-a10"]);
    assert!(said.contains("did you mean"), "{said}");
    let said = refused(&["--sweep", "gpus=3..9"]);
    assert!(said.contains("how many values"), "{said}");
}
