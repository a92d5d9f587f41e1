//! Layouts that nothing beats in every respect.

/// Positions of the items that no other equals or beats in all respects while beating it in one.
/// Smaller is better. Of equal items the first stays.
pub fn pareto<const N: usize>(items: &[[f64; N]]) -> Vec<usize> {
    let beats = |a: &[f64; N], b: &[f64; N]| {
        a.iter().zip(b).all(|(x, y)| x <= y) && a.iter().zip(b).any(|(x, y)| x < y)
    };
    let kept = |&at: &usize| {
        let item = &items[at];
        let beaten = items.iter().any(|other| beats(other, item));
        let repeated = items[..at].contains(item);
        !beaten && !repeated
    };
    (0..items.len()).filter(kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beaten_goes() {
        let items = [[1.0, 5.0], [2.0, 2.0], [2.0, 3.0], [5.0, 1.0], [1.0, 5.0], [6.0, 6.0]];
        assert_eq!(pareto(&items), [0, 1, 3]);
        assert!(pareto::<2>(&[]).is_empty());
    }
}
