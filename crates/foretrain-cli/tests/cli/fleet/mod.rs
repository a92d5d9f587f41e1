//! `fleet`: pages, schemas, mistakes.

mod audit;
mod features;
mod no;
mod open;
mod schedule;
mod schedule_says;
mod share;
mod steps;
mod utilisation;

use serde_json::Value;

use crate::support::{answer, misfits};

/// A page, held within its width, and its JSON, held against its schema.
fn page(schema: &str, arguments: &[&str]) -> (String, Value) {
    let page = answer(arguments);
    let widest = page.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{page}");
    let published: Value = serde_json::from_str(&answer(&["schema", schema])).expect("JSON");
    let document: Value =
        serde_json::from_str(&answer(&[arguments, &["--json"]].concat())).expect("JSON");
    let found = misfits(&document, &published, &published, "$");
    assert!(found.is_empty(), "{found:#?}");
    assert_eq!(document["schema"], format!("foretrain/{schema}/1"));
    (page, document)
}
