//! GPUs cut into isolated slices (NVIDIA's MIG on A100 and H100).
//!
//! A GPU has eight memory slices and seven compute slices. An instance of 1, 2, 3, 4 or 7 compute
//! slices takes 1, 2, 4, 4 or 8 memory slices in a row, beginning where the driver allows it.
//! Source: NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles".

/// Memory slices of one instance, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Compute slices, of seven.
    pub sevenths: u8,
    /// Memory slices, of eight.
    pub mask: u8,
}

/// Compute slices of an instance, the memory slices it takes, and where it may begin.
const PROFILES: [(u8, u8, &[u8]); 5] = [
    (1, 1, &[6, 4, 5, 0, 1, 2, 3]),
    (2, 2, &[4, 0, 2]),
    (3, 4, &[4, 0]),
    (4, 4, &[0]),
    (7, 8, &[0]),
];

/// Whether instances of so many compute slices exist.
pub fn exists(sevenths: u8) -> bool {
    PROFILES.iter().any(|(compute, ..)| *compute == sevenths)
}

/// A place for an instance beside those that hold the memory slices `taken`. Small instances keep
/// clear of where the larger ones have to begin.
pub(super) fn find(sevenths: u8, taken: u8) -> Option<Slot> {
    let &(compute, memory, starts) = PROFILES.iter().find(|(compute, ..)| *compute == sevenths)?;
    let mask = |start: &u8| (((1u16 << memory) - 1) << start) as u8;
    let free = starts.iter().map(mask).find(|mask| mask & taken == 0)?;
    Some(Slot { sevenths: compute, mask: free })
}

/// The rate of a job on a slice over that on the whole GPU: it keeps its rate until the slice is
/// busier than the job would keep the whole.
pub(super) fn rate(sevenths: u8, utilisation: f64) -> f64 {
    let part = f64::from(sevenths) / 7.0;
    (part / utilisation.clamp(1e-3, 1.0)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(wanted: &[u8]) -> Option<u8> {
        wanted
            .iter()
            .try_fold(0, |taken, &sevenths| find(sevenths, taken).map(|slot| taken | slot.mask))
    }

    #[test]
    fn combinations_are_those_of_the_driver() {
        assert!(fill(&[1; 7]).is_some());
        assert!(fill(&[1; 8]).is_none());
        assert!(fill(&[3, 3]).is_some());
        assert!(fill(&[4, 3]).is_some());
        assert!(fill(&[4, 4]).is_none());
        assert!(fill(&[2, 2, 2, 1]).is_some());
        assert!(fill(&[3, 4]).is_some(), "an instance of 3 leaves the place of one of 4");
        assert!(fill(&[7]).is_some() && fill(&[7, 1]).is_none());
        assert!(find(5, 0).is_none());
    }

    #[test]
    fn a_small_job_keeps_its_rate_on_a_slice() {
        assert_eq!(rate(2, 0.2), 1.0);
        assert!((rate(1, 0.5) - 2.0 / 7.0).abs() < 1e-12);
        assert_eq!(rate(7, 1.0), 1.0);
    }
}
