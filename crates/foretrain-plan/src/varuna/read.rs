//! Reading the files of a user, plain or packed with gzip, within bounds.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use foretrain_core::{InputError, Result};

use super::availability::{self, Availability};
use super::morph::machines::{self, Machine};
use super::profile::{self, LayerChoice, Profile};

/// Largest text of one file.
const MOST_BYTES: u64 = 32 << 20;

/// Reads a profile of several files: cut-points from one of them (a table of layers, if its name
/// ends in `.csv` or `.csv.gz`), messages and all-reduces from any.
///
/// # Errors
/// If a file cannot be read or is no profile, or they do not go together.
pub fn profile(paths: &[impl AsRef<Path>], choice: &LayerChoice) -> Result<Profile> {
    let mut whole = Profile { tensor_parallel: 1, ..Profile::default() };
    for path in paths {
        let path = path.as_ref();
        let text = text(path)?;
        let part = if is_table(path) {
            profile::parse_layers(&text, choice)
        } else {
            profile::parse(&text)
        };
        let merged = part.and_then(|part| whole.merge(part));
        merged.map_err(|error| error.in_file(path))?;
    }
    whole.check().map_err(|error| match paths {
        [one] => error.in_file(one),
        _ => error,
    })?;
    Ok(whole)
}

/// Reads an availability trace.
///
/// # Errors
/// As [`availability::parse`].
pub fn availability(path: &Path, options: &availability::Options) -> Result<Availability> {
    availability::parse(&text(path)?, options).map_err(|error| error.in_file(path))
}

/// Reads a table of machines.
///
/// # Errors
/// As [`machines::parse`].
pub fn machines(path: &Path) -> Result<Vec<Machine>> {
    machines::parse(&text(path)?).map_err(|error| error.in_file(path))
}

/// Whether a file is a table of layers, by its name.
pub fn is_table(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    name.strip_suffix(".gz").unwrap_or(&name).ends_with(".csv")
}

fn text(path: &Path) -> Result<String> {
    let fail = |error: &std::io::Error| InputError::io(error, path);
    let metadata = path.metadata().map_err(|error| fail(&error))?;
    if metadata.is_dir() {
        return Err(InputError::new("expected a file, found a directory").in_file(path));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(|error| fail(&error))?;
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|error| fail(&error))?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let packed = std::mem::take(&mut bytes);
        let unpacked =
            MultiGzDecoder::new(&packed[..]).take(MOST_BYTES + 1).read_to_end(&mut bytes);
        unpacked.map_err(|error| {
            InputError::new(format!("not a whole gzip file: {error}")).in_file(path)
        })?;
    }
    if bytes.len() as u64 > MOST_BYTES {
        let message = format!("more than {MOST_BYTES} bytes of text");
        return Err(InputError::new(message).in_file(path).hint("is this the right file?"));
    }
    InputError::text_of(bytes).map_err(|error| error.in_file(path))
}
