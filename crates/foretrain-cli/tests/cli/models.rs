//! `foretrain models`: by name and from files of every form.

use crate::support::{answer, complaint, misfits, run, text, write};
use serde_json::{Value, json};

fn document(arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(arguments)).expect("JSON")
}

#[test]
fn answers_fit_their_schema() {
    let schema = document(&["schema", "models"]);
    let all = document(&["models", "--json"]);
    let one = document(&["models", "deepseek-v3", "--json"]);
    for document in [&all, &one] {
        let found = misfits(document, &schema, &schema, "$");
        assert!(found.is_empty(), "{found:#?}");
        assert_eq!(document["schema"], "foretrain/models/1");
    }
    assert!(all["models"].as_array().unwrap().len() > 150);
    let layers = one["layers"].as_array().unwrap();
    let parameters = |layer: &Value| layer["parameters"].as_u64().unwrap();
    let sum: u64 =
        layers.iter().map(|layer| parameters(layer) * layer["repeat"].as_u64().unwrap()).sum();
    assert_eq!(one["models"][0]["parameters"], sum);
    // Two per active weight outside the embedding, and attention.
    let per_token = one["models"][0]["forward_flops_per_token"].as_f64().unwrap();
    assert!((72e9..90e9).contains(&per_token), "{per_token}");
}

/// The same model by name, by its config and by a directory that holds the config.
#[test]
fn a_config_is_as_good_as_a_name() {
    let directory = tempfile::tempdir().unwrap();
    let config = json!({
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "vocab_size": 128_256, "max_position_embeddings": 8192,
    });
    let path = write(directory.path(), "config.json", config.to_string());
    let named = document(&["models", "llama-3-8b", "--json"]);
    for wanted in [path.as_path(), directory.path()] {
        let read = document(&["models", text(wanted), "--json"]);
        assert_eq!(read["layers"], named["layers"]);
    }
}

#[test]
fn the_examples_are_shown() {
    insta::assert_snapshot!("models_decoder", answer(&["models", "examples/models/decoder.toml"]));
    insta::assert_snapshot!("models_layers", answer(&["models", "examples/models/layers.toml"]));
}

#[test]
fn mistakes_are_said_in_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let broken = "[transformer]\nlayers = 2\nhidden = 64\nheads = 4\nvocab = 100\n";
    let files = [
        write(here, "broken.toml", broken),
        write(here, "config.json", "{\"model_type\": \"lamma\"}"),
        write(here, "cut.onnx", b"\x08\x07\x3a\xff\x01\x0a"),
        here.join("nowhere.onnx"),
    ];
    let mut said: Vec<String> =
        files.iter().map(|file| complaint(&["models", text(file)], here)).collect();
    for arguments in [
        &["models", "lama-3-8b"][..],
        &["models", "gpt-2", "--sequence", "4096"],
        &["models", "resnet-50", "--sequence", "4096"],
    ] {
        said.push(complaint(arguments, here));
    }
    insta::assert_snapshot!("models_mistakes", said.join("\n"));
    assert_eq!(run(&["models", "gpt-2", "--sequence", "0"]).code, 2);
}

/// An execution trace is a model like any other, packed or not; planning takes it for one.
#[test]
fn an_execution_trace_describes_a_model() {
    const TRACED: &str = "examples/models/traced.json";
    let found = document(&["models", TRACED, "--json"]);
    assert_eq!(found["models"][0]["parameters"], 1_743_872);
    let line = ["--on", "dgx-a100", "--gpus", "8", "--batch", "64", "--software", "pytorch"];
    let estimate = document(&[&["estimate", TRACED], &line[..], &["--json"]].concat());
    assert_eq!(estimate["parameters"], 1_743_872);
    let plan = document(&[&["plan", TRACED], &line[..], &["--json"]].concat());
    assert_eq!(plan["schema"], "foretrain/plan/1");
    // What was cut short is read as far as it goes; what holds no operators is refused.
    let directory = tempfile::tempdir().unwrap();
    let text_of = std::fs::read_to_string(crate::support::root().join(TRACED)).unwrap();
    let cut = write(directory.path(), "cut.json", &text_of[..text_of.len() / 2]);
    let half = document(&["models", text(&cut), "--json"]);
    assert!(half["models"][0]["parameters"].as_u64().unwrap() <= 1_743_872);
    let said = half["models"][0]["assumptions"].to_string();
    assert!(said.contains("ends early"), "{said}");
    let none = write(directory.path(), "none.json", r#"{"schema": "1.0.1", "nodes": [{"id": 1}]}"#);
    let said = complaint(&["models", text(&none)], directory.path());
    assert!(said.contains("DIR/none.json") && said.contains("hint"), "{said}");
}
