//! The `foretrain` command as a library: arguments to options, a library call, a renderer.
//!
//! [`main`] is the command. [`ask`] runs a verb within another program, which gets the answer in all
//! its forms; so every face has the same options, checks and messages.
//!
//! Exit codes: 0 answered, 1 answered "no" (nothing is wrong with the input, but what was asked
//! for does not hold), 2 bad input or usage.

mod args;
mod commands;
mod failure;
mod interrupt;
mod output;
mod progress;
mod recordings;
mod session;

use std::ffi::OsString;

pub use args::command;
pub use recordings::{Graphs, Input, Job};
pub use session::{Kept, OnThread, Program, Refused, Session, ask, read};

use failure::Failure;

/// Runs the command with these arguments (without the program's name) and returns its exit code.
/// `program` starts the command again, where that is not this process's own program: verbs that
/// measure need a second process.
pub fn main(arguments: &[OsString], program: Option<&Program>) -> u8 {
    let (common, command) = match args::parse(arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            // Nobody is left to tell if this fails.
            let _ = error.print();
            return if error.use_stderr() { 2 } else { 0 };
        }
    };
    let output = output::Output::new(common, program);
    match commands::run(command, &output) {
        Ok(commands::Answer::Yes) | Err(Failure::BrokenPipe) => 0,
        Ok(commands::Answer::No) => 1,
        Err(Failure::Input(error)) => {
            output.error(&error);
            2
        }
    }
}
