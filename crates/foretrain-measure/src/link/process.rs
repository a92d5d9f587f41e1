//! Starting the other process and seeing it end.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use foretrain_core::{InputError, Result};

/// How to start a process that calls [`serve`](super::serve) or [`join_ring`](crate::join_ring).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerProgram {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, after which come those that the function takes.
    pub arguments: Vec<String>,
}

/// A process that does not outlive this value.
pub(crate) struct Process {
    child: Child,
}

/// How long a process that was told to end may take.
const FAREWELL: Duration = Duration::from_secs(2);

impl Process {
    /// Starts it with these arguments behind its own.
    pub(crate) fn start(peer: &PeerProgram, more: &[String]) -> Result<Self> {
        let mut command = Command::new(&peer.program);
        command.args(&peer.arguments).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().map_err(|error| {
            InputError::new(format!("cannot start another process of this program: {error}"))
                .in_file(&peer.program)
        })?;
        Ok(Self { child })
    }

    /// How it ended, if it has.
    pub(crate) fn end(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(status.to_string()),
            Err(error) => Some(error.to_string()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let until = Instant::now() + FAREWELL;
        while self.end().is_none() {
            if Instant::now() >= until {
                // One that has ended meanwhile cannot be killed, which is as well.
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
