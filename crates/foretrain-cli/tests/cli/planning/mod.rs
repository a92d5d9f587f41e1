//! Estimates and plans from descriptions of models.

mod errors;
mod estimate;
mod measured;
mod plan;
mod recorded;
mod scenarios;

use serde_json::Value;

use crate::support::{misfits, run};

/// A small model and a small cluster, both ours.
const MODEL: &str = "examples/plan/chat-1b.toml";
const LAB: &str = "examples/plan/lab.toml";

/// The JSON of a run with this exit code, held against its schema.
pub(crate) fn document(arguments: &[&str], code: i32) -> Value {
    let said = run(&[arguments, &["--json"]].concat());
    assert_eq!((said.code, said.err.as_str()), (code, ""), "{arguments:?}");
    let document: Value = serde_json::from_str(&said.out).expect("JSON");
    let schema: Value = serde_json::from_str(&run(&["schema", arguments[0]]).out).expect("JSON");
    let found = misfits(&document, &schema, &schema, "$");
    assert!(found.is_empty(), "{found:#?}");
    document
}

/// Arguments from a line without quotes.
pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}
