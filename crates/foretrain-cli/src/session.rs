//! The verbs as a library, for faces other than a command line.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use foretrain::core::InputError;

use crate::args;
use crate::commands::{self, Answer};
use crate::failure::Failure;
use crate::output::Output;
use crate::recordings::Input;

/// A program and the arguments that come before those of the command.
pub type Program = (PathBuf, Vec<String>);

/// What a program gives beside arguments.
#[derive(Debug, Default)]
pub struct Session {
    /// What was read before. Arguments refer to one by its name in the place of files.
    pub held: Vec<(String, Arc<Input>)>,
    /// Set it to end searches with the best so far.
    pub stop: AtomicBool,
    /// What takes the command's arguments: verbs that measure start it as their second process
    /// [default: the program that runs].
    pub program: Option<Program>,
    /// Called on every thread that works for this session, before it does.
    pub on_thread: Option<OnThread>,
}

/// What threads begin with.
#[derive(Clone)]
pub struct OnThread(pub Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for OnThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnThread")
    }
}

impl Session {
    /// What is held under a name.
    pub(crate) fn held(&self, name: &Path) -> Option<Arc<Input>> {
        let found = self.held.iter().find(|(held, _)| Path::new(held) == name);
        found.map(|(_, input)| Arc::clone(input))
    }
}

/// An answer in all its forms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The document that `--json` prints; none of answers that have one form only, or that went to
    /// the file of `--out`.
    pub json: Option<String>,
    /// The page for a terminal of 100 columns, or the only form.
    pub text: String,
    /// The page as HTML.
    pub html: Option<String>,
    /// What a command line would say beside it.
    pub notes: Vec<String>,
    /// Whether what was asked for holds: exit code 0 rather than 1.
    pub holds: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Refused {
    /// Arguments that the verb does not take, or help that was asked for, as a command line shows it.
    Usage(String),
    /// The input's fault.
    Input(InputError),
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Input(error) => Self::Input(error),
            Failure::BrokenPipe => {
                Self::Input(InputError::new("whoever read the answer has gone away"))
            }
        }
    }
}

/// Runs a verb with its arguments (without the program's name) and keeps what it says. Nothing is
/// written to standard output or standard error.
///
/// # Errors
/// As the command fails: with usage, or an input error.
pub fn ask(arguments: &[OsString], session: &Session) -> Result<Kept, Refused> {
    let (common, command) = args::parse(arguments).map_err(usage)?;
    let output = Output::kept(common, session);
    let answer = commands::run(command, &output)?;
    let mut kept = output.into_kept();
    kept.holds = answer == Answer::Yes;
    Ok(kept)
}

/// Reads what `inspect` with these arguments would, for `Session::held`.
///
/// # Errors
/// As [`ask`].
pub fn read(arguments: &[OsString], session: &Session) -> Result<Arc<Input>, Refused> {
    let verb = std::iter::once("inspect".into()).chain(arguments.iter().cloned());
    let (common, command) = args::parse(&verb.collect::<Vec<_>>()).map_err(usage)?;
    let commands::Command::Inspect(options) = command else {
        return Err(Refused::Input(InputError::new("arguments that name nothing to read")));
    };
    Ok(options.source.read(&Output::kept(common, session))?)
}

fn usage(error: clap::Error) -> Refused {
    Refused::Usage(error.render().to_string())
}
