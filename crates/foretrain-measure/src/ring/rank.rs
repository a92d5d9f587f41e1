//! A rank: a process that does what the coordinator says.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use foretrain_core::{InputError, Result};

use super::algorithms;
use super::control::{Hello, Order, PATIENCE, Run, Times, lost, prepare, write_done};
use super::neighbours::Neighbours;

/// Connects to the coordinator of [`measure_ring`](super::measure_ring) and is one of its ranks until
/// it has no more to measure, or is gone.
///
/// # Errors
/// If there is no coordinator that knows the token, or a neighbour is lost.
pub fn join_ring(coordinator: SocketAddr, token: u64, machine: u64) -> Result<()> {
    let failed = |error: io::Error| {
        lost("the process that measures", &error)
            .hint("this command is started by `foretrain capture comm` and of no use alone")
    };
    let mut control = TcpStream::connect_timeout(&coordinator, PATIENCE).map_err(failed)?;
    // Between orders others may be busy for long, and the coordinator's end is told at once.
    prepare(&control, None).map_err(failed)?;
    let own = control.local_addr().map_err(failed)?.ip();
    let listener = TcpListener::bind((own, 0)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    Hello::Rank { token, machine, port }.write(&mut control).map_err(failed)?;
    let mut neighbours = None;
    loop {
        match Order::read(&mut control) {
            Ok(Order::Join { rank, ranks, right }) => {
                let (rank, ranks) = (rank as usize, ranks as usize);
                // Old connections go first: a neighbour may wait for them to end.
                drop(neighbours.take());
                let met = Neighbours::meet(&listener, rank, ranks, right);
                neighbours = Some(met.map_err(|error| lost("a neighbour of the ring", &error))?);
                write_done(&mut control).map_err(failed)?;
            }
            Ok(Order::Run(order)) => {
                let ring =
                    neighbours.as_mut().ok_or_else(|| failed(ErrorKind::InvalidData.into()))?;
                let times = measure(ring, order)?;
                times.write(&mut control).map_err(failed)?;
            }
            Ok(Order::End) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(failed(error)),
        }
    }
}

fn measure(ring: &mut Neighbours, order: Run) -> Result<Times> {
    let elements = usize::try_from(order.part).ok().and_then(|part| part.checked_mul(ring.ranks));
    let elements = elements.ok_or_else(|| InputError::new("a buffer is larger than memory"))?;
    let mut data = vec![1.0_f32; elements];
    timed(ring, order, &mut data).map_err(|error| lost("a neighbour of the ring", &error))
}

fn timed(ring: &mut Neighbours, order: Run, data: &mut [f32]) -> io::Result<Times> {
    let mut call = |ring: &mut Neighbours| algorithms::run(order.operation, ring, data);
    call(ring)?;
    ring.barrier()?;
    let (mut blocks, mut barriered) = (Vec::new(), Vec::new());
    let before = ProcessTime::try_now()?;
    for _ in 0..order.blocks {
        let start = Instant::now();
        for _ in 0..order.calls {
            call(ring)?;
        }
        blocks.push(nanos(start.elapsed()) / order.calls.max(1));
    }
    let processor = before.try_elapsed()?;
    for _ in 0..order.barriered {
        ring.barrier()?;
        let start = Instant::now();
        call(ring)?;
        barriered.push(nanos(start.elapsed()));
    }
    let calls = (order.blocks * order.calls).max(1);
    Ok(Times { blocks, barriered, processor: nanos(processor) / calls })
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
