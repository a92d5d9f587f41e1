//! Fitting interference models, and predicting with them.

use serde_json::Value;

use crate::support::{TINY, answer, complaint, misfits, root, text};

fn predict(model: &str) -> Vec<&str> {
    vec!["predict", TINY, "--on", "dgx-a100", "--gpus", "2,16", "--interference", model]
}

const PAIRS: &str = "model_a,batch_a,model_b,batch_b,gpu,slowdown_a,slowdown_b,flag\n";

/// Three families of four batch sizes each, busy to a different degree, that take turns.
fn tables() -> (String, String) {
    let (mut pairs, mut alone) = (PAIRS.to_owned(), "gpu,model,batch,step_ms\n".to_owned());
    let jobs: Vec<(String, u32, f64)> = ["cnn", "lm", "mlp"]
        .iter()
        .flat_map(|family| [8, 16, 32, 64].map(|batch| ((*family).to_owned(), batch)))
        .map(|(family, batch)| {
            let step = f64::from(batch).mul_add(0.5, family.len() as f64);
            (family, batch, step)
        })
        .collect();
    for (at, (family, batch, step)) in jobs.iter().enumerate() {
        alone += &format!("X100,{family},{batch},{step}\n");
        for (other, other_batch, other_step) in &jobs[at..] {
            let (own, theirs) = (1.0 + other_step / step, 1.0 + step / other_step);
            pairs += &format!("{family},{batch},{other},{other_batch},X100,{own},{theirs},\n");
        }
    }
    pairs += "lm,8,lm,16,X100,0,0,not_runnable\n";
    (pairs, alone)
}

#[test]
fn pairs_give_a_model_and_a_page() {
    let home = tempfile::tempdir().unwrap();
    let (pairs, alone) = (home.path().join("pairs.csv"), home.path().join("alone.csv"));
    let (table, steps) = tables();
    std::fs::write(&pairs, table).unwrap();
    std::fs::write(&alone, steps).unwrap();
    let kept = home.path().join("jobs.json");
    let fit = ["calibrate", "interference", "--pairs", text(&pairs), "--alone", text(&alone)];
    let page = answer(&fit);
    insta::assert_snapshot!("calibrate_interference_pairs", page);
    let document: Value =
        serde_json::from_str(&answer(&[&fit[..], &["--json", "-o", text(&kept)]].concat()))
            .unwrap();
    let schema: Value =
        serde_json::from_str(&answer(&["schema", "calibrate-interference"])).unwrap();
    let found = misfits(&document, &schema, &schema, "$");
    assert!(found.is_empty(), "{found:#?}");
    let overall = &document["overall"];
    assert!(overall["learned_mape"].as_f64() < overall["none_mape"].as_f64(), "{document}");
    // A model of jobs is none of kernels.
    let said = complaint(&predict(text(&kept)), home.path());
    assert!(said.contains("jobs beside jobs only"), "{said}");
    let said = complaint(&[&fit[..], &["-o", text(&kept)]].concat(), home.path());
    assert!(said.contains("there is such a file already"), "{said}");
}

#[test]
fn recordings_without_overlap_say_so() {
    let tiny = root().join(TINY);
    let said = complaint(&["calibrate", "interference", text(&tiny)], &root());
    assert!(said.contains("alone and beside communication"), "{said}");
}

#[test]
fn models_are_named_or_files() {
    for model in ["none", "analytic", "fixed", "fixed:1.2,1.1", "fixed:1.5", "pretrained"] {
        assert!(answer(&predict(model)).contains("Step"), "{model}");
    }
    for (model, advice) in [
        ("fixed:fast", "fixed:1.3,1.1"),
        ("fixed:0.5", "no slow-down"),
        ("fixed:1,2,3", "fixed:1.3,1.1"),
        ("nowhere.json", "none, analytic"),
        ("Cargo.toml", "no interference model"),
    ] {
        let said = complaint(&predict(model), &root());
        assert!(said.contains(advice), "{model}: {said}");
    }
}
