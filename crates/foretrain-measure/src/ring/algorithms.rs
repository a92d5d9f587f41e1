//! The operations on a ring.

use std::io;

use super::RingOperation;
use super::neighbours::{Neighbours, SEGMENT};

/// Runs an operation once on `data`, which holds a part of equal length for every rank.
pub(super) fn run(
    operation: RingOperation,
    neighbours: &mut Neighbours,
    data: &mut [f32],
) -> io::Result<()> {
    match operation {
        RingOperation::AllReduce => {
            reduce_scatter(neighbours, data)?;
            all_gather(neighbours, data)
        }
        RingOperation::ReduceScatter => reduce_scatter(neighbours, data),
        RingOperation::AllGather => all_gather(neighbours, data),
        RingOperation::Broadcast => broadcast(neighbours, data),
        RingOperation::SendRecv => ping_pong(neighbours, data),
    }
}

/// The part of `data` that a rank works on `turn` steps after the one with its own number, backwards.
fn part<'a>(neighbours: &Neighbours, data: &'a mut [f32], number: usize) -> &'a mut [f32] {
    let length = data.len() / neighbours.ranks;
    let number = number % neighbours.ranks;
    &mut data[number * length..(number + 1) * length]
}

/// Afterwards rank r holds the sum of part r + 1.
fn reduce_scatter(neighbours: &mut Neighbours, data: &mut [f32]) -> io::Result<()> {
    let (rank, ranks) = (neighbours.rank, neighbours.ranks);
    for step in 0..ranks - 1 {
        let away = part(neighbours, data, rank + ranks - step);
        neighbours.send(away)?;
        let here = part(neighbours, data, rank + 2 * ranks - step - 1);
        neighbours.receive(here, |own, other| *own += other)?;
    }
    Ok(())
}

/// Rank r begins with part r + 1, as a reduce-scatter leaves it.
fn all_gather(neighbours: &mut Neighbours, data: &mut [f32]) -> io::Result<()> {
    let (rank, ranks) = (neighbours.rank, neighbours.ranks);
    for step in 0..ranks - 1 {
        let away = part(neighbours, data, rank + 1 + ranks - step);
        neighbours.send(away)?;
        let here = part(neighbours, data, rank + ranks - step);
        neighbours.receive(here, |own, other| *own = other)?;
    }
    Ok(())
}

fn broadcast(neighbours: &mut Neighbours, data: &mut [f32]) -> io::Result<()> {
    let (rank, last) = (neighbours.rank, neighbours.ranks - 1);
    for segment in data.chunks_mut(SEGMENT) {
        if rank > 0 {
            neighbours.receive(segment, |own, other| *own = other)?;
        }
        if rank < last {
            neighbours.send(segment)?;
        }
    }
    Ok(())
}

fn ping_pong(neighbours: &mut Neighbours, data: &mut [f32]) -> io::Result<()> {
    if neighbours.rank == 0 {
        neighbours.send(data)?;
    }
    neighbours.receive(data, |own, other| *own = other)?;
    if neighbours.rank != 0 {
        neighbours.send(data)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::neighbours::ring;
    use super::*;

    /// What every rank holds after an operation on data that begins with its own number.
    fn after(operation: RingOperation, ranks: usize, length: usize) -> Vec<Vec<f32>> {
        ring(ranks, move |neighbours| {
            let own = neighbours.rank as f32;
            let mut data: Vec<f32> =
                (0..ranks * length).map(|at| own * 1000.0 + at as f32).collect();
            run(operation, neighbours, &mut data).unwrap();
            data
        })
    }

    #[test]
    fn sums_are_sums_on_all_ranks() {
        for (ranks, length) in [(2, 1), (3, 5), (4, SEGMENT + 3)] {
            let others: f32 = (0..ranks).map(|rank| rank as f32 * 1000.0).sum();
            let want: Vec<f32> =
                (0..ranks * length).map(|at| others + (ranks * at) as f32).collect();
            for data in after(RingOperation::AllReduce, ranks, length) {
                assert_eq!(data, want);
            }
            for (rank, data) in
                after(RingOperation::ReduceScatter, ranks, length).iter().enumerate()
            {
                let own = (rank + 1) % ranks * length;
                assert_eq!(data[own..own + length], want[own..own + length]);
            }
        }
    }

    #[test]
    fn parts_and_messages_reach_everybody() {
        let gathered = after(RingOperation::AllGather, 3, 2);
        // Rank r gave part r + 1.
        assert!(gathered.iter().all(|data| *data == [2000.0, 2001.0, 2.0, 3.0, 1004.0, 1005.0]));
        let told = after(RingOperation::Broadcast, 3, SEGMENT);
        assert!(told.iter().all(|data| *data == told[0] && data[1] == 1.0));
        let echoed = after(RingOperation::SendRecv, 2, 4);
        assert!(echoed.iter().all(|data| data[3] == 3.0), "{echoed:?}");
    }
}
