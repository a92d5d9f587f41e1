//! Whether a plan is of a described model or of a recording, and what that leaves of the options.

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
pub(super) fn subject(asked: &Search, output: &Output) -> Result<Subject> {
    let [name] = &asked.subject[..] else { return Ok(Subject::Recording) };
    let path = Path::new(name);
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
    refuse(subject, &asked.given)?;
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

/// Options that say nothing of what is planned.
fn refuse(subject: Subject, given: &[String]) -> Result<()> {
    let why = |option: &str| match subject {
        Subject::Model => of_no_use_to_a_model(option),
        Subject::Recording => of_no_use_to_a_recording(option),
    };
    let Some((option, hint)) = given.iter().find_map(|name| Some((name, why(name)?))) else {
        return Ok(());
    };
    let what = match subject {
        Subject::Model => "the description of a model",
        Subject::Recording => "a recording",
    };
    Err(InputError::new(format!("--{option} is of no use to {what}")).hint(hint).into())
}

fn of_no_use_to_a_model(option: &str) -> Option<&'static str> {
    Some(match option {
        "strategy" => "the layouts hold how replicas are synchronised: --pin zero=1 makes a choice",
        "replica-batch" => "--batch says the samples of a step",
        "recorded-on" | "step-time" | "gradient-bytes" | "role" | "strict" | "steps" | "ranks"
        | "window" | "no-python" | "memory-cap" => "it says how a recording is read",
        _ => return None,
    })
}

fn of_no_use_to_a_recording(option: &str) -> Option<&'static str> {
    Some(match option {
        "batch" => {
            "each replica keeps its recorded batch; --replica-batch says how many samples it is"
        }
        "sequence" | "target-sequence" | "lora" | "expert-imbalance" | "optimizer" => {
            "it is as recorded; name a model to plan with another"
        }
        "precision" => {
            "it is as recorded; foretrain whatif --change precision=bf16 asks for another"
        }
        "software"
        | "overlap-tensor"
        | "no-overlap-gradients"
        | "no-flash-attention"
        | "cuda-graphs"
        | "reduce-in" => "what ran the step is as recorded; foretrain whatif changes parts of it",
        "bucket" => "write it as a strategy: --strategy 'copies | fuse(25MiB)'",
        "pin" | "schedules" => {
            "the division of the model is as recorded; --strategy says what is tried"
        }
        "memory" => "the recording does not tell what is kept in memory",
        "tokens" | "by" => {
            "the recording does not tell tokens; with --replica-batch the answer has samples/s"
        }
        "kernels" | "measured" => "the recording holds the measured times itself",
        "write-scenarios" => "scenarios are of described models",
        _ => return None,
    })
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
