//! Ranks of different speed: a synchronous step takes as long as that of the slowest.

use foretrain_core::Nanos;

use super::answer::{RankAnswer, SplitAnswer, Verdict};
use super::input::RankKind;

/// Ranks whose steps differ by less wait for nobody.
const BALANCED: f64 = 0.1;

/// `None` without ranks.
pub(super) fn answer(kinds: &[RankKind], global_batch: Option<f64>) -> Option<RankAnswer> {
    if kinds.is_empty() {
        return None;
    }
    let batches: Option<Vec<f64>> = kinds.iter().map(|kind| kind.batch).collect();
    let present = batches.as_ref().map(|batches| split(kinds, batches));
    let total: f64 = kinds.iter().map(|kind| kind.rate * f64::from(kind.count)).sum();
    let mut warnings = Vec::new();
    let best = best(kinds, total, present.as_ref(), global_batch, &mut warnings);
    let differ = best.kinds.windows(2).any(|pair| pair[0].2 != pair[1].2);
    if differ {
        warnings.push("batches differ: a mean of each rank's mean loss weighs samples of small batches more. Scale each rank's loss by its batch times the number of ranks over the global batch, or sum and divide by the global batch.".into());
    }
    let spread = |split: &SplitAnswer| {
        let fastest = split.kinds.iter().map(|kind| kind.3).min().unwrap_or_default();
        1.0 - fastest.secs_f64() / split.step.secs_f64()
    };
    let verdict = match &present {
        None => Verdict::NotEnoughInformation,
        Some(split) if spread(split) > BALANCED => Verdict::ImbalancedRanks,
        Some(_) => Verdict::ScalesWell,
    };
    Some(RankAnswer { verdict, present, best, warnings })
}

/// Batches in proportion to speed. They sum up to the global batch if that is fixed; else the step is
/// the longest for which every kind's batch fits its memory, no longer than the present one where
/// memory is unknown.
fn best(
    kinds: &[RankKind],
    total: f64,
    present: Option<&SplitAnswer>,
    global_batch: Option<f64>,
    warnings: &mut Vec<String>,
) -> SplitAnswer {
    let limits = kinds.iter().filter_map(|kind| Some(kind.most_batch? / kind.rate));
    let memory = limits.reduce(f64::min);
    let now = present.map(|split| split.step.secs_f64());
    let wanted = global_batch.map(|batch| batch / total).or(memory).or(now).unwrap_or(1.0);
    let fits = memory.is_none_or(|most| wanted <= most * (1.0 + 1e-9));
    let mut batches: Vec<f64> = if fits {
        kinds.iter().map(|kind| whole(kind.rate * wanted, kind.most_batch)).collect()
    } else {
        fill(kinds, global_batch.unwrap_or(0.0), warnings)
    };
    if let Some(batch) = global_batch {
        top_up(kinds, batch, &mut batches);
        let sum = sum_of(kinds, &batches);
        if warnings.is_empty() && (sum - batch).abs() > 0.5 {
            warnings.push(format!(
                "batches of whole samples, equal among ranks of a kind, sum up to {sum} and not to the global batch of {batch}"
            ));
        }
    }
    let held = kinds.iter().any(|kind| kind.most_batch.is_none());
    if held {
        warnings
            .push("memory is not known of every kind of rank: check that the batches fit".into());
    }
    split(kinds, &batches)
}

/// A global batch that some kinds cannot take their share of: those are filled, the others take the
/// rest.
fn fill(kinds: &[RankKind], batch: f64, warnings: &mut Vec<String>) -> Vec<f64> {
    let mut full = vec![false; kinds.len()];
    loop {
        let count = |i: usize| f64::from(kinds[i].count);
        let most = |i: usize| kinds[i].most_batch.unwrap_or(f64::INFINITY);
        let taken: f64 = (0..kinds.len()).filter(|i| full[*i]).map(|i| most(i) * count(i)).sum();
        let speed: f64 =
            (0..kinds.len()).filter(|i| !full[*i]).map(|i| kinds[i].rate * count(i)).sum();
        if speed <= 0.0 {
            warnings.push(format!("a global batch of {batch} does not fit the ranks' memory"));
            return (0..kinds.len()).map(most).collect();
        }
        let time = (batch - taken).max(0.0) / speed;
        let over = (0..kinds.len()).find(|i| !full[*i] && kinds[*i].rate * time > most(*i));
        match over {
            Some(i) => full[i] = true,
            None => {
                let own = |i: usize| if full[i] { most(i) } else { kinds[i].rate * time };
                return (0..kinds.len()).map(|i| whole(own(i), kinds[i].most_batch)).collect();
            }
        }
    }
}

