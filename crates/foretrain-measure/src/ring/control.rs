//! What coordinator and ranks say to each other: numbers of eight bytes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use foretrain_core::InputError;

use super::RingOperation;
use crate::link::{read_number, write_number};

/// How long a rank waits for a neighbour's data.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// The first number of a connection: another program, or another version, is turned away.
const MAGIC: u64 = 0x666f_7265_7472_0001;
/// The largest number of repeats or parts that is believed.
const MOST: u64 = 1 << 24;

/// Who connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hello {
    /// A rank that knows the token, with its machine and the port where its neighbour may connect.
    Rank { token: u64, machine: u64, port: u16 },
    /// Another machine.
    Machine,
}

impl Hello {
    pub(super) fn write(self, to: &mut impl Write) -> io::Result<()> {
        let numbers = match self {
            Self::Rank { token, machine, port } => [MAGIC, 1, token, machine, u64::from(port)],
            Self::Machine => [MAGIC, 2, 0, 0, 0],
        };
        write_all(&numbers, to)
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        if read_number(from)? != MAGIC {
            return Err(ErrorKind::InvalidData.into());
        }
        let [kind, token, machine, port] = read_some(from)?;
        match kind {
            1 => Ok(Self::Rank { token, machine, port: small(port)? }),
            2 => Ok(Self::Machine),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }
}

/// What a rank is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Be this rank of a ring, whose next rank listens there.
    Join { rank: u64, ranks: u64, right: SocketAddr },
    /// Run an operation.
    Run(Run),
    /// That was all.
    End,
}

/// How often to run what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) operation: RingOperation,
    /// Elements of one rank's part.
    pub(super) part: u64,
    /// Runs of calls back to back.
    pub(super) blocks: u64,
    /// Calls in each.
    pub(super) calls: u64,
    /// Single calls with a barrier before each.
    pub(super) barriered: u64,
}

impl Order {
    pub(super) fn write(self, to: &mut impl Write) -> io::Result<()> {
        let numbers = match self {
            Self::Join { rank, ranks, right } => {
                let (high, low) = address_numbers(right.ip());
                [1, rank, ranks, high, low, u64::from(right.port())]
            }
            Self::Run(run) => {
                let at = RingOperation::ALL.iter().position(|known| *known == run.operation);
                let operation = at.unwrap_or_default() as u64;
                [2, operation, run.part, run.blocks, run.calls, run.barriered]
            }
            Self::End => [3, 0, 0, 0, 0, 0],
        };
        write_all(&numbers, to)
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let [kind, a, b, c, d, e] = read_some(from)?;
        match kind {
            1 => {
                let right = SocketAddr::new(address(c, d), small(e)?);
                Ok(Self::Join { rank: a, ranks: b, right })
            }
            2 if b <= MOST * 64 && [c, d, e].iter().all(|&count| count <= MOST) => {
                let operation = usize::try_from(a).ok().and_then(|at| RingOperation::ALL.get(at));
                let operation = *operation.ok_or(ErrorKind::InvalidData)?;
                Ok(Self::Run(Run { operation, part: b, blocks: c, calls: d, barriered: e }))
            }
            3 => Ok(Self::End),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    }
}

/// A rank's times in ns.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Times {
    /// Per call, of each block.
    pub(super) blocks: Vec<u64>,
    /// Of each single call.
    pub(super) barriered: Vec<u64>,
    /// Processor time per call back to back.
    pub(super) processor: u64,
}

impl Times {
    pub(super) fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let counts = [self.blocks.len() as u64, self.barriered.len() as u64, self.processor];
        write_all(&[&counts[..], &self.blocks, &self.barriered].concat(), to)
    }

    pub(super) fn read(from: &mut impl Read) -> io::Result<Self> {
        let [blocks, barriered, processor] = read_some(from)?;
        if blocks > MOST || barriered > MOST {
            return Err(ErrorKind::InvalidData.into());
        }
        let mut some = |count| (0..count).map(|_| read_number(from)).collect::<io::Result<_>>();
        Ok(Self { blocks: some(blocks)?, barriered: some(barriered)?, processor })
    }
}

