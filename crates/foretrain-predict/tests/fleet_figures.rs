//! Figures of layers and utilisation that the pages of the book state, where the tables are at hand.

use std::path::PathBuf;

use foretrain_predict::validate::{SetReport, ValidateOptions, run};

fn set(name: &str) -> Option<SetReport> {
    let dir = std::env::var_os("FORETRAIN_DATA").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")),
        PathBuf::from,
    );
    if !dir.join("fleet").is_dir() {
        return None;
    }
    let sets = Some(vec![name.to_owned()]);
    let options = ValidateOptions { data: dir, sets, ..ValidateOptions::default() };
    run(&options, &|_| {}).expect("data is readable").sets.pop()
}

#[test]
fn the_library_has_the_published_layers() {
    let Some(set) = set("layers-gemel") else {
        println!("skipped: no validation data (set FORETRAIN_DATA)");
        return;
    };
    let notes = set.notes.join("\n");
    assert!(notes.contains("19 of 19 models") && notes.contains("190 of 190 pairs"), "{notes}");
    let scores = set.scores.expect("tables are there");
    assert_eq!((scores.max_ape, set.skipped.len()), (0.0, 0));
}

/// RMSLE of 0.15 with the form of a perceptron held out.
#[test]
fn utilisation_is_told_of_forms_that_were_not_seen() {
    let Some(set) = set("utilisation-gpumemnet") else {
        println!("skipped: no validation data (set FORETRAIN_DATA)");
        return;
    };
    let note = set.notes.iter().find(|note| note.starts_with("form held out")).expect("a note");
    let rmsle = note.split("RMSLE ").nth(1).and_then(|rest| rest.split([',', ' ']).next());
    let rmsle: f64 = rmsle.and_then(|text| text.parse().ok()).expect("a number");
    assert!(rmsle <= 0.15, "{note}");
    let (scores, mean) = (set.scores.expect("jobs"), set.reference.expect("a mean"));
    assert!(scores.n == 6000 && scores.mape < 0.5 * mean.mape, "{scores:?} {mean:?}");
}
