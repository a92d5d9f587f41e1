//! The verbs and their options, as Python needs them to translate keywords.

use std::sync::LazyLock;

use clap::builder::ValueRange;
use clap::{Arg, ArgAction, Command};
use pyo3::prelude::*;
use serde_json::{Value, json};

static COMMAND: LazyLock<Command> = LazyLock::new(|| {
    let mut command = foretrain_cli::command();
    command.build();
    command
});

/// Names of all verbs, as in `fleet schedule`.
#[pyfunction]
pub(crate) fn verbs() -> Vec<String> {
    walked().into_iter().map(|(name, _)| name).collect()
}

/// A verb and its options as JSON: an object of `about` and `arguments`; nothing where there is no
/// such verb. Most programs use few of the verbs, and all of them take longer than an import.
#[pyfunction]
pub(crate) fn describe(verb: &str) -> Option<String> {
    let (_, command) = walked().into_iter().find(|(name, _)| name == verb)?;
    let text = |styled: Option<&clap::builder::StyledStr>| styled.map(ToString::to_string);
    let arguments: Vec<Value> = command
        .get_arguments()
        .filter(|one| !one.is_hide_set() && !is_of_the_command(one))
        .map(argument)
        .collect();
    let about = text(command.get_long_about().or(command.get_about()));
    Some(json!({ "about": about, "arguments": arguments }).to_string())
}

fn walked() -> Vec<(String, &'static Command)> {
    let mut verbs = Vec::new();
    for verb in COMMAND.get_subcommands() {
        walk(verb, verb.get_name(), &mut verbs);
    }
    verbs
}

fn walk(command: &'static Command, path: &str, verbs: &mut Vec<(String, &'static Command)>) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let mut has_verbs = false;
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        has_verbs = true;
        walk(verb, &format!("{path} {}", verb.get_name()), verbs);
    }
    if !has_verbs {
        verbs.push((path.to_owned(), command));
    }
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
