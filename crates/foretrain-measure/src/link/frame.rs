//! What the two processes say to each other beside the buffers: numbers of eight bytes.
//!
//! The peer connects and says its token. Then, for each batch, it is told a size and a count, takes
//! as many buffers of that size, and answers each with what taking it cost. A count of zero is
//! the end.

use std::io::{Read, Result, Write};

/// Buffers to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    /// Of each buffer.
    pub(super) bytes: u64,
    /// Buffers.
    pub(super) count: u64,
}

impl Batch {
    /// The last one.
    pub(super) const END: Self = Self { bytes: 0, count: 0 };

    pub(super) fn write(self, to: &mut impl Write) -> Result<()> {
        // One write, so that it is one packet.
        let mut both = [0; 16];
        both[..8].copy_from_slice(&self.bytes.to_le_bytes());
        both[8..].copy_from_slice(&self.count.to_le_bytes());
        to.write_all(&both)
    }

    pub(super) fn read(from: &mut impl Read) -> Result<Self> {
        Ok(Self { bytes: read_number(from)?, count: read_number(from)? })
    }
}

pub(crate) fn write_number(number: u64, to: &mut impl Write) -> Result<()> {
    to.write_all(&number.to_le_bytes())
}

pub(crate) fn read_number(from: &mut impl Read) -> Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
