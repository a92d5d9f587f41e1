//! A walk over a Parquet footer before the decoder sees it.
//!
//! The footer is Thrift in its compact protocol. A list there states its length; a decoder that
//! trusts it can be made to loop for billions of elements that take no bytes. Every real element
//! takes at least one byte, so a length beyond the bytes that are left is a lie.

use std::io::{Read, Seek, SeekFrom};

use foretrain_core::{InputError, Result};

const MAGIC: &[u8] = b"PAR1";

/// Longest footer that is read; wide tables of many row groups have some megabytes.
const LONGEST: u64 = 64 << 20;

/// Deepest nesting of real metadata is below ten.
const MAX_DEPTH: u32 = 32;

/// Checks that the lengths in a Parquet file's footer fit its bytes, which a decoder may trust. What
/// has no footer is left to the decoder, which refuses it at once and can say what it is.
///
/// # Errors
/// If they do not fit, the footer is larger than 64 MiB, or the file cannot be read.
pub fn check_footer(file: &mut (impl Read + Seek)) -> Result<()> {
    let failed = |error: std::io::Error| InputError::new(format!("cannot read it: {error}"));
    let length = file.seek(SeekFrom::End(0)).map_err(failed)?;
    let Some(tail) = length.checked_sub(8) else { return Ok(()) };
    file.seek(SeekFrom::Start(tail)).map_err(failed)?;
    let mut end = [0; 8];
    file.read_exact(&mut end).map_err(failed)?;
    let [a, b, c, d, magic @ ..] = end;
    let size = u64::from(u32::from_le_bytes([a, b, c, d]));
    let Some(start) = tail.checked_sub(size).filter(|_| magic == *MAGIC) else { return Ok(()) };
    if size > LONGEST {
        return Err(InputError::new(format!(
            "its footer has {size} bytes; at most {LONGEST} are read"
        )));
    }
    file.seek(SeekFrom::Start(start)).map_err(failed)?;
    let mut footer = vec![0; size as usize];
    file.read_exact(&mut footer).map_err(failed)?;
    let whole = Walk { left: &footer }.structure(0);
    whole.ok_or_else(|| InputError::new("its footer contradicts itself"))
}

struct Walk<'a> {
    left: &'a [u8],
}

impl Walk<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.left.split_first()?;
        self.left = rest;
        Some(first)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.left = self.left.get(bytes..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A length that the bytes left can hold.
    fn length(&mut self) -> Option<usize> {
        let length = usize::try_from(self.varint()?).ok()?;
        (length <= self.left.len()).then_some(length)
    }

    fn structure(&mut self, depth: u32) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            if head >> 4 == 0 {
                self.varint()?;
            }
            match head & 0x0f {
                // A boolean field is all in its head.
                1 | 2 => {}
                kind => self.value(kind, depth)?,
            }
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> Option<()> {
        match kind {
            1..=3 => self.skip(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.skip(8),
            8 => {
                let length = self.length()?;
                self.skip(length)
            }
            9 | 10 => self.list(depth + 1),
            11 => self.map(depth + 1),
            12 => self.structure(depth + 1),
            13 => self.skip(16),
            _ => None,
        }
    }

    fn list(&mut self, depth: u32) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let head = self.byte()?;
        let length = match usize::from(head >> 4) {
            15 => self.length()?,
            short => short,
        };
        (0..length).try_for_each(|_| self.value(head & 0x0f, depth))
    }

    fn map(&mut self, depth: u32) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let length = self.length()?;
        if length == 0 {
            return Some(());
        }
        let kinds = self.byte()?;
        (0..length).try_for_each(|_| {
            self.value(kinds >> 4, depth)?;
            self.value(kinds & 0x0f, depth)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn check(file: &[u8]) -> Result<()> {
        check_footer(&mut Cursor::new(file))
    }

    fn file(footer: &[u8]) -> Vec<u8> {
        let mut bytes = footer.to_vec();
        bytes.extend((footer.len() as u32).to_le_bytes());
        bytes.extend(MAGIC);
        bytes
    }

    #[test]
    fn lengths_that_fit_pass_and_lies_do_not() {
        // Field 1: i32 2; field 2: list of three i8; stop.
        assert!(check(&file(&[0x15, 4, 0x19, 0x33, 1, 2, 3, 0])).is_ok());
        // A list of four billion booleans in five bytes.
        assert!(check(&file(&[0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0])).is_err());
        // Text longer than the footer, no stop, and nesting without end.
        assert!(check(&file(&[0x18, 0x7f, b'a', 0])).is_err());
        assert!(check(&file(&[0x15, 4])).is_err());
        assert!(check(&file(&[0x1c; 200])).is_err());
        assert!(check(b"PAR1").is_ok() && check(b"\xff\xff\xff\xffPAR1").is_ok());
    }
}
