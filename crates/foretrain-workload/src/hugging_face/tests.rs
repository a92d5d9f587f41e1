use serde_json::json;

use super::*;
use crate::model::OpKind;

fn read(value: &Value) -> Result<Model> {
    parse(&value.to_string())
}

fn llama() -> Value {
    json!({
        "model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
        "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
    })
}

fn with(mut config: Value, key: &str, value: Value) -> Value {
    config[key] = value;
    config
}

#[test]
fn families_are_sorted_for_the_search() {
    assert!(FAMILIES.windows(2).all(|pair| pair[0].0 < pair[1].0));
}

#[test]
fn a_layer_has_its_operations_in_order() {
    let model = read(&llama()).unwrap();
    let names: Vec<&str> = model.blocks[1].layer.ops.iter().map(|op| op.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "attention.norm",
            "attention.qkv",
            "attention.rotary",
            "attention.core",
            "attention.out",
            "attention.residual",
            "mlp.norm",
            "mlp.up",
            "mlp.activation",
            "mlp.down",
            "mlp.residual"
        ]
    );
    assert_eq!((model.blocks.len(), model.blocks[1].repeat), (3, 2));
}

/// What a config leaves out is said, with the value that stands in for it.
#[test]
fn defaults_are_written_down() {
    let assumed = read(&llama()).unwrap().assumptions.join("\n");
    assert!(assumed.contains("num_key_value_heads is not given: 4"), "{assumed}");
    assert!(assumed.contains("4096 tokens"), "{assumed}");
    let full = with(llama(), "num_key_value_heads", json!(2));
    let full = with(full, "max_position_embeddings", json!(2048));
    assert_eq!(read(&full).unwrap().assumptions, Vec::<String>::new());
}

#[test]
fn a_missing_dimension_is_named() {
    for key in ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"] {
        let mut config = llama();
        config.as_object_mut().unwrap().remove(key);
        let error = read(&config).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains("missing"), "{error}");
    }
}

#[test]
fn unknown_families_are_met_with_the_known_ones_and_a_way_on() {
    let error = read(&with(llama(), "model_type", json!("lamma"))).unwrap_err();
    let hints = error.hints().join("\n");
    assert!(hints.contains("did you mean `llama`?") && hints.contains("mixtral"), "{hints}");
    assert!(hints.contains("TOML"), "{hints}");
    assert!(parse("[1]").is_err() && parse("{\"a\":").is_err() && parse("{}").is_err());
}

/// One config of each family, as the library has them.
fn examples() -> Vec<Value> {
    let mut examples = vec![llama()];
    for text in [
        include_str!("../../data/gpt.toml"),
        include_str!("../../data/llama.toml"),
        include_str!("../../data/mixture.toml"),
        include_str!("../../data/encoders.toml"),
    ] {
        let file: Value = foretrain_hardware::parse_toml(text).unwrap();
        let configs =
            file.as_object().unwrap().values().filter_map(|entry| entry.get("hugging_face"));
        for config in configs {
            if examples.iter().all(|known| known["model_type"] != config["model_type"]) {
                examples.push(config.clone());
            }
        }
    }
    examples
}

/// Whatever stands at a key, the answer is a model of plausible size or an error that says where.
#[test]
fn hostile_values_are_refused_or_harmless() {
    let examples = examples();
    assert!(examples.len() >= 25, "{}", examples.len());
    let hostile = [
        json!(0),
        json!(-1),
        json!(1),
        json!(3),
        json!(7.5),
        json!(1e30),
        json!(u64::MAX),
        json!(1_u64 << 40),
        json!("many"),
        json!([]),
        json!({}),
        json!(null),
        json!(true),
    ];
    for example in examples {
        let keys: Vec<String> = example.as_object().unwrap().keys().cloned().collect();
        for key in keys.iter().filter(|key| *key != "model_type") {
            for value in &hostile {
                match read(&with(example.clone(), key, value.clone())) {
                    Ok(model) => {
                        let work = model.forward(None).get();
                        assert!(work.is_finite() && work > 0.0, "{key} = {value}");
                        assert!(model.parameters() < 1 << 53);
                    }
                    Err(error) => assert!(!error.message().is_empty()),
                }
            }
        }
    }
}

#[test]
fn windows_follow_the_pattern_of_the_family() {
    let gemma = with(llama(), "model_type", json!("gemma2"));
    let gemma = with(gemma, "num_hidden_layers", json!(4));
    let model = read(&gemma).unwrap();
    let windows: Vec<Option<u64>> = model
        .layers()
        .flat_map(|layer| &layer.ops)
        .filter_map(|op| match op.kind {
            OpKind::Attention(shape) => Some(shape.window),
            _ => None,
        })
        .collect();
    assert_eq!(windows, [Some(4096), None, Some(4096), None]);
    let listed = with(gemma, "layer_types", json!(["full_attention", "sliding_attention"]));
    assert!(read(&listed).unwrap().layers().nth(1).unwrap().name == "layer");
}
