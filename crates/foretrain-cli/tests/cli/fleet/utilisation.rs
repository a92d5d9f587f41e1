//! `foretrain fleet utilisation`.

use serde_json::Value;

use crate::support::{answer, complaint, misfits, text, write};

const JOBS: &str = "examples/fleet/measured.csv";

fn fits(document: &str, schema: &str) -> Value {
    let document: Value = serde_json::from_str(document).expect("JSON");
    let schema_of: Value = serde_json::from_str(&answer(&["schema", schema])).expect("JSON");
    let found = misfits(&document, &schema_of, &schema_of, "$");
    assert!(found.is_empty(), "{found:#?}");
    document
}

#[test]
fn a_predictor_is_learnt_kept_and_asked() {
    let home = tempfile::tempdir().unwrap();
    let kept = home.path().join("ours.json");
    let verb = ["fleet", "utilisation"];
    let train =
        [&verb[..], &["train", JOBS, "--write", text(&kept), "--about", "made-up jobs"]].concat();
    let page = answer(&train).replace(text(home.path()), "DIR");
    insta::assert_snapshot!("fleet_utilisation_train", page);
    let said = complaint(&train, home.path());
    assert!(said.contains("there is such a file already"), "{said}");
    assert!(said.contains("another name with --write"), "{said}");

    let predict =
        [&verb[..], &["predict", "resnet-50", "--batch", "24", "--with", text(&kept)]].concat();
    insta::assert_snapshot!("fleet_utilisation_predict", answer(&predict));
    let inside = fits(&answer(&[&predict[..], &["--json"]].concat()), "fleet-utilisation-predict");
    assert_eq!(inside["is_inside"], true);

    // A model of another kind is no more than extrapolated, and says so.
    let other =
        [&verb[..], &["predict", "llama-3-8b", "--batch", "1", "--with", text(&kept)]].concat();
    let page = answer(&other);
    assert!(page.contains("warning: extrapolation") && page.contains("attention"), "{page}");
    let outside = fits(&answer(&[&other[..], &["--json"]].concat()), "fleet-utilisation-predict");
    assert_eq!(outside["utilisation_percent"]["low"], 0.0);
    assert_eq!(outside["utilisation_percent"]["high"], 100.0);

    let evaluate = [&verb[..], &["evaluate", JOBS, "--json"]].concat();
    let scored = fits(&answer(&evaluate), "fleet-utilisation");
    let split = |document: &Value| document["splits"][0].clone();
    assert_eq!(split(&scored)["jobs"], 60);
    let seen = [&evaluate[..], &["--with", text(&kept)]].concat();
    let seen = fits(&answer(&seen), "fleet-utilisation");
    // What was learnt is known better than what was held out.
    assert!(split(&seen)["rmsle"].as_f64() < split(&scored)["rmsle"].as_f64(), "{seen} {scored}");
    assert_eq!(split(&seen)["mean_rmsle"], Value::Null);
}

#[test]
fn a_predictor_that_was_changed_by_hand_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let kept = home.path().join("ours.json");
    answer(&["fleet", "utilisation", "train", JOBS, "--write", text(&kept)]);
    let mut file: Value = serde_json::from_str(&std::fs::read_to_string(&kept).unwrap()).unwrap();
    file["predictor"]["memory"]["base"] = 40.into();
    let changed = write(home.path(), "changed.json", file.to_string());
    let predict = ["fleet", "utilisation", "predict", "resnet-50", "--batch=8", "--with"];
    let said = complaint(&[&predict[..], &[text(&changed)]].concat(), home.path());
    assert!(said.contains("of memory; expected") && said.contains("predictor.memory"), "{said}");
    let schedule = ["fleet", "schedule", "examples/fleet/training.csv", "--nodes=1"];
    let with = [&schedule[..], &["--utilisation-with", text(&changed)]].concat();
    assert!(complaint(&with, home.path()).contains("predictor.memory"));
}

#[test]
fn mistakes_are_said_in_a_sentence() {
    let home = tempfile::tempdir().unwrap();
    let here = home.path();
    let few = write(here, "few.csv", "model,batch,utilisation\nresnet-50,8,50\n");
    let wrong = write(here, "wrong.csv", "model,batch,utilisation\nresnet-50,8,500\n");
    let json = write(here, "other.json", "{\"format\": \"other\"}");
    let kept = here.join("kept.json");
    let said: Vec<String> = [
        &["fleet", "utilisation", "train", text(&few), "--write", text(&kept)][..],
        &["fleet", "utilisation", "train", text(&wrong), "--write", text(&kept)],
        &["fleet", "utilisation", "predict", "resnet-50", "--batch", "8", "--with", text(&json)],
        &["fleet", "utilisation", "predict", "resnet-50", "--batch", "8", "--with", text(&kept)],
    ]
    .iter()
    .map(|arguments| complaint(arguments, here))
    .collect();
    insta::assert_snapshot!("fleet_utilisation_mistakes", said.join("\n"));
    assert!(!kept.exists());
}
