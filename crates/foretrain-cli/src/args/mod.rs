//! The command line. Nothing outside this module knows how arguments are written.

mod calibrate;
mod capture;
mod collectives;
mod estimate;
mod fleet;
mod given;
mod job;
mod measured;
mod plan;
mod planning;
mod primitives;
mod read;
mod recorded;
mod scaling;
mod values;
mod varuna;
mod verbs;
mod whatif;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{CommandFactory, FromArgMatches, Parser, ValueEnum};

pub(crate) use scaling::as_argument;

use crate::commands::Command;
use crate::output::{Colour, Common};

/// Forecast distributed deep-learning training from PyTorch profiler traces.
#[derive(Debug, Parser)]
#[command(
    name = "foretrain",
    bin_name = "foretrain",
    version,
    styles = STYLES,
    max_term_width = 100,
    after_help = "Exit codes: 0 answered, 1 answered \"no\", 2 bad input or usage."
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    verb: verbs::Verb,
}

#[derive(Debug, clap::Args)]
struct Global {
    /// Print JSON with a stable schema (see `foretrain schema`).
    #[arg(long, global = true, help_heading = "Output")]
    json: bool,
    /// Write the answer to this file instead of standard output.
    #[arg(long, global = true, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Draw no progress bars. (There are none unless standard error is a terminal.)
    #[arg(long, global = true, help_heading = "Output")]
    no_progress: bool,
    /// When to use colour; NO_COLOR is respected.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Output"
    )]
    color: When,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// All verbs and their arguments, with what is said of each.
pub fn command() -> clap::Command {
    Cli::command()
}

/// What arguments (without the program's name) ask for. An `Err` is help that was asked for, or what
/// is wrong with the usage.
pub(crate) fn parse(arguments: &[OsString]) -> Result<(Common, Command), clap::Error> {
    let all = std::iter::once(OsString::from("foretrain")).chain(arguments.iter().cloned());
    let (mut cli, matches) = command()
        .try_get_matches_from(all)
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)))?;
    if let (verbs::Verb::Plan(plan), Some(matches)) =
        (&mut cli.verb, matches.subcommand_matches("plan"))
    {
        plan.given =
            [given::given::<plan::Plan>(matches), given::given::<Global>(matches)].concat();
    }
    let colour = match cli.global.color {
        When::Auto => Colour::Auto,
        When::Always => Colour::Always,
        When::Never => Colour::Never,
    };
    // The file of `calibrate` is what was calibrated; its report is beside it.
    let out = cli.global.out.filter(|_| !cli.verb.keeps_a_file());
    let common = Common { json: cli.global.json, out, progress: !cli.global.no_progress, colour };
    Ok((common, cli.verb.into()))
}

/// Every value once, as they come.
fn once<T: PartialEq>(values: Vec<Vec<T>>) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for value in values.into_iter().flatten() {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// The completion script for a shell.
fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "foretrain", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_shell_gets_a_script() {
        for shell in clap_complete::Shell::value_variants() {
            assert!(!completions(*shell).is_empty(), "{shell}");
        }
    }
}