/// A connection without waiting for more to send; `patience` is how long a read may take.
pub(super) fn prepare(stream: &TcpStream, patience: Option<Duration>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(Some(PATIENCE))
}

/// What went wrong between two processes.
pub(super) fn lost(what: &str, error: &io::Error) -> InputError {
    let why = match error.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
            "it has ended".to_owned()
        }
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("it said nothing for {} s", PATIENCE.as_secs())
        }
        ErrorKind::InvalidData => "it speaks another language: is it of this version?".to_owned(),
        _ => error.to_string(),
    };
    InputError::new(format!("lost {what}: {why}"))
}

fn write_all(numbers: &[u64], to: &mut impl Write) -> io::Result<()> {
    // One write, so that it is one packet.
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    to.write_all(&bytes)
}

fn read_some<const N: usize>(from: &mut impl Read) -> io::Result<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        *number = read_number(from)?;
    }
    Ok(numbers)
}

fn small(port: u64) -> io::Result<u16> {
    u16::try_from(port).map_err(|_| ErrorKind::InvalidData.into())
}

fn address_numbers(ip: IpAddr) -> (u64, u64) {
    let wide = match ip {
        IpAddr::V4(four) => four.to_ipv6_mapped(),
        IpAddr::V6(six) => six,
    };
    let bits = wide.to_bits();
    ((bits >> 64) as u64, bits as u64)
}

fn address(high: u64, low: u64) -> IpAddr {
    let wide = Ipv6Addr::from_bits(u128::from(high) << 64 | u128::from(low));
    wide.to_ipv4_mapped().map_or(IpAddr::V6(wide), IpAddr::V4)
}

/// Tells a connected machine how many ranks to start, which machine it is, and their token.
pub(super) fn write_share(
    ranks: u64,
    machine: u64,
    token: u64,
    to: &mut impl Write,
) -> io::Result<()> {
    write_all(&[ranks, machine, token], to)
}

/// What [`write_share`] told.
pub(super) fn read_share(from: &mut impl Read) -> io::Result<[u64; 3]> {
    read_some(from)
}

/// Tells the coordinator that an order was carried out.
pub(super) fn write_done(to: &mut impl Write) -> io::Result<()> {
    write_number(MAGIC, to)
}

/// Waits for [`write_done`].
pub(super) fn read_done(from: &mut impl Read) -> io::Result<()> {
    if read_number(from)? == MAGIC { Ok(()) } else { Err(ErrorKind::InvalidData.into()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let right = "10.0.0.2:7001".parse().unwrap();
        let run = Run {
            operation: RingOperation::AllGather,
            part: 1 << 20,
            blocks: 7,
            calls: 3,
            barriered: 5,
        };
        for order in [Order::Join { rank: 1, ranks: 4, right }, Order::Run(run), Order::End] {
            let mut bytes = Vec::new();
            order.write(&mut bytes).unwrap();
            assert_eq!(Order::read(&mut &bytes[..]).unwrap(), order);
        }
        for hello in [Hello::Machine, Hello::Rank { token: 9, machine: 1, port: 80 }] {
            let mut bytes = Vec::new();
            hello.write(&mut bytes).unwrap();
            assert_eq!(Hello::read(&mut &bytes[..]).unwrap(), hello);
        }
        let times = Times { blocks: vec![1, 2], barriered: vec![3], processor: 4 };
        let mut bytes = Vec::new();
        times.write(&mut bytes).unwrap();
        assert_eq!(Times::read(&mut &bytes[..]).unwrap(), times);
    }

    #[test]
    fn long_addresses_stay_what_they_are() {
        for ip in ["::1", "2001:db8::7", "127.0.0.1"] {
            let ip: IpAddr = ip.parse().unwrap();
            let (high, low) = address_numbers(ip);
            assert_eq!(address(high, low), ip);
        }
    }

    proptest! {
        #[test]
        fn nonsense_is_refused_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = Hello::read(&mut &bytes[..]);
            let _ = Order::read(&mut &bytes[..]);
            let _ = Times::read(&mut &bytes[..]);
        }
    }
}
