//! The process that tells ranks what to measure and gathers their times.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use foretrain_core::stats::quantile;
use foretrain_core::{Bytes, InputError, Nanos, Result};

use super::control::{Order, Run, Times, lost, read_done};
use super::machines::{Member, Team};
use super::{RingOperation, RingOptions, RingPoint};
use crate::link::PeerProgram;

/// Calls of a point at least and at most, each way.
const FEWEST: u64 = 3;
const MOST: u64 = 200;
/// A block of short calls takes this long, so that one late wake-up does not count.
const BLOCK: f64 = 2e-3;
/// Part of a point's time for calls with a barrier before each.
const BARRIERED_PART: f64 = 0.3;
/// All-reduce is what most training waits for, so it gets this many times the others' time.
const ALL_REDUCE_WEIGHT: f64 = 3.0;
/// Bytes of an element.
const ELEMENT: u64 = size_of::<f32>() as u64;
/// The largest buffer.
const LARGEST: Bytes = crate::LARGEST;

/// Measures operations on rings of processes, and hands every point to `on_point` as soon as it is
/// known. `on_skip` is told what no time was left for.
///
/// # Errors
/// If sizes or ranks make no sense, processes cannot be started, machines do not come, or a rank is
/// lost; and what `on_point` says.
pub fn measure_ring(
    options: &RingOptions,
    program: &PeerProgram,
    on_point: &mut dyn FnMut(&RingPoint) -> Result<()>,
    on_skip: &mut dyn FnMut(&str),
) -> Result<()> {
    check(options)?;
    let mut counts = options.ranks.clone();
    // The largest first, as it shows soonest whether everybody is there.
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts.dedup();
    let most = counts.first().copied().unwrap_or_default();
    let mut team = Team::gather(most, options.machines, program)?;
    let until = Instant::now() + options.budget;
    let mut weight_left: f64 =
        counts.iter().flat_map(|&ranks| operations(options, ranks)).map(weight).sum();
    for &ranks in &counts {
        join(&mut team.members[..ranks as usize])?;
        for operation in operations(options, ranks) {
            let left = until.saturating_duration_since(Instant::now()).as_secs_f64();
            let share = left * weight(operation) / weight_left.max(weight(operation));
            weight_left -= weight(operation);
            let mut sweep = Sweep { team: &mut team, ranks, operation, seconds: share };
            sweep.run(&options.sizes, on_point, on_skip)?;
        }
    }
    team.end();
    Ok(())
}

fn operations(options: &RingOptions, ranks: u32) -> impl Iterator<Item = RingOperation> + '_ {
    options.operations.iter().copied().filter(move |operation| operation.suits(ranks))
}

fn weight(operation: RingOperation) -> f64 {
    if operation == RingOperation::AllReduce { ALL_REDUCE_WEIGHT } else { 1.0 }
}

fn check(options: &RingOptions) -> Result<()> {
    const MOST_RANKS: u32 = 1024;
    if options.ranks.iter().any(|ranks| !(2..=MOST_RANKS).contains(ranks))
        || options.ranks.is_empty()
    {
        let error = InputError::new("a ring takes 2 to 1,024 ranks");
        return Err(error.hint("give numbers of processes, as in --procs 2,4"));
    }
    if let Some(beyond) = options.sizes.iter().find(|size| **size > LARGEST) {
        return Err(InputError::new(format!("{beyond} is more than is measured at once"))
            .hint(format!("sizes up to {LARGEST} will do: beyond, time goes with size")));
    }
    if options.sizes.is_empty() || options.operations.is_empty() {
        return Err(InputError::new("there is nothing to measure: no size or no operation"));
    }
    Ok(())
}

/// Makes the members a ring.
fn join(members: &mut [Member]) -> Result<()> {
    let ranks = members.len() as u64;
    let rights: Vec<SocketAddr> =
        (0..members.len()).map(|rank| members[(rank + 1) % members.len()].data).collect();
    for (rank, (member, right)) in members.iter_mut().zip(rights).enumerate() {
        let order = Order::Join { rank: rank as u64, ranks, right };
        order.write(&mut member.control).map_err(|error| lost(&member.name(rank), &error))?;
    }
    for (rank, member) in members.iter_mut().enumerate() {
        read_done(&mut member.control).map_err(|error| lost(&member.name(rank), &error))?;
    }
    Ok(())
}

