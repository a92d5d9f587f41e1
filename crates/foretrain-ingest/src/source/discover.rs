//! From what the user named (files, directories, patterns) to trace files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use foretrain_core::{InputError, Ledger, Result, Severity};

use super::rank::{NamedRank, rank_of, stem};
use super::sniff::{FileKind, SNIFF_BYTES, sniff};
use crate::kineto::Header;

/// Depth of directories searched below a named one.
const DEEPEST: u32 = 8;

/// A file that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
    /// Whether it was named itself, not found in a directory or by a pattern.
    pub named: bool,
    /// Its size on the disk in bytes.
    pub size_bytes: u64,
    /// Rank as the start of the file or its name tells.
    pub rank: Option<u32>,
    /// How the rank is known; empty if it is not.
    pub rank_source: String,
}

/// Finds the trace files among files, directories (searched recursively) and glob patterns, in
/// order of their paths. Files that were not named themselves and are no traces are passed over
/// with a note.
///
/// # Errors
/// If nothing is found, a named file is not readable or is no trace, or a pattern is malformed.
pub fn discover(inputs: &[PathBuf]) -> Result<(Vec<TraceFile>, Ledger)> {
    discover_bundles(inputs).map(|(files, _, ledger)| (files, ledger))
}

/// As [`discover`], and the captures that lie among the traces.
///
/// # Errors
/// As [`discover`]; also if captures are all that there is.
pub(crate) fn discover_bundles(
    inputs: &[PathBuf],
) -> Result<(Vec<TraceFile>, Vec<TraceFile>, Ledger)> {
    let mut ledger = Ledger::new();
    let mut found: BTreeMap<PathBuf, bool> = BTreeMap::new();
    for input in inputs {
        expand(input, &mut found, &mut ledger)?;
    }
    let (mut files, mut captures) = (Vec::new(), Vec::new());
    for (path, named) in found {
        match examine(&path) {
            Ok(file) if file.kind == FileKind::Capture => captures.push(file),
            Ok(file) if is_readable(&file.kind) => files.push(TraceFile { named, ..file }),
            Ok(file) if named => return Err(refusal(&file.kind, &path)),
            Err(error) if named => return Err(error),
            Ok(file) => pass_over(&mut ledger, &path, file.kind.describe()),
            Err(error) => pass_over(&mut ledger, &path, error.message()),
        }
    }
    if files.is_empty() {
        return Err(match captures.first() {
            Some(capture) => captures_alone(capture),
            None => nothing_found(inputs, &ledger),
        });
    }
    ranks_from_siblings(&mut files);
    Ok((files, captures, ledger))
}

/// What each file among files, directories and patterns is, in order of their paths, told as the
/// caller goes on. A file that was not named itself and cannot be read is passed over.
///
/// # Errors
/// If a directory cannot be read or a pattern is malformed.
pub(crate) fn kinds(
    inputs: &[PathBuf],
) -> Result<impl Iterator<Item = (PathBuf, Result<FileKind>)>> {
    let mut found = BTreeMap::new();
    for input in inputs {
        expand(input, &mut found, &mut Ledger::new())?;
    }
    Ok(found.into_iter().filter_map(|(path, named)| {
        let kind = examine(&path).map(|file| file.kind);
        (named || kind.is_ok()).then_some((path, kind))
    }))
}

/// What a file is, by its content.
///
/// # Errors
/// If it cannot be read.
pub fn kind_of(path: &Path) -> Result<FileKind> {
    Ok(examine(path)?.kind)
}

/// Whether a trace reader exists for this kind.
pub(crate) fn is_readable(kind: &FileKind) -> bool {
    *kind == FileKind::Kineto || kind.is_graph()
}

/// The error where the recorder's own files are all that there is.
fn captures_alone(capture: &TraceFile) -> InputError {
    InputError::new("a capture without a profiler trace: it says how long steps take, not why")
        .in_file(&capture.path)
        .hint("name the bundle's directory; its traces are called rank0.trace.json.gz and so on")
        .hint("if there are none, the training ended before the profiled steps: see \"missing\" and \"notes\" in the capture")
}

/// The error where directories hold no trace: whether they are empty, or what was there.
fn nothing_found(inputs: &[PathBuf], ledger: &Ledger) -> InputError {
    let places: Vec<String> = inputs.iter().map(|p| p.display().to_string()).collect();
    let places = places.join(", ");
    let hint =
        "name profiler traces (.json, .json.gz, .json.zst), execution traces or Chakra files";
    match ledger.get("ignored-file") {
        None => InputError::new(format!("no traces found in {places}: no files there")).hint(hint),
        Some(ignored) => {
            let first = ignored.places.first().map_or("", String::as_str);
            let all = match ignored.count {
                1 => format!("the only file is no trace: {first}"),
                several => format!("none of {several} files is a trace; the first is {first}"),
            };
            InputError::new(format!("no traces found in {places}")).hint(all).hint(hint)
        }
    }
}

