//! Measuring a library that trains, by the Python package.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use foretrain::core::{Bytes, InputError};

use super::Wanted;
use crate::failure::Result;

const MODULE: &str = "foretrain.capture.comm";

/// Runs `python3 -m foretrain.capture.comm` with the same arguments.
pub(super) fn measure(wanted: &Wanted, backend: &str, python: Option<&Path>) -> Result<()> {
    let python = interpreter(python)?;
    let mut command = Command::new(&python);
    command.args(["-m", MODULE, "--tables", "comm", "--backend", backend]);
    let most = wanted.procs.iter().max().copied().unwrap_or_default();
    command.arg("--nproc").arg(most.to_string());
    command.arg("--ranks").arg(listed(&wanted.procs));
    command.arg("--budget").arg(format!("{}s", wanted.budget.as_secs_f64()));
    command.arg("--out").arg(&wanted.directory);
    if !wanted.sizes.is_empty() {
        let sizes: Vec<u64> = wanted.sizes.iter().copied().map(Bytes::get).collect();
        command.arg("--sizes").arg(listed(&sizes));
    }
    if !wanted.operations.is_empty() {
        let names: Vec<&str> = wanted.operations.iter().map(|one| one.as_str()).collect();
        command.arg("--ops").arg(listed(&names));
    }
    if wanted.force {
        command.arg("--overwrite");
    }
    // Standard output is for the answer; progress and errors are the package's own words.
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.map_err(|error| absent(&python, &error.to_string()))?;
    if status.success() {
        return Ok(());
    }
    Err(InputError::new(format!("the measurement by {} failed: {status}", python.display()))
        .hint("see what it said above")
        .into())
}

/// The interpreter asked for, or the first on the path that has the package.
fn interpreter(asked: Option<&Path>) -> Result<PathBuf> {
    let usual = [PathBuf::from("python3"), PathBuf::from("python")];
    let candidates = asked.map_or_else(|| usual.to_vec(), |python| vec![python.to_path_buf()]);
    let mut why = None;
    for python in candidates {
        match has_package(&python) {
            Ok(()) => return Ok(python),
            // The first is what most people mean.
            Err(error) => why = why.or(Some(error)),
        }
    }
    Err(why.unwrap_or_else(|| absent(Path::new("python3"), "not found")).into())
}

fn has_package(python: &Path) -> foretrain::core::Result<()> {
    let found = Command::new(python)
        .args(["-c", &format!("import {MODULE}")])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| absent(python, &error.to_string()))?;
    if found.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&found.stderr);
    let last = said.lines().last().unwrap_or("it failed without a word").to_owned();
    Err(InputError::new(format!("{} cannot import {MODULE}: {last}", python.display()))
        .hint("install the foretrain package for this Python, or name another with --python"))
}

fn absent(python: &Path, why: &str) -> InputError {
    InputError::new(format!("no Python to measure with: {}: {why}", python.display()))
        .hint("name one with --python, or leave --backend out to measure with plain processes")
}

fn listed<T: ToString>(values: &[T]) -> String {
    values.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
