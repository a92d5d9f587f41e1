//! Jobs at hand as rows of the feature table.

use serde_json::Value;

use super::page;
use crate::support::{TINY, answer, complaint, root, run, text, write};

const SERVED: &str = "AMD-AGI+TraceLens/tests/traces/inference/sglang_prefilldecode/sglang_Qwen3-8B_prefilldecode.json.gz";

fn figure<'a>(job: &'a Value, column: &str) -> &'a Value {
    let figures = job["figures"].as_array().expect("figures");
    figures.iter().find(|figure| figure["column"] == column).expect("the column")
}

fn number(job: &Value, column: &str) -> f64 {
    figure(job, column)["value"].as_f64().unwrap_or_else(|| panic!("{column}"))
}

#[test]
fn a_recording_is_counted() {
    let (page, found) = page("fleet-features", &["fleet", "features", TINY, "--explain"]);
    insta::assert_snapshot!("fleet_features_recording", page);
    let job = &found["jobs"][0];
    assert_eq!((&job["job"], &job["source"]), (&"ddp-tiny".into(), &"recording".into()));
    assert_eq!(figure(job, "class")["word"], "AllReduce-Local");
    // Two ranks: what one sends and receives is twice the gradients, that is their weights.
    let (sent, weights) = (
        number(job, "weight_traffic_bytes"),
        number(job, "dense_weight_bytes")
            + figure(job, "embedding_weight_bytes")["value"].as_f64().unwrap_or(0.0),
    );
    assert!((weights / (1.5 * sent) - 1.0).abs() < 0.01, "{sent} {weights}");
    assert!((0.0..=1.0).contains(&number(job, "utilisation")));
}

/// ResNet-50 at 64 samples, beside what was recalled of the study.
#[test]
fn a_model_has_the_figures_that_the_study_had() {
    let arguments = [
        "fleet",
        "features",
        "resnet-50",
        "--batch=64",
        "--cnodes=8",
        "--precision=fp32",
        "--optimizer=momentum",
        "--explain",
    ];
    let (page, found) = page("fleet-features", &arguments);
    insta::assert_snapshot!("fleet_features_model", page);
    let job = &found["jobs"][0];
    for (column, recalled, within) in [
        ("flops", 1.56e12, 0.01),
        ("input_bytes", 38e6, 0.02),
        ("weight_traffic_bytes", 357e6, 0.01),
        ("dense_weight_bytes", 204e6, 0.01),
    ] {
        let found = number(job, column);
        assert!((found / recalled - 1.0).abs() < within, "{column}: {found}");
    }
    assert_eq!(figure(job, "step_time_ms")["basis"], "missing");
}

#[test]
fn rows_are_put_behind_others_and_understood() {
    let home = tempfile::tempdir().unwrap();
    let table = home.path().join("jobs.csv");
    let asked = ["fleet", "features", "--append", text(&table)];
    for more in [
        &["resnet-50", "bert-base", "--batch=8", "--cnodes=4"][..],
        &[TINY, "--batch=16", "--total-steps=900", "--name=tiny"],
    ] {
        let said = run(&[&asked[..], more].concat());
        assert_eq!((said.code, said.out.as_str()), (0, ""), "{}", said.err);
    }
    let audit = answer(&["fleet", "audit", text(&table)]);
    assert!(audit.contains("schema      features") && !audit.contains("not read"), "{audit}");
    let document: Value =
        serde_json::from_str(&answer(&["fleet", "characterise", text(&table), "--json"])).unwrap();
    assert_eq!(document["rows"]["timed"]["total"], 3);
    let other = write(home.path(), "other.csv", "id,gpus\n1,2\n");
    let refused = complaint(&["fleet", "features", TINY, "--append", text(&other)], home.path());
    assert!(refused.contains("other columns") && refused.contains("job_id"), "{refused}");
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "id,gpus\n1,2\n");
}

#[test]
fn a_device_gives_a_model_its_times() {
    let arguments = [
        "fleet",
        "features",
        "bert-base",
        "--batch=8",
        "--precision=fp32",
        "--on=dgx-1-v100",
        "--json",
    ];
    let found: Value = serde_json::from_str(&answer(&arguments)).unwrap();
    for column in ["step_time_ms", "utilisation", "gpu_memory_bytes"] {
        let found = figure(&found["jobs"][0], column);
        assert_eq!(found["basis"], "estimated");
        assert!(found["value"].as_f64() > Some(0.0), "{column}");
    }
}

