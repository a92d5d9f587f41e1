//! `foretrain fleet share` and `foretrain fleet edge`.

use serde_json::Value;

use crate::support::{answer, complaint, misfits, root, run, text, write};

const PLANNED: [&str; 9] = [
    "fleet",
    "share",
    "vgg-16",
    "vgg-19",
    "alexnet",
    "--accuracy",
    "examples/fleet/outcomes.csv",
    "--epoch-time",
    "35s",
];

fn document(arguments: &[&str], schema: &str) -> Value {
    let document: Value =
        serde_json::from_str(&answer(&[arguments, &["--json"]].concat())).expect("JSON");
    let schema_of: Value = serde_json::from_str(&answer(&["schema", schema])).expect("JSON");
    let found = misfits(&document, &schema_of, &schema_of, "$");
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(document["schema"], format!("foretrain/{schema}/1"));
    document
}

#[test]
fn pages() {
    insta::assert_snapshot!("fleet_share_plan", answer(&PLANNED));
    let edge = answer(&["fleet", "edge", "examples/fleet/edge.toml"]);
    insta::assert_snapshot!("fleet_edge", edge);
}

#[test]
fn plans_fit_their_schema_and_never_lose_what_is_saved() {
    let planned = document(&PLANNED, "fleet-share");
    let steps = planned["plan"]["steps"].as_array().unwrap();
    let saved = |step: &Value| step["saved_bytes"].as_u64().unwrap();
    assert!(steps.windows(2).all(|pair| saved(&pair[0]) <= saved(&pair[1])));
    assert!(saved(steps.last().unwrap()) <= planned["most_saved_bytes"].as_u64().unwrap());
    // A step trains all models it touches, each for its epochs of 35 s.
    let step = &steps[0];
    let seconds = 35 * step["epochs"].as_i64().unwrap() * step["trained"].as_i64().unwrap();
    assert_eq!(step["time_ns"], seconds * 1_000_000_000);
    // The two wide layers of both VGGs, and the one that AlexNet has too.
    assert_eq!(planned["groups"][0]["layer"], "linear 25088->4096 bias");
    assert_eq!(planned["pairs"][0]["layers"], 16);
    let plain = document(&["fleet", "share", "resnet-50", "resnet-50"], "fleet-share");
    assert_eq!((plain["most_saved_fraction"].as_f64(), &plain["plan"]), (Some(0.5), &Value::Null));
    assert_eq!(plain["models"][1]["name"], "resnet-50 #2");
}

#[test]
fn runs_of_a_device_fit_their_schema_and_lose_no_frame() {
    let edge = ["fleet", "edge", "examples/fleet/edge.toml"];
    let played = document(&edge, "fleet-edge");
    let runs = played["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 7, "three sizes apart and shared, and all in memory");
    for served in runs.iter().flat_map(|run| run["served"].as_array().unwrap()) {
        let frames = served["processed"].as_u64().unwrap() + served["skipped"].as_u64().unwrap();
        assert_eq!(frames, 3000);
    }
}

/// The longest streams that are allowed, on as many choices as the example has.
#[test]
fn long_streams_are_played_in_seconds() {
    let directory = tempfile::tempdir().unwrap();
    let described = std::fs::read_to_string(root().join("examples/fleet/edge.toml")).unwrap();
    let edge = write(directory.path(), "edge.toml", format!("frames = 1000000\n{described}"));
    let began = std::time::Instant::now();
    let page = answer(&["fleet", "edge", text(&edge)]);
    // Most of a minute if a turn allocates; the bound leaves room for slow machines.
    assert!(page.contains("1000000 frames each at 30 per second"), "{page}");
    assert!(began.elapsed().as_secs() < 120, "{:?}", began.elapsed());
}

#[test]
fn slips_in_a_table_of_outcomes_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let asked = |row: &str| {
        let rows = format!("layer,model,probability\n{row},1\n*,*,0\n");
        let table = write(here, "outcomes.csv", rows);
        run(&["fleet", "share", "vgg-16", "vgg-19", "alexnet", "--accuracy", text(&table)])
    };
    let said = asked("linear 25088->4069 bias,*").err;
    assert!(said.contains("no model has a layer \"linear 25088->4069 bias\" (line 2 of"), "{said}");
    assert!(said.contains("did you mean `linear 25088->4096 bias`?"), "{said}");
    let said = asked("*,vgg16").err;
    assert!(said.contains("no model is called \"vgg16\" (line 2 of"), "{said}");
    assert!(said.contains("did you mean `vgg-16`?"), "{said}");
    // AlexNet's own filters are a layer, and nobody else has it.
    let odd = asked("conv 3->64 11x11 stride 4 padding 2 bias,alexnet");
    assert_eq!(odd.code, 0, "{}", odd.err);
    assert!(odd.out.contains("note: line 2 answers nothing, as alexnet shares"), "{}", odd.out);
}

