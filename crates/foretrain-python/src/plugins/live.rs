//! Lending what cannot be lent: a function of Python's asks, and the thread that has the thing answers.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use super::failures;

/// What comes from the function.
enum Message<Q> {
    Ask(Q),
    Done,
}

/// The end that asks.
pub(crate) struct Line<Q, A> {
    ends: Mutex<(Sender<Message<Q>>, Receiver<A>)>,
}

impl<Q: Send, A: Send> Line<Q, A> {
    /// Asks and waits for the answer, without the interpreter's lock.
    pub(crate) fn ask(&self, py: Python<'_>, question: Q) -> PyResult<A> {
        let answer = py.detach(|| {
            let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
            ends.0.send(Message::Ask(question)).ok()?;
            ends.1.recv().ok()
        });
        answer.ok_or_else(|| {
            PyRuntimeError::new_err("this is of use only while the function runs that was given it")
        })
    }
}

/// Runs `call` on a thread of its own and answers what it asks on this one.
pub(crate) fn serve<Q: Send, A: Send, R: Send>(
    call: impl FnOnce(Line<Q, A>) -> R + Send,
    mut answer: impl FnMut(Q) -> A,
) -> R {
    let (to_here, from_there) = channel();
    let (to_there, from_here) = channel();
    let done = to_here.clone();
    let of_call = failures::current();
    thread::scope(|scope| {
        let caller = scope.spawn(move || {
            if let Some(of_call) = of_call {
                of_call.enter();
            }
            let result = call(Line { ends: Mutex::new((to_here, from_here)) });
            // The line may live on in Python; this ends the conversation.
            let _ = done.send(Message::Done);
            result
        });
        while let Ok(Message::Ask(question)) = from_there.recv() {
            if to_there.send(answer(question)).is_err() {
                break;
            }
        }
        drop((from_there, to_there));
        caller.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
