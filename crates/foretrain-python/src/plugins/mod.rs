//! Passes, cost functions and policies that are written in Python.
//!
//! They join the registries that the engine's own are in. What lives only while a function runs (a
//! step under construction, a cluster's board) is not lent to Python, which may keep anything: the
//! function runs on a thread of its own and asks this one.

mod costs;
mod failures;
mod live;
mod passes;
mod policies;

use pyo3::prelude::*;

pub(crate) use failures::Failures;

/// The longest time of anything that is believed, eleven days in ns: sums of many of these still fit.
pub(crate) const LONGEST_NS: i64 = 1_000_000_000_000_000;

/// What registers them.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<passes::Draft>()?;
    module.add_class::<passes::Exchange>()?;
    module.add_class::<policies::Board>()?;
    module.add_function(wrap_pyfunction!(passes::install_pass, module)?)?;
    module.add_function(wrap_pyfunction!(costs::install_costs, module)?)?;
    module.add_function(wrap_pyfunction!(costs::install_interference, module)?)?;
    module.add_function(wrap_pyfunction!(policies::install_policy, module)?)?;
    module.add_function(wrap_pyfunction!(failures::settle, module)?)?;
    Ok(())
}