#[test]
fn epochs_beyond_the_limit_are_no_success() {
    let directory = tempfile::tempdir().unwrap();
    let asked = |epochs: &str, more: &[&str]| {
        let rows = format!("layer,model,probability,epochs\n*,*,1,{epochs}\n");
        let table = write(directory.path(), "outcomes.csv", rows);
        run(&[&["fleet", "share", "vgg-16", "vgg-19", "--accuracy", text(&table)], more].concat())
    };
    let said = asked("99", &[]);
    assert_eq!(said.code, 2, "{}", said.out);
    assert!(said.err.contains("a success after 99 epochs (line 2"), "{}", said.err);
    assert!(said.err.contains("--epochs"), "{}", said.err);
    assert!(asked("0", &[]).err.contains("1 epoch or more"));
    assert_eq!(asked("99", &["--epochs=99"]).code, 0);
}

#[test]
fn figures_of_a_device_that_cannot_be_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let whole = std::fs::read_to_string(root().join("examples/fleet/edge.toml")).unwrap();
    for (from, to, said) in [
        ("frames_per_second = 30", "frames_per_second = 1e12", "at most 1000000"),
        ("load_ms = 24", "load_ms = 1e300", "load_ms is 1e300; expected a number from 0 to 3.2e10"),
        ("gb = 0.5 }", "gb = 0.1 }", "with a model of 343.3 MiB in it"),
        ("load_gb = 0.26", "load_gb = 5.0", "to load beside the other, of 667.6 MiB in all"),
    ] {
        let wrong = whole.replacen(from, to, 1);
        assert_ne!(wrong, whole, "{from}");
        let file = write(directory.path(), "edge.toml", wrong);
        let found = complaint(&["fleet", "edge", text(&file)], directory.path());
        assert!(found.contains(said), "{found}");
    }
}

/// Weights on the disk are compared with each other by their headers, and with described models by
/// the shapes of their weights.
#[test]
fn files_of_weights_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let header = r#"{"conv1.weight":{"dtype":"F32","shape":[64,3,3,3],"data_offsets":[0,6912]},
        "conv1.bias":{"dtype":"F32","shape":[64],"data_offsets":[6912,7168]},
        "fc1.weight":{"dtype":"F32","shape":[4096,25088],"data_offsets":[7168,411048960]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    let path = write(directory.path(), "ours.safetensors", bytes);
    // The data of weights are never read: a hole on the disk will do.
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(8 + header.len() as u64 + 411_048_960).unwrap();
    let shared = document(&["fleet", "share", text(&path), text(&path)], "fleet-share");
    assert_eq!(shared["most_saved_bytes"], 411_048_960);
    let beside = document(&["fleet", "share", text(&path), "vgg-16"], "fleet-share");
    assert_eq!(
        (beside["rule"].as_str(), beside["weakened_by"].as_str()),
        (Some("weights"), Some("ours"))
    );
    // The wide layer has a bias in VGG, so only the filters agree.
    assert_eq!(beside["most_saved_bytes"], 7168);
}

#[test]
fn mistakes_are_said_in_a_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let cut = write(here, "cut.safetensors", b"\x10\0\0\0\0\0\0\0{}");
    let weights = |name: &str, tensors: &str, data: usize| {
        let mut bytes = (tensors.len() as u64).to_le_bytes().to_vec();
        bytes.extend(tensors.as_bytes());
        bytes.resize(bytes.len() + data, 0);
        write(here, name, bytes)
    };
    let strange = weights(
        "strange.safetensors",
        r#"{"w":{"dtype":"Q99","shape":[2,2],"data_offsets":[0,4]}}"#,
        4,
    );
    let overlap = weights(
        "overlap.safetensors",
        r#"{"a":{"dtype":"U8","shape":[2,2],"data_offsets":[0,4]},
            "b":{"dtype":"U8","shape":[2,2],"data_offsets":[2,6]}}"#,
        6,
    );
    let table = write(here, "outcomes.csv", "layer,model,probability\n*,*,2\n");
    let edge =
        write(here, "edge.toml", "[[model]]\nname = \"a\"\nload_ms = 1\nload_gb = 1\nrun = []\n");
    let said: Vec<String> = [
        &["fleet", "share", "resnet-49"][..],
        &["fleet", "share", text(&cut)],
        &["fleet", "share", text(&strange)],
        &["fleet", "share", text(&overlap)],
        &["fleet", "share", "llama-3-8b", "--classes", "2"],
        &["fleet", "share", "vgg-16", "vgg-19", "--accuracy", text(&table)],
        &["fleet", "share", "vgg-16", "vgg-19", "--accuracy", "nowhere.csv"],
        &["fleet", "share", "vgg-16", "vgg-19", "--accuracy", "0.5", "--epoch-time", "vgg-18=3s"],
        &["fleet", "share", "vgg-16", "vgg-19", "--accuracy", "0.5", "--epoch-time", "vgg-19=3s"],
        &["fleet", "edge", text(&edge)],
    ]
    .iter()
    .map(|arguments| complaint(arguments, here))
    .collect();
    insta::assert_snapshot!("fleet_share_mistakes", said.join("\n"));
}
