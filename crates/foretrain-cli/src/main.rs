//! The `foretrain` command.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    foretrain_cli::main(&arguments, None).into()
}
