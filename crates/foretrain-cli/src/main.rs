//! The `foretrain` command: arguments to options, a library call, a renderer.
//!
//! Exit codes: 0 answered, 1 answered "no" (nothing is wrong with the input, but what was asked
//! for does not hold), 2 bad input or usage.

mod args;
mod commands;
mod failure;
mod output;
mod progress;
mod recordings;

use std::process::ExitCode;

use failure::Failure;

fn main() -> ExitCode {
    let (common, command) = match args::parse() {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let output = output::Output::new(common);
    match commands::run(command, &output) {
        Ok(commands::Answer::Yes) => ExitCode::SUCCESS,
        Ok(commands::Answer::No) => ExitCode::from(1),
        Err(Failure::BrokenPipe) => ExitCode::SUCCESS,
        Err(Failure::Input(error)) => {
            output.error(&error);
            ExitCode::from(2)
        }
    }
}
