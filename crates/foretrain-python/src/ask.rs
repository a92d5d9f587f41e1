//! Running verbs: without the interpreter's lock, and so that Ctrl-C is heard.

use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foretrain_cli::{Kept, OnThread, Program, Refused, Session};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::ThreadPoolBuilder;

use crate::errors;
use crate::job::Job;
use crate::plugins::Failures;

/// How often signals are looked for. A result is not waited for longer than it takes.
const SIGNALS: Duration = Duration::from_millis(50);
/// Given to work that was told to stop, before the caller goes on without it.
const FAREWELL: Duration = Duration::from_millis(500);
/// Of threads that work; what a program's first thread usually has.
const STACK: usize = 8 << 20;

/// Runs the command with these arguments; returns its exit code. `program` starts it again.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, arguments: Vec<OsString>, program: Program) -> u8 {
    py.detach(|| foretrain_cli::main(&arguments, Some(&program)))
}

/// Runs a verb; returns its answer as a dictionary of `json`, `text`, `html`, `notes` and `holds`.
/// `held` are jobs by the names that stand for them in the arguments.
#[pyfunction]
#[pyo3(signature = (arguments, held, program))]
pub(crate) fn ask<'py>(
    py: Python<'py>,
    arguments: Vec<OsString>,
    held: Vec<(String, Py<Job>)>,
    program: Program,
) -> PyResult<Bound<'py, PyDict>> {
    let held = held.into_iter().map(|(name, job)| (name, Arc::clone(&job.get().input))).collect();
    let session = Session { held, program: Some(program), ..Session::default() };
    let kept = interruptible(py, session, move |session| foretrain_cli::ask(&arguments, session))?;
    let Kept { json, text, html, notes, holds } = kept;
    let answer = PyDict::new(py);
    answer.set_item("json", json)?;
    answer.set_item("text", text)?;
    answer.set_item("html", html)?;
    answer.set_item("notes", notes)?;
    answer.set_item("holds", holds)?;
    Ok(answer)
}

/// Reads and analyses what the arguments name, as `inspect` takes them.
#[pyfunction]
pub(crate) fn read(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<Job> {
    let read = move |session: &Session| foretrain_cli::read(&arguments, session);
    interruptible(py, Session::default(), read).map(Job::new)
}

/// Runs work on threads of its own while this one looks out for signals. On Ctrl-C the work is told
/// to stop, and left to itself if it does not soon: its result is lost. What a function of the user's
/// raised meanwhile is raised here, as it says more than the error that came of it.
fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    mut session: Session,
    work: impl FnOnce(&Session) -> Result<T, Refused> + Send + 'static,
) -> PyResult<T> {
    let failures = Failures::new()?;
    let of_call = Arc::clone(&failures);
    let enter = OnThread(Arc::new(move || of_call.enter()));
    session.on_thread = Some(enter.clone());
    let session = Arc::new(session);
    let (sender, receiver) = channel();
    let of_thread = Arc::clone(&session);
    let worker = move || {
        // Nobody listens any more after an interrupt.
        let _ = sender.send(work(&of_thread));
    };
    let threads = ThreadPoolBuilder::new()
        .thread_name(|number| format!("foretrain {number}"))
        .stack_size(STACK)
        .start_handler(move |_| (enter.0)())
        // A panic is seen by that the sender is gone.
        .panic_handler(|_| {})
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))?;
    threads.spawn(worker);
    let receiver = Mutex::new(receiver);
    let wait = |at_most: Duration| {
        py.detach(|| receiver.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(at_most))
    };
    loop {
        match wait(SIGNALS) {
            Ok(result) => {
                let result = result.map_err(errors::of_refused);
                let Some(failure) = failures.take() else { return result };
                failure.set_cause(py, result.err());
                return Err(failure);
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    session.stop.store(true, Ordering::Relaxed);
                    failures.stop(py)?;
                    let _ = wait(FAREWELL);
                    return Err(interrupt);
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err(
                    "foretrain failed within; please report what you asked for",
                ));
            }
        }
    }
}