/// The sizes of one operation on one ring.
struct Sweep<'a> {
    team: &'a mut Team,
    ranks: u32,
    operation: RingOperation,
    seconds: f64,
}

impl Sweep<'_> {
    fn run(
        &mut self,
        sizes: &[Bytes],
        on_point: &mut dyn FnMut(&RingPoint) -> Result<()>,
        on_skip: &mut dyn FnMut(&str),
    ) -> Result<()> {
        let until = Instant::now() + Duration::from_secs_f64(self.seconds);
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable();
        sizes.dedup();
        let mut previous: Option<(f64, f64)> = None;
        for (done, &size) in sizes.iter().enumerate() {
            let left = until.saturating_duration_since(Instant::now()).as_secs_f64();
            let expected =
                previous.map_or(0.0, |(bytes, once)| once * size.as_f64() / bytes.max(1.0));
            if left <= 0.0 || 2.5 * FEWEST as f64 * expected > left {
                let (what, ranks) = (self.operation.as_str(), self.ranks);
                on_skip(&format!("{what} of {size} and more on {ranks} ranks: no time left"));
                return Ok(());
            }
            let (once, point) = self.point(size, left / (sizes.len() - done) as f64)?;
            previous = Some((size.as_f64(), once));
            on_point(&point)?;
        }
        Ok(())
    }

    /// Seconds of a call, and the point.
    fn point(&mut self, size: Bytes, seconds: f64) -> Result<(f64, RingPoint)> {
        let part = (size.get() / ELEMENT / u64::from(self.ranks)).max(1);
        let first = Run { operation: self.operation, part, blocks: 1, calls: 1, barriered: 0 };
        let once = slowest(&self.ask(first)?, |times| &times.blocks)[0].max(1.0) / 1e9;
        let count = |once: f64, seconds: f64| ((seconds / once) as u64).clamp(FEWEST, MOST);
        let total = count(once, seconds * (1.0 - BARRIERED_PART));
        let calls = ((BLOCK / once) as u64).clamp(1, total / FEWEST);
        let order = Run {
            blocks: total / calls,
            calls,
            // A barrier takes a while as well.
            barriered: count(2.0 * once, seconds * BARRIERED_PART),
            ..first
        };
        let all = self.ask(order)?;
        // A ping-pong is two messages.
        let scale = if self.operation == RingOperation::SendRecv { 0.5 } else { 1.0 };
        let summary = |times: fn(&Times) -> &Vec<u64>| {
            slowest(&all, times).map(|ns| Nanos::from_nanos_f64(ns * scale))
        };
        let processor = all.iter().map(|times| times.processor).max().unwrap_or_default();
        let point = RingPoint {
            operation: self.operation,
            ranks: self.ranks,
            nodes: self.team.machines_of(self.ranks),
            bytes: Bytes::new(part * ELEMENT * u64::from(self.ranks)),
            back_to_back: summary(|times| &times.blocks),
            barriered: summary(|times| &times.barriered),
            calls: order.blocks * order.calls,
            processor: Nanos::from_nanos_f64(processor as f64 * scale),
        };
        Ok((once, point))
    }

    /// Has the ring run something; times by rank.
    fn ask(&mut self, run: Run) -> Result<Vec<Times>> {
        let members = &mut self.team.members[..self.ranks as usize];
        for (rank, member) in members.iter_mut().enumerate() {
            Order::Run(run)
                .write(&mut member.control)
                .map_err(|error| lost(&member.name(rank), &error))?;
        }
        let each = members.iter_mut().enumerate().map(|(rank, member)| {
            Times::read(&mut member.control).map_err(|error| lost(&member.name(rank), &error))
        });
        each.collect()
    }
}

/// Median, p10 and p90 of each rank's times, and of each of these the largest.
fn slowest(all: &[Times], of: impl Fn(&Times) -> &Vec<u64>) -> [f64; 3] {
    let mut largest = [0.0_f64; 3];
    for times in all {
        let values: Vec<f64> = of(times).iter().map(|&ns| ns as f64).collect();
        for (largest, part) in largest.iter_mut().zip([0.5, 0.1, 0.9]) {
            *largest = largest.max(quantile(&values, part).unwrap_or(0.0));
        }
    }
    largest
}
