//! Foretrain in Python: the native half of the package `foretrain`.
//!
//! *Architecture invariant: no modelling.* Verbs are those of the command, run by
//! [`foretrain_cli::ask`]; here are handles on what was read, graphs as Arrow tables, and the ways in
//! for passes, cost functions and policies that are written in Python. All that needs no speed or
//! access to memory is in Python, in `python/foretrain`.

mod ask;
mod describe;
mod errors;
mod graph;
mod job;
mod plugins;

use pyo3::prelude::*;

/// The native half of `foretrain`.
#[pymodule(gil_used = false)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<job::Job>()?;
    module.add_class::<graph::StepGraph>()?;
    module.add_class::<graph::Table>()?;
    module.add_function(wrap_pyfunction!(ask::main, module)?)?;
    module.add_function(wrap_pyfunction!(ask::ask, module)?)?;
    module.add_function(wrap_pyfunction!(ask::read, module)?)?;
    module.add_function(wrap_pyfunction!(describe::verbs, module)?)?;
    module.add_function(wrap_pyfunction!(describe::describe, module)?)?;
    plugins::add_to(module)?;
    Ok(())
}
