//! What placements cost per byte and how much of it models hide, learned from steps.
//!
//! A step shows what its synchronisation takes beyond the computation that runs at the same time. How
//! long a byte takes is the placement's, how much of the computation hides is the model's.

use std::collections::BTreeMap;

/// Nodes and GPUs.
pub(super) type Cell = (u32, u32);

/// Share of the synchronisation that shows whatever the computation: the gradients computed last.
const LAST: f64 = 0.05;
/// Shares of the computation that a model may hide are tried in so many parts.
const PARTS: u32 = 20;
/// Shares that the fit begins with. A slow network behind which much hides looks much like a fast one
/// where nothing does, so one beginning may end in the wrong one.
const BEGINNINGS: [f64; 3] = [0.0, 0.3, 0.6];
/// Rounds of learning one from the other; the shares hardly move after the third.
const ROUNDS: usize = 4;

/// One measured step, seconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The computation in it.
    pub(super) computation: f64,
    /// All of it.
    pub(super) seconds: f64,
}

/// Steps of one model in one kind of placement.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub(super) model: &'a str,
    pub(super) cell: Cell,
    /// Gradients of the model, in any unit that all groups share.
    pub(super) size: f64,
    pub(super) steps: Vec<Step>,
}

/// Seconds for each unit of size, by placement.
pub(super) type Rates = BTreeMap<Cell, f64>;

/// What shows of a synchronisation of `full` seconds beside a computation of which `share` can hide it.
pub(super) fn shown(full: f64, share: f64, computation: f64) -> f64 {
    (full - share * computation).max(LAST * full)
}

/// What placements cost, from these groups alone.
pub(super) fn rates(groups: &[&Group<'_>]) -> Rates {
    let from = |beginning| {
        let mut shares: BTreeMap<&str, f64> =
            groups.iter().map(|group| (group.model, beginning)).collect();
        let mut rates = Rates::new();
        for _ in 0..ROUNDS {
            rates = rates_with(groups, &shares);
            for (model, share) in &mut shares {
                let own: Vec<&Group<'_>> =
                    groups.iter().copied().filter(|group| group.model == *model).collect();
                *share = share_hidden(&own, &rates);
            }
        }
        let error: f64 =
            groups.iter().filter_map(|group| group.error(&rates, shares[group.model])).sum();
        (error, rates)
    };
    let fits = BEGINNINGS.map(from);
    let best = fits.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, rates)| rates).unwrap_or_default()
}

/// The share of its computation that a model hides, from its groups in placements whose rates are known.
pub(super) fn share_hidden(own: &[&Group<'_>], rates: &Rates) -> f64 {
    let shares = (0..=PARTS).map(|part| f64::from(part) / f64::from(PARTS));
    let error = |share| own.iter().filter_map(|group| group.error(rates, share)).sum::<f64>();
    let tried = shares.map(|share| (share, error(share)));
    tried.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0.0, |(share, _)| share)
}

impl Group<'_> {
    /// Mean absolute logarithm of predicted over measured steps.
    fn error(&self, rates: &Rates, share: f64) -> Option<f64> {
        let full = rates.get(&self.cell)? * self.size;
        let off = |step: &Step| {
            let predicted = step.computation + shown(full, share, step.computation);
            (predicted / step.seconds).ln().abs()
        };
        Some(self.steps.iter().map(off).sum::<f64>() / self.steps.len() as f64)
    }

    /// For each step the rate that explains it, and how much the step tells of it: by how much the step
    /// changes, in relative terms, with the rate. Each group weighs the same.
    fn explained(&self, share: f64) -> impl Iterator<Item = (f64, f64)> {
        self.steps.iter().map(move |step| {
            let shows = step.seconds - step.computation;
            let full = shows + share * step.computation;
            let hides_all = LAST * full > shows;
            let (full, slope) = if hides_all { (shows.max(0.0) / LAST, LAST) } else { (full, 1.0) };
            let weight = slope * self.size / step.seconds / self.steps.len() as f64;
            (full / self.size, weight)
        })
    }
}

fn rates_with(groups: &[&Group<'_>], shares: &BTreeMap<&str, f64>) -> Rates {
    let mut explained: BTreeMap<Cell, Vec<(f64, f64)>> = BTreeMap::new();
    for group in groups {
        explained.entry(group.cell).or_default().extend(group.explained(shares[group.model]));
    }
    explained
        .into_iter()
        .filter_map(|(cell, values)| Some((cell, weighted_median(values)?)))
        .collect()
}

/// The least value at which half of the weight is reached: it has the least weighted distance.
fn weighted_median(mut values: Vec<(f64, f64)>) -> Option<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|value| value.1).sum::<f64>() / 2.0;
    let mut reached = 0.0;
    values
        .into_iter()
        .find(|value| {
            reached += value.1;
            reached >= half
        })
        .map(|value| value.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group<'a>(model: &'a str, cell: Cell, (rate, share): (f64, f64), size: f64) -> Group<'a> {
        let steps = [0.1, 0.2, 0.4, 0.8].map(|computation| Step {
            computation,
            seconds: computation + shown(rate * size, share, computation),
        });
        Group { model, cell, size, steps: steps.into() }
    }

    #[test]
    fn rates_and_shares_are_found_again() {
        let truth = [("a", 0.0, 1.0), ("b", 0.2, 3.0), ("c", 0.6, 2.0)];
        let cells = [((1, 4), 0.05), ((2, 8), 0.2), ((4, 16), 0.35)];
        let groups: Vec<Group<'_>> = truth
            .iter()
            .flat_map(|(model, share, size)| {
                cells.map(|(cell, rate)| group(model, cell, (rate, *share), *size))
            })
            .collect();
        let groups: Vec<&Group<'_>> = groups.iter().collect();
        let rates = rates(&groups);
        for (cell, rate) in cells {
            assert!((rates[&cell] / rate - 1.0).abs() < 0.06, "{cell:?}: {}", rates[&cell]);
        }
        // A new model's share follows from one node alone.
        let own = group("d", (1, 4), (0.05, 0.4), 4.0);
        assert!((share_hidden(&[&own], &rates) - 0.4).abs() < 0.06);
    }

    #[test]
    fn the_last_gradients_always_show() {
        assert!((shown(0.1, 0.5, 10.0) - LAST * 0.1).abs() < 1e-12);
        assert!((shown(1.0, 0.0, 10.0) - 1.0).abs() < 1e-12);
        assert!((shown(1.0, 0.5, 0.4) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn the_weighted_median_ignores_a_light_outlier() {
        assert_eq!(weighted_median(vec![(900.0, 0.1), (2.0, 1.0), (1.0, 0.5)]), Some(2.0));
        assert_eq!(weighted_median(Vec::new()), None);
    }
}
