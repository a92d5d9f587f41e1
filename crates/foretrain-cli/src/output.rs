//! Where answers and errors go.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use foretrain::core::InputError;
use foretrain::core::words::printable;
use foretrain::measure::PeerProgram;
use foretrain::report::TextStyle;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::failure::{Failure, Result};
use crate::interrupt;
use crate::recordings::Input;
use crate::session::{Kept, OnThread, Program, Session};

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Colour {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

/// What all verbs have in common.
#[derive(Clone, Debug, Default)]
pub(crate) struct Common {
    pub(crate) json: bool,
    pub(crate) out: Option<PathBuf>,
    pub(crate) progress: bool,
    pub(crate) colour: Colour,
}

/// The answer's destination.
pub(crate) struct Output<'a> {
    common: Common,
    caller: Caller<'a>,
}

/// Who asked.
enum Caller<'a> {
    /// Somebody at a command line.
    Shell { program: Option<&'a Program> },
    /// A program that this is a library of: it gets the answer in all forms, and what would be said
    /// beside it.
    Program { session: &'a Session, kept: Mutex<Kept> },
}

/// Columns of output that no terminal shows.
const PIPED_WIDTH: usize = 100;
const NARROWEST: usize = 60;
const WIDEST: usize = 140;

impl<'a> Output<'a> {
    /// For a command line.
    pub(crate) fn new(common: Common, program: Option<&'a Program>) -> Self {
        Self { common, caller: Caller::Shell { program } }
    }

    /// For a program.
    pub(crate) fn kept(common: Common, session: &'a Session) -> Self {
        let kept = Mutex::default();
        Self { common, caller: Caller::Program { session, kept } }
    }

    /// What a program gets.
    pub(crate) fn into_kept(self) -> Kept {
        match self.caller {
            Caller::Shell { .. } => Kept::default(),
            Caller::Program { kept, .. } => {
                kept.into_inner().unwrap_or_else(PoisonError::into_inner)
            }
        }
    }

    /// What the program holds of this name already.
    pub(crate) fn held(&self, inputs: &[PathBuf]) -> Option<Arc<Input>> {
        match (&self.caller, inputs) {
            (Caller::Program { session, .. }, [name]) => session.held(name),
            _ => None,
        }
    }

    /// Set when a search is to end with the best so far.
    pub(crate) fn stop(&self) -> &AtomicBool {
        match &self.caller {
            Caller::Shell { .. } => interrupt::on_interrupt(),
            Caller::Program { session, .. } => &session.stop,
        }
    }

    /// Threads to work on, as many as asked for; 0 for one per core.
    ///
    /// # Errors
    /// If the system does not give them.
    pub(crate) fn threads(&self, count: usize) -> Result<ThreadPool> {
        let mut builder = ThreadPoolBuilder::new().num_threads(count);
        if let Caller::Program { session, .. } = &self.caller
            && let Some(OnThread(enter)) = session.on_thread.clone()
        {
            builder = builder.start_handler(move |_| enter());
        }
        builder
            .build()
            .map_err(|error| InputError::new(format!("cannot start threads: {error}")).into())
    }

    /// How to start this program once more, for a measurement, with this verb.
    ///
    /// # Errors
    /// If the system does not tell what program this is.
    pub(crate) fn again(&self, verb: &str) -> Result<PeerProgram> {
        let given = match &self.caller {
            Caller::Program { session, .. } => session.program.as_ref(),
            Caller::Shell { program } => *program,
        };
        let (program, mut arguments) = match given {
            Some(program) => program.clone(),
            None => {
                let program = std::env::current_exe().map_err(|error| {
                    InputError::new(format!("cannot find this program to start it again: {error}"))
                })?;
                (program, Vec::new())
            }
        };
        arguments.push(verb.into());
        Ok(PeerProgram { program, arguments })
    }

    /// The interpreter that this runs in, where one does.
    pub(crate) fn interpreter(&self) -> Option<&Path> {
        let program = match &self.caller {
            Caller::Program { session, .. } => session.program.as_ref(),
            Caller::Shell { program } => *program,
        };
        let (path, arguments) = program?;
        (arguments.first().map(String::as_str) == Some("-m")).then_some(path)
    }

    /// Whether JSON was asked for.
    pub(crate) fn json(&self) -> bool {
        self.common.json
    }

    /// The file that the answer goes to, if one was asked for.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.common.out.as_deref()
    }

    /// Whether to draw progress: wanted, and somebody looks.
    pub(crate) fn progress(&self) -> bool {
        matches!(self.caller, Caller::Shell { .. })
            && self.common.progress
            && io::stderr().is_terminal()
    }

    /// How text may look at its destination.
    fn style(&self) -> TextStyle {
        let on_terminal = self.common.out.is_none() && io::stdout().is_terminal();
        TextStyle {
            width: if on_terminal { terminal_width() } else { PIPED_WIDTH },
            colour: self.use_colour(on_terminal),
            ..TextStyle::default()
        }
    }

    fn use_colour(&self, terminal: bool) -> bool {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match self.common.colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => terminal && !refused,
        }
    }

    /// Gives the answer, as a document or a page: whichever was asked for, and a program gets both.
    pub(crate) fn give(
        &self,
        json: impl FnOnce() -> String,
        page: impl Fn(TextStyle) -> String,
    ) -> Result<()> {
        if let (Caller::Program { kept, .. }, None) = (&self.caller, self.file()) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.json = Some(json());
            kept.text = page(TextStyle::default());
            kept.html = Some(page(TextStyle::html()));
            return Ok(());
        }
        self.answer(&if self.json() { json() } else { page(self.style()) })
    }

    /// Writes an answer that has one form: to the file asked for, whole or not at all, else to
    /// standard output.
    pub(crate) fn answer(&self, text: &str) -> Result<()> {
        if let Some(path) = &self.common.out {
            return write_file(path, text.as_bytes());
        }
        if let Caller::Program { kept, .. } = &self.caller {
            kept.lock().unwrap_or_else(PoisonError::into_inner).text = text.to_owned();
            return Ok(());
        }
        let mut out = io::stdout().lock();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.map_err(|error| Failure::writing(&error, "standard output"))
    }

    /// Says something beside the answer.
    pub(crate) fn note(&self, text: &str) {
        match &self.caller {
            Caller::Shell { .. } => say(&printable(text)),
            Caller::Program { kept, .. } => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.notes.push(printable(text).into_owned());
            }
        }
    }

    /// Shows an error and the ways on.
    pub(crate) fn error(&self, error: &InputError) {
        let colour = self.use_colour(io::stderr().is_terminal());
        let mark = |word: &str, code: &str| {
            if colour { format!("\u{1b}[{code}m{word}\u{1b}[0m") } else { word.to_owned() }
        };
        let mut text = format!("{} {}", mark("error:", "1;31"), printable(&error.to_string()));
        for hint in error.hints() {
            text.push_str(&format!("\n{} {}", mark("hint:", "1;36"), printable(hint)));
        }
        say(&text);
    }
}

