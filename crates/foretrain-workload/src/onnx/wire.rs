//! Fields of protobuf messages straight from a file: what is not wanted is passed over, not read.

use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};

use foretrain_core::{InputError, Result};

/// Messages that are read whole (nodes, shapes) add up to no more than this.
const MOST_METADATA: u64 = 256 << 20;

/// A file of protobuf messages and how much of it was kept.
pub(super) struct Wire<R> {
    source: BufReader<R>,
    at: u64,
    end: u64,
    kept: u64,
}

/// One field's number and content.
pub(super) enum Field {
    /// An integer.
    Integer(u32, u64),
    /// A message, text or array of so many bytes, yet to be read or passed over.
    Bytes(u32, u64),
    /// A fixed-width number, passed over.
    Other,
}

impl<R: Read + Seek> Wire<R> {
    pub(super) fn new(mut source: R) -> Result<Self> {
        let end = source.seek(SeekFrom::End(0)).map_err(|error| broken(&error, 0))?;
        source.seek(SeekFrom::Start(0)).map_err(|error| broken(&error, 0))?;
        Ok(Self { source: BufReader::new(source), at: 0, end, kept: 0 })
    }

    /// Where the file ends.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn error(&self, message: impl Into<String>) -> InputError {
        InputError::new(message).at(format!("byte {}", self.at))
    }

    /// Where a message of so many bytes ends that begins here.
    pub(super) fn end_of(&self, length: u64) -> Result<u64> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.end);
        end.ok_or_else(|| self.error("a message reaches beyond the end of the file"))
    }

    /// The next field of the message that ends at `end`.
    pub(super) fn field(&mut self, end: u64) -> Result<Option<Field>> {
        if self.at >= end {
            return Ok(None);
        }
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| self.error("not an ONNX file: no such field"))?;
        let field = match key & 7 {
            0 => Field::Integer(number, self.varint()?),
            1 => self.pass(8).map(|()| Field::Other)?,
            2 => {
                let length = self.varint()?;
                self.end_of(length)?;
                Field::Bytes(number, length)
            }
            5 => self.pass(4).map(|()| Field::Other)?,
            _ => return Err(self.error("not an ONNX file: no such kind of field")),
        };
        Ok(Some(field))
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            self.source.read_exact(&mut byte).map_err(|error| broken(&error, self.at))?;
            self.at += 1;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error("not an ONNX file: a number without an end"))
    }

    /// Passes over so many bytes.
    pub(super) fn pass(&mut self, length: u64) -> Result<()> {
        self.at = self.end_of(length)?;
        // Within the buffer this does not touch the file.
        let step = i64::try_from(length).map_err(|_| self.error("a message too long"))?;
        self.source.seek_relative(step).map_err(|error| broken(&error, self.at))
    }

    /// Reads so many bytes.
    pub(super) fn bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        let end = self.end_of(length)?;
        self.kept += length;
        if self.kept > MOST_METADATA {
            return Err(self.error(format!(
                "more than {} MiB of nodes, shapes and small constants",
                MOST_METADATA >> 20
            )));
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        self.source.read_exact(&mut bytes).map_err(|error| broken(&error, self.at))?;
        self.at = end;
        Ok(bytes)
    }
}

fn broken(error: &std::io::Error, at: u64) -> InputError {
    let message = match error.kind() {
        ErrorKind::UnexpectedEof => "the file ends in the middle of a message".to_owned(),
        _ => format!("cannot read it: {error}"),
    };
    InputError::new(message).at(format!("byte {at}"))
}