/// Execution traces of all ranks tell what one of them does, and how many there are.
#[test]
fn a_directory_of_execution_traces_is_a_job() {
    const TRACED: &str = "examples/models/traced.json";
    let home = tempfile::tempdir().unwrap();
    let ranks = home.path().join("run");
    std::fs::create_dir(&ranks).unwrap();
    let traced = std::fs::read(root().join(TRACED)).unwrap();
    for rank in 0..4 {
        write(&ranks, &format!("et_rank{rank}.json"), &traced);
    }
    write(&ranks, "notes.txt", "what we did");
    let features = ["fleet", "features", text(&ranks), "--batch=64"];
    let (page, found) = page("fleet-features", &[&features[..], &["--explain"]].concat());
    assert!(page.contains("ranks with an execution trace"), "{page}");
    assert!(page.contains("note: et_rank0.json stands for all 4 ranks"), "{page}");
    let job = &found["jobs"][0];
    assert_eq!((&job["job"], number(job, "cnodes")), (&"run".into(), 4.0));
    let alone = answer(&["fleet", "features", TRACED, "--batch=64", "--cnodes=4", "--json"]);
    let alone: Value = serde_json::from_str(&alone).unwrap();
    assert_eq!(number(job, "flops"), number(&alone["jobs"][0], "flops"));
    // What the batch was, the trace knows, and says if it is not given.
    let said = complaint(&features[..3], home.path());
    assert!(said.contains("give --batch") && said.contains("samples a pass"), "{said}");
    // Two runs are not one job, and a directory without traces holds none.
    write(&ranks, "et_other.json", &traced);
    let said = complaint(&features, home.path());
    assert!(said.contains("5 execution traces, and not the rank of each"), "{said}");
    let none = tempfile::tempdir().unwrap();
    write(none.path(), "model.onnx", one_layer());
    let said = complaint(&["fleet", "features", text(none.path())], none.path());
    assert!(said.contains("name files that describe models themselves"), "{said}");
}

fn field(number: u8, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [&[number << 3 | 2, u8::try_from(content.len()).expect("short")], content].concat()
}

/// An ONNX file of one product, 16 inputs and 10 outputs, for samples of any number.
fn one_layer() -> Vec<u8> {
    let shape = [field(1, field(2, "N")), field(1, [8, 16])].concat();
    let kind = field(1, [vec![8, 1], field(2, shape)].concat());
    let input = [field(1, "x"), field(2, kind)].concat();
    let weight = [vec![8, 16, 8, 10, 16, 1], field(8, "w")].concat();
    let product = [field(1, "x"), field(1, "w"), field(2, "y"), field(4, "MatMul")].concat();
    let graph = [field(1, product), field(5, weight), field(11, input)].concat();
    [vec![8, 8], field(7, graph)].concat()
}

#[test]
fn an_onnx_file_is_a_model() {
    let home = tempfile::tempdir().unwrap();
    let file = write(home.path(), "small.onnx", one_layer());
    let (_, found) =
        page("fleet-features", &["fleet", "features", text(&file), "--batch=5", "--explain"]);
    let job = &found["jobs"][0];
    assert_eq!((&job["job"], &job["source"]), (&"small".into(), &"model".into()));
    // Forward, and backward for the weights alone: the input is not trained.
    let forward = 5.0 * 2.0 * 160.0;
    assert!([2.0 * forward, 3.0 * forward].contains(&number(job, "flops")), "{job}");
    let said = complaint(&["fleet", "features", text(&file)], home.path());
    assert!(said.contains("give --batch"), "{said}");
}

fn job_of(arguments: &[&str]) -> Value {
    let all = [&["fleet", "features"], arguments, &["--json"]].concat();
    let document: Value = serde_json::from_str(&answer(&all)).expect("JSON");
    document["jobs"][0].clone()
}

/// What one GPU does tells nothing of an exchange, so no table may take it for a job's step.
#[test]
fn one_gpu_does_not_time_a_job_of_several() {
    let job = job_of(&["bert-base", "--batch=8", "--cnodes=16", "--on=dgx-a100"]);
    for column in ["step_time_ms", "utilisation"] {
        let found = figure(&job, column);
        assert_eq!((&found["value"], &found["basis"]), (&Value::Null, &"missing".into()));
        assert!(found["how"].to_string().contains("--on dgx-a100 --gpus 16"), "{found}");
    }
    assert!(number(&job, "gpu_memory_bytes") > 1e9);
}

