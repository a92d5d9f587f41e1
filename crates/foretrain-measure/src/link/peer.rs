//! The other process.

use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use foretrain_core::{InputError, Result};

use super::frame::{Batch, read_number, write_number};
use super::{PATIENCE, prepare};
use crate::clock::Clock;
use crate::pool::Pool;
use crate::run::LARGEST;

/// Takes buffers from the process that listens on a port of this machine until it has no more, or
/// is gone. The token tells it that this is the peer that it started.
///
/// # Errors
/// If nobody listens there, or what is said there is none of this crate's.
pub fn serve(port: u16, token: u64) -> Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let failed = |error: std::io::Error| {
        InputError::new(format!("cannot take buffers from {address}: {error}"))
            .hint("this command is started by `foretrain calibrate primitives` and of no use alone")
    };
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
    prepare(&stream).map_err(failed)?;
    write_number(token, &mut stream).map_err(failed)?;
    let largest = read_number(&mut stream).map_err(failed)?.min(LARGEST.get());
    // Between batches the first process may be busy for long, and its death is told at once.
    stream.set_read_timeout(None).map_err(failed)?;
    let clock = Clock::new()?;
    let mut pool = Pool::new(largest as usize, &[0_u8]);
    loop {
        let batch = match Batch::read(&mut stream) {
            Ok(batch) if batch.count > 0 => batch,
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        if batch.bytes > largest {
            return Err(failed(ErrorKind::InvalidData.into()));
        }
        for _ in 0..batch.count {
            let buffer = pool.next(batch.bytes as usize);
            let (read, ns) = clock.time(|| stream.read_exact(buffer))?;
            read.and_then(|()| write_number(ns as u64, &mut stream)).map_err(failed)?;
        }
    }
}
