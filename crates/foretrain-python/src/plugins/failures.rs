//! Functions of users' while the engine works: their exceptions, and how they are ended.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::{PyKeyboardInterrupt, PyRecursionError};
use pyo3::prelude::*;

/// A verb that asks a function that asks the verb ... has as many threads as calls.
const DEEPEST: usize = 16;
/// How often the end of the last function is looked for.
const PAUSE: Duration = Duration::from_millis(5);

/// Functions of all calls that run now.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The call that this thread works for.
    static CURRENT: RefCell<Option<Arc<Failures>>> = const { RefCell::new(None) };
}

/// What a call to a verb knows of the functions that it asks.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    /// The first exception that had no way to be reported.
    first: Mutex<Option<PyErr>>,
    /// Whether functions are not to be asked any more.
    stopped: AtomicBool,
    /// Python's names of the threads that run one.
    running: Mutex<Vec<u64>>,
    /// Calls that this one is made within.
    depth: usize,
}

impl Failures {
    /// For a call that begins on this thread.
    ///
    /// # Errors
    /// If it is made within too many others.
    pub(crate) fn new() -> PyResult<Arc<Self>> {
        let depth = current().map_or(0, |outer| outer.depth + 1);
        if depth > DEEPEST {
            let message = format!("a verb within a function within a verb, {DEEPEST} times");
            return Err(PyRecursionError::new_err(message));
        }
        Ok(Arc::new(Self { depth, ..Self::default() }))
    }

    /// Makes this thread work for the call from now on.
    pub(crate) fn enter(self: &Arc<Self>) {
        CURRENT.set(Some(Arc::clone(self)));
    }

    /// The exception that was kept.
    pub(crate) fn take(&self) -> Option<PyErr> {
        locked(&self.first).take()
    }

    /// Ends functions that run, by an exception, and lets no other begin.
    pub(crate) fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.stopped.store(true, Ordering::SeqCst);
        let threads = locked(&self.running).clone();
        py.import("foretrain._interrupts")?.call_method1("end", (threads,))?;
        Ok(())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The call that this thread works for.
pub(super) fn current() -> Option<Arc<Failures>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Keeps an exception until the verb is done, which raises it.
pub(super) fn keep_failure(error: PyErr) {
    match current() {
        Some(failures) => {
            locked(&failures.first).get_or_insert(error);
        }
        // Work that no verb asked for: Python prints it.
        None => Python::attach(|py| error.write_unraisable(py, None)),
    }
}

/// Asks a function, unless its call was interrupted.
pub(super) fn asked<T>(py: Python<'_>, function: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    let Some(failures) = current() else { return function() };
    let thread: u64 = py.import("threading")?.call_method0("get_ident")?.extract()?;
    // In the list first: whoever stops the call sees this thread, or this one sees that it is stopped.
    let _running = Running::new(&failures, thread);
    if failures.stopped.load(Ordering::SeqCst) {
        return Err(PyKeyboardInterrupt::new_err("the call was interrupted"));
    }
    function()
}

/// A function that runs.
struct Running<'a> {
    failures: &'a Failures,
    thread: u64,
}

impl<'a> Running<'a> {
    fn new(failures: &'a Failures, thread: u64) -> Self {
        RUNNING.fetch_add(1, Ordering::SeqCst);
        locked(&failures.running).push(thread);
        Self { failures, thread }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut running = locked(&self.failures.running);
        if let Some(at) = running.iter().position(|thread| *thread == self.thread) {
            running.swap_remove(at);
        }
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Waits for functions that still run, at the interpreter's end: it must not end beneath them.
#[pyfunction]
pub(super) fn settle(py: Python<'_>) -> PyResult<()> {
    while RUNNING.load(Ordering::SeqCst) > 0 {
        py.check_signals()?;
        py.detach(|| thread::sleep(PAUSE));
    }
    Ok(())
}
