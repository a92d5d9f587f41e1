//! Transfers to another process of this machine over TCP.

mod frame;
mod peer;
mod process;

use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use foretrain_core::stats::median;
use foretrain_core::{Bytes, InputError, Result};

use crate::clock::Clock;
use crate::pool::Pool;
use frame::Batch;

pub use peer::serve;
pub use process::PeerProgram;

pub(crate) use frame::{read_number, write_number};
pub(crate) use process::Process;

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(20);

/// One buffer and its answer, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Exchange {
    /// Processor time of the sender.
    pub(crate) send_ns: f64,
    /// Processor time of the receiver.
    pub(crate) receive_ns: f64,
    /// From the beginning of the send until the receiver has the buffer.
    pub(crate) one_way_ns: f64,
}

/// A connection to a second process.
pub(crate) struct Link {
    // Closed before the process is waited for.
    wire: Wire,
    _process: Process,
}

impl Link {
    /// Starts the other process, for buffers of up to `largest` bytes.
    pub(crate) fn start(peer: &PeerProgram, largest: Bytes) -> Result<Self> {
        let (listener, port) = listen().map_err(|error| unreachable_peer(&error))?;
        let token = RandomState::new().hash_one(std::process::id());
        let mut process = Process::start(peer, &[port.to_string(), token.to_string()])?;
        let stream = accept(&listener, token, || process.end())?;
        Ok(Self { wire: Wire::new(stream, largest)?, _process: process })
    }

    /// Sends buffers, one after the other's answer.
    pub(crate) fn exchange(
        &mut self,
        bytes: Bytes,
        clock: &Clock,
        count: u64,
    ) -> Result<Vec<Exchange>> {
        self.wire.exchange(bytes, clock, count)
    }
}

fn listen() -> io::Result<(TcpListener, u16)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// The connection of the peer that knows the token; others are turned away.
fn accept(
    listener: &TcpListener,
    token: u64,
    mut ended: impl FnMut() -> Option<String>,
) -> Result<TcpStream> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        match listener.accept() {
            Ok((mut stream, _)) => {
                prepare(&stream).map_err(|error| unreachable_peer(&error))?;
                if read_number(&mut stream).is_ok_and(|said| said == token) {
                    return Ok(stream);
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if let Some(how) = ended() {
                    return Err(InputError::new(format!(
                        "the second process ended before it connected: {how}"
                    ))
                    .hint("see what it said above"));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(unreachable_peer(&error)),
        }
    }
    Err(unreachable_peer(&ErrorKind::TimedOut.into()))
}

/// No waiting for more to send, and none for a peer that has died.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

fn unreachable_peer(error: &io::Error) -> InputError {
    InputError::new(format!("cannot talk to the second process: {error}"))
        .hint("it is reached over TCP on 127.0.0.1; check that nothing forbids that, and that nobody stopped it")
}

/// The sending end of a connection.
struct Wire {
    stream: TcpStream,
    buffers: Pool<u8>,
    /// One way of an answer.
    answer_ns: f64,
}

impl Wire {
    fn new(mut stream: TcpStream, largest: Bytes) -> Result<Self> {
        let failed = |error: io::Error| unreachable_peer(&error);
        write_number(largest.get(), &mut stream).map_err(failed)?;
        let buffers = Pool::new(largest.get() as usize, &[0x3c_u8, 0xa5]);
        let mut wire = Self { stream, buffers, answer_ns: 0.0 };
        // There and back again with the same few bytes.
        const PROBES: u64 = 200;
        let clock = Clock::new()?;
        let probes = wire.exchange(Bytes::new(size_of::<u64>() as u64), &clock, PROBES)?;
        let trips: Vec<f64> = probes.iter().map(|probe| probe.one_way_ns).collect();
        wire.answer_ns = median(&trips).unwrap_or(0.0) / 2.0;
        Ok(wire)
    }

    fn exchange(&mut self, bytes: Bytes, clock: &Clock, count: u64) -> Result<Vec<Exchange>> {
        let failed = |error: io::Error| unreachable_peer(&error);
        Batch { bytes: bytes.get(), count }.write(&mut self.stream).map_err(failed)?;
        let mut exchanges = Vec::new();
        for _ in 0..count {
            let buffer = self.buffers.next(bytes.get() as usize);
            let start = Instant::now();
            let (sent, send_ns) = clock.time(|| self.stream.write_all(buffer))?;
            let receive_ns = sent.and_then(|()| read_number(&mut self.stream)).map_err(failed)?;
            let trip_ns = start.elapsed().as_nanos() as f64;
            let one_way_ns = trip_ns - self.answer_ns;
            exchanges.push(Exchange { send_ns, receive_ns: receive_ns as f64, one_way_ns });
        }
        Ok(exchanges)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // A peer that is gone needs no farewell.
        let _ = Batch::END.write(&mut self.stream);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn buffers_arrive_and_cost_both_sides() {
        let (listener, port) = listen().unwrap();
        let peer = thread::spawn(move || serve(port, 42));
        let stream = accept(&listener, 42, || None).unwrap();
        let mut wire = Wire::new(stream, Bytes::from_mib(1)).unwrap();
        let clock = Clock::new().unwrap();
        for bytes in [1, 4_096, 1 << 20] {
            let all = wire.exchange(Bytes::new(bytes), &clock, 9).unwrap();
            assert_eq!(all.len(), 9);
            let sent: Vec<f64> = all.iter().map(|one| one.send_ns).collect();
            assert!(median(&sent).unwrap() > 0.0, "{all:?}");
        }
        drop(wire);
        assert_eq!(peer.join().unwrap(), Ok(()));
    }

    #[test]
    fn strangers_are_turned_away() {
        let (listener, port) = listen().unwrap();
        let stranger = thread::spawn(move || serve(port, 1));
        thread::spawn(move || {
            assert!(stranger.join().unwrap().is_err(), "it is hung up on");
            serve(port, 2)
        });
        assert!(accept(&listener, 2, || None).is_ok());
    }

    #[test]
    fn a_peer_that_dies_is_an_error_and_no_hang() {
        let (listener, port) = listen().unwrap();
        thread::spawn(move || {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            write_number(7, &mut stream).unwrap();
        });
        let stream = accept(&listener, 7, || None).unwrap();
        let error = Wire::new(stream, Bytes::new(8)).err().unwrap();
        assert!(error.message().contains("second process"), "{error}");
        let gone = accept(&listener, 7, || Some("exit status: 3".into())).unwrap_err();
        assert!(gone.message().contains("exit status: 3"), "{gone}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let peer = PeerProgram { program: "/no/such/program".into(), arguments: Vec::new() };
        let error = Link::start(&peer, Bytes::new(8)).err().unwrap();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
    }
}