#[test]
fn a_recording_of_another_size_has_the_traffic_of_that_size_and_no_times() {
    let recorded = job_of(&[TINY]);
    let taken = |arguments: &[&str]| job_of(&[&[TINY], arguments].concat());
    let sent = number(&recorded, "weight_traffic_bytes");
    for (arguments, factor) in [
        // Two ranks send 2 (n-1)/n = 1 times the gradients and receive as much.
        (&["--cnodes=8"][..], 1.75),
        (&["--cnodes=16"], 1.875),
        (&["--cnodes=1"], 0.0),
    ] {
        let job = taken(arguments);
        let ratio = number(&job, "weight_traffic_bytes") / sent;
        assert!((ratio - factor).abs() < 1e-6, "{arguments:?}: {ratio}");
        for column in ["step_time_ms", "utilisation"] {
            assert_eq!(figure(&job, column)["basis"], "missing", "{arguments:?}");
        }
        assert!(job["notes"].to_string().contains("recorded on 2 GPUs"), "{job}");
    }
    let served = taken(&["--class=PS/Worker"]);
    assert_eq!(figure(&served, "weight_traffic_bytes")["basis"], "inferred");
    assert_eq!(figure(&served, "step_time_ms")["basis"], "missing");
    let same = taken(&["--cnodes=2", "--class=AllReduce-Cluster"]);
    assert_eq!(number(&same, "weight_traffic_bytes"), sent);
    assert_eq!(figure(&same, "step_time_ms")["basis"], "measured");
}

#[test]
fn files_of_another_kind_are_named() {
    let home = tempfile::tempdir().unwrap();
    let said = |name: &str, bytes: &[u8]| {
        let file = write(home.path(), name, bytes);
        complaint(&["fleet", "features", text(&file), "--batch=1"], home.path())
    };
    let found = said("jobs.csv", b"job_id,gpus,duration\na,1,2\n");
    assert!(found.contains("this is a CSV table, neither a recording nor a model"), "{found}");
    let found = said("trace.db", b"SQLite format 3\0.............");
    assert!(found.contains("this is an SQLite database"), "{found}");
    let found = said("small.toml", b"what = 1\n");
    assert!(!found.contains("neither"), "what is meant to be a model says what it lacks: {found}");
}

#[test]
fn mistakes_are_said_in_a_sentence() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, said) in [
        (&["resnet-50"][..], "give --batch"),
        (&["resnet-5O", "--batch=1"], "resnet-50"),
        (&["resnet-50", "--batch=1", "--sequence=5"], "--sequence is of no use"),
        (&["gpt-2", "--batch=1", "--sequence=5000"], "positions for 1024"),
        (&[TINY, "--on=dgx-a100"], "--on is of no use to a recording"),
        (&[TINY, "--precision=fp32"], "--precision is of no use to a recording"),
        (&[TINY, TINY, "--name=x"], "one --name for several jobs"),
        // What characterise would not time is no row.
        (&["resnet-50", "--batch=1", "--cnodes=4", "--class=1w1g"], "class 1w1g, which has one"),
        (&["resnet-50", "--batch=1", "--cnodes=16", "--class=ar-local"], "of one server of 8 GPUs"),
        (&["resnet-50", "--batch=1", "--cnodes=1", "--class=ar-cluster"], "which has 2 or more"),
        (&[TINY, "--cnodes=9", "--class=PEARL"], "of one server of 8 GPUs"),
    ] {
        let found = complaint(&[&["fleet", "features"], arguments].concat(), home.path());
        assert!(found.contains(said), "{found}");
    }
}

/// A public trace, where they are at hand.
fn public(path: &str) -> Option<std::path::PathBuf> {
    let data = std::env::var_os("FORETRAIN_DATA")
        .map_or_else(|| root().join("../shared/data"), std::path::PathBuf::from);
    let trace = data.join("traces").join(path);
    trace.exists().then_some(trace)
}

/// FBGEMM keeps tables and their momentum in flat tensors of 2.4 GiB each, of which a step reads a few
/// hundred rows.
#[test]
fn tables_of_fbgemm_are_not_read_whole() {
    let Some(trace) = public("facebookresearch+param/et_replay/tests/inputs/dlrm_kineto.extracted")
    else {
        println!("skipped: no public traces (set FORETRAIN_DATA)");
        return;
    };
    let job = job_of(&[text(&trace)]);
    let memory = figure(&job, "memory_access_bytes")["value"].as_f64();
    assert!(memory.is_none_or(|bytes| bytes < 1e9), "{memory:?}");
    assert!(number(&job, "embedding_weight_bytes") > 1e7, "{job}");
    assert_eq!(figure(&job, "embedding_touched_bytes")["basis"], "missing");
}

