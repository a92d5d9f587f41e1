//! Small statistics used on every floor. All functions ignore nothing: callers filter first.

use std::f64::consts::TAU;

/// The `q` quantile (0 to 1) of a sorted slice by linear interpolation; `None` when empty.
pub fn quantile_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = q.clamp(0.0, 1.0) * last as f64;
    let (low, fraction) = (position.floor() as usize, position.fract());
    let high = (low + 1).min(last);
    Some(sorted[low] + (sorted[high] - sorted[low]) * fraction)
}

/// The `q` quantile of any slice; `None` when empty.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_sorted(&sorted, q)
}

/// The median; `None` when empty.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The arithmetic mean; `None` when empty.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The median of integers, the lower middle for an even count; `None` when empty.
///
/// The lower middle is a value that occurred, so a median of whole durations stays exact.
pub fn median_i64(values: &mut [i64]) -> Option<i64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

/// A robust standard deviation: 1.4826 x the median absolute deviation. `None` below two values.
pub fn robust_std(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let center = median(values)?;
    let deviations: Vec<f64> = values.iter().map(|v| (v - center).abs()).collect();
    median(&deviations).map(|mad| 1.4826 * mad)
}

/// The quantile function of the standard normal distribution (Acklam's rational
/// approximation, relative error below 1.2e-9). `p` is clamped inside (0, 1).
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 5] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 4] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
    ];
    let p = p.clamp(1e-300, 1.0 - 1e-16);
    let tail = |q: f64| {
        (((((C[0] * q + C[1]) * q + C[2]) * q + C[3]) * q + C[4]) * q + C[5])
            / ((((D[0] * q + D[1]) * q + D[2]) * q + D[3]) * q + 1.0)
    };
    if p < 0.02425 {
        tail((-2.0 * p.ln()).sqrt())
    } else if p > 1.0 - 0.02425 {
        -tail((-2.0 * (1.0 - p).ln()).sqrt())
    } else {
        let q = p - 0.5;
        let r = q * q;
        (((((A[0] * r + A[1]) * r + A[2]) * r + A[3]) * r + A[4]) * r + A[5]) * q
            / (((((B[0] * r + B[1]) * r + B[2]) * r + B[3]) * r + B[4]) * r + 1.0)
    }
}

/// A standard normal value from two independent uniform ones between 0 and 1, by the transform of Box
/// and Muller. `chance` sets how far it is from zero: the smaller, the farther; zero counts as the least
/// number above it.
pub fn normal_from_uniform(chance: f64, turn: f64) -> f64 {
    (-2.0 * chance.max(1e-300).ln()).sqrt() * (TAU * turn).cos()
}

/// Expected maximum of `n` independent standard normal values, in standard deviations, by
/// numerical integration of the order statistic's quantile; 0 for n <= 1.
///
/// This is the factor e_n in `E[max]` = mu + sigma * e_n for a synchronous step over n ranks.
pub fn expected_normal_max(n: u64) -> f64 {
    if n <= 1 {
        return 0.0;
    }
    // E[max] = integral over u in (0,1) of Phi^-1(u^(1/n)). Substituting u = s^3 (6s^2 - 15s + 10)
    // flattens both ends, where the quantile diverges; the midpoint rule is then off by less than 1e-9.
    const STEPS: usize = 1_000;
    let power = 1.0 / n as f64;
    let mut sum = 0.0;
    for i in 0..STEPS {
        let s = (i as f64 + 0.5) / STEPS as f64;
        let u = s * s * s * (s * (6.0 * s - 15.0) + 10.0);
        let weight = 30.0 * s * s * (1.0 - s) * (1.0 - s);
        // 1 - u^(1/n) keeps precision near the upper end.
        let complement = -(u.ln() * power).exp_m1();
        sum += weight * -normal_quantile(complement.clamp(1e-300, 1.0));
    }
    sum / STEPS as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), Some(2.0));
        assert_eq!(quantile(&[0.0, 10.0], 0.9), Some(9.0));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(median_i64(&mut [4, 1, 3, 2]), Some(2));
    }

    #[test]
    fn uniform_values_become_normal_ones() {
        // Midpoints of a grid: zero on average, with a variance of one.
        let grid = || (0..400).map(|i| (f64::from(i) + 0.5) / 400.0);
        let values: Vec<f64> =
            grid().flat_map(|a| grid().map(move |b| normal_from_uniform(a, b))).collect();
        let square = values.iter().map(|value| value * value).collect::<Vec<_>>();
        assert!(mean(&values).unwrap().abs() < 1e-9);
        assert!((mean(&square).unwrap() - 1.0).abs() < 5e-3, "{:?}", mean(&square));
        assert!(normal_from_uniform(0.0, 0.0).is_finite());
        assert_eq!(normal_from_uniform(1.0, 0.3), 0.0);
    }

    #[test]
    fn expected_maximum_matches_the_exact_integral() {
        for (n, want) in [
            (2, 0.5642),
            (4, 1.0294),
            (8, 1.4236),
            (16, 1.7660),
            (32, 2.0697),
            (64, 2.3437),
            (128, 2.5946),
            (256, 2.8269),
            (512, 3.0439),
            (1024, 3.2482),
            (4096, 3.6261),
        ] {
            let got = expected_normal_max(n);
            assert!((got - want).abs() < 2e-4, "n={n}: {got} against {want}");
        }
        assert_eq!(expected_normal_max(1), 0.0);
    }
}
