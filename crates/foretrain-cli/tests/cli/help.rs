//! Help texts, versions, completions.

use crate::support::{answer, run};

#[test]
fn help_texts() {
    for verb in [
        "inspect",
        "predict",
        "scaling",
        "whatif",
        "estimate",
        "plan",
        "collectives",
        "hardware",
        "models",
        "export",
        "validate",
    ] {
        insta::assert_snapshot!(format!("help_{verb}"), answer(&[verb, "--help"]));
    }
    let page = answer(&["calibrate", "collectives", "--help"]);
    insta::assert_snapshot!("help_calibrate_collectives", page);
    let page = answer(&["calibrate", "primitives", "--help"]);
    insta::assert_snapshot!("help_calibrate_primitives", page);
    let page = answer(&["capture", "comm", "--help"]);
    insta::assert_snapshot!("help_capture_comm", page);
    for verb in ["plan", "simulate", "morph"] {
        let page = answer(&["varuna", verb, "--help"]);
        insta::assert_snapshot!(format!("help_varuna_{verb}"), page);
    }
    for verb in [
        "audit",
        "characterise",
        "project",
        "sweep",
        "synthesize",
        "features",
        "open",
        "schedule",
        "share",
        "edge",
    ] {
        let page = answer(&["fleet", verb, "--help"]);
        insta::assert_snapshot!(format!("help_fleet_{verb}"), page);
    }
    for verb in ["train", "predict", "evaluate"] {
        let page = answer(&["fleet", "utilisation", verb, "--help"]);
        insta::assert_snapshot!(format!("help_fleet_utilisation_{verb}"), page);
    }
    insta::assert_snapshot!("help", answer(&["--help"]));
}

#[test]
fn version_and_completions() {
    assert!(answer(&["--version"]).starts_with("foretrain "));
    assert!(answer(&["completions", "bash"]).contains("_foretrain"));
    assert!(answer(&["completions", "zsh"]).contains("#compdef foretrain"));
}

#[test]
fn wrong_usage_is_code_2() {
    for arguments in [&["frob"][..], &[], &["predict"], &["schema", "fly"], &["hardware", "fly"]] {
        let said = run(arguments);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}");
        assert!(said.err.contains("Usage:") || said.err.contains("--help"), "{}", said.err);
    }
}
