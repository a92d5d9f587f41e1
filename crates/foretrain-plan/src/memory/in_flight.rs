//! Activations of micro-batches between their passes.

use foretrain_core::Bytes;

use crate::pipeline::{Kind, Orders};

/// Micro-batches that a stage holds of each of its chunks at once; of all moments those that are no
/// smaller in every chunk than another.
pub type Held = Vec<u32>;

/// The fullest moments of `stage`: each forward pass over a chunk is kept until its last gradient is
/// formed.
pub fn fullest_moments(orders: &Orders, stage: u32) -> Vec<Held> {
    let tasks = &orders.stages[stage as usize];
    let apart = tasks.iter().any(|task| task.kind == Kind::Weights);
    let last = if apart { Kind::Weights } else { Kind::Backward };
    let mut held = vec![0_u32; orders.chunks as usize];
    let mut moments: Vec<Held> = Vec::new();
    // Only where something is let go after a forward pass can a moment be a fullest one.
    let mut grew = false;
    for task in tasks {
        if task.kind == Kind::Forward {
            held[task.chunk as usize] += 1;
            grew = true;
        } else if task.kind == last {
            if std::mem::take(&mut grew) {
                keep(&mut moments, &held);
            }
            held[task.chunk as usize] -= 1;
        }
    }
    moments
}

fn keep(moments: &mut Vec<Held>, held: &Held) {
    let covers = |a: &Held, b: &Held| a.iter().zip(b).all(|(a, b)| a >= b);
    if moments.iter().any(|moment| covers(moment, held)) {
        return;
    }
    moments.retain(|moment| !covers(held, moment));
    moments.push(held.clone());
}

/// The most that a stage keeps at once, when each forward pass over a chunk keeps `kept`.
pub fn peak_in_flight(moments: &[Held], kept: &[Bytes]) -> Bytes {
    let size = |moment: &Held| -> Bytes {
        let sizes = moment.iter().zip(kept);
        sizes.map(|(&count, kept)| Bytes::new(kept.get().saturating_mul(u64::from(count)))).sum()
    };
    moments.iter().map(size).max().unwrap_or(Bytes::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Schedule;
    use crate::pipeline::orders;

    fn in_flight(schedule: Schedule, chunks: u32, stage: u32) -> u64 {
        let orders = orders(schedule, 4, chunks, 16).unwrap();
        let moments = fullest_moments(&orders, stage);
        peak_in_flight(&moments, &vec![Bytes::new(1); chunks as usize]).get()
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

    #[test]
    fn chunks_of_different_sizes_have_their_own_fullest_moment() {
        let orders = orders(Schedule::OneFOneB, 4, 2, 8).unwrap();
        let moments = fullest_moments(&orders, 0);
        let of = |kept: [u64; 2]| peak_in_flight(&moments, &kept.map(Bytes::new)).get();
        assert_eq!(of([1, 1]), 11);
        assert!(of([1, 0]) >= 7 && of([0, 1]) >= 4);
    }
}
