//! Ctrl-C ends a search early instead of the process.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// Set when somebody has pressed Ctrl-C; a second time ends the process.
pub(crate) fn on_interrupt() -> &'static AtomicBool {
    // Without a handler Ctrl-C ends the process, which is no worse than before.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            interrupted();
        }
    });
    &STOP
}

#[expect(clippy::exit, reason = "somebody waits for the process to end")]
fn interrupted() -> ! {
    std::process::exit(130)
}
