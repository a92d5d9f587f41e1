//! Any change reads back from its text; no text makes the readers panic.

use foretrain_core::{Bytes, DType, Nanos};
use foretrain_graph::{Glob, NodeKind, Query};
use proptest::prelude::*;

use super::*;

fn query() -> impl Strategy<Value = Query> {
    let text = "[ -~\u{e9}]{0,6}";
    let leaf = prop_oneof![
        Just(Query::All),
        prop::sample::select(NodeKind::ALL).prop_map(Query::Kind),
        text.prop_map(|t| Query::name(&t)),
        text.prop_map(|t| Query::module(&t)),
        text.prop_map(Query::HasAttribute),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(Query::not),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Query::And),
            prop::collection::vec(inner, 2..4).prop_map(Query::Or),
        ]
    })
}

fn change() -> impl Strategy<Value = Change> {
    let factor = || (0.001..1000.0).prop_map(|factor: f64| (factor * 1e3).round() / 1e3);
    prop_oneof![
        (query(), factor()).prop_map(|(q, f)| Change::Scale(q, f)),
        (query(), 0_i64..1 << 40).prop_map(|(q, t)| Change::Set(q, Nanos::from_nanos(t))),
        query().prop_map(Change::Remove),
        factor().prop_map(Change::Bandwidth),
        factor().prop_map(Change::Nic),
        factor().prop_map(Change::Latency),
        factor().prop_map(Change::Batch),
        factor().prop_map(Change::Input),
        factor().prop_map(Change::FasterHost),
        "[a-z0-9./#-]{1,12}".prop_map(Change::Cluster),
        "[a-z0-9-]{1,12}".prop_map(Change::Device),
        (1_u64..1 << 50).prop_map(|bytes| Change::Buckets(Bytes::new(bytes))),
        prop::sample::select(vec!["ddp", "fuse(25MiB, first=1MiB) | compress(half)", "hsdp"])
            .prop_map(|passes| Change::Strategy(passes.into())),
        prop::sample::select(vec![DType::F32, DType::Bf16, DType::F16]).prop_map(Change::Precision),
        (any::<Option<u32>>(), any::<u32>()).prop_map(|(a, b)| Change::LoaderWorkers(a, b)),
        (1_u32..).prop_map(Change::Gpus),
        (any::<u32>(), factor()).prop_map(|(rank, f)| Change::SlowRank(rank, f)),
        "[a-zA-Z*?]{1,8}".prop_map(|glob| Change::NoSync(Glob::new(&glob))),
        Just(Change::Fuse),
        Just(Change::PerfectOverlap),
        Just(Change::NoCommunication),
        Just(Change::NoLaunchOverhead),
        Just(Change::FastestRank),
    ]
}

proptest! {
    #[test]
    fn changes_read_back(changes in prop::collection::vec(change(), 1..4)) {
        let scenario = Scenario { name: None, changes };
        let text = scenario.to_string();
        prop_assert_eq!(Scenario::parse(&text).unwrap(), scenario, "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in r#"[a-z:()!&|"\\*<>=~.,;+ x0-9\u{e9}-]{0,40}"#) {
        let _ = (Scenario::parse(&text), Axis::parse(&text), ScenarioFile::parse(&text));
    }
}

#[test]
fn the_last_of_a_kind_counts_and_factors_multiply() {
    let made = |text: &str| {
        let scenario = Scenario::parse(text).unwrap();
        scenario.made().map(ToString::to_string).collect::<Vec<_>>().join(" + ")
    };
    assert_eq!(made("precision=f16 + fuse + precision=bf16 + fuse"), "precision=bf16 + fuse");
    assert_eq!(made("batch x2 + batch x2"), "batch x2 + batch x2");
    let check = |text: &str| Scenario::parse(text).unwrap().check();
    assert!(check("bandwidth x1e-6 + nic x1e-6 + latency x0 + latency x5").is_ok());
    let error = check("bandwidth x0.000001 + fuse + bandwidth x0.000001").unwrap_err();
    assert!(error.message().contains("`bandwidth` multiply to 1e-12"), "{error}");
}

#[test]
fn messages_stay_short() {
    let deep = format!("{}kernel{} x2", "(".repeat(5_000), ")".repeat(5_000));
    let error = Change::parse(&deep).unwrap_err();
    assert!(error.to_string().len() < 500 && error.message().contains("64 levels"), "{error}");
}
