//! Passes, cost functions and policies that are written in Python.
//!
//! They join the registries that the engine's own are in. What lives only while a function runs (a
//! step under construction, a cluster's board) is not lent to Python, which may keep anything: the
//! function runs on a thread of its own and asks this one.

mod costs;
mod live;
mod passes;
mod policies;

use pyo3::prelude::*;

/// What registers them.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<passes::Draft>()?;
    module.add_class::<passes::Exchange>()?;
    module.add_class::<policies::Board>()?;
    module.add_function(wrap_pyfunction!(passes::install_pass, module)?)?;
    module.add_function(wrap_pyfunction!(costs::install_costs, module)?)?;
    module.add_function(wrap_pyfunction!(costs::install_interference, module)?)?;
    module.add_function(wrap_pyfunction!(policies::install_policy, module)?)?;
    module.add_function(wrap_pyfunction!(take_failure, module)?)?;
    Ok(())
}

/// The first exception of a function that had no way to report it.
static FAILURE: std::sync::Mutex<Option<PyErr>> = std::sync::Mutex::new(None);

/// Keeps an exception until the verb is done.
fn keep_failure(error: PyErr) {
    let mut failure = FAILURE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    failure.get_or_insert(error);
}

/// The exception that was kept, as a value; it is forgotten here.
#[pyfunction]
fn take_failure(py: Python<'_>) -> Option<Py<PyAny>> {
    let mut failure = FAILURE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    failure.take().map(|error| error.into_value(py).into_any())
}
