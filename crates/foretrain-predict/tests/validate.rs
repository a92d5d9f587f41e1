//! The validation suite on the published traces, where they are at hand.

use std::path::PathBuf;

use foretrain_core::stats::median;
use foretrain_predict::validate::{Row, ValidateOptions, error_percent, run, to_markdown};

fn data() -> Option<PathBuf> {
    let dir = std::env::var_os("FORETRAIN_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    dir.join("traces").is_dir().then_some(dir)
}

#[test]
fn recorded_steps_replay_and_nothing_is_lost_in_silence() {
    let Some(data) = data() else {
        println!("skipped: no validation data (set FORETRAIN_DATA)");
        return;
    };
    let options = ValidateOptions { data: data.clone(), rows: true, ..ValidateOptions::default() };
    let report = run(&options, &|_| {}).expect("data is readable");
    let names: Vec<&str> = report.sets.iter().map(|set| set.name.as_str()).collect();
    assert_eq!(
        names[..6],
        [
            "replay",
            "replay-heldout-step",
            "replay-rankwise",
            "extrapolate-one-rank",
            "extrapolate-one-timed-rank",
            "extrapolate-all-ranks"
        ]
    );
    for set in &report.sets {
        for skipped in &set.skipped {
            assert!(!skipped.why.contains("defect"), "{}: {skipped:?}", set.name);
            assert!(!skipped.why.contains("cannot be simulated"), "{}: {skipped:?}", set.name);
            assert!(!skipped.why.is_empty(), "{skipped:?}");
        }
    }
    let replay = report.sets[0].scores.expect("replayed steps");
    assert!(replay.median_ape <= 1.0 && replay.p90_ape <= 3.0, "{replay:?}");
    let rankwise = report.sets[2].scores.expect("joint replays");
    assert!(rankwise.median_ape <= 3.0, "{rankwise:?}");
    let one_rank = report.sets[3].scores.expect("lab runs");
    assert!(one_rank.n > 100 && one_rank.median_ape < 6.0, "{one_rank:?}");
    assert!(one_rank.coverage80.is_some_and(|share| share >= 80.0), "{one_rank:?}");
    let text = to_markdown(&report);
    let machine_path = data.to_string_lossy();
    assert!(!text.contains(&*machine_path) && !text.contains("/home/"), "paths of this machine");
    assert_eq!(text, to_markdown(&run(&options, &|_| {}).expect("again")), "not deterministic");
}

/// The aims that are met; docs/validation.md has all figures and the aims that are not.
#[test]
fn collectives_are_predicted_as_well_as_claimed() {
    let Some(data) = data() else {
        println!("skipped: no validation data (set FORETRAIN_DATA)");
        return;
    };
    let sets = Some(vec!["collectives".to_owned()]);
    let options = ValidateOptions { data, sets, ..ValidateOptions::default() };
    let report = run(&options, &|_| {}).expect("data is readable");
    let set = |name: &str| {
        let set = report.sets.iter().find(|set| set.name == name).expect("a set of collectives");
        (set, set.scores.expect("rows"))
    };
    let (_, echo) = set("collectives-echo-32");
    assert!(echo.n == 46 && echo.mape <= 10.0, "{echo:?}");
    let (echo, all) = set("collectives-echo-16");
    let large = echo.groups.iter().find(|group| group.what.ends_with("from 1 MiB"));
    assert!(all.mape <= 12.0, "{all:?}");
    assert!(large.is_some_and(|group| group.scores.mape <= 6.0), "{large:?}");
    let (single, _) = set("collectives-single-node");
    assert!(single.group_median().is_some_and(|median| median <= 4.0));
    let (_, h100) = set("collectives-zero-shot-h100");
    assert!(h100.n == 1170 && h100.mape <= 20.0, "{h100:?}");
    assert!(h100.coverage80.is_some_and(|share| share >= 75.0), "{h100:?}");
    let (_, unseen) = set("collectives-unseen-gpu");
    assert!(unseen.mape <= 15.0, "{unseen:?}");
    for set in &report.sets {
        assert!(set.skipped.iter().all(|skipped| !skipped.why.contains("defect")), "{}", set.name);
    }
}

#[test]
fn an_empty_directory_has_nothing_to_score() {
    let dir = tempfile::tempdir().expect("directory");
    let options = ValidateOptions { data: dir.path().into(), ..ValidateOptions::default() };
    let error = run(&options, &|_| {}).expect_err("nothing there");
    assert!(!error.hints().is_empty(), "{error}");
}

#[test]
fn extra_directories_are_scored_beside_the_data_and_damage_is_listed() {
    let dir = tempfile::tempdir().expect("directory");
    let (data, extra) = (dir.path().join("data"), dir.path().join("unseen"));
    std::fs::create_dir_all(&data).expect("directory");
    std::fs::create_dir_all(&extra).expect("directory");
    let event = |name: &str, category: &str, start: u32, duration: u32| {
        format!(
            r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":1,"tid":1,"ts":{start},"dur":{duration}}}"#
        )
    };
    let events = [
        event("ProfilerStep#1", "user_annotation", 0, 1000),
        event("aten::mm", "cpu_op", 100, 300),
        event("ProfilerStep#2", "user_annotation", 1000, 1100),
        event("aten::mm", "cpu_op", 1100, 350),
    ];
    let trace = format!(r#"{{"traceEvents":[{}]}}"#, events.join(","));
    std::fs::write(extra.join("rank0.json"), trace).expect("file");
    std::fs::write(extra.join("notes.txt"), "not a trace").expect("file");
    let options = ValidateOptions { data, extra: vec![extra], rows: true, ..Default::default() };
    let report = run(&options, &|_| {}).expect("one trace");
    let set = report.sets.iter().find(|s| s.name == "replay" && s.on == "unseen").expect("extra");
    let scores = set.scores.expect("two steps");
    assert_eq!(scores.n, 2);
    assert!(scores.max_ape < 1e-6, "{scores:?}");
    assert_eq!(set.rows[0].group, "rank0.json");
    assert!((set.rows[1].measured - 1.1).abs() < 1e-9, "{:?}", set.rows);
    assert!(set.skipped.iter().any(|skipped| skipped.what == "notes.txt"), "{:?}", set.skipped);
}

/// What docs/scaling.md claims of steps that are built and of placements.
#[test]
fn steps_without_a_trace_are_predicted_as_well_as_claimed() {
    let Some(data) = data() else {
        println!("skipped: no validation data (set FORETRAIN_DATA)");
        return;
    };
    let sets = Some(vec!["ddp".to_owned(), "scaling".to_owned()]);
    let options = ValidateOptions { data, sets, rows: true, ..ValidateOptions::default() };
    let report = run(&options, &|_| {}).expect("data");
    for (name, least_rows, most_mape, most_median) in [
        ("ddp-hkbu", 180, 8.5, 5.5),
        ("ddp-hkbu-own-4", 180, 5.5, 4.0),
        ("ddp-hkbu-one-8", 171, 5.0, 3.6),
        ("ddp-overlap-small", 38, 4.5, 2.0),
        ("ddp-pytorch", 8, 1.0, 1.0),
        ("scaling-pollux", 6_800, 9.0, 7.5),
        ("scaling-sia", 6_800, 9.0, 6.5),
        ("scaling-elasticflow", 41, 11.0, 7.0),
        ("scaling-gavel", 165, 13.0, 12.0),
        ("scaling-muri", 16, 7.5, 5.0),
    ] {
        let set = report.sets.iter().find(|set| set.name == name).expect(name);
        let scores = set.scores.expect(name);
        assert!(scores.n >= least_rows, "{name}: {scores:?}");
        assert!(scores.mape < most_mape && scores.median_ape < most_median, "{name}: {scores:?}");
    }
    let placements = || report.sets.iter().filter(|set| set.name.starts_with("scaling-"));
    let peaks = |note: &String| note.contains("strong-scaling curves");
    assert_eq!(placements().filter(|set| set.notes.iter().any(peaks)).count(), 4);
    let errors: Vec<f64> = placements()
        .flat_map(|set| &set.rows)
        .filter_map(|row| error_percent(row.predicted, row.measured).map(f64::abs))
        .collect();
    let overall = median(&errors).expect("rows");
    assert!(overall < 6.5, "median of all placements: {overall}");
}

#[test]
fn overlapped_kernels_are_predicted_as_well_as_claimed() {
    let Some(data) = data() else {
        println!("skipped: no validation data (set FORETRAIN_DATA)");
        return;
    };
    let sets = Some(vec!["interference-traces".to_owned()]);
    let options = ValidateOptions { data, sets, rows: true, ..ValidateOptions::default() };
    let report = run(&options, &|_| {}).expect("data");
    let set = &report.sets[0];
    let (scores, none) = (set.scores.expect("rows"), set.reference.as_ref().expect("no slow-down"));
    assert!(scores.n >= 700 && scores.mape < 0.8 * none.mape, "{scores:?} {none:?}");
    // Of the time that overlapped runs take together, the mean error over recordings.
    let total_off = |predicted: fn(&Row) -> f64| {
        let files: Vec<&[Row]> = set.rows.chunk_by(|a, b| a.group == b.group).collect();
        let off = |rows: &&[Row]| {
            let sum = |time: fn(&Row) -> f64| rows.iter().map(time).sum::<f64>();
            (sum(predicted) / sum(|row| row.measured) - 1.0).abs()
        };
        files.iter().map(off).sum::<f64>() / files.len() as f64
    };
    let model = total_off(|row| row.predicted);
    let none = total_off(|row| row.reference.expect("no slow-down"));
    assert!(model < 0.06 && model < 0.5 * none, "{model} {none}");
    assert_eq!(set.notes.len(), 4, "{:?}", set.notes);
}
