//! Reading logs of collective benchmarks that a verb needs.

use std::path::PathBuf;

use foretrain::core::{InputError, Ledger};
use foretrain::ingest::collective_log::{self, CollectiveLog, LogOptions};

use crate::failure::Result;

/// All logs at these places; it is `asker` that found none.
pub(super) fn read(
    inputs: &[PathBuf],
    options: &LogOptions,
    asker: &str,
) -> Result<(Vec<CollectiveLog>, Ledger)> {
    let paths = collective_log::logs_among(inputs)?;
    if paths.is_empty() {
        let error = InputError::new(format!("{asker} found no log of a collective benchmark"));
        let error = inputs.first().map_or(error.clone(), |first| error.in_file(first));
        return Err(error.hint(collective_log::EXPECTED).into());
    }
    read_all(&paths, options)
}

/// Every one of these logs.
pub(super) fn read_all(
    paths: &[PathBuf],
    options: &LogOptions,
) -> Result<(Vec<CollectiveLog>, Ledger)> {
    let (mut logs, mut ledger) = (Vec::new(), Ledger::new());
    for path in paths {
        let (log, found) = collective_log::read(path, options)?;
        ledger.merge(&found, (paths.len() > 1).then_some(&log.source));
        logs.push(log);
    }
    Ok((logs, ledger))
}
