//! What goes wrong is said in a sentence, with a place and a way on, and exit code 2.

use std::path::Path;
use std::process::Stdio;

use crate::support::{TINY, complaint, foretrain, job, run, text, write};
use foretrain_testkit::JobSpec;
use foretrain_testkit::damage::Damage;

fn here() -> &'static Path {
    Path::new("/no/such/directory")
}

#[test]
fn a_missing_file() {
    let said = complaint(&["inspect", "nowhere.json"], here());
    assert_eq!(
        said,
        "error: no such file or directory (nowhere.json)\nhint: check the spelling of the path\n"
    );
}

#[test]
fn places_without_traces() {
    let directory = tempfile::tempdir().unwrap();
    let inspect = |path: &Path| complaint(&["inspect", text(path)], directory.path());
    let empty = inspect(directory.path());
    let no_match = inspect(&directory.path().join("rank*.json"));
    write(directory.path(), "package.json", "{\"name\": \"x\"}");
    let unrelated = inspect(directory.path());
    insta::assert_snapshot!("places_without_traces", [empty, no_match, unrelated].join("\n"));
}

/// An empty trace is one, whoever wrote it: nothing is wrong with it, there is just no step.
#[test]
fn a_trace_without_events() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), "empty.json", "{\"traceEvents\":[]}");
    let said = run(&["inspect", text(&path)]);
    assert_eq!((said.code, said.err.as_str()), (1, ""));
    assert!(said.out.contains("the trace holds no events"), "{}", said.out);
    let predict = ["predict", text(&path), "--on", "dgx-a100", "--gpus", "8"];
    assert!(!complaint(&predict, directory.path()).contains("another tool"));
}

#[test]
fn files_that_are_no_traces() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| write(directory.path(), name, content);
    let unrelated = write("package.json", "{\"name\": \"x\", \"version\": 1}");
    let empty = write("empty.json", "");
    let csv = write("table.csv", "a,b,c\n1,2,3\n");
    let said = [unrelated, empty, csv]
        .map(|path| complaint(&["inspect", text(&path)], directory.path()))
        .join("\n");
    insta::assert_snapshot!("no_traces", said);
}

#[test]
fn a_trace_without_work() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("empty.json");
    let event = "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"python\"}}";
    let trace =
        format!("{{\"schemaVersion\":1,\"deviceProperties\":[],\"traceEvents\":[{event}]}}");
    std::fs::write(&path, trace).unwrap();
    let said =
        complaint(&["predict", text(&path), "--on", "dgx-a100", "--gpus", "8"], directory.path());
    assert!(said.contains("hint:"), "{said}");
}

#[test]
fn names_that_are_nearly_right() {
    let predict = |on: &str| complaint(&["predict", TINY, "--on", on, "--gpus", "8"], here());
    insta::assert_snapshot!("unknown_cluster", predict("dgx-b20"));
    let said = complaint(&["hardware", "show", "a100"], here());
    assert!(said.contains("dgx-a100") && said.contains("a100-sxm4-80gb"), "{said}");
    let said = complaint(&["validate", "--data", "docs", "--set", "replya"], here());
    assert!(said.contains("did you mean \"replay\"?"), "{said}");
}

/// A misspelt cluster is reported before gigabytes are read.
#[test]
fn names_are_checked_before_files() {
    let said = complaint(&["predict", "nowhere.json", "--on", "dgx-b20", "--gpus", "8"], here());
    assert!(said.contains("no cluster"), "{said}");
}

#[test]
fn sizes_that_do_not_fit() {
    let with =
        |gpus: &str| complaint(&["predict", TINY, "--on", "perlmutter", "--gpus", gpus], here());
    assert!(with("0").contains("at least 1"));
    assert!(with("8,x").contains("'x'"));
    let said = with("1000000");
    assert!(said.contains("perlmutter"), "{said}");
}

#[test]
fn options_in_a_wrong_form() {
    let with = |option: &str, value: &str| complaint(&["inspect", TINY, option, value], here());
    assert!(with("--steps", "5").contains("has no unit"));
    assert!(with("--steps", "5ms").contains("at least two times"));
    assert!(with("--steps", "5ms,1ms").contains("each later than the last"));
    assert!(with("--window", "5ms").contains("10ms..50ms"));
    assert!(with("--ranks", "7-0").contains("counts backwards"));
    assert!(with("--ranks", "9").contains("ranks found: 0, 1"));
    assert!(with("--memory-cap", "1KiB").contains("memory cap"));
    assert!(with("--memory-cap", "lots").contains("expected a number"));
}

#[test]
fn damage_is_mended_or_refused_as_asked() {
    let job = job(&JobSpec::tiny_ddp());
    let path = job.path().join("rank0.json");
    let whole = std::fs::read(&path).unwrap();
    let damaged = Damage::ALL
        .into_iter()
        .find(|damage| !damage.keeps_json())
        .map(|damage| damage.apply(&whole).unwrap())
        .unwrap();
    std::fs::write(&path, damaged).unwrap();
    let said = run(&["inspect", text(&path)]);
    assert_eq!(said.code, 0, "{}", said.err);
    let said = complaint(&["inspect", text(&path), "--strict"], job.path());
    assert!(said.contains("rank0.json"), "{said}");
}

#[test]
fn an_answer_that_cannot_be_written() {
    let said = complaint(&["hardware", "list", "--out", "/no/such/directory/x"], here());
    assert!(said.contains("cannot write it"), "{said}");
}

#[test]
fn no_data_to_validate_on() {
    let directory = tempfile::tempdir().unwrap();
    let said = foretrain(&["validate"]).current_dir(directory.path()).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("--data DIR") && said.contains("FORETRAIN_DATA"), "{said}");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_foretrain"))
        .args(["hardware", "list", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}
