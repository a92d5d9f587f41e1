//! Measured scaling: pages, schema, errors.

use serde_json::Value;

use crate::support::{answer, complaint, misfits, text, write};

const CONTRADICTION: &str = "crates/foretrain-cli/tests/cli/scaling/contradiction.toml";

#[test]
fn pages() {
    let page = answer(&["scaling", CONTRADICTION, "--ask", "128"]);
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    insta::assert_snapshot!("scaling_contradiction", page);
    let page = answer(&["scaling", "crates/foretrain-cli/tests/cli/scaling/mixed_cards.toml"]);
    insta::assert_snapshot!("scaling_ranks", page);
}

#[test]
fn json_fits_its_schema() {
    let schema: Value = serde_json::from_str(&answer(&["schema", "scaling"])).unwrap();
    for arguments in [
        &["scaling", CONTRADICTION, "--ask", "128", "--json"][..],
        &["scaling", "crates/foretrain-cli/tests/cli/scaling/mixed_cards.toml", "--json"],
        &["scaling", "--point=8=2,accumulation=2", "--point=16=9,accumulation=8", "--json"],
    ] {
        let document: Value = serde_json::from_str(&answer(arguments)).unwrap();
        let found = misfits(&document, &schema, &schema, "$");
        assert!(found.is_empty(), "{found:#?}");
        assert_eq!(document["schema"], "foretrain/scaling/1");
    }
}

/// Extreme but valid input must give finite answers.
#[test]
fn extremes_are_finite() {
    for arguments in [
        &[
            "--point=1=1ns",
            "--point=10000000=9e8",
            "--gpus-per-node=1",
            "--gradient-bytes=1",
            "--ask=2",
        ][..],
        &["--unit=img/s", "--point=1=1e-9", "--point=2=1e15", "--gpus-per-node=1"],
        &["--point=8=1s", "--point=16=1s", "--gpus-per-node=8", "--nic=1MB/s", "--parameters=1e12"],
        &["--point=4=1s,nodes=2", "--point=8=5s,nodes=4", "--ask=16"],
    ] {
        let page = answer(&[&["scaling"], arguments].concat());
        assert!(!page.contains("NaN") && !page.contains("inf "), "{page}");
        answer(&[&["scaling"], arguments, &["--json"]].concat());
    }
}

#[test]
fn errors_name_the_place_and_a_way_on() {
    let directory = tempfile::tempdir().unwrap();
    let home = directory.path();
    let toml = write(home, "runs.toml", "unit = \"img/s\"\n[[point]]\ngpu = 8\nvalue = 3\n");
    let mixed = "unit = \"img/s\"\n[[point]]\ngpus = 8\nvalue = 3\n[[point]]\ngpus = 16\nstep_time = \"2s\"\n";
    let mixed = write(home, "mixed.toml", mixed);
    let csv = write(home, "runs.csv", "gpus,step_time\n8,2s\n16,-1s\n");
    let empty = write(home, "empty.toml", "");
    let of = |arguments: &[&str]| complaint(&[&["scaling"], arguments].concat(), home);
    let pages = [
        of(&[]),
        of(&[text(&toml)]),
        of(&[text(&mixed)]),
        of(&[text(&csv)]),
        of(&[text(&empty)]),
        of(&["nowhere.toml"]),
        of(&["--point=8=3", "--point=16"]),
        of(&["--point=8=3,nodes=9"]),
        of(&["--point=8=3", "--gradient-bytes=x"]),
        of(&["--point=8=3", "--strategy=zero-4"]),
        of(&["--ranks=slow:rate=0"]),
    ];
    insta::assert_snapshot!("scaling_errors", pages.join("\n"));
}
