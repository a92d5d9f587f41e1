//! Isolated slices of GPUs, by their names.

use super::job::Job;

/// Compute slices of the instances that exist, of seven.
const SIZES: [u8; 5] = [1, 2, 3, 4, 7];

/// Sevenths of a GPU in the name of an isolated slice, as in `MIG-3g.20gb` or `A100 1g.5gb`.
pub fn slice_of(kind: &str) -> Option<u8> {
    let (before, after) = kind.split_once("g.")?;
    let sevenths = before.chars().last()?.to_digit(10)? as u8;
    let memory = after.chars().take_while(char::is_ascii_digit).count();
    let named = memory > 0 && after[memory..].to_ascii_lowercase().starts_with("gb");
    (named && SIZES.contains(&sevenths)).then_some(sevenths)
}

impl Job {
    /// Sevenths of a GPU that it counts its GPUs in; none if they are whole.
    pub fn slice(&self) -> Option<u8> {
        if self.gpu_kind.is_empty() {
            return None;
        }
        slice_of(&self.gpu_kind).filter(|sevenths| *sevenths < 7)
    }

    /// Its GPUs, where slices count as their part of one.
    pub fn whole_gpus(&self) -> Option<f64> {
        let part = self.slice().map_or(1.0, |sevenths| f64::from(sevenths) / 7.0);
        self.gpus.map(|gpus| gpus * part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_told_by_their_names() {
        assert_eq!(slice_of("MIG-3g.20gb"), Some(3));
        assert_eq!(slice_of("A100 1g.5GB"), Some(1));
        for other in ["A100-40gb", "v100", "5g.5gb", "3g.", "g.5gb", ""] {
            assert_eq!(slice_of(other), None, "{other}");
        }
    }

    #[test]
    fn slices_are_parts_of_gpus() {
        let gpus = |kind: &str| {
            Job { gpus: Some(7.0), gpu_kind: kind.into(), ..Job::default() }.whole_gpus()
        };
        assert_eq!([gpus("MIG-1g.5gb"), gpus("7g.40gb"), gpus("A100")], [1.0, 7.0, 7.0].map(Some));
    }
}
