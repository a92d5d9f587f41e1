//! Cost functions, and models of how things slow each other down.

use std::sync::Arc;

use foretrain::core::{Bytes, DType, Nanos};
use foretrain::cost::interference::{
    Activity, DeviceLimits, KernelLoad, OverlapModel, Own, SlowdownModel, TransferLoad,
};
use foretrain::cost::own::{OwnCosts, OwnNode};
use foretrain::cost::{CollectiveCall, Fabric};
use foretrain::predict::own;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::LONGEST_NS;
use super::failures::{self, keep_failure};

/// The greatest slow-down that is believed.
const SLOWEST: f64 = 1e6;

/// Two functions, either of which may be missing.
#[derive(Debug)]
struct Functions {
    name: String,
    collective: Option<Py<PyAny>>,
    node: Option<Py<PyAny>>,
}

/// Adds a cost function. Both functions take keywords and return ns, or `None` for the model's time.
#[pyfunction]
pub(crate) fn install_costs(name: String, collective: Option<Py<PyAny>>, node: Option<Py<PyAny>>) {
    own::install_costs(Arc::new(Functions { name, collective, node }));
}

/// Adds a model of interference: a function of a list of dictionaries, and of the device's limits,
/// that returns as many slow-downs.
#[pyfunction]
pub(crate) fn install_interference(name: String, function: Py<PyAny>) {
    let leaked: &'static str = Box::leak(name.into_boxed_str());
    let model: Arc<dyn SlowdownModel> = Arc::new(Slowdowns { function });
    own::install_interference(leaked, OverlapModel::Own(Own { name: leaked, model }));
}

/// A time in ns that a function returned; an exception is raised once the verb is done.
fn asked(
    function: &Py<PyAny>,
    keywords: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
) -> Option<Nanos> {
    Python::attach(|py| {
        let ask = || -> PyResult<Option<f64>> {
            let given = PyDict::new(py);
            keywords(&given)?;
            function.bind(py).call((), Some(&given))?.extract()
        };
        match failures::asked(py, ask) {
            Ok(Some(time)) if (0.0..=LONGEST_NS as f64).contains(&time) => {
                Some(Nanos::from_nanos(time.round() as i64))
            }
            Ok(Some(time)) => {
                let wrong =
                    format!("a cost function returned {time}: expected ns, 0 to {LONGEST_NS}");
                keep_failure(pyo3::exceptions::PyValueError::new_err(wrong));
                None
            }
            Ok(None) => None,
            Err(error) => {
                keep_failure(error);
                None
            }
        }
    })
}

impl OwnCosts for Functions {
    fn name(&self) -> &str {
        &self.name
    }

    fn collective(&self, call: &CollectiveCall, on: &Fabric, modelled: Nanos) -> Option<Nanos> {
        asked(self.collective.as_ref()?, |given| {
            given.set_item("kind", call.kind.as_str())?;
            given.set_item("bytes", call.bytes.get())?;
            given.set_item("ranks", on.ranks)?;
            given.set_item("nodes", on.nodes)?;
            given.set_item("modelled_ns", modelled.nanos())
        })
    }

    fn node(&self, node: &OwnNode<'_>, modelled: Nanos) -> Option<Nanos> {
        asked(self.node.as_ref()?, |given| {
            given.set_item("name", node.name)?;
            given.set_item("kind", node.kind.as_str())?;
            given.set_item("phase", node.phase.as_str())?;
            given.set_item("module", node.module)?;
            given.set_item("dtype", node.dtype.map(DType::as_str))?;
            given.set_item("flops", node.flops)?;
            given.set_item("bytes", node.moved.map(Bytes::get))?;
            given.set_item("modelled_ns", modelled.nanos())
        })
    }
}

#[derive(Debug)]
struct Slowdowns {
    function: Py<PyAny>,
}

impl SlowdownModel for Slowdowns {
    fn slowdowns(&self, device: &DeviceLimits, running: &[Activity], slowdowns: &mut [f64]) {
        let told: PyResult<Vec<f64>> = Python::attach(|py| {
            let all = PyList::empty(py);
            for activity in running {
                all.append(described(py, activity)?)?;
            }
            let limits = PyDict::new(py);
            limits.set_item("multiprocessors", device.multiprocessors)?;
            limits.set_item("memory_bandwidth", device.memory_bandwidth)?;
            failures::asked(py, || self.function.bind(py).call1((all, limits))?.extract())
        });
        match told {
            Ok(told) if told.iter().any(|slowdown| !(1.0..=SLOWEST).contains(slowdown)) => {
                keep_failure(pyo3::exceptions::PyValueError::new_err(format!(
                    "a model of interference returned {told:?}: expected how many times longer each takes, 1 to {SLOWEST}"
                )));
            }
            Ok(told) if told.len() == slowdowns.len() => slowdowns.copy_from_slice(&told),
            Ok(told) => keep_failure(pyo3::exceptions::PyValueError::new_err(format!(
                "a model of interference returned {} slow-downs for {} activities",
                told.len(),
                slowdowns.len()
            ))),
            Err(error) => keep_failure(error),
        }
    }
}

fn described<'py>(py: Python<'py>, activity: &Activity) -> PyResult<Bound<'py, PyDict>> {
    let one = PyDict::new(py);
    match activity {
        Activity::Kernel(KernelLoad { alone, class, blocks, threads, bandwidth }) => {
            one.set_item("activity", "kernel")?;
            one.set_item("alone_ns", alone.nanos())?;
            one.set_item("class", class.as_str())?;
            one.set_item("blocks", blocks)?;
            one.set_item("threads", threads)?;
            one.set_item("bandwidth", bandwidth)?;
        }
        Activity::Transfer(TransferLoad { transfer, kind, bytes, ranks, channels, moving }) => {
            one.set_item("activity", "transfer")?;
            one.set_item("alone_ns", transfer.nanos())?;
            one.set_item("kind", kind.as_str())?;
            one.set_item("bytes", bytes.map(Bytes::get))?;
            one.set_item("ranks", ranks)?;
            one.set_item("channels", channels)?;
            one.set_item("moving", moving)?;
        }
    }
    Ok(one)
}
