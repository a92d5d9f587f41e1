//! What was read, to be asked many times.

use std::sync::Arc;

use foretrain::core::Nanos;
use foretrain::predict::Recording;
use foretrain_cli::Input;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::graph::StepGraph;

/// Recordings or step graphs of a job, read and analysed once.
#[pyclass(frozen, module = "foretrain", name = "NativeJob")]
pub(crate) struct Job {
    pub(crate) input: Arc<Input>,
}

impl Job {
    pub(crate) fn new(input: Arc<Input>) -> Self {
        Self { input }
    }
}

#[pymethods]
impl Job {
    /// Ranks that were read, in order.
    #[getter]
    fn ranks(&self) -> Vec<u32> {
        match &*self.input {
            Input::Traces(job) => job.recordings.iter().map(Recording::rank).collect(),
            Input::Graphs(job) => job.graphs.iter().map(|graph| graph.meta.rank).collect(),
        }
    }

    /// Ranks of the recorded job, as far as is known.
    #[getter]
    fn world_size(&self) -> u32 {
        match &*self.input {
            Input::Traces(job) => {
                job.recordings.iter().map(Recording::world_size).max().unwrap_or(1)
            }
            Input::Graphs(job) => {
                job.graphs.iter().map(|graph| graph.meta.world_size).max().unwrap_or(1)
            }
        }
    }

    /// The file of each rank.
    #[getter]
    fn sources(&self) -> Vec<String> {
        match &*self.input {
            Input::Traces(job) => {
                job.recordings.iter().map(|one| one.trace.meta.path.clone()).collect()
            }
            Input::Graphs(job) => {
                job.graphs.iter().map(|graph| graph.meta.source.clone()).collect()
            }
        }
    }

    /// Whether profiler traces were read, and not step graphs.
    #[getter]
    fn is_recorded(&self) -> bool {
        matches!(&*self.input, Input::Traces(_))
    }

    /// Recorded step times of each rank, in ns; empty for graphs.
    #[getter]
    fn step_times_ns(&self) -> Vec<Vec<i64>> {
        match &*self.input {
            Input::Traces(job) => {
                let times = |times: Vec<Nanos>| times.into_iter().map(Nanos::nanos).collect();
                job.recordings.iter().map(|one| times(one.step_times())).collect()
            }
            Input::Graphs(_) => Vec::new(),
        }
    }

    /// The steady step of a rank as a graph of its own, or with `step` one recorded step.
    #[pyo3(signature = (rank, step=None))]
    fn graph(&self, py: Python<'_>, rank: u32, step: Option<usize>) -> PyResult<StepGraph> {
        let unknown = |what: String| Err(PyKeyError::new_err(what));
        let graph = match &*self.input {
            Input::Traces(job) => {
                let Some(one) = job.recordings.iter().find(|one| one.rank() == rank) else {
                    return unknown(format!(
                        "no rank {rank} was read; there are {:?}",
                        self.ranks()
                    ));
                };
                match step {
                    None => py.detach(|| one.steady()),
                    Some(step) => one.graphs.get(step).cloned(),
                }
            }
            Input::Graphs(job) => {
                job.graphs.iter().find(|graph| graph.meta.rank == rank && step.is_none()).cloned()
            }
        };
        match (graph, step) {
            (Some(graph), _) => Ok(StepGraph::new(graph)),
            (None, None) => unknown(format!("no step was found in what rank {rank} recorded")),
            (None, Some(step)) => unknown(format!("rank {rank} recorded no step number {step}")),
        }
    }
}
