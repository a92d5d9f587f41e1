//! Decompression on a thread of its own, a few blocks ahead of the reader.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Size of a block and how many may be in flight: a few megabytes, whatever the file's size.
const BLOCK: usize = 1 << 20;
const AHEAD: usize = 4;

/// Reads from a stream that another thread decompresses.
pub(super) struct InflateThread {
    blocks: Receiver<io::Result<Vec<u8>>>,
    spent: SyncSender<Vec<u8>>,
    current: Vec<u8>,
    at: usize,
    ended: bool,
}

impl InflateThread {
    /// Starts the thread. It ends with its stream, or when this reader is dropped.
    pub(super) fn new(stream: Box<dyn Read + Send>) -> Self {
        let (to_reader, blocks) = sync_channel(AHEAD);
        // Never blocks the reader: room for every block there can be.
        let (spent, from_reader) = sync_channel(AHEAD + 2);
        thread::spawn(move || inflate(stream, &to_reader, &from_reader));
        Self { blocks, spent, current: Vec::new(), at: 0, ended: false }
    }

    fn next_block(&mut self) -> io::Result<()> {
        let spent = std::mem::take(&mut self.current);
        let _ = self.spent.try_send(spent);
        self.at = 0;
        match self.blocks.recv() {
            Ok(Ok(block)) => self.current = block,
            Ok(Err(error)) => {
                self.ended = true;
                return Err(error);
            }
            Err(_) => self.ended = true,
        }
        Ok(())
    }
}

impl Read for InflateThread {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.current.len() {
            if self.ended {
                return Ok(0);
            }
            self.next_block()?;
        }
        let rest = &self.current[self.at..];
        let length = rest.len().min(out.len());
        out[..length].copy_from_slice(&rest[..length]);
        self.at += length;
        Ok(length)
    }
}

fn inflate(
    mut stream: Box<dyn Read + Send>,
    to_reader: &SyncSender<io::Result<Vec<u8>>>,
    from_reader: &Receiver<Vec<u8>>,
) {
    loop {
        let mut block = from_reader.try_recv().unwrap_or_default();
        block.resize(BLOCK, 0);
        let (length, error) = fill(&mut stream, &mut block);
        block.truncate(length);
        let ended = length == 0 || error.is_some();
        if (length > 0 && to_reader.send(Ok(block)).is_err()) || ended {
            if let Some(error) = error {
                let _ = to_reader.send(Err(error));
            }
            return;
        }
    }
}

/// Fills the block as far as the stream goes; what came before an error is kept.
fn fill(stream: &mut impl Read, block: &mut [u8]) -> (usize, Option<io::Error>) {
    let mut length = 0;
    while length < block.len() {
        match stream.read(&mut block[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (length, Some(error)),
        }
    }
    (length, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Breaks(usize);

    impl Read for Breaks {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::other("broken stream"));
            }
            let length = out.len().min(self.0).min(1000);
            out[..length].fill(b'x');
            self.0 -= length;
            Ok(length)
        }
    }

    #[test]
    fn bytes_before_an_error_are_delivered_and_the_error_once() {
        let mut reader = InflateThread::new(Box::new(Breaks(3 * BLOCK + 5)));
        let mut text = Vec::new();
        let error = reader.read_to_end(&mut text).unwrap_err();
        assert_eq!((text.len(), error.to_string().as_str()), (3 * BLOCK + 5, "broken stream"));
        assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0);
    }

    #[test]
    fn dropping_the_reader_ends_the_thread() {
        let reader = InflateThread::new(Box::new(io::repeat(b'x')));
        drop(reader);
    }
}
