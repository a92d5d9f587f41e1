//! Step graphs: tables that every Arrow library takes without a copy, and editing.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use foretrain::core::Nanos;
use foretrain::graph::{Limits, NodeId, NodeSet, Query, Removal, StepGraph as Graph};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule};

use crate::errors;
use crate::plugins::LONGEST_NS;

/// The attributed graph of one training step.
#[pyclass(frozen, module = "foretrain", name = "NativeStepGraph")]
pub(crate) struct StepGraph {
    graph: Mutex<Graph>,
}

/// An Arrow table, for `pyarrow.table(...)`, `polars.DataFrame(...)` and others that take the
/// Arrow PyCapsule interface.
#[pyclass(frozen, module = "foretrain")]
pub(crate) struct Table {
    batch: RecordBatch,
}

impl StepGraph {
    pub(crate) fn new(graph: Graph) -> Self {
        Self { graph: Mutex::new(graph) }
    }

    fn lock(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn select(graph: &Graph, query: &str) -> PyResult<NodeSet> {
    let query = Query::parse(query).map_err(|error| errors::of_input(&error))?;
    Ok(graph.select(&query))
}

#[pymethods]
impl StepGraph {
    /// Reads a saved graph.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let graph = py.detach(|| Graph::load(path)).map_err(|error| errors::of_input(&error))?;
        Ok(Self::new(graph))
    }

    /// Saves it as one Parquet file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.lock().save(path)).map_err(|error| errors::of_input(&error))
    }

    /// The content of its file.
    fn file_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.lock().to_file_bytes());
        Ok(PyBytes::new(py, &bytes.map_err(|error| errors::of_input(&error))?))
    }

    /// The graph whose file has this content.
    #[staticmethod]
    fn from_file_bytes(py: Python<'_>, bytes: Vec<u8>) -> PyResult<Self> {
        let graph = py.detach(|| Graph::from_file_bytes(bytes, &Limits::default()));
        graph.map(Self::new).map_err(|error| errors::of_input(&error))
    }

    /// A copy to be changed.
    fn copy(&self) -> Self {
        Self::new(self.lock().clone())
    }

    fn nodes(&self) -> PyResult<Table> {
        let batch = self.lock().node_table().map_err(|error| errors::of_input(&error))?;
        Ok(Table { batch })
    }

    fn edges(&self) -> PyResult<Table> {
        let batch = self.lock().edge_table().map_err(|error| errors::of_input(&error))?;
        Ok(Table { batch })
    }

    /// Name, kind and device of each queue; nodes name theirs by position.
    #[getter]
    fn queues(&self) -> Vec<(String, String, Option<u32>)> {
        let graph = self.lock();
        let queues = graph.queues.iter();
        queues.map(|one| (one.name.clone(), one.kind.as_str().to_owned(), one.device)).collect()
    }

    #[getter]
    fn rank(&self) -> u32 {
        self.lock().meta.rank
    }

    #[getter]
    fn world_size(&self) -> u32 {
        self.lock().meta.world_size
    }

    #[getter]
    fn source(&self) -> String {
        self.lock().meta.source.clone()
    }

    /// Length of the longest path through one step, in ns: a lower bound of its time.
    #[getter]
    fn longest_path_ns(&self) -> PyResult<i64> {
        let path = self.lock().longest_path();
        path.map(|path| path.length.nanos())
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn node_count(&self) -> usize {
        self.lock().node_count()
    }

    fn edge_count(&self) -> usize {
        self.lock().edges().len()
    }

    /// Work of every node in ns, as bytes of int64 in the machine's order.
    fn work_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let graph = self.lock();
        let bytes: Vec<u8> =
            graph.works().iter().flat_map(|work| work.nanos().to_ne_bytes()).collect();
        PyBytes::new(py, &bytes)
    }

    /// Rows of the nodes that a query selects.
    fn select(&self, query: &str) -> PyResult<Vec<u32>> {
        let graph = self.lock();
        Ok(select(&graph, query)?.iter().map(NodeId::get).collect())
    }

    /// Multiplies the work of what a query selects; returns how many nodes that are.
    fn scale(&self, query: &str, factor: f64) -> PyResult<usize> {
        let mut graph = self.lock();
        let set = select(&graph, query)?;
        graph.scale_work(&set, factor).map_err(|error| errors::of_input(&error))?;
        Ok(set.iter().count())
    }

    /// Sets the work of one node.
    fn set_work_ns(&self, node: u32, work: i64) -> PyResult<()> {
        let mut graph = self.lock();
        let Some(id) = graph.node_ids().nth(node as usize) else {
            let count = graph.node_count();
            return Err(PyValueError::new_err(format!("no node {node}: the graph has {count}")));
        };
        if !(0..=LONGEST_NS).contains(&work) {
            let message = format!("work of {work} ns: expected 0 to {LONGEST_NS}");
            return Err(PyValueError::new_err(message));
        }
        graph.set_work(id, Nanos::from_nanos(work));
        Ok(())
    }

    /// Removes what a query selects; what came before it is followed by what came after.
    fn remove(&self, query: &str) -> PyResult<usize> {
        let mut graph = self.lock();
        let set = select(&graph, query)?;
        let count = set.iter().count();
        graph.remove_nodes(&set, Removal::Bridge);
        Ok(count)
    }
}

#[pymethods]
impl Table {
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The Arrow PyCapsule interface. Another schema cannot be asked for.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows to answer with one's own schema.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let reader: Box<dyn RecordBatchReader + Send> = Box::new(batches);
        let stream = FFI_ArrowArrayStream::new(reader);
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}
