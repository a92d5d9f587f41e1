//! JSON answers and their schemas.

use crate::support::{TINY, answer, misfits, of_rank, root, run, text};
use serde_json::Value;

fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(arguments)).expect("JSON")
}

fn fits(verb: &str, arguments: &[&str]) -> Value {
    let document = document(arguments);
    let schema = self::document(&["schema", verb]);
    let found = misfits(&document, &schema, &schema, "$");
    assert!(found.is_empty(), "{found:#?}");
    document
}

#[test]
fn predict_fits_its_schema() {
    let document =
        fits("predict", &["predict", TINY, "--on", "dgx-a100", "--gpus", "2,64", "--json"]);
    assert_eq!(document["schema"], "foretrain/predict/1");
    for size in document["sizes"].as_array().unwrap() {
        let owners = size["breakdown"].as_array().unwrap();
        let sum: i64 = owners.iter().map(|owner| owner["time_ns"].as_i64().unwrap()).sum();
        let step = size["step_time"]["value_ns"].as_i64().unwrap();
        assert!((sum - step).abs() <= 1_000, "owners {sum} ns of {step} ns");
        let low = size["step_time"]["low_ns"].as_i64().unwrap();
        assert!(low > 0 && low <= step);
    }
}

#[test]
fn inspect_fits_its_schema() {
    let document = fits("inspect", &["inspect", TINY, "--json"]);
    assert_eq!(document["schema"], "foretrain/inspect/1");
    assert_eq!(document["together"]["matched"], 12, "four buckets in three steps");
    // The example's README says so.
    let ahead = of_rank(&document["together"]["ranks"], 1)["clock_offset_ns"].as_i64().unwrap();
    assert!((ahead - 1_700_000).abs() < 1_000, "{ahead} ns");
    for rank in document["ranks"].as_array().unwrap() {
        let time = |item: &Value| item["time_ns"].as_f64().unwrap();
        let owned: f64 = rank["breakdown"].as_array().unwrap().iter().map(time).sum();
        let steps = rank["steps"].as_array().unwrap();
        let step = steps.iter().find(|step| step["name"] == rank["breakdown_step"]).unwrap();
        let measured = time(step);
        assert!((owned / measured - 1.0).abs() < 0.005, "owners {owned} ns of {measured} ns");
    }
}

#[test]
fn inspect_of_a_benchmark_log_fits_its_schema() {
    let log = "crates/foretrain-cli/tests/cli/all_reduce.log";
    let document = fits("inspect-log", &["inspect", log, "--json"]);
    assert_eq!(document["schema"], "foretrain/inspect-log/1");
    let run = &document["runs"][0];
    assert_eq!((&run["ranks"], &run["ranks_inferred"]), (&16.into(), &true.into()));
    assert_eq!(run["rows"][1]["in_place"]["time_ns"], 710_000);
    // A directory of logs is as good as their names.
    let directory = tempfile::tempdir().unwrap();
    for name in ["a_all_gather.log", "b_all_reduce.log"] {
        std::fs::copy(root().join(log), directory.path().join(name)).unwrap();
    }
    let document = fits("inspect-log", &["inspect", text(directory.path()), "--json"]);
    let kinds: Vec<&Value> =
        document["runs"].as_array().unwrap().iter().map(|run| &run["kind"]).collect();
    assert_eq!(kinds, ["all-gather", "all-reduce"]);
}

#[test]
fn inspect_of_what_nccl_says_fits_its_schema() {
    let log = "crates/foretrain-cli/tests/cli/nccl_debug.log";
    let document = fits("inspect-log", &["inspect", log, "--json"]);
    let facts = &document["nccl"][0];
    assert_eq!(
        (&facts["ranks"], &facts["nodes"], &facts["nvls"]),
        (&16.into(), &2.into(), &false.into())
    );
    assert_eq!(facts["graphs"][0]["inter_path"], "PIX");
    assert_eq!(facts["costs"].as_array().unwrap().len(), 4);
    let run = &document["runs"][0];
    assert_eq!((&run["time_inferred"], &run["ranks"]), (&true.into(), &16.into()));
    // Without a table the facts alone are an answer.
    let text_of_log = std::fs::read_to_string(root().join(log)).unwrap();
    let facts_only: Vec<&str> =
        text_of_log.lines().filter(|line| line.contains("NCCL INFO")).collect();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("train.log");
    std::fs::write(&path, facts_only.join("\n")).unwrap();
    let document = fits("inspect-log", &["inspect", text(&path), "--json"]);
    assert_eq!(document["runs"].as_array().unwrap().len(), 0);
    assert_eq!(document["nccl"][0]["network"], "IB");
}

#[test]
fn hardware_fits_its_schema() {
    let document = fits("hardware", &["hardware", "list", "--json"]);
    assert!(document["nodes"].as_array().unwrap().len() > 10);
    fits("hardware", &["hardware", "show", "polaris", "--json"]);
}

#[test]
fn validate_fits_its_schema_and_holds_only_sets() {
    let directory = tempfile::tempdir().unwrap();
    let traces = directory.path().join("traces");
    std::fs::create_dir(&traces).unwrap();
    for name in ["rank0.json.gz", "rank1.json.gz"] {
        std::fs::copy(root().join(TINY).join(name), traces.join(name)).unwrap();
    }
    let data = text(directory.path());
    let document = fits("validate", &["validate", "--data", data, "--set", "replay", "--json"]);
    let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["sets"]);
    let set = document["sets"][0].as_object().unwrap();
    let mut keys: Vec<&String> = set.keys().collect();
    keys.sort();
    assert_eq!(
        keys,
        [
            "bias",
            "coverage80",
            "group_median_mape",
            "groups",
            "mape",
            "max_ape",
            "median_ape",
            "n",
            "name",
            "notes",
            "p90_ape",
            "reference",
            "skipped"
        ]
    );
    assert_eq!(set["n"], 6, "two ranks of three steps");
    let with_rows = ["validate", "--data", data, "--set", "replay", "--json", "--rows"];
    let document = fits("validate", &with_rows);
    assert_eq!(document["sets"][0]["rows"].as_array().unwrap().len(), 6);
}

/// Exit code 1: the input is in order, but a set could not be scored on it.
#[test]
fn a_set_without_rows_is_answered_with_no() {
    let said = run(&["validate", "--data", "docs", "--extra", TINY, "--json"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    let document: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(document["sets"][0]["n"], 0);
    assert_eq!(document["sets"][0]["mape"], Value::Null);
}

/// The checker of these tests must be able to find something.
#[test]
fn misfits_are_found() {
    let schema = document(&["schema", "validate"]);
    let wrong = serde_json::json!({ "sets": [{ "name": 7 }], "more": 1 });
    let found = misfits(&wrong, &schema, &schema, "$");
    assert!(found.iter().any(|m| m.contains("$.sets[0].name: integer")), "{found:#?}");
    assert!(found.iter().any(|m| m.contains("$.sets[0]: no mape")), "{found:#?}");
    assert!(found.iter().any(|m| m.contains("$.more: not in the schema")), "{found:#?}");
}
