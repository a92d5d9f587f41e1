//! Many plans in parts and put together are the same as in one run.

use std::sync::atomic::AtomicBool;

use foretrain_core::Result;
use foretrain_hardware::{Catalogue, Cluster};
use foretrain_plan::scenario::{
    Outcome, Resolver, ResultRow, Scenario, Shard, Study, merge, model_hash, parse_rows, run,
    to_json_lines, to_parquet,
};
use foretrain_plan::{Software, Training, Wish};
use foretrain_workload::model::Model;
use proptest::prelude::*;

struct Builtin;

impl Resolver for Builtin {
    fn model(&mut self, name: &str) -> Result<Model> {
        foretrain_workload::load(name)
    }
    fn cluster(&mut self, name: &str) -> Result<Cluster> {
        Catalogue::builtin().cluster(name)
    }
}

fn scenario(devices: u32, pins: &str) -> Scenario {
    Scenario {
        model: "gpt-3-125m".into(),
        model_hash: None,
        cluster: "dgx-a100".into(),
        cluster_hash: None,
        devices,
        training: Training::of(32, 1024),
        software: Software::megatron(),
        pins: pins.into(),
        schedules: Vec::new(),
        memory: None,
        price: Some(1.7),
    }
}

fn study() -> Study {
    let scenarios = [
        scenario(1, "mbs=4"),
        scenario(2, "pp=2,vpp=1,mbs=1"),
        scenario(3, "dp=2"),
        scenario(4, "tp=2,mbs=2"),
        // A device that holds next to nothing.
        Scenario { memory: Some(foretrain_core::Bytes::from_mib(100)), ..scenario(8, "mbs=1") },
    ];
    Study::parse(&Study::to_json_lines(&scenarios)).expect("what is written is read")
}

fn rows_of(study: &Study, shard: &str) -> Vec<ResultRow> {
    let shard: Shard = shard.parse().expect("a part of the whole");
    let rows = run(study, shard, &mut Builtin, &AtomicBool::new(false), &|_, _| {});
    rows.expect("known names").expect("nobody stops it")
}

#[test]
fn merged_parts_are_byte_for_byte_the_whole() {
    let study = study();
    let whole = rows_of(&study, "1/1");
    let outcomes: Vec<Outcome> = whole.iter().map(|row| row.outcome).collect();
    use Outcome::{Fits, Refused, TooLarge};
    assert_eq!(outcomes, [Fits, Fits, Refused, Fits, TooLarge]);
    assert!(whole[0].step_ns.unwrap() > 0 && whole[4].memory_bytes.unwrap() > 0);
    // Through their text and in another order.
    let parts: Vec<(&str, Vec<ResultRow>)> = ["3/3", "1/3", "2/3"]
        .into_iter()
        .map(|part| (part, parse_rows(&to_json_lines(&rows_of(&study, part))).unwrap()))
        .collect();
    let merged = merge(&study, &parts).unwrap();
    assert_eq!(to_json_lines(&merged), to_json_lines(&whole));
    assert_eq!(to_parquet(&merged).unwrap(), to_parquet(&whole).unwrap());
}

#[test]
fn gaps_repeats_and_strangers_are_named() {
    let study = study();
    let whole = rows_of(&study, "1/1");
    let refuse = |files: &[(&str, Vec<ResultRow>)]| merge(&study, files).unwrap_err().to_string();
    let gap = refuse(&[("a.jsonl", whole[..1].to_vec()), ("b.jsonl", whole[3..].to_vec())]);
    assert!(gap.contains("2 of 5 rows are missing: scenario 2, 3"), "{gap}");
    let twice = refuse(&[("a.jsonl", whole.clone()), ("b.jsonl", whole[4..].to_vec())]);
    assert!(twice.contains("scenario 5 (in a.jsonl and b.jsonl)"), "{twice}");
    let mut stranger = whole.clone();
    stranger[1].study = "0123456789abcdef".into();
    let stranger = refuse(&[("a.jsonl", stranger)]);
    assert!(
        stranger.contains("another scenario file") && stranger.contains("a.jsonl"),
        "{stranger}"
    );
    let mut beyond = whole;
    beyond[4].scenario = 5;
    assert!(refuse(&[("a.jsonl", beyond)]).contains("the study has 5 scenarios"));
}

#[test]
fn a_name_that_means_something_else_is_refused() {
    let model = foretrain_workload::load("gpt-3-350m").unwrap();
    let other = Scenario { model_hash: Some(model_hash(&model)), ..scenario(1, "") };
    let study = Study::parse(&Study::to_json_lines(&[other])).unwrap();
    let stop = AtomicBool::new(false);
    let error = run(&study, Shard::WHOLE, &mut Builtin, &stop, &|_, _| {}).unwrap_err();
    assert!(error.to_string().contains("is not the one"), "{error}");
}

#[test]
fn a_stopped_part_gives_no_rows() {
    let rows = run(&study(), Shard::WHOLE, &mut Builtin, &AtomicBool::new(true), &|_, _| {});
    assert_eq!(rows.unwrap(), None);
}

#[test]
fn damaged_lines_are_named() {
    let good = Study::to_json_lines(&[scenario(1, "")]);
    let text = format!("{good}\n{}", good.replace("\"devices\":1", "\"devices\":-1"));
    let error = Study::parse(&text).unwrap_err();
    assert!(error.place().unwrap().starts_with("line 3, column"), "{error}");
    assert!(Study::parse("\n\n").unwrap_err().to_string().contains("no scenarios"));
    assert!(parse_rows("{\"study\":1}").is_err());
}

proptest! {
    #[test]
    fn no_text_is_too_odd(text in ".{0,200}") {
        let _ = Study::parse(&text);
        let _ = parse_rows(&text);
        let _ = text.parse::<Shard>();
        let _ = text.parse::<Wish>();
    }

    /// What is read of a layout reads back from what it is written as.
    #[test]
    fn layouts_read_back(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "tp=2", "pp=4", "cp=2", "ep=2", "etp=2", "vpp=3", "mbs=8", "sp", "zero=1", "fsdp", "hsdp=2",
                "schedule=zb-v", "recompute=full", "recompute=3", "offload=activations",
                "cp-method=ulysses", "stages=1/2/3/4", "order=dp-tp-cp-pp",
            ]),
            0..8,
        ),
        devices in 1_u32..257,
    ) {
        let Ok(wish) = parts.join(",").parse::<Wish>() else { return Ok(()) };
        let Ok(layout) = wish.complete(devices) else { return Ok(()) };
        let again: Wish = layout.to_string().parse().unwrap();
        let again = again.complete(devices).unwrap();
        prop_assert_eq!(again.to_string(), layout.to_string());
    }
}
