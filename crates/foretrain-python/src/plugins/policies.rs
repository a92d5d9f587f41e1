//! Scheduling policies.

use foretrain::core::Nanos;
use foretrain::fleet::schedule::policy::{Make, Named, Placer, Policy, Rhythm, Rules};
use foretrain::fleet::schedule::{self, JobId, Placement, Refused};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::failures::{self, keep_failure};
use super::live::{Line, serve};
use crate::errors::of_input;

/// What a policy asks of the board.
enum Question {
    Waiting,
    Running,
    Job(JobId),
    Idle,
    Place(JobId),
    Start(JobId, Vec<u32>),
    Stop(JobId),
}

enum Answer {
    Jobs(Vec<JobId>),
    Job(Option<Box<JobView>>),
    /// Idle GPUs of each node.
    Idle(Vec<Vec<u32>>),
    Place(Option<Vec<u32>>),
    Started(Result<(), &'static str>),
    Stopped,
}

struct JobView {
    name: String,
    gpus: u32,
    submit: Nanos,
    expected: f64,
    left: f64,
    service: f64,
    at: Vec<u32>,
    was_running: bool,
}

/// The state of a cluster while a policy decides.
#[pyclass(frozen, module = "foretrain.plugins")]
pub(crate) struct Board {
    /// Seconds since the first submission.
    #[pyo3(get)]
    now: f64,
    /// GPUs of the cluster.
    #[pyo3(get)]
    gpus: u32,
    line: Line<Question, Answer>,
}

#[pymethods]
impl Board {
    /// Numbers of the jobs that wait, in the order of their submission.
    #[getter]
    fn waiting(&self, py: Python<'_>) -> PyResult<Vec<JobId>> {
        match self.line.ask(py, Question::Waiting)? {
            Answer::Jobs(jobs) => Ok(jobs),
            _ => Ok(Vec::new()),
        }
    }

    /// Numbers of the jobs that have GPUs, in the order of their submission.
    #[getter]
    fn running(&self, py: Python<'_>) -> PyResult<Vec<JobId>> {
        match self.line.ask(py, Question::Running)? {
            Answer::Jobs(jobs) => Ok(jobs),
            _ => Ok(Vec::new()),
        }
    }

    /// What is known of a job: `name`, `gpus`, `submit` (s), `expected` and `expected_left` (s, as the
    /// scheduler believes), `service` (GPU-seconds so far), `at` (its GPUs), `was_running` (before
    /// this decision).
    fn job<'py>(&self, py: Python<'py>, id: JobId) -> PyResult<Bound<'py, PyDict>> {
        let Answer::Job(Some(job)) = self.line.ask(py, Question::Job(id))? else {
            return Err(PyValueError::new_err(format!("there is no job {id}")));
        };
        let view = PyDict::new(py);
        view.set_item("id", id)?;
        view.set_item("name", job.name)?;
        view.set_item("gpus", job.gpus)?;
        view.set_item("submit", job.submit.secs_f64())?;
        view.set_item("expected", job.expected)?;
        view.set_item("expected_left", job.left)?;
        view.set_item("service", job.service)?;
        view.set_item("at", job.at)?;
        view.set_item("was_running", job.was_running)?;
        Ok(view)
    }

    /// Idle GPUs of each node; none of one that is down.
    #[getter]
    fn idle(&self, py: Python<'_>) -> PyResult<Vec<Vec<u32>>> {
        match self.line.ask(py, Question::Idle)? {
            Answer::Idle(idle) => Ok(idle),
            _ => Ok(Vec::new()),
        }
    }

    /// Idle GPUs for a job on as few nodes as can be, or `None` if there are not enough.
    fn place(&self, py: Python<'_>, id: JobId) -> PyResult<Option<Vec<u32>>> {
        match self.line.ask(py, Question::Place(id))? {
            Answer::Place(place) => Ok(place),
            _ => Ok(None),
        }
    }

    /// Gives a waiting job its GPUs. Raises `ValueError` if that is not possible.
    fn start(&self, py: Python<'_>, id: JobId, gpus: Vec<u32>) -> PyResult<()> {
        match self.line.ask(py, Question::Start(id, gpus))? {
            Answer::Started(Err(why)) => {
                Err(PyValueError::new_err(format!("job {id} cannot start there: {why}")))
            }
            _ => Ok(()),
        }
    }

    /// Takes a running job's GPUs; it waits then.
    fn stop(&self, py: Python<'_>, id: JobId) -> PyResult<()> {
        self.line.ask(py, Question::Stop(id)).map(drop)
    }
}

