//! A rank's connections to its two neighbours of a ring.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::control::{PATIENCE, prepare};

/// Bytes of an element.
const ELEMENT: usize = size_of::<f32>();
/// Elements that are taken from the connection before they are worked on: 64 KiB.
pub(super) const SEGMENT: usize = 16 * 1024;

/// One rank of a ring.
pub(super) struct Neighbours {
    pub(super) rank: usize,
    pub(super) ranks: usize,
    left: TcpStream,
    /// A thread of its own sends, so that all ranks may send at once: nobody waits for a
    /// neighbour to read before it reads itself.
    outgoing: SyncSender<Vec<u8>>,
    /// Buffers that were sent, for use again.
    spare: Receiver<Vec<u8>>,
    segment: Vec<u8>,
}

impl Neighbours {
    /// Connects to the right neighbour and waits for the left one.
    pub(super) fn meet(
        listener: &TcpListener,
        rank: usize,
        ranks: usize,
        right: SocketAddr,
    ) -> io::Result<Self> {
        let to_right = TcpStream::connect_timeout(&right, PATIENCE)?;
        prepare(&to_right, Some(PATIENCE))?;
        let left = accept_within(listener, PATIENCE)?;
        prepare(&left, Some(PATIENCE))?;
        let (outgoing, spare) = sender(to_right);
        Ok(Self { rank, ranks, left, outgoing, spare, segment: vec![0; SEGMENT * ELEMENT] })
    }

    /// Sends to the right; returns before everything has left.
    pub(super) fn send(&mut self, data: &[f32]) -> io::Result<()> {
        let mut bytes = self.spare.try_recv().unwrap_or_default();
        bytes.clear();
        bytes.extend(data.iter().flat_map(|value| value.to_le_bytes()));
        // The thread ends with the connection.
        self.outgoing.send(bytes).map_err(|_| ErrorKind::BrokenPipe.into())
    }

    /// Takes from the left, element by element into `combine` with what is there.
    pub(super) fn receive(
        &mut self,
        into: &mut [f32],
        combine: impl Fn(&mut f32, f32),
    ) -> io::Result<()> {
        for part in into.chunks_mut(SEGMENT) {
            let bytes = &mut self.segment[..part.len() * ELEMENT];
            self.left.read_exact(bytes)?;
            for (own, other) in part.iter_mut().zip(bytes.chunks_exact(ELEMENT)) {
                let other = f32::from_le_bytes([other[0], other[1], other[2], other[3]]);
                combine(own, other);
            }
        }
        Ok(())
    }

    /// Waits for everybody: twice around, so that the last to hear of the last is heard of.
    pub(super) fn barrier(&mut self) -> io::Result<()> {
        let mut token = [0.0];
        for _ in 0..2 {
            if self.rank == 0 {
                self.send(&token)?;
                self.receive(&mut token, |own, other| *own = other)?;
            } else {
                self.receive(&mut token, |own, other| *own = other)?;
                self.send(&token)?;
            }
        }
        Ok(())
    }
}

/// A thread that writes buffers to a connection, and hands them back.
fn sender(mut stream: TcpStream) -> (SyncSender<Vec<u8>>, Receiver<Vec<u8>>) {
    const AHEAD: usize = 64;
    let (outgoing, to_send) = sync_channel::<Vec<u8>>(AHEAD);
    let (sent, spare) = sync_channel(AHEAD);
    thread::spawn(move || {
        for bytes in to_send {
            if stream.write_all(&bytes).is_err() {
                return;
            }
            // Buffers beyond those that are used again are dropped.
            let _ = sent.try_send(bytes);
        }
    });
    (outgoing, spare)
}

fn accept_within(listener: &TcpListener, patience: Duration) -> io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    let until = Instant::now() + patience;
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Ok(stream),
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
            Err(_) if Instant::now() > until => return Err(ErrorKind::TimedOut.into()),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Rings of threads, for tests.
#[cfg(test)]
pub(super) fn ring<T: Send + 'static>(
    ranks: usize,
    work: impl Fn(&mut Neighbours) -> T + Send + Clone + 'static,
) -> Vec<T> {
    use std::net::Ipv4Addr;

    let listeners: Vec<TcpListener> =
        (0..ranks).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).collect();
    let addresses: Vec<SocketAddr> = listeners.iter().map(|l| l.local_addr().unwrap()).collect();
    let threads: Vec<_> = listeners
        .into_iter()
        .enumerate()
        .map(|(rank, listener)| {
            let (right, work) = (addresses[(rank + 1) % ranks], work.clone());
            thread::spawn(move || {
                work(&mut Neighbours::meet(&listener, rank, ranks, right).unwrap())
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn all_may_send_much_at_once() {
        // More than sockets hold.
        const MANY: usize = 8 << 20;
        let got = ring(3, |neighbours| {
            let own = neighbours.rank as f32;
            neighbours.send(&vec![own; MANY]).unwrap();
            let mut data = vec![0.0; MANY];
            neighbours.receive(&mut data, |own, other| *own += other).unwrap();
            neighbours.barrier().unwrap();
            (data[0], data[MANY - 1])
        });
        assert_eq!(got, [(2.0, 2.0), (0.0, 0.0), (1.0, 1.0)]);
    }

    #[test]
    fn nobody_hangs_when_a_neighbour_is_gone() {
        let failed = ring(2, |neighbours| {
            if neighbours.rank == 1 {
                return true;
            }
            let mut data = [0.0];
            neighbours.receive(&mut data, |own, other| *own = other).is_err()
        });
        assert_eq!(failed, [true, true]);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let waited = accept_within(&listener, Duration::from_millis(5)).unwrap_err();
        assert_eq!(waited.kind(), ErrorKind::TimedOut);
    }
}
