//! One file per graph, which pandas, polars and DuckDB open as it is.
//!
//! The file is a Parquet file whose rows are the nodes. The edges are a second, complete Parquet
//! file inside the first one, between its leading magic and its first row group, where Parquet
//! readers do not look; the key-value metadata says where, and holds queues, groups and facts
//! about the step as JSON. The format is described in `docs/graph-format.md`.

mod footer;
mod header;
mod pages;
mod read;
mod read_columns;
mod tables;
mod write;

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use foretrain_core::{InputError, Result};

use crate::step_graph::StepGraph;

pub use footer::check_footer;

/// The version of the format that this release writes, and the newest that it reads.
pub const FORMAT_VERSION: u32 = 1;

/// Prefix of the columns that hold user attributes.
const ATTRIBUTE_PREFIX: &str = "attr:";

/// Bounds on what loading a file may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes the file may have.
    pub file_bytes: u64,
    /// Bytes the graph may take in memory. A file that claims to hold more, or that would unpack
    /// to more than 512 times its own size, is refused before it is unpacked.
    pub memory_bytes: u64,
}

impl Default for Limits {
    /// 4 GiB of file (some 50 million nodes), 16 GiB of memory.
    fn default() -> Self {
        Self { file_bytes: 4 << 30, memory_bytes: 16 << 30 }
    }
}

impl StepGraph {
    /// Writes the graph to a file; the file is complete or not there, never half written.
    ///
    /// # Errors
    /// If the graph is not [valid](StepGraph::validate) or the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.to_file_bytes().map_err(|error| error.in_file(path))?;
        let failed = |error: std::io::Error| {
            InputError::new(format!("cannot write it: {error}")).in_file(path)
        };
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let partial = path.with_file_name(name);
        let written = File::create(&partial)
            .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.flush()))
            .and_then(|()| std::fs::rename(&partial, path));
        written.map_err(|error| {
            // The write has failed already; a leftover that cannot be removed changes nothing.
            let _ = std::fs::remove_file(&partial);
            failed(error)
        })
    }

    /// Reads a graph from a file within the default [`Limits`].
    ///
    /// # Errors
    /// If the file cannot be read, is not a graph file, is of a newer version, is damaged or
    /// holds an invalid graph.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_within(path, &Limits::default())
    }

    /// Reads a graph from a file within these limits.
    ///
    /// # Errors
    /// As [`load`](Self::load), and if the file exceeds the limits.
    pub fn load_within(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        let io = |error| InputError::io(&error, path);
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut bytes = Vec::with_capacity(length.min(limits.file_bytes) as usize);
        file.take(limits.file_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(io)?;
        Self::from_file_bytes(bytes, limits).map_err(|error| error.in_file(path))
    }

    /// The content of the graph's file.
    ///
    /// # Errors
    /// If the graph is not [valid](StepGraph::validate).
    pub fn to_file_bytes(&self) -> Result<Vec<u8>> {
        self.validate()?;
        write::write(self)
    }

    /// Reads a graph from the content of its file.
    ///
    /// # Errors
    /// As [`load_within`](Self::load_within).
    pub fn from_file_bytes(bytes: Vec<u8>, limits: &Limits) -> Result<Self> {
        if bytes.len() as u64 > limits.file_bytes {
            let limit = limits.file_bytes;
            return Err(InputError::new(format!("the file has more than {limit} bytes")));
        }
        // The Parquet decoder is not ours; should it panic on a damaged file, that is still only
        // a damaged file. Everything it could have touched is dropped with the unwound stack.
        let graph = std::panic::catch_unwind(|| read::read(bytes.into(), limits))
            .unwrap_or_else(|_| Err(damaged("the Parquet decoder gave up")))?;
        graph.validate().map_err(|error| {
            error.hint("the file was not written by Foretrain or was changed since")
        })?;
        Ok(graph)
    }
}

/// Whether a Parquet file of another kind can be decoded safely: its footer's lengths fit its bytes,
/// nothing is compressed, and it has no more rows than bytes for them (it must hold eight bytes per
/// row in columns without a dictionary). `what` names its rows.
///
/// # Errors
/// If it claims more than it can hold.
pub fn check_table(bytes: bytes::Bytes, what: &str) -> Result<()> {
    pages::open(bytes, what).map(|_| ())
}

/// An error about content that no writer of ours produces.
fn damaged(what: impl std::fmt::Display) -> InputError {
    InputError::new(format!("not a readable graph file: {what}"))
        .hint("the file may be damaged or cut off; write it again")
}