/// Adds a policy. `function` takes a board and starts and stops jobs; it is asked whenever a job comes
/// or goes, or every `interval` seconds.
#[pyfunction]
#[pyo3(signature = (name, about, function, interval=None))]
pub(crate) fn install_policy(
    name: String,
    about: String,
    function: Py<PyAny>,
    interval: Option<f64>,
) -> PyResult<()> {
    let rhythm = match interval {
        None => Rhythm::Events,
        Some(seconds) if seconds.is_finite() && seconds > 0.0 => {
            Rhythm::Every(Nanos::from_nanos((seconds * 1e9).round().max(1.0) as i64))
        }
        Some(seconds) => {
            return Err(PyValueError::new_err(format!("interval={seconds}: expected seconds")));
        }
    };
    let name: &'static str = Box::leak(name.into_boxed_str());
    let make: &'static Make = Box::leak(Box::new(move |_: &Rules| {
        let function = Python::attach(|py| function.clone_ref(py));
        Box::new(Own { name, rhythm, function, failed: false }) as Box<dyn Policy + Send>
    }));
    let about = Box::leak(about.into_boxed_str());
    Named::install(name, about, make).map_err(|error| of_input(&error))
}

/// A policy that a function in Python is.
struct Own {
    name: &'static str,
    rhythm: Rhythm,
    function: Py<PyAny>,
    /// One that raised decides nothing any more; the exception is raised once the verb is done.
    failed: bool,
}

impl Policy for Own {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn rhythm(&self) -> Rhythm {
        self.rhythm
    }

    fn decide(&mut self, board: &mut schedule::Board<'_>) {
        if self.failed {
            return;
        }
        let (now, gpus) = (board.now().secs_f64(), board.cluster().gpus());
        let call = |line: Line<Question, Answer>| {
            Python::attach(|py| {
                let board = Bound::new(py, Board { now, gpus, line })?;
                failures::asked(py, || self.function.bind(py).call1((board,)).map(drop))
            })
        };
        let result: PyResult<()> = serve(call, |question| answer(board, question));
        if let Err(error) = result {
            self.failed = true;
            keep_failure(error);
        }
    }
}

fn answer(board: &mut schedule::Board<'_>, question: Question) -> Answer {
    let is_known = |board: &schedule::Board<'_>, id: JobId| (id as usize) < board.jobs().len();
    match question {
        Question::Waiting => Answer::Jobs(board.waiting().iter().copied().collect()),
        Question::Running => Answer::Jobs(board.running().iter().copied().collect()),
        Question::Job(id) if is_known(board, id) => {
            let (job, progress) = (board.job(id), board.progress(id));
            Answer::Job(Some(Box::new(JobView {
                name: job.name.clone(),
                gpus: job.gpus,
                submit: job.submit,
                expected: job.expected,
                left: board.expected_left(id),
                service: progress.service_at(board.now()),
                at: progress.at.gpus.to_vec(),
                was_running: board.was_running(id),
            })))
        }
        Question::Job(_) => Answer::Job(None),
        Question::Idle => {
            let nodes = 0..board.cluster().nodes().len() as u32;
            let idle = |node| board.occupancy().idle_gpus(board.cluster(), node).collect();
            Answer::Idle(nodes.map(idle).collect())
        }
        Question::Place(id) if is_known(board, id) => {
            let place = Placer::Consolidated.find(board, id, &schedule::Fragments::new(&[], 1));
            Answer::Place(place.map(|place| place.gpus.to_vec()))
        }
        Question::Place(_) => Answer::Place(None),
        Question::Start(id, gpus) if is_known(board, id) => {
            Answer::Started(board.start(id, Placement::of(gpus)).map_err(why))
        }
        Question::Start(..) => Answer::Started(Err("there is no such job")),
        Question::Stop(id) => {
            if is_known(board, id) {
                board.stop(id);
            }
            Answer::Stopped
        }
    }
}

fn why(refused: Refused) -> &'static str {
    match refused {
        Refused::NotWaiting => "it is not waiting",
        Refused::NoSuchGpus => "a GPU does not exist, is down, named twice or of another kind",
        Refused::WrongSize => "it asks for another number of GPUs",
        Refused::Full => "memory or parts of a GPU do not suffice",
    }
}
