//! JSON answers and their schemas.

use crate::support::{TINY, answer, misfits};
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
}

#[test]
fn hardware_fits_its_schema() {
    let document = fits("hardware", &["hardware", "list", "--json"]);
    assert!(document["nodes"].as_array().unwrap().len() > 10);
    fits("hardware", &["hardware", "show", "polaris", "--json"]);
}

#[test]
fn validate_fits_its_schema_and_holds_only_sets() {
    let document = fits("validate", &["validate", "--data", "docs", "--extra", TINY, "--json"]);
    let keys: Vec<&String> = document.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["sets"]);
    for key in [
        "name",
        "n",
        "mape",
        "median_ape",
        "p90_ape",
        "max_ape",
        "bias",
        "coverage80",
        "reference",
        "skipped",
    ] {
        assert!(document["sets"][0].get(key).is_some(), "no {key}");
    }
    assert!(document["sets"][0].get("rows").is_none());
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