/// Hands out what rounding down has left of a global batch: one sample more to each rank of a kind,
/// first where that takes least time.
fn top_up(kinds: &[RankKind], batch: f64, batches: &mut [f64]) {
    let mut left = batch - sum_of(kinds, batches);
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    order.sort_by(|&a, &b| {
        let time = |i: usize| (batches[i] + 1.0) / kinds[i].rate;
        time(a).total_cmp(&time(b))
    });
    for i in order {
        let count = f64::from(kinds[i].count);
        if count <= left && kinds[i].most_batch.is_none_or(|most| batches[i] + 1.0 <= most) {
            batches[i] += 1.0;
            left -= count;
        }
    }
}

/// Samples of all ranks.
fn sum_of(kinds: &[RankKind], batches: &[f64]) -> f64 {
    kinds.iter().zip(batches).map(|(kind, batch)| f64::from(kind.count) * batch).sum()
}

/// A batch of whole samples that fits.
fn whole(batch: f64, most: Option<f64>) -> f64 {
    // 1e-9: a limit divided and multiplied by the same speed is that limit.
    let batch = (batch * (1.0 + 1e-9)).floor().max(1.0);
    most.map_or(batch, |most| batch.min(most))
}

fn split(kinds: &[RankKind], batches: &[f64]) -> SplitAnswer {
    let time = |kind: &RankKind, batch: f64| Nanos::from_secs_f64(batch / kind.rate);
    let rows: Vec<(String, u32, f64, Nanos)> = kinds
        .iter()
        .zip(batches)
        .map(|(kind, &batch)| (kind.name.clone(), kind.count, batch, time(kind, batch)))
        .collect();
    let step = rows.iter().map(|row| row.3).max().unwrap_or_default();
    let samples = sum_of(kinds, batches);
    let seconds = step.secs_f64();
    SplitAnswer {
        kinds: rows,
        step,
        throughput: if seconds > 0.0 { samples / seconds } else { 0.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(name: &str, rate: f64, batch: f64, most: Option<f64>) -> RankKind {
        RankKind { name: name.into(), count: 2, rate, batch: Some(batch), most_batch: most }
    }

    #[test]
    fn the_slowest_sets_the_step() {
        let equal =
            [kind("fast", 750.0, 200.0, Some(300.0)), kind("slow", 500.0, 200.0, Some(200.0))];
        let answer = answer(&equal, None).unwrap();
        let present = answer.present.unwrap();
        assert_eq!((present.step, present.throughput), (Nanos::from_millis(400), 2000.0));
        assert_eq!(answer.verdict, Verdict::ImbalancedRanks);
        let batches: Vec<f64> = answer.best.kinds.iter().map(|kind| kind.2).collect();
        assert_eq!((batches, answer.best.throughput), (vec![300.0, 200.0], 2500.0));
        assert!(answer.warnings[0].contains("mean of each rank's mean"));
    }

    #[test]
    fn memory_limits_the_split() {
        let kinds =
            [kind("fast", 750.0, 200.0, Some(250.0)), kind("slow", 500.0, 200.0, Some(200.0))];
        let split = answer(&kinds, None).unwrap().best;
        assert_eq!((split.kinds[0].2, split.kinds[1].2), (250.0, 166.0));
        // A fixed global batch that exceeds the fast rank's share fills it first.
        let split = answer(&kinds, Some(880.0)).unwrap().best;
        assert_eq!((split.kinds[0].2, split.kinds[1].2), (250.0, 190.0));
        // What rounding down leaves goes to whom it costs least; what nobody can take is said.
        let split = answer(&kinds, Some(886.0)).unwrap().best;
        assert_eq!((split.kinds[0].2, split.kinds[1].2), (250.0, 193.0));
        let alike = [kind("a", 500.0, 9.0, None), kind("b", 500.0, 9.0, None)];
        let split = answer(&alike, Some(66.0)).unwrap();
        assert_eq!((split.best.kinds[0].2, split.best.kinds[1].2), (17.0, 16.0));
        for odd in [67.0, 3.0] {
            let warnings = answer(&alike, Some(odd)).unwrap().warnings;
            assert!(warnings.iter().any(|w| w.contains("not to the global")), "{warnings:?}");
        }
        let too_much = answer(&kinds, Some(2000.0)).unwrap();
        assert!(too_much.warnings.iter().any(|w| w.contains("does not fit")), "{too_much:?}");
    }
}
