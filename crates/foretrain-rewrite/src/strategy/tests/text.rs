//! Strategies as they are written.

use super::*;
use crate::strategy::{Draft, Pass, PassKind, Stage, Written};

fn error(text: &str) -> (String, String) {
    let error = Registry::builtin().parse(text).unwrap_err();
    (error.message().to_owned(), error.hints().first().cloned().unwrap_or_default())
}

#[test]
fn presets_and_passes_parse() {
    let registry = Registry::builtin();
    for preset in registry.presets() {
        let strategy = registry.parse(preset.name).unwrap();
        let costs = Line::new(4, 2);
        let applied = strategy.apply(&mut step(), &costs, "");
        assert!(applied.is_ok(), "{}: {applied:?}", preset.name);
    }
    assert_eq!(registry.parse("ddp | compress(half)").unwrap().text(), "ddp | compress(half)");
}

#[test]
fn mistakes_are_named() {
    assert!(error("fues(1MiB)").1.contains("fuse"));
    assert!(error("fuse(1 parsec)").0.contains("fuse"));
    assert!(error("ring | byteps").0.contains("two topologies"));
    assert!(error("zero(1) | fsdp").0.contains("two ways of sharding"));
    for twice in ["ddp | fuse(1MiB)", "accumulate(2) | ring | accumulate(3)", "fsdp | ddp"] {
        assert!(error(twice).0.contains("is there twice"), "{twice}");
    }
    assert!(error("fully-shard(shards=0)").0.contains("at least one"));
    assert!(error("fully-shard(shards=2, hybrid=true)").1.contains("either"));
    for nothing in ["compress(top-k, kept=0)", "compress(top-k, kept=1.5)"] {
        assert!(error(nothing).0.contains("above 0, at most 1"), "{nothing}");
    }
    assert!(error("ddp(1MiB)").1.contains("fuse(25MiB"));
    for text in ["", "|", "fuse(", "fuse)", "(x)", "fuse(a=1, 2)"] {
        assert!(Registry::builtin().parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_scenario_file_gives_the_same() {
    let json = r#"[{"pass": "fuse", "cap": "50kB"}, {"pass": "priority"}]"#;
    let written: Written = serde_json::from_str(json).unwrap();
    let strategy = Registry::builtin().build(&written).unwrap();
    assert_eq!(strategy.text(), "fuse(cap=50kB) | priority()");
    let text: Written = serde_json::from_str(r#""ddp""#).unwrap();
    assert_eq!(Registry::builtin().build(&text).unwrap().text(), "ddp");
}

struct Drop;

impl Pass for Drop {
    fn apply(&self, draft: &mut Draft<'_>) -> foretrain_core::Result<()> {
        draft.exchanges.clear();
        Ok(())
    }
}

#[test]
fn others_add_passes() {
    let kind = || PassKind {
        name: "drop",
        stage: Stage::Schedule,
        about: "Sends nothing.",
        source: "this test",
        parameters: &[],
        build: &|_| Ok(Box::new(Drop)),
    };
    let mut registry = Registry::builtin();
    registry.add(kind()).unwrap();
    assert!(registry.add(kind()).unwrap_err().message().contains("already"));
    let mut graph = step();
    let costs = Line::new(4, 1);
    let applied = registry.parse("ddp | drop").unwrap().apply(&mut graph, &costs, "").unwrap();
    assert!(applied.placed.is_empty());
    assert_eq!(simulated(&graph, &applied), 95.0);
}

proptest::proptest! {
    #[test]
    fn reading_never_panics(text in ".{0,80}") {
        let _ = Registry::builtin().parse(&text);
    }

    #[test]
    fn every_strategy_keeps_the_work_and_terminates(
        fuse in 1u64..80_000, part in 1_000u64..80_000, replicas in 1u32..6, per_node in 1u32..4,
        topology in 0usize..6, schedule in 0usize..4,
    ) {
        let topology = ["library", "ring(unrolled=true)", "hierarchical", "servers(count=2)",
            "push-pull(spare=1)", "tree"][topology];
        let schedule = ["", "| priority(credit=8kB)", "| after-backward", "| stale(2)"][schedule];
        let text = format!("fuse({fuse}B) | partition({part}B) | {topology} {schedule}");
        let costs = Line::new(replicas, per_node);
        let (graph, applied) = apply(&text, &costs);
        let timeline = run(&graph, &applied);
        let us = timeline.makespan().micros_f64() / f64::from(ITERATIONS);
        proptest::prop_assert!((95.0..5_000.0).contains(&us), "{} {}", text, us);
        let again = run(&graph, &applied);
        proptest::prop_assert_eq!(timeline.makespan(), again.makespan());
        // What was exchanged is all that there was.
        if topology == "library" {
            let bytes: u64 = applied.placed.iter().filter_map(|p| p.call).map(|c| c.bytes.get()).sum();
            proptest::prop_assert_eq!(bytes, if replicas > 1 { 60_000 } else { 0 });
        }
    }
}
