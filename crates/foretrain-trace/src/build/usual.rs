//! Which of several recorded steps are usual ones.

use foretrain_core::Nanos;

/// Steps as far from the usual ones as this many times the spread of the closest half are others.
/// (Of normally distributed values, half lie within 0.67 standard deviations of the middle and
/// 95 % within three times that.)
const REACH: f64 = 3.0;

/// Steps that differ from the usual ones by less than this fraction are alike, however close
/// together a few of them happen to be.
const ALIKE: f64 = 0.05;

/// Positions of the usual steps, in order, given the times of all.
///
/// What disturbs a step (a loader that stalls, a first step that compiles, a pause of the host)
/// changes its time by a multiple, in many recordings every other step, and then no median over
/// all steps is the time of any. The usual steps are found around the half of all steps whose
/// times are closest together by ratio (the shorth; Andrews et al. 1972), which neither a few
/// short nor nearly half long ones can move.
pub(super) fn usual(times: &[Nanos]) -> Vec<usize> {
    let log = |i: usize| (times[i].nanos().max(1) as f64).ln();
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|&i| (times[i], i));
    let half = times.len() / 2 + 1;
    let width = |first: usize| log(order[first + half - 1]) - log(order[first]);
    // The first of equals: the shorter steps.
    let first = (0..(times.len() + 1).saturating_sub(half))
        .min_by(|&a, &b| width(a).total_cmp(&width(b)))
        .unwrap_or(0);
    let closest = first..first + half;
    let Some(&middle) = order.get(first + (half - 1) / 2) else { return Vec::new() };
    let reach = (REACH * 0.5 * width(first)).max(ALIKE);
    let is_usual = |&(place, &i): &(usize, &usize)| {
        closest.contains(&place) || (log(i) - log(middle)).abs() <= reach
    };
    let mut usual: Vec<usize> =
        order.iter().enumerate().filter(is_usual).map(|(_, &i)| i).collect();
    usual.sort_unstable();
    usual
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual_of(times: &[i64]) -> Vec<usize> {
        let times: Vec<Nanos> = times.iter().map(|&ms| Nanos::from_millis(ms)).collect();
        usual(&times)
    }

    #[test]
    fn steps_in_which_a_loader_stalled_are_not_usual() {
        assert_eq!(usual_of(&[160, 155, 512, 159, 775, 162, 465]), [0, 1, 3, 5]);
    }

    #[test]
    fn a_short_first_step_is_not_usual_either() {
        assert_eq!(usual_of(&[115, 1015, 1068, 1076]), [1, 2, 3]);
    }

    #[test]
    fn steps_that_differ_by_noise_are_all_usual() {
        assert_eq!(usual_of(&[100, 102, 98, 103, 99, 101, 97]), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(usual_of(&[100, 100, 100, 104, 120]), [0, 1, 2, 3]);
        assert_eq!(usual_of(&[100, 150]), [0, 1]);
        assert_eq!(usual_of(&[100]), [0]);
        assert!(usual_of(&[]).is_empty());
    }
}
