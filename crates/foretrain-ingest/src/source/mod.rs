//! Opening files: decompression by magic number, discovery, recognition, ranks from names.

pub(crate) mod captures;
pub mod discover;
mod inflate;
pub mod rank;
pub mod sniff;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use foretrain_core::{InputError, Result};

pub use discover::{TraceFile, discover, kind_of};
pub use sniff::{FileKind, sniff};

/// Bytes read from a file at a time.
const BLOCK: usize = 1 << 20;

/// How a file is packed, by its first bytes and never by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

impl Packing {
    pub(crate) fn of(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            // Skippable frames may come first in a zstd file.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

/// Counts the bytes that come from the disk, for progress.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Repeats what broke its stream at every further call. Decompressors report it once, and
/// whoever looked at the start of the text must not swallow it.
struct Sticky<R> {
    inner: R,
    failure: Option<(io::ErrorKind, String)>,
}

impl<R> Sticky<R> {
    fn new(inner: R) -> Self {
        Self { inner, failure: None }
    }
}

impl<R: Read> Read for Sticky<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if let Some((kind, message)) = &self.failure {
            return Err(io::Error::new(*kind, message.clone()));
        }
        self.inner.read(out).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.failure = Some((error.kind(), error.to_string()));
            }
        })
    }
}

/// The uncompressed text of a file as a stream; `taken` counts the bytes from the disk. With
/// `threaded`, decompression runs beside the reader.
pub(crate) fn open(
    path: &Path,
    threaded: bool,
    taken: &Arc<AtomicU64>,
) -> Result<Box<dyn Read + Send>> {
    let fail = |error: io::Error| InputError::io(&error, path);
    if size_of_file(path)?.is_none() {
        return Err(InputError::new("expected a file, found a directory").in_file(path));
    }
    let inner = File::open(path).map_err(fail)?;
    taken.store(0, Ordering::Relaxed);
    let counted = Counted { inner, count: Arc::clone(taken) };
    let mut reader = BufReader::with_capacity(BLOCK, counted);
    let packing = Packing::of(reader.fill_buf().map_err(fail)?);
    let text: Box<dyn Read + Send> = unpack(packing, reader).map_err(fail)?;
    Ok(match packing {
        Packing::Plain => text,
        _ if threaded => Box::new(Sticky::new(inflate::InflateThread::new(text))),
        _ => text,
    })
}

/// Bytes on the disk; none for a directory.
pub(crate) fn size_of_file(path: &Path) -> Result<Option<u64>> {
    let metadata = path.metadata().map_err(|error| InputError::io(&error, path))?;
    Ok((!metadata.is_dir()).then_some(metadata.len()))
}

/// The uncompressed text of bytes in memory.
pub(crate) fn open_bytes(bytes: &[u8]) -> io::Result<Box<dyn Read + Send + '_>> {
    unpack(Packing::of(bytes), bytes)
}

fn unpack<'a, R: BufRead + Send + 'a>(
    packing: Packing,
    reader: R,
) -> io::Result<Box<dyn Read + Send + 'a>> {
    Ok(match packing {
        Packing::Plain => Box::new(reader),
        Packing::Gzip => Box::new(Sticky::new(MultiGzDecoder::new(reader))),
        Packing::Zstd => Box::new(Sticky::new(zstd::stream::read::Decoder::with_buffer(reader)?)),
    })
}

/// Up to `limit` bytes of text from the start of a file. A broken stream gives what it holds.
pub(crate) fn head(path: &Path, limit: usize) -> Result<Vec<u8>> {
    let mut text = open(path, false, &Arc::default())?;
    Ok(read_up_to(&mut text, limit))
}

pub(crate) fn read_up_to(text: &mut impl Read, limit: usize) -> Vec<u8> {
    let mut head = Vec::new();
    // What came before an error is kept; whoever reads on meets the error again.
    let _ = text.take(limit as u64).read_to_end(&mut head);
    head
}
