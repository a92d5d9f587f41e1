//! Whether a plan is of a described model or of a recording.

use std::path::{Path, PathBuf};

use foretrain::core::InputError;
use foretrain::ingest::{FileKind, discover};

use super::Search;
use crate::commands::models;
use crate::failure::Result;
use crate::output::Output;

/// What is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A model by name or description.
    Model,
    /// What a job did.
    Recording,
}

/// A description of a model is taken before a recording; where a name is both, that is said.
pub(super) fn subject(asked: &Search, output: &Output<'_>) -> Result<Subject> {
    let [name] = &asked.subject[..] else { return Ok(Subject::Recording) };
    let path = Path::new(name);
    if output.held(&[path.to_path_buf()]).is_some() {
        return Ok(Subject::Recording);
    }
    let subject = if path.is_file() {
        if is_recording(path) { Subject::Recording } else { Subject::Model }
    } else if path.is_dir() || name.contains(['*', '?', '[']) {
        // A description that cannot be read is an error, and no recording.
        let is_model = path.join("config.json").is_file() || models::load(name).is_ok();
        if is_model && is_recording(path) {
            let name = path.display();
            output.note(&format!(
                "{name} is a model and a directory of recordings: the model is planned; name the \
                 files in it to plan from them"
            ));
        }
        if is_model { Subject::Model } else { Subject::Recording }
    } else if looks_like_a_trace(path) {
        let error = InputError::io(&std::io::ErrorKind::NotFound.into(), path);
        return Err(error.into());
    } else {
        Subject::Model
    };
    Ok(subject)
}

/// Whether a file, or something in a directory, is a profiler trace or a graph with times. An
/// execution trace alone describes a model.
fn is_recording(path: &Path) -> bool {
    let inputs = [PathBuf::from(path)];
    discover(&inputs).is_ok_and(|(files, _)| {
        files.iter().any(|file| {
            matches!(file.kind, FileKind::Kineto | FileKind::Chakra | FileKind::StepGraph)
        })
    })
}

fn looks_like_a_trace(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["gz", "zst", "parquet", "et"].contains(&ending) || path.components().count() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_there_are_told_from_names() {
        for name in ["traces/rank0", "rank0.json.gz", "step.parquet", "a.et"] {
            assert!(looks_like_a_trace(Path::new(name)), "{name}");
        }
        for name in ["llama-3-8b", "gpt-3-1.3b"] {
            assert!(!looks_like_a_trace(Path::new(name)), "{name}");
        }
    }
}
