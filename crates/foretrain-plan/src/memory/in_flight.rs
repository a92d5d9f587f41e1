//! Activations of micro-batches between their passes.

use foretrain_core::Bytes;

use crate::pipeline::{Kind, Orders, Place};

/// The most that `stage` keeps at once, when each forward pass over a chunk keeps `kept`, until its
/// last gradient is formed.
pub fn peak_in_flight(orders: &Orders, stage: u32, kept: impl Fn(Place) -> Bytes) -> Bytes {
    let sizes: Vec<Bytes> = (0..orders.chunks).map(|chunk| kept(Place { stage, chunk })).collect();
    let tasks = &orders.stages[stage as usize];
    let apart = tasks.iter().any(|task| task.kind == Kind::Weights);
    let last = if apart { Kind::Weights } else { Kind::Backward };
    let (mut held, mut peak) = (Bytes::ZERO, Bytes::ZERO);
    for task in tasks {
        let size = sizes[task.chunk as usize];
        if task.kind == Kind::Forward {
            held += size;
            peak = peak.max(held);
        } else if task.kind == last {
            held = held - size;
        }
    }
    peak
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Schedule;
    use crate::pipeline::orders;

    fn in_flight(schedule: Schedule, chunks: u32, stage: u32) -> u64 {
        let orders = orders(schedule, 4, chunks, 16).unwrap();
        peak_in_flight(&orders, stage, |_| Bytes::new(1)).get()
    }

    /// Micro-batches in flight of p = 4: `p - s` for 1F1B; one more than the warm-up when
    /// interleaved (Megatron-LM issue 169); all with GPipe.
    #[test]
    fn as_many_as_the_schedule_lets_in() {
        let of = |schedule, chunks| [0, 1, 2, 3].map(|stage| in_flight(schedule, chunks, stage));
        assert_eq!(of(Schedule::OneFOneB, 1), [4, 3, 2, 1]);
        assert_eq!(of(Schedule::OneFOneB, 2), [11, 9, 7, 5]);
        assert_eq!(of(Schedule::GPipe, 1), [16; 4]);
        assert_eq!(of(Schedule::ZbH1, 1), [4, 4, 4, 4]);
        assert_eq!(of(Schedule::ZbH2, 1), [7, 7, 7, 7]);
        // Halves of a stage: as much as 1F1B's first stage on every stage.
        assert!(of(Schedule::ZbV, 2).iter().all(|&halves| halves <= 9));
    }
}