/// The error for a file of a kind that cannot be read.
pub(crate) fn refusal(kind: &FileKind, path: &Path) -> InputError {
    let error =
        InputError::new(format!("this is {}, not a PyTorch profiler trace", kind.describe()))
            .in_file(path);
    match kind {
        FileKind::ForeignTimeline { .. } => {
            error.hint("record one with torch.profiler and export_chrome_trace")
        }
        FileKind::Capture => error.hint("name the directory that it and its trace lie in"),
        FileKind::CollectiveLog => error.hint("`foretrain inspect` shows such logs on their own"),
        _ => error.hint("expected JSON with \"traceEvents\", plain or packed by gzip or zstd"),
    }
}

fn pass_over(ledger: &mut Ledger, path: &Path, why: &str) {
    ledger.record_at(Severity::Note, "ignored-file", "file that is no trace, passed over", || {
        format!("{} ({why})", path.display())
    });
}

fn expand(input: &Path, found: &mut BTreeMap<PathBuf, bool>, ledger: &mut Ledger) -> Result<()> {
    if let Ok(metadata) = fs::metadata(input) {
        if metadata.is_dir() {
            return search(input, 0, found, ledger);
        }
        let again = found.insert(input.to_path_buf(), true) == Some(true);
        ledger.record_many(
            Severity::Note,
            "named-twice",
            "file named twice, read once",
            u64::from(again),
            None,
        );
        return Ok(());
    }
    let pattern = input.to_string_lossy();
    if !pattern.contains(['*', '?', '[']) {
        let error = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(InputError::io(&error, input));
    }
    let paths = glob::glob(&pattern)
        .map_err(|error| InputError::new(format!("malformed pattern: {error}")).in_file(input))?;
    let mut matched = false;
    for path in paths.filter_map(std::result::Result::ok) {
        matched = true;
        if path.is_dir() {
            search(&path, 0, found, ledger)?;
        } else {
            found.entry(path).or_insert(false);
        }
    }
    if matched { Ok(()) } else { Err(no_match(input)) }
}

fn no_match(pattern: &Path) -> InputError {
    InputError::new("no file matches this pattern")
        .in_file(pattern)
        .hint("quote the pattern so that the shell leaves it alone, and check the directory")
}

fn search(
    directory: &Path,
    depth: u32,
    found: &mut BTreeMap<PathBuf, bool>,
    ledger: &mut Ledger,
) -> Result<()> {
    let entries = fs::read_dir(directory).map_err(|error| InputError::io(&error, directory))?;
    for entry in entries.filter_map(std::result::Result::ok) {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        // Links to directories are not followed: they may lead in circles.
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_dir {
            found.entry(path).or_insert(false);
        } else if depth < DEEPEST {
            search(&path, depth + 1, found, ledger)?;
        } else {
            pass_over(ledger, &path, "directory nested too deeply");
        }
    }
    Ok(())
}

fn examine(path: &Path) -> Result<TraceFile> {
    let metadata = fs::metadata(path).map_err(|error| InputError::io(&error, path))?;
    if !metadata.is_file() {
        return Err(InputError::new("expected a regular file").in_file(path));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let head = super::head(path, SNIFF_BYTES)?;
    let kind = sniff(&head, &name);
    let (rank, rank_source) = match (stated_rank(&head), rank_of(&name)) {
        (Some(rank), _) => (Some(rank), "distributedInfo"),
        (None, Some(NamedRank::Word(rank) | NamedRank::Chakra(rank))) => (Some(rank), "file name"),
        _ => (None, ""),
    };
    Ok(TraceFile {
        path: path.into(),
        kind,
        named: false,
        size_bytes: metadata.len(),
        rank,
        rank_source: rank_source.into(),
    })
}

/// The rank in a `distributedInfo` near the start of the text.
fn stated_rank(head: &[u8]) -> Option<u32> {
    const KEY: &[u8] = b"\"distributedInfo\"";
    let at = memchr::memmem::find(head, KEY)? + KEY.len();
    let rest = head[at..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let mut scanner = crate::json::Scanner::new(rest, 0);
    scanner.value().ok()?;
    let text = std::str::from_utf8(&rest[..scanner.pos()]).ok()?;
    let mut header = Header::default();
    header.member("distributedInfo", text, &mut Ledger::new());
    header.rank
}

/// A number at the end of the name is a rank if several files differ only in it.
fn ranks_from_siblings(files: &mut [TraceFile]) {
    let key = |file: &TraceFile| {
        let name = file.path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let NamedRank::Trailing(rank) = rank_of(&name)? else { return None };
        let base = stem(&name).trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        Some(((file.path.parent()?.to_path_buf(), base), rank))
    };
    let mut siblings: BTreeMap<(PathBuf, String), u32> = BTreeMap::new();
    for (family, _) in files.iter().filter_map(key) {
        *siblings.entry(family).or_default() += 1;
    }
    for file in files.iter_mut().filter(|file| file.rank.is_none()) {
        if let Some((family, rank)) = key(file)
            && siblings.get(&family).is_some_and(|count| *count > 1)
        {
            file.rank = Some(rank);
            file.rank_source = "file name".into();
        }
    }
}
