//! O14: the version in an execution trace decides nothing.

use foretrain_testkit::execution_trace::{FIVE, new_style, old_style};
use serde_json::Value;

use crate::support::{complaint, inspected, run, text, write};

/// The answer without what names the file and its version.
fn nameless(mut answer: Value) -> Value {
    answer["graphs"][0]["path"].take();
    answer["graphs"][0]["file_schema"].take();
    answer["ledger"].take();
    answer
}

#[test]
fn o14_every_known_schema_gives_the_same_graph() {
    let home = tempfile::tempdir().unwrap();
    let answers = [
        old_style("1.0.1", &FIVE),
        new_style("1.0.2-chakra.0.0.4", &FIVE, ""),
        new_style("1.1.1-chakra.0.0.4", &FIVE, ""),
    ]
    .map(|content| {
        let (code, answer) = inspected(&write(home.path(), "et.json", content));
        assert_eq!(code, 0);
        assert_eq!(answer["warnings"].as_array().unwrap().len(), 0);
        nameless(answer)
    });
    assert_eq!(answers[0]["graphs"][0]["operations"][0]["bytes"], 32);
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
}

#[test]
fn o14_an_unknown_schema_loads_with_a_warning_or_fails_with_a_way_on() {
    let home = tempfile::tempdir().unwrap();
    let extra = r#", {"name": "quantum_flux", "type": "int64", "value": 3}"#;
    let path = write(home.path(), "new.json", new_style("9.9.9", &FIVE, extra));
    let said = run(&["inspect", text(&path)]);
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    for part in
        ["warning: schema 9.9.9 is unknown", "newest known: 1.1.1-chakra.0.0.4", "\"quantum_flux\""]
    {
        assert!(said.out.contains(part), "{}", said.out);
    }
    let path = write(home.path(), "none.json", r#"{"schema": "9.9.9", "nodes": [{"ident": 1}]}"#);
    let said = complaint(&["inspect", text(&path)], home.path());
    for part in ["9.9.9", "1.1.1-chakra.0.0.4", "\nhint: "] {
        assert!(said.contains(part), "{said}");
    }
}
