//! Shipped constants against what the data set gives.

use super::*;
use foretrain_plan::step::spread::Cause;
use std::path::PathBuf;

/// Sources of the data set, if it is there.
fn sources() -> Option<Sources> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data");
    let data = std::env::var_os("FORETRAIN_DATA").map_or_else(|| beside.into(), PathBuf::from);
    let root = Root::data(&data).ok().filter(|_| data.join("measured").is_dir())?;
    Some(Sources::read(&root, crate::validate::e2e::readers()))
}

#[test]
fn shipped_values_are_what_all_sources_give() {
    let Some(sources) = sources() else {
        println!("skipped: no validation data (set FORETRAIN_DATA)");
        return;
    };
    let (rates, found) = sources.rates_without(None);
    let mut wrong = Vec::new();
    for Found { generation, width, .. } in &found {
        let shipped = Sustained::shipped(generation).expect("shipped").at(*width);
        let value = rates.get(generation, *width).unwrap_or(shipped);
        if (shipped / value - 1.0).abs() > 0.02 {
            wrong.push(format!("{generation} {width:?}: {shipped} is shipped, {value:.3} found"));
        }
    }
    assert!(found.iter().any(|found| found.from.len() > 2), "few sources");
    let spreads = sources.without(None).constants.spreads;
    for cause in Cause::ALL {
        let (shipped, value) = (SHIPPED[cause], spreads[cause]);
        if (shipped / value - 1.0).abs() > 0.1 {
            wrong.push(format!("{cause:?}: {shipped} is shipped, {value:.3} found"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}\nall: {:.3?}", spreads.to_array());
}

#[test]
fn a_source_has_no_part_in_what_it_is_scored_with() {
    let Some(sources) = sources() else {
        println!("skipped: no validation data (set FORETRAIN_DATA)");
        return;
    };
    let name = "e2e-llm-dgx-cloud";
    let of = |held_out: &HeldOut| -> Vec<&'static str> {
        held_out.found.iter().flat_map(|found| found.from.iter().map(|(name, _)| *name)).collect()
    };
    assert!(of(&sources.without(None)).contains(&name));
    assert!(!of(&sources.without(Some(name))).contains(&name));
}