/// A host that launches far ahead of its device: 745 us between launches of a layer that runs for
/// several ms.
#[test]
fn a_step_takes_at_least_as_long_as_its_device_work() {
    let Some(trace) = public(SERVED) else {
        println!("skipped: no public traces (set FORETRAIN_DATA)");
        return;
    };
    let job = job_of(&[text(&trace)]);
    assert_eq!(figure(&job, "step_time_ms")["basis"], "inferred");
    // No faster than the device's 1307 TFLOPS.
    let rate = number(&job, "flops") / number(&job, "step_time_ms") * 1e3;
    assert!(rate < 1.4e15, "{rate}");
}

/// A public trace of ResNet-18 at 512 samples in bf16 counts what the architecture says.
#[test]
fn a_recorded_model_and_its_description_agree() {
    let Some(trace) =
        public("AMD-AGI+TraceLens/tests/traces/mi300/ddp_resnet18_no_pool/train_resnet18.json.gz")
    else {
        println!("skipped: no public traces (set FORETRAIN_DATA)");
        return;
    };
    let job = |subject: &str| -> Value {
        let arguments = ["fleet", "features", subject, "--batch=512", "--json"];
        let document: Value = serde_json::from_str(&answer(&arguments)).unwrap();
        document["jobs"][0].clone()
    };
    let (recorded, described) = (job(text(&trace)), job("resnet-18"));
    for (column, within) in [("flops", 0.001), ("memory_access_bytes", 0.15)] {
        let ratio = number(&recorded, column) / number(&described, column);
        assert!((ratio - 1.0).abs() < within, "{column}: {ratio}");
        assert_eq!(figure(&recorded, column)["basis"], "counted");
    }
    // Gradients are bf16 in the recording: two bytes, three times.
    let parameters = number(&recorded, "dense_weight_bytes") / 6.0;
    assert!((parameters / 11.69e6 - 1.0).abs() < 0.001, "{parameters}");
}

/// What was launched before the recording began is no work of the first step that was recorded.
#[test]
fn device_work_launched_before_the_recording_is_left_out() {
    let event = |cat: &str, name: &str, (track, at, long): (u32, u32, u32), args: &str| {
        format!(
            "{{\"ph\":\"X\",\"cat\":\"{cat}\",\"name\":\"{name}\",\"pid\":{},\"tid\":{track},\"ts\":{at},\"dur\":{long},\"args\":{{{args}}}}}",
            if track == 7 { 0 } else { 1 }
        )
    };
    let kernel = |name: &str, at: u32, launch: u32| {
        let args = format!("\"device\":0,\"stream\":7,\"correlation\":{launch}");
        event("kernel", name, (7, at, 100), &args)
    };
    let mut events = vec![kernel("ampere_sgemm_128x64_nn", 10, 1)];
    for step in [0, 1_000] {
        let name = format!("ProfilerStep#{}", 1 + step / 1_000);
        events.push(event("user_annotation", &name, (1, step, 1_000), ""));
        let shapes = "\"Input Dims\":[[64,64],[64,64]],\"Input type\":[\"float\",\"float\"]";
        events.push(event("cpu_op", "aten::mm", (1, step + 50, 40), shapes));
        let launch = 2 + step;
        let args = format!("\"correlation\":{launch}");
        events.push(event("cuda_runtime", "cudaLaunchKernel", (1, step + 60, 10), &args));
        events.push(kernel("ampere_sgemm_128x64_nn", step + 300, launch));
    }
    let home = tempfile::tempdir().unwrap();
    let trace = format!("{{\"traceEvents\":[{}]}}", events.join(","));
    let trace = write(home.path(), "trace.json", &trace);
    let arguments = ["fleet", "features", text(&trace), "--batch=1", "--json"];
    let document: Value = serde_json::from_str(&answer(&arguments)).unwrap();
    let job = &document["jobs"][0];
    assert_eq!(number(job, "flops"), 2.0 * 64.0 * 64.0 * 64.0, "{job}");
    assert_eq!(figure(job, "flops")["basis"], "counted");
}
