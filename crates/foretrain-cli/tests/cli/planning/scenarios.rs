//! Many plans in parts.

use std::path::Path;

use super::{LAB, MODEL, words};
use crate::support::{complaint, run, text};

struct Study {
    directory: tempfile::TempDir,
}

impl Study {
    fn new() -> Self {
        let study = Self { directory: tempfile::tempdir().expect("a directory") };
        let said = run(&[
            "plan",
            MODEL,
            "--on",
            LAB,
            "--on",
            "dgx-a100",
            "--gpus",
            "1,2,4",
            "--batch",
            "16",
            "--pin",
            "cp=1,pp=1",
            "--write-scenarios",
            text(&study.path("study.jsonl")),
        ]);
        assert_eq!((said.code, said.out.as_str()), (0, ""), "{}", said.err);
        assert!(said.err.contains("6 scenarios"), "{}", said.err);
        study
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn plan(&self, arguments: &[&str], out: &str) -> Vec<u8> {
        let (file, out) = (self.path("study.jsonl"), self.path(out));
        let all =
            [&["plan", "--scenarios", text(&file)], arguments, &["--out", text(&out)]].concat();
        let said = run(&all);
        assert_eq!((said.code, said.out.as_str(), said.err.as_str()), (0, "", ""), "{all:?}");
        std::fs::read(out).expect("it is written")
    }
}

#[test]
fn parts_in_processes_of_their_own_are_the_whole() {
    let study = Study::new();
    let whole = study.plan(&[], "whole.jsonl");
    let parts: Vec<String> = (1..=4)
        .map(|part| {
            let name = format!("rows-{part}.jsonl");
            study.plan(&["--shard", &format!("{part}/4")], &name);
            text(&study.path(&name)).to_owned()
        })
        .collect();
    let merge: Vec<&str> =
        std::iter::once("--merge").chain(parts.iter().rev().map(String::as_str)).collect();
    assert_eq!(study.plan(&merge, "merged.jsonl"), whole);
    let table = study.plan(&merge, "merged.parquet");
    assert_eq!(study.plan(&[], "whole.parquet"), table);
    assert!(table.starts_with(b"PAR1"));

    // Without one of them, and with one of them twice.
    let refuse = |parts: &[&String]| {
        let file = study.path("study.jsonl");
        let mut arguments = vec!["plan", "--scenarios", text(&file), "--merge"];
        arguments.extend(parts.iter().map(|part| part.as_str()));
        complaint(&arguments, study.directory.path())
    };
    let gap = refuse(&[&parts[0], &parts[1], &parts[3]]);
    assert!(gap.contains("1 of 6 rows are missing: scenario 3"), "{gap}");
    let twice = refuse(&[&parts[0], &parts[1], &parts[2], &parts[3], &parts[1]]);
    assert!(twice.contains("scenario 2 (in DIR/rows-2.jsonl and DIR/rows-2.jsonl)"), "{twice}");

    // Rows of a study that has changed since.
    let file = study.path("study.jsonl");
    let changed =
        std::fs::read_to_string(&file).unwrap().replacen("\"devices\":1", "\"devices\":2", 1);
    std::fs::write(&file, changed).unwrap();
    let stranger = refuse(&parts.iter().collect::<Vec<_>>());
    assert!(stranger.contains("another scenario file"), "{stranger}");
}

#[test]
fn what_cannot_be_run_is_said() {
    let study = Study::new();
    let file = study.path("study.jsonl");
    let ask = |arguments: &[&str]| {
        complaint(
            &[&["plan", "--scenarios", text(&file)], arguments].concat(),
            study.directory.path(),
        )
    };
    assert!(ask(&["--shard", "0/8"]).contains("parts count from 1"));
    assert!(ask(&["--shard", "9/8"]).contains("does not exist"));
    assert!(ask(&["--out", text(&study.path("rows.csv"))]).contains(".jsonl or .parquet"));
    assert!(ask(&["--merge", text(Path::new("nowhere.jsonl"))]).contains("no such file"));
    std::fs::write(study.path("torn.jsonl"), "{\"study\":\"1\",\"scen").unwrap();
    let torn = ask(&["--merge", text(&study.path("torn.jsonl"))]);
    assert!(torn.contains("line 1, column") && torn.contains("torn.jsonl"), "{torn}");
    // The model's file is not what it was.
    let other = std::fs::read_to_string(&file).unwrap().replace(MODEL, "gpt-3-125m");
    std::fs::write(&file, other).unwrap();
    let changed = ask(&[]);
    assert!(changed.contains("is not the one") && changed.contains("scenario 1"), "{changed}");
}

/// Scenarios say what is planned; what the command line adds would be left out without a word.
#[test]
fn options_are_of_use_to_scenarios() {
    let study = Study::new();
    let file = study.path("study.jsonl");
    let refused = |line: &str, option: &str, of: &str, hint: &str| {
        let line = [&["plan"], &words(line)[..], &words(option)].concat();
        let said = complaint(&line, study.directory.path());
        let name = option.split(' ').next().unwrap();
        assert!(said.contains(&format!("{name} is of no use to {of}")), "{said}");
        assert!(said.contains(hint), "{said}");
    };
    let run = format!("--scenarios {}", text(&file));
    for option in [
        "--on dgx-h100",
        "--gpus 8",
        "--batch 64",
        "--sequence 128",
        "--target-sequence 128",
        "--precision bf16",
        "--optimizer adam",
        "--lora 16",
        "--expert-imbalance 1",
        "--software fsdp",
        "--overlap-tensor",
        "--no-overlap-gradients",
        "--attention flash-2",
        "--unbalanced-context",
        "--cuda-graphs",
        "--bucket 5MiB",
        "--reduce-in bf16",
        "--pin tp=2",
        "--memory 90%",
        "--schedules 1f1b",
        "--price 2",
    ] {
        refused(&run, option, "scenarios", "--write-scenarios FILE");
    }
    for (option, hint) in [
        ("--top 3", "one by one"),
        ("--explain tp=2", "one by one"),
        ("--tokens 1B", "a million tokens"),
        ("--strategy ddp", "described models"),
        ("--replica-batch 4", "described models"),
        ("--measured steps.toml", "--kernels"),
        ("--json", "JSON lines"),
    ] {
        refused(&run, option, "scenarios", hint);
    }
    let merge = format!("{run} --merge rows.jsonl");
    refused(&merge, "--kernels k.toml", "rows of scenarios", "where the rows are made");
    refused(&merge, "--batch 64", "rows of scenarios", "--write-scenarios FILE");
    let write = format!(
        "{MODEL} --on {LAB} --gpus 1 --batch 16 --write-scenarios {}",
        text(&study.path("other.jsonl"))
    );
    for (option, hint) in [
        ("--tokens 1B", "a million tokens"),
        ("--top 3", "one by one"),
        ("--json", "--write-scenarios"),
        ("--out rows.jsonl", "--write-scenarios"),
        ("--strategy ddp", "--pin"),
    ] {
        refused(&write, option, "writing scenarios", hint);
    }
    assert!(!study.path("other.jsonl").exists());
}

#[test]
fn numbers_that_no_scenario_has_are_refused_with_their_place() {
    let study = Study::new();
    let file = study.path("study.jsonl");
    let text_of = std::fs::read_to_string(&file).unwrap();
    for (key, value, part) in [
        ("price", "-5", None),
        ("price", "0", None),
        ("expert-imbalance", "-1.0", Some("training")),
        ("host-forward", "-1", Some("software")),
        ("host-per-step", "-1", Some("software")),
    ] {
        let mut lines: Vec<serde_json::Value> =
            text_of.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let scenario = &mut lines[1];
        let object = match part {
            Some(part) => &mut scenario[part],
            None => scenario,
        };
        assert!(object.get(key).is_some(), "{key} is there");
        object[key] = serde_json::from_str(value).unwrap();
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        std::fs::write(&file, format!("\n{}\n", lines.join("\n"))).unwrap();
        let said = complaint(&["plan", "--scenarios", text(&file)], study.directory.path());
        let place = part.map_or_else(|| key.to_owned(), |part| format!("{part}.{key}"));
        assert!(said.contains("DIR/study.jsonl"), "{said}");
        assert!(said.contains(&format!("line 3, {place}")), "{said}");
    }
}
