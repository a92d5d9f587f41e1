//! Models that recordings describe: a PyTorch execution trace holds every operator with its shapes.
//!
//! [`load`] is the one door to all models, those of `foretrain-workload` among them; it is here
//! because readers of traces and of descriptions lie on one floor. The `walk` finds the operators of
//! one forward pass and what each stands for, `weights` tells trainable tensors from data, `layers` cuts
//! the pass where one value is handed on.

mod kind;
mod layers;
mod products;
mod walk;
mod weights;

use std::path::{Path, PathBuf};

use foretrain_core::diagnostics::{Diagnostic, Severity};
use foretrain_core::{InputError, Result};
use foretrain_ingest::execution_trace::Operator;
use foretrain_ingest::{FileKind, discover, read_operators};
use foretrain_workload::model::{Model, Sample};

pub(crate) use kind::is_view;
use walk::Pass;

/// The model that `wanted` names: a PyTorch execution trace, plain or packed, or whatever
/// [`foretrain_workload::load`] takes.
///
/// # Errors
/// If there is no such model or file, or the file describes none.
pub fn load(wanted: &str) -> Result<Model> {
    let path = Path::new(wanted);
    if !path.is_file() || !is_execution_trace(path) {
        return foretrain_workload::load(wanted);
    }
    let (operators, ledger) = read_operators(path)?;
    let mut model = of_operators(&operators, &stem(path)).map_err(|error| error.in_file(path))?;
    let grave =
        |finding: &&Diagnostic| matches!(finding.severity, Severity::Warning | Severity::Dropped);
    model.assumptions.extend(
        ledger.findings().filter(grave).map(|finding| {
            format!("in the trace, {}: {}", counted(finding.count), finding.message)
        }),
    );
    Ok(model)
}

fn counted(times: u64) -> String {
    if times == 1 { "once".into() } else { format!("{times} times") }
}

/// The file's name without the endings of its kind and packing.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    [".gz", ".zst", ".json", ".et"]
        .into_iter()
        .fold(name, |name, ending| name.strip_suffix(ending).map_or(name.clone(), str::to_owned))
}

/// Whether a file is an execution trace, by its content.
pub fn is_execution_trace(path: &Path) -> bool {
    let found = discover(&[PathBuf::from(path)]);
    found.is_ok_and(|(files, _)| files.iter().any(|file| file.kind == FileKind::ExecutionTrace))
}

/// The model whose forward pass is among the operators. `name` is that of the file.
///
/// # Errors
/// If they hold no operator of a forward pass.
pub fn of_operators(operators: &[Operator], name: &str) -> Result<Model> {
    let pass = Pass::of(operators);
    if pass.calls.is_empty() {
        return Err(InputError::new("the execution trace holds no operators of a forward pass")
            .hint("record at least one whole training step, or a forward pass, with its operators")
            .hint("operators of compiled code are not recorded: record the model without torch.compile"));
    }
    let Some(batch) = pass.batch() else {
        return Err(InputError::new("the batch of the execution trace cannot be told")
            .hint("no matrix product, convolution or embedding has recorded shapes"));
    };
    let assumptions = pass.assumptions(batch);
    let mut model =
        Model::new(name, "execution trace", Sample::Fixed, layers::blocks(pass, batch)?)?;
    model.source = format!("PyTorch execution trace with {batch} samples a pass");
    model.assumptions = assumptions;
    Ok(model)
}

#[cfg(test)]
mod tests;