fn say(text: &str) {
    // Nobody can be told that standard error is closed.
    let _ = writeln!(io::stderr(), "{text}");
}

fn terminal_width() -> usize {
    let reported = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    reported.map_or(PIPED_WIDTH, |width| width.clamp(NARROWEST, WIDEST))
}

/// Writes a file beside its destination and moves it there, so that no half file is ever seen.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let fail = |error: &io::Error| {
        Failure::Input(
            InputError::new(format!("cannot write it: {error}"))
                .in_file(path)
                .hint("check that the directory exists and may be written to"),
        )
    };
    // A device or a pipe (/dev/null, process substitution) is written to as it is.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return std::fs::write(path, bytes).map_err(|error| fail(&error));
    }
    // Moving a file onto a link would replace the link. One that leads nowhere yet is followed by
    // writing.
    let target = match path.canonicalize() {
        Ok(target) => target,
        Err(_) if path.is_symlink() => {
            return std::fs::write(path, bytes).map_err(|error| fail(&error));
        }
        Err(_) => path.to_path_buf(),
    };
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.partial", std::process::id()));
    let partial = target.with_file_name(name);
    let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, &target));
    written.map_err(|error| {
        // The write has failed already; a leftover that cannot be removed changes nothing.
        let _ = std::fs::remove_file(&partial);
        fail(&error)
    })
}
