//! The verbs and their options, as Python needs them to translate keywords.

use clap::builder::ValueRange;
use clap::{Arg, ArgAction, Command};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

/// All verbs with their options, as JSON: an object by verb (`fleet schedule`), of `about`
/// and `arguments`.
#[pyfunction]
pub(crate) fn describe() -> String {
    let mut verbs = Map::new();
    let mut command = foretrain_cli::command();
    command.build();
    for verb in command.get_subcommands() {
        walk(verb, verb.get_name(), &mut verbs);
    }
    Value::Object(verbs).to_string()
}

fn walk(command: &Command, path: &str, verbs: &mut Map<String, Value>) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let mut has_verbs = false;
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        has_verbs = true;
        walk(verb, &format!("{path} {}", verb.get_name()), verbs);
    }
    if has_verbs {
        return;
    }
    let text = |styled: Option<&clap::builder::StyledStr>| styled.map(ToString::to_string);
    let arguments: Vec<Value> = command
        .get_arguments()
        .filter(|one| !one.is_hide_set() && !is_of_the_command(one))
        .map(argument)
        .collect();
    let about = text(command.get_long_about().or(command.get_about()));
    verbs.insert(path.to_owned(), json!({ "about": about, "arguments": arguments }));
}

/// Whether only a command line has a use for it. Verbs that keep a file name it by `-o` too.
fn is_of_the_command(argument: &Arg) -> bool {
    match argument.get_id().as_str() {
        "help" | "version" | "json" | "no_progress" | "color" => true,
        "out" => argument.get_short().is_none(),
        _ => false,
    }
}

fn argument(argument: &Arg) -> Value {
    let takes = argument.get_num_args().unwrap_or(ValueRange::SINGLE);
    let several = takes.max_values() > 1 || matches!(argument.get_action(), ArgAction::Append);
    let names = argument.get_value_names().unwrap_or_default();
    let words: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|_| argument.get_action().takes_values())
        .map(|value| value.get_name().to_owned())
        .collect();
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy().into_owned())
        .collect();
    json!({
        "name": argument.get_id().as_str(),
        "long": argument.get_long(),
        "short": argument.get_short().map(String::from),
        "value": names.first().map(ToString::to_string),
        "flag": !argument.get_action().takes_values(),
        "several": several,
        "delimiter": argument.get_value_delimiter().map(String::from),
        "required": argument.is_required_set(),
        "defaults": defaults,
        "words": words,
        "help": argument.get_long_help().or(argument.get_help()).map(ToString::to_string),
    })
}
