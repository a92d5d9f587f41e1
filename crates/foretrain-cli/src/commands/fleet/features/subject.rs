//! What a subject of `fleet features` is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use foretrain::core::{InputError, Result as Read};
use foretrain::ingest::{FileKind, TraceFile, discover, kind_of};
use foretrain::workload::named as named_model;

pub(super) enum Subject {
    /// What a job trains: a name, or a file that describes it.
    Model,
    /// Profiler traces, Chakra files or saved graphs.
    Recording,
    /// PyTorch execution traces of a job, one per rank: they tell the model, and not when it ran.
    Executions { lowest: PathBuf, ranks: u32 },
}

/// What is named: a single execution trace is a model.
pub(super) fn subject_of(named: &str) -> Read<Subject> {
    let path = Path::new(named);
    let is_several = path.is_dir() || named.contains(['*', '?', '[']);
    if path.join("config.json").is_file() || !(is_several || path.is_file()) {
        return Ok(Subject::Model);
    }
    let files = match discover(&[path.to_path_buf()]) {
        Ok((files, _)) => files,
        Err(error) if path.is_file() && is_of_another_tool(path) => return Err(error),
        // No file of traces: what it is else is tried next. A directory that happens to bear a model's
        // name does not hide the model.
        Err(_) if path.is_file() || named_model(named).is_ok() => return Ok(Subject::Model),
        Err(error) => {
            return Err(error.hint("name files that describe models themselves, as in model.onnx"));
        }
    };
    if files.iter().any(|file| file.kind != FileKind::ExecutionTrace) {
        return Ok(Subject::Recording);
    }
    if path.is_file() { Ok(Subject::Model) } else { executions(&files, path) }
}

/// Whether a file is known for what neither records a step nor describes a model.
fn is_of_another_tool(path: &Path) -> bool {
    let known = |kind| matches!(kind, FileKind::ForeignTimeline { .. } | FileKind::CollectiveLog);
    kind_of(path).is_ok_and(known)
}

/// Why a file is no model: what it is, where it does not even have the ending of one.
pub(super) fn no_model(named: &str, error: InputError) -> InputError {
    let path = Path::new(named);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_meant = matches!(ending, "json" | "toml" | "onnx");
    match kind_of(path) {
        Ok(FileKind::NotATrace { why }) if !is_meant => {
            InputError::new(format!("this is {why}, neither a recording nor a model"))
                .in_file(path)
                .hint("recordings are profiler traces, Chakra files or saved graphs, also packed")
                .hint("models are a config.json, TOML, ONNX or an execution trace, or a name")
        }
        _ => error,
    }
}

fn executions(files: &[TraceFile], place: &Path) -> Read<Subject> {
    let ranks: BTreeSet<u32> = files.iter().filter_map(|file| file.rank).collect();
    match files.iter().min_by_key(|file| file.rank) {
        Some(only) if files.len() == 1 => {
            Ok(Subject::Executions { lowest: only.path.clone(), ranks: 1 })
        }
        Some(lowest) if ranks.len() == files.len() => Ok(Subject::Executions {
            lowest: lowest.path.clone(),
            ranks: u32::try_from(ranks.len()).unwrap_or(u32::MAX),
        }),
        first => {
            let error = InputError::new(format!(
                "{} execution traces, and not the rank of each: are they of one job?",
                files.len()
            ));
            let first = first.map_or(String::new(), |file| file.path.display().to_string());
            Err(error
                .in_file(place)
                .hint(format!("name one of them, as in {first}, with --cnodes")))
        }
    }
}
