//! Measuring everything within a time.

use std::time::{Duration, Instant};

use foretrain_core::{Bytes, InputError, Result};
use foretrain_cost::primitives::{Measured, Operation};

use crate::clock::Clock;
use crate::link::{Link, PeerProgram};
use crate::local::{Local, operations};
use crate::sample::Patience;

/// The largest buffer that is measured; the two processes hold six times as much.
pub const LARGEST: Bytes = Bytes::from_mib(1024);

/// What to measure and how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureOptions {
    /// Of the buffers; whole float32 elements are taken, one at least.
    pub sizes: Vec<Bytes>,
    /// About how long to measure. Each size is measured a few times even if it is over.
    pub budget: Duration,
}

/// Something to measure of a size.
#[derive(Clone, Copy, Debug)]
enum Task {
    /// To the peer.
    Transfer,
    /// On this side.
    Local(Operation),
}

/// Bytes of a float32 element.
const ELEMENT: u64 = size_of::<f32>() as u64;

/// Measures the primitives of this machine. `progress` is told what was measured last, how many
/// measurements are done, and how many there are.
///
/// # Errors
/// If sizes are too few or too large, or the second process cannot be started or fails.
pub fn measure(
    options: &MeasureOptions,
    peer: &PeerProgram,
    progress: &dyn Fn(&str, usize, usize),
) -> Result<Measured> {
    let sizes = sizes(&options.sizes)?;
    let largest = sizes.iter().copied().max().unwrap_or_default();
    let clock = Clock::new()?;
    let mut link = Link::start(peer, largest)?;
    let mut local = Local::new(largest.get() as usize);
    let tasks: Vec<Task> =
        std::iter::once(Task::Transfer).chain(operations().map(Task::Local)).collect();
    let total = sizes.len() * tasks.len();
    let end = Instant::now() + options.budget;
    let mut measured = Measured::default();
    for (done, (bytes, task)) in
        sizes.iter().flat_map(|&bytes| tasks.iter().map(move |task| (bytes, task))).enumerate()
    {
        progress(&format!("{bytes}"), done, total);
        // What small sizes leave of their share is there for larger ones.
        let left = end.saturating_duration_since(Instant::now());
        let patience = Patience::of(left / u32::try_from(total - done).unwrap_or(u32::MAX));
        match *task {
            Task::Transfer => transfer(&mut link, bytes, &clock, patience, &mut measured)?,
            Task::Local(operation) => {
                let elements = (bytes.get() / ELEMENT) as usize;
                for ns in local.times(operation, elements, &clock, patience)? {
                    measured.push(operation, bytes, ns);
                }
            }
        }
    }
    Ok(measured)
}

fn transfer(
    link: &mut Link,
    bytes: Bytes,
    clock: &Clock,
    patience: Patience,
    measured: &mut Measured,
) -> Result<()> {
    // The connection's windows may still be small.
    link.exchange(bytes, clock, 2)?;
    let mut repeats = 0;
    while patience.lasts(repeats) {
        // The first finds a peer that was just woken by what to expect.
        for one in link.exchange(bytes, clock, AT_ONCE)?.into_iter().skip(1) {
            measured.push(Operation::Send, bytes, one.send_ns);
            measured.push(Operation::Receive, bytes, one.receive_ns);
            measured.push(Operation::OneWay, bytes, one.one_way_ns);
        }
        repeats += AT_ONCE as usize - 1;
    }
    Ok(())
}

/// Buffers in a row.
const AT_ONCE: u64 = 4;

/// Sizes in whole elements, smallest first, each once.
fn sizes(asked: &[Bytes]) -> Result<Vec<Bytes>> {
    if let Some(beyond) = asked.iter().find(|size| **size > LARGEST) {
        return Err(InputError::new(format!("{beyond} is more than is measured at once"))
            .hint(format!("sizes up to {LARGEST} will do: beyond, time goes with size")));
    }
    let whole = asked.iter().map(|size| Bytes::new((size.get() / ELEMENT).max(1) * ELEMENT));
    let mut sizes: Vec<Bytes> = whole.collect();
    sizes.sort_unstable();
    sizes.dedup();
    if sizes.len() < 2 {
        return Err(InputError::new("a line takes two sizes at least")
            .hint("sizes far apart tell most, as in 1K..64M"));
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_whole_elements_and_at_least_two() {
        let of = |sizes: &[u64]| sizes_of(sizes).map(|all| all.iter().map(|b| b.get()).collect());
        assert_eq!(of(&[4_096, 1, 7, 4_099]), Ok(vec![4, 4_096]));
        assert!(of(&[4_096, 4_097]).unwrap_err().message().contains("two sizes"));
        assert!(of(&[1, 1 << 31]).unwrap_err().hints()[0].contains("1.000 GiB"));
    }

    fn sizes_of(all: &[u64]) -> Result<Vec<Bytes>> {
        let all: Vec<Bytes> = all.iter().copied().map(Bytes::new).collect();
        sizes(&all)
    }
}
