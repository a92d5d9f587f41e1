//! Where validation data lies and which files of it are traces to try.

use std::fs;
use std::path::{Path, PathBuf};

use foretrain_core::{InputError, Result};

use super::measured::StepTable;
use super::report::Skipped;
use crate::interference::pairs::read_text;

/// Directories below this depth are not searched.
const DEEPEST: usize = 16;

/// The lab's recordings made together with an execution trace, whose operator times are inflated.
const UNDISTURBED: &str = ".noet.";

/// A directory to validate on.
#[derive(Clone, Debug)]
pub struct Root {
    dir: PathBuf,
    label: String,
    is_extra: bool,
}

/// A file to try.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// Relative to the root, with forward slashes.
    pub(super) name: String,
    pub(super) path: PathBuf,
}

/// What a root holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<Candidate>,
    pub(super) skipped: Vec<Skipped>,
}

impl Root {
    /// The data directory.
    ///
    /// # Errors
    /// If it is no directory.
    pub fn data(dir: &Path) -> Result<Self> {
        if !dir.is_dir() {
            return Err(InputError::new("no such directory")
                .in_file(dir)
                .hint("name the validation data with --data DIR"));
        }
        Ok(Self { dir: dir.to_path_buf(), label: "data".into(), is_extra: false })
    }

    /// A directory or file with further recordings.
    ///
    /// # Errors
    /// If it does not exist.
    pub fn extra(path: &Path) -> Result<Self> {
        fs::metadata(path).map_err(|error| InputError::io(&error, path))?;
        let label = path.file_name().unwrap_or_default().to_string_lossy();
        let label = if label.is_empty() { "extra".into() } else { label.into_owned() };
        Ok(Self { dir: path.to_path_buf(), label, is_extra: true })
    }

    /// Name for tables; never a machine's path.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Measured step times, where the root has a table of them.
    ///
    /// # Errors
    /// If there is a table that cannot be read.
    pub fn step_table(&self) -> Result<StepTable> {
        match self.file(&["measured/trace_step_times.csv", "trace_step_times.csv"]) {
            Some(path) => StepTable::read(&path),
            None => Ok(StepTable::default()),
        }
    }

    /// The first of some files, by names relative to the root, that is there.
    pub(super) fn file(&self, names: &[&str]) -> Option<PathBuf> {
        names.iter().map(|name| self.dir.join(name)).find(|path| path.is_file())
    }

    /// The text of a file, packed or not, if it is there.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>> {
        self.file(&[name]).map(|path| read_text(&path)).transpose()
    }

    /// A directory of the root, if it is there.
    pub(super) fn directory(&self, name: &str) -> Option<PathBuf> {
        Some(self.dir.join(name)).filter(|path| path.is_dir())
    }

    /// All files that may be traces, in order of their names.
    pub(super) fn candidates(&self) -> Result<Found> {
        let mut found = Found::default();
        if self.is_extra {
            if self.dir.is_file() {
                let name = self.label.clone();
                found.files.push(Candidate { name, path: self.dir.clone() });
            } else {
                search(&self.dir, "", &mut found.files, 0)?;
            }
        } else {
            for part in ["traces", "lab/traces"] {
                let dir = self.dir.join(part);
                if dir.is_dir() {
                    search(&dir, part, &mut found.files, 0)?;
                }
            }
            leave_out_disturbed(&mut found);
        }
        found.files.sort();
        Ok(found)
    }
}

/// Times of lab recordings that carry an execution trace are inflated by its making.
fn leave_out_disturbed(found: &mut Found) {
    let is_disturbed =
        |file: &Candidate| file.name.starts_with("lab/") && !file.name.contains(UNDISTURBED);
    let disturbed = found.files.iter().filter(|file| is_disturbed(file)).count();
    found.files.retain(|file| !is_disturbed(file));
    if disturbed > 0 {
        found.skipped.push(Skipped {
            what: format!("lab/traces: {disturbed} files without \"{UNDISTURBED}\" in the name"),
            why: "execution traces, and profiles slowed by recording one at the same time".into(),
        });
    }
}

fn search(dir: &Path, name: &str, files: &mut Vec<Candidate>, depth: usize) -> Result<()> {
    let entries = fs::read_dir(dir).map_err(|error| InputError::io(&error, dir))?;
    for entry in entries {
        let entry = entry.map_err(|error| InputError::io(&error, dir))?;
        let path = entry.path();
        let own = entry.file_name().to_string_lossy().into_owned();
        let name = if name.is_empty() { own } else { format!("{name}/{own}") };
        if path.is_dir() {
            if depth < DEEPEST {
                search(&path, &name, files, depth + 1)?;
            }
        } else {
            files.push(Candidate { name, path });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(dir: &Path, name: &str) {
        let path = dir.join(name);
        fs::create_dir_all(path.parent().expect("parent")).expect("directory");
        fs::write(path, "{}").expect("file");
    }

    #[test]
    fn data_is_searched_recursively_and_disturbed_lab_files_are_summed_up() {
        let dir = tempfile::tempdir().expect("directory");
        for name in [
            "traces/b/deep/er/x.json",
            "traces/a.json.gz",
            "lab/traces/m_r0.noet.pt.trace.json.gz",
            "lab/traces/m_r0.pt.trace.json.gz",
            "lab/traces/m_r0.et.json.gz",
            "measured/other.csv",
        ] {
            touch(dir.path(), name);
        }
        let found = Root::data(dir.path()).expect("root").candidates().expect("found");
        let names: Vec<&str> = found.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "lab/traces/m_r0.noet.pt.trace.json.gz",
                "traces/a.json.gz",
                "traces/b/deep/er/x.json"
            ]
        );
        assert_eq!(found.skipped.len(), 1);
        assert!(found.skipped[0].what.contains("2 files"), "{:?}", found.skipped);
    }

    #[test]
    fn extra_directories_take_every_file_and_keep_machine_paths_out() {
        let dir = tempfile::tempdir().expect("directory");
        touch(dir.path(), "unseen/lab/traces/m_r0.pt.trace.json.gz");
        let root = Root::extra(&dir.path().join("unseen")).expect("root");
        assert_eq!(root.label(), "unseen");
        let found = root.candidates().expect("found");
        assert_eq!(found.files[0].name, "lab/traces/m_r0.pt.trace.json.gz");
    }

    #[test]
    fn a_missing_directory_is_an_error_with_a_way_on() {
        let error = Root::data(Path::new("nowhere/at/all")).expect_err("missing");
        assert!(!error.hints().is_empty());
        assert!(Root::extra(Path::new("nowhere/at/all")).is_err());
    }
}
