//! Rows as steps that other verbs read.

use serde_json::Value;

use super::page;
use crate::support::{answer, complaint, run, text, write};

const FEATURES: &str = "examples/fleet/features.csv";

/// Milliseconds of a step at each size.
fn predicted(graph: &str, gpus: &str) -> Vec<f64> {
    let arguments = ["predict", graph, "--on=dgx-1-v100", "--gpus", gpus, "--json"];
    let found: Value = serde_json::from_str(&answer(&arguments)).expect("JSON");
    let sizes = found["sizes"].as_array().expect("a list");
    sizes.iter().map(|size| size["step_time"]["value_ns"].as_f64().expect("a time") / 1e6).collect()
}

/// Milliseconds of a job's step without its exchange, on the machine of the study.
fn alone(flops: f64, memory: f64, input: f64) -> f64 {
    let seconds = flops / 7.7e12 + memory / 0.7e12 + input / 7e9;
    1e3 * seconds
}

#[test]
fn a_row_is_predicted_at_any_size() {
    let home = tempfile::tempdir().unwrap();
    let graph = home.path().join("step.graph");
    for (row, expected) in [
        ("tagger", alone(4.1e11, 2.6e10, 1.9e7)),
        ("search", alone(2.2e11, 5.1e10, 6.0e7)),
        ("ads-small", alone(8.0e10, 3.0e10, 9.0e7)),
    ] {
        let said = run(&["fleet", "open", FEATURES, "--row", row, "--out", text(&graph)]);
        assert_eq!(said.code, 0, "{}", said.err);
        let times = predicted(text(&graph), "1,8,64");
        assert!((times[0] / expected - 1.0).abs() < 0.01, "{row}: {times:?}, not {expected}");
        assert!(times[1] > times[0] && times[2] > times[1], "{row}: {times:?}");
    }
    let inspected = answer(&["inspect", text(&graph)]);
    assert!(inspected.contains("gradient"), "{inspected}");
    assert_eq!(
        run(&["whatif", text(&graph), "--on=dgx-1-v100", "--gpus=8", "--change", "batch x2"]).code,
        0
    );
}

#[test]
fn the_page_says_what_was_opened() {
    let (page, found) = page("fleet-open", &["fleet", "open", FEATURES, "--row", "search"]);
    insta::assert_snapshot!("fleet_open", page);
    assert_eq!((&found["class"], &found["cnodes"]), (&"1wng".into(), &4.into()));
    let parts = found["parts"].as_array().unwrap();
    let sum: i64 = parts.iter().map(|part| part["time_ns"].as_i64().unwrap()).sum();
    assert!((sum - found["step_ns"].as_i64().unwrap()).abs() < 100, "{found}");
    assert_eq!((&parts[1]["flop"], &parts[1]["bytes"]), (&2.2e11.into(), &Value::Null));
}

#[test]
fn a_row_of_a_log_with_a_known_model_is_opened_by_the_model() {
    let home = tempfile::tempdir().unwrap();
    let log = write(
        home.path(),
        "log.csv",
        "job_id,submit_time,duration_s,num_gpus,model,batch_size\na,0,60,4,resnet-50,64\nb,0,9,1,resnet-50,\nc,5,60,1,,\n",
    );
    let page = answer(&["fleet", "open", text(&log), "--row=a"]);
    assert!(page.contains("those that the row lacks are of resnet-50"), "{page}");
    let refused = |row| complaint(&["fleet", "open", text(&log), "--row", row], home.path());
    assert!(refused("b").contains("foretrain estimate resnet-50 --on"), "{}", refused("b"));
    assert!(refused("c").contains("has no class, flops"), "{}", refused("c"));
    assert!(refused("d").contains("no job \"d\""), "{}", refused("d"));
}

/// A row says its gradients, so that nobody has to say again what its weights were counted with.
#[test]
fn gradients_of_a_model_on_one_gpu_are_those_of_its_parameters() {
    let home = tempfile::tempdir().unwrap();
    let table = home.path().join("jobs.csv");
    for precision in ["bf16", "fp32"] {
        let name = format!("--name={precision}");
        let precision = format!("--precision={precision}");
        let features = ["fleet", "features", "vgg-16", "--batch=32", &precision, &name];
        assert_eq!(run(&[&features[..], &["--append", text(&table)]].concat()).code, 0);
        let row = name.replace("--name", "--row");
        let open = answer(&["fleet", "open", text(&table), &row, "--json"]);
        let opened: Value = serde_json::from_str(&open).unwrap();
        assert_eq!(opened["gradient_bytes"], 138_357_544_u64 * 4, "{opened}");
    }
}

/// Nobody recorded the step of a row, and no answer may say so.
#[test]
fn answers_from_opened_rows_are_assumed() {
    let home = tempfile::tempdir().unwrap();
    let graph = home.path().join("step.graph");
    let open = ["fleet", "open", FEATURES, "--row=search", "--out", text(&graph)];
    assert_eq!(run(&open).code, 0);
    let on = ["--on=dgx-1-v100", "--gpus=8"];
    let predict = [&["predict", text(&graph)][..], &on].concat();
    let whatif = [&["whatif", text(&graph)][..], &on, &["--change", "batch x2"]].concat();
    for asked in [predict, whatif] {
        let page = answer(&asked);
        assert!(page.contains("made from   job search") && !page.contains("measured"), "{page}");
        assert!(page.contains("warning: nobody recorded this step"), "{page}");
        let found: Value =
            serde_json::from_str(&answer(&[&asked[..], &["--json"]].concat())).unwrap();
        let all = found["evidence"].as_array().unwrap();
        let step = all.iter().find(|one| one["what"] == "step").unwrap();
        assert_eq!((&step["what"], &step["kind"]), (&"step".into(), &"assumed".into()), "{step}");
        assert!(step["source"].to_string().contains("pai-2019 (recalled)"), "{step}");
        assert_eq!(step["relative_spread"], 0.3);
    }
}

#[test]
fn rates_that_cannot_be_are_warned_of() {
    let home = tempfile::tempdir().unwrap();
    let titles = "job_id,class,cnodes,flops,memory_access_bytes,input_bytes,weight_traffic_bytes,dense_weight_bytes,step_time_ms\n";
    let rows = "fast,1w1g,1,2.2e11,1e9,1e6,0,1e9,0.1\n\
                wide,PS/Worker,4,2.2e11,1e9,1e6,1.9e12,1e9,\n\
                fit,1w1g,1,2.2e11,1e9,1e6,0,1e9,40\n";
    let table = write(home.path(), "jobs.csv", format!("{titles}{rows}"));
    let page = |row: &str| answer(&["fleet", "open", text(&table), "--row", row]);
    let fast = page("fast");
    assert!(
        fast.contains("times the machine's peak") && fast.contains("row's step time"),
        "{fast}"
    );
    assert!(page("wide").contains("warning: gradients of 884.8 GiB"), "{}", page("wide"));
    assert!(!page("fit").contains("warning"), "{}", page("fit"));
}
