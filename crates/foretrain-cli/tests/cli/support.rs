//! Running the built command.

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use foretrain_testkit::{JobSpec, write_dir};
use serde_json::Value;

/// The traces in the repository, relative to its root.
pub(crate) const TINY: &str = "examples/ddp-tiny";

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The command, run in the root of the repository and without the surroundings' settings.
pub(crate) fn foretrain(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foretrain"));
    command.current_dir(root()).env_remove("FORETRAIN_DATA").env_remove("NO_COLOR");
    command.args(arguments);
    command
}

/// What a run said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn run(arguments: &[&str]) -> Said {
    let output = foretrain(arguments).output().expect("the command starts");
    Said {
        code: output.status.code().expect("no signal"),
        out: String::from_utf8(output.stdout).expect("UTF-8"),
        err: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// The answer of a run that succeeds and says nothing beside it.
pub(crate) fn answer(arguments: &[&str]) -> String {
    let said = run(arguments);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{arguments:?}");
    said.out
}

/// Errors in a form that does not depend on where the test runs.
pub(crate) fn complaint(arguments: &[&str], directory: &Path) -> String {
    let said = run(arguments);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{arguments:?}: {}", said.err);
    assert!(!said.err.contains("panicked"), "{}", said.err);
    said.err.replace(&directory.display().to_string(), "DIR")
}

/// A directory of generated traces.
pub(crate) fn job(spec: &JobSpec) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    write_dir(spec, directory.path(), false).expect("a job");
    let truth = directory.path().join("truth.json");
    let _ = std::fs::remove_file(truth);
    directory
}

/// A file in a directory.
pub(crate) fn write(directory: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, content).expect("can write");
    path
}

/// The exit code and the JSON of `inspect`.
pub(crate) fn inspected(path: &Path) -> (i32, Value) {
    let said = run(&["inspect", text(path), "--json"]);
    assert_eq!(said.err, "", "nothing is said beside the answer");
    (said.code, serde_json::from_str(&said.out).expect("JSON"))
}

/// The entry of a rank in a list; lists need not be sorted by rank.
pub(crate) fn of_rank(list: &Value, rank: u64) -> &Value {
    let mut entries = list.as_array().expect("a list").iter();
    entries.find(|entry| entry["rank"] == rank).expect("the rank is listed")
}

/// How often the ledger of an answer holds a finding, and its first place.
pub(crate) fn finding(answer: &Value, code: &str) -> (u64, String) {
    let findings = answer["ledger"]["findings"].as_array().expect("findings");
    let Some(found) = findings.iter().find(|finding| finding["code"] == code) else {
        return (0, String::new());
    };
    let place = found["places"][0].as_str().unwrap_or_default();
    (found["count"].as_u64().expect("a count"), place.to_owned())
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// What in `value` does not fit a JSON schema, as far as schemars uses its words.
pub(crate) fn misfits(value: &Value, schema: &Value, document: &Value, place: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.trim_start_matches("#/$defs/");
        return misfits(value, &document["$defs"][name], document, place);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let fits = choices.iter().any(|one| misfits(value, one, document, place).is_empty());
        return if fits { Vec::new() } else { vec![format!("{place}: fits no choice")] };
    }
    let mut found = Vec::new();
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let actual = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = types.iter().any(|t| *t == actual || (*t == "number" && actual == "integer"));
    if !types.is_empty() && !fits {
        found.push(format!("{place}: {actual} instead of {types:?}"));
    }
    for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(key).is_none() {
            found.push(format!("{place}: no {key}"));
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(misfits(item, &schema["items"], document, &format!("{place}[{index}]")));
    }
    for (key, member) in value.as_object().into_iter().flatten() {
        let place = format!("{place}.{key}");
        match schema["properties"].get(key) {
            Some(schema) => found.extend(misfits(member, schema, document, &place)),
            None if schema.get("additionalProperties").is_some() => {
                let schema = &schema["additionalProperties"];
                found.extend(misfits(member, schema, document, &place));
            }
            None => found.push(format!("{place}: not in the schema")),
        }
    }
    found
}
