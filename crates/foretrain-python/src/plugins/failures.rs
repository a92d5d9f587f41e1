//! Exceptions of functions that have no way to report them.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;

thread_local! {
    /// Of the call that this thread works for.
    static CURRENT: RefCell<Option<Arc<Failures>>> = const { RefCell::new(None) };
}

/// The first exception during a call.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<Option<PyErr>>);

impl Failures {
    /// Makes this thread keep exceptions here from now on.
    pub(crate) fn enter(self: &Arc<Self>) {
        CURRENT.set(Some(Arc::clone(self)));
    }

    /// The exception that was kept.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Keeps an exception until the verb is done, which raises it.
pub(super) fn keep_failure(error: PyErr) {
    let current = CURRENT.with_borrow(Clone::clone);
    match current {
        Some(failures) => {
            let mut kept = failures.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.get_or_insert(error);
        }
        // Work that no verb asked for: Python prints it.
        None => Python::attach(|py| error.write_unraisable(py, None)),
    }
}
