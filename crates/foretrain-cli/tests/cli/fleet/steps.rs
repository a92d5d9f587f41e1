//! What steps consist of, elsewhere and on other hardware.

use super::page;
use crate::support::{answer, finding, run, text};

const FEATURES: &str = "examples/fleet/features.csv";

#[test]
fn examples() {
    for (name, schema, arguments) in [
        ("fleet_characterise", "fleet-characterise", &["fleet", "characterise", FEATURES][..]),
        ("fleet_project", "fleet-project", &["fleet", "project", FEATURES]),
        ("fleet_sweep", "fleet-sweep", &["fleet", "sweep", FEATURES]),
    ] {
        let (page, found) = page(schema, arguments);
        insta::assert_snapshot!(name, page);
        assert_eq!(found["rows"]["timed"]["used"], 9);
        assert_eq!(finding(&found, "class-of-one-server").0, 1, "sixteen are not one server");
    }
}

#[test]
fn recalled_models_are_called_recalled_everywhere() {
    for (name, schema) in [
        ("characterise", "fleet-characterise"),
        ("project", "fleet-project"),
        ("sweep", "fleet-sweep"),
    ] {
        let (page, found) = page(schema, &["fleet", name, "--preset", "pai-2019"]);
        assert!(page.contains("(recalled)"), "{page}");
        assert!(found["of"].as_str().unwrap().contains("recalled"));
        insta::assert_snapshot!(format!("fleet_preset_{name}"), page);
    }
}

#[test]
fn the_machine_is_what_was_given() {
    let arguments = [
        "fleet",
        "sweep",
        "--preset=pai-2019",
        "--ethernet=100Gbit/s",
        "--efficiency=0.5",
        "--efficiency=memory=0.9",
        "--change=ethernet=25Gbit/s+pcie=50GB/s",
        "--software=matmul=2.8",
        "--overlap",
    ];
    let (page, found) = page("fleet-sweep", &arguments);
    assert!(page.contains("with changes") && page.contains("memory 90.0 %"), "{page}");
    let change = &found["changes"][0]["times"];
    assert_eq!((&change[0]["times"], &change[1]["times"]), (&0.25.into(), &5.0.into()));
    assert_eq!(found["changes"][1]["name"], "matmul x2.8");
    assert_eq!(found["recalled_grid"], false);
}

#[test]
fn what_is_made_up_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("made-up.csv");
    let arguments = ["fleet", "synthesize", "--jobs=3000", "--seed=5", "--out", text(&table)];
    assert_eq!(answer(&arguments), "");
    for verb in ["characterise", "project", "sweep"] {
        let page = answer(&["fleet", verb, text(&table)]);
        assert!(page.contains("warning: synthetic: 3000 of 3000"), "{page}");
    }
    assert_eq!(run(&["fleet", "synthesize", "--json"]).code, 2);
}

#[test]
fn changes_that_change_nothing_are_refused() {
    for (change, said) in [
        ("--change=ethernet", "changes nothing"),
        ("--change=disk=1GB/s", "no resource"),
        ("--change=ethernet=25", "unknown unit"),
        ("--change=flops=0", "above zero"),
        ("--change=flops=1e9", "thousand times"),
        ("--software=io=2", "matmul or element-wise"),
        ("--efficiency=1.5", "part of 1"),
    ] {
        let found = run(&["fleet", "sweep", FEATURES, change]);
        assert_eq!(found.code, 2, "{change}");
        assert!(found.err.contains(said), "{change}: {}", found.err);
    }
}
