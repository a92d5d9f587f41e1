//! Bytes of a file, unpacked.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Chain, Cursor, Read, Seek};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// What a file is, by its first bytes.
pub(super) enum Source {
    /// Text, unpacked as it is read.
    Text(Box<dyn BufRead>),
    /// A Parquet file.
    Parquet(File),
}

const BUFFER: usize = 256 << 10;

impl Source {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut magic = Vec::with_capacity(4);
        Read::by_ref(&mut file).take(4).read_to_end(&mut magic)?;
        // A pipe cannot go back; what was read is put before the rest.
        let rewound = file.rewind().is_ok();
        if magic == b"PAR1" {
            return Ok(Self::Parquet(file));
        }
        let packed: Box<dyn BufRead> = if rewound {
            Box::new(BufReader::with_capacity(BUFFER, file))
        } else {
            Box::new(Cursor::new(magic.clone()).chain(BufReader::with_capacity(BUFFER, file)))
        };
        Ok(Self::Text(match magic.as_slice() {
            [0x1f, 0x8b, ..] => {
                Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(packed)))
            }
            [0x28, 0xb5, 0x2f, 0xfd] => Box::new(BufReader::with_capacity(
                BUFFER,
                zstd::stream::read::Decoder::with_buffer(packed)?,
            )),
            _ => packed,
        }))
    }
}

/// Text with its first bytes put back before it.
pub(super) type Rest = Chain<Cursor<Vec<u8>>, Box<dyn BufRead>>;

/// Where a text cannot be read on.
struct Broken(io::Error);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::new(self.0.kind(), self.0.to_string()))
    }
}

/// How much of a text is looked at to tell what it is.
const FIRST: u64 = 64 << 10;

/// The first bytes of a text without a byte order mark, and the whole text.
pub(super) fn first_bytes(mut text: Box<dyn BufRead>) -> io::Result<(Vec<u8>, Rest)> {
    let mut first = Vec::new();
    if let Err(error) = text.by_ref().take(FIRST).read_to_end(&mut first) {
        if first.is_empty() {
            return Err(error);
        }
        // Met again behind what comes before it: a decoder says only once that a checksum is wrong.
        text = Box::new(BufReader::new(Broken(error)));
    }
    if first.starts_with(b"\xef\xbb\xbf") {
        first.drain(..3);
    }
    Ok((first.clone(), Cursor::new(first).chain(text)))
}
