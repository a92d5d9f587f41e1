//! Units that nobody says: by the size of the first values, by the other times of a table, by what
//! start and end leave.

use csv::ByteRecord;

use super::bind::{Binding, UnitFrom};
use super::field::{Dimension, Field, Unit};
use super::instant::BELIEVED;
use super::value;

/// Units of times whose columns do not name them.
const BY_SIZE: [Unit; 4] = [Unit::SECONDS, Unit::MILLIS, Unit::MICROS, Unit::NANOS];

/// A value so many times the next is of another kind: a mark in place of a time.
const LONE: f64 = 1e3;

/// How many of sorted numbers remain without those few at the end that lie far above all others.
pub(super) fn without_lone(sorted: &[f64]) -> usize {
    let most = (sorted.len() / 4).max(1);
    let is_far = |count: &usize| {
        let at = sorted.len() - count;
        at >= 3 && sorted[at] > LONE * sorted[at - 1]
    };
    sorted.len() - (1..=most.min(sorted.len())).rev().find(is_far).unwrap_or(0)
}

/// Whether half of these or more are dates when they count since 1970 in this unit: nobody's relative
/// times are that long.
pub(super) fn are_dates(numbers: &[f64], unit: Unit) -> bool {
    let dated = |number: &&f64| BELIEVED.contains(&((**number * unit.factor) as i64));
    !numbers.is_empty() && 2 * numbers.iter().filter(dated).count() >= numbers.len()
}

/// A unit by the size of the first values.
pub(super) fn guess(dimension: Dimension, numbers: &[f64]) -> (Unit, UnitFrom) {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let usual = &sorted[..without_lone(&sorted)];
    // A few values in another unit must not tell it.
    let at = |tenths: usize| usual.get(usual.len() * tenths / 10).copied().unwrap_or(0.0);
    let (median, high) = (at(5), at(9));
    let unit = match dimension {
        Dimension::Text | Dimension::Number => return (Unit::ONE, UnitFrom::Itself),
        // A time since 1970 tells its unit by its size; another is short of three years.
        Dimension::Instant => {
            let dates = BY_SIZE.into_iter().find(|unit| are_dates(numbers, *unit));
            dates.unwrap_or_else(|| by_size(high, [1e8, 1e11, 1e14]))
        }
        // No usual run takes longer than ten days, or less than a second.
        Dimension::Span => by_size(median, [1e6, 1e9, 1e12]),
        Dimension::Share if high > 1.5 => Unit::PERCENT,
        Dimension::Share => Unit::ONE,
        Dimension::Size if median >= 1e6 => Unit::BYTES,
        Dimension::Size if median >= 1e3 => Unit::MIB,
        Dimension::Size => Unit::GIB,
    };
    (unit, UnitFrom::Guess)
}

/// A value below a limit is of the unit before it.
fn by_size(value: f64, limits: [f64; 3]) -> Unit {
    BY_SIZE[limits.iter().filter(|limit| value >= **limit).count()]
}

/// Where only one of a table's times tells its unit, guessed ones follow it: tables keep to one
/// unit more often than not, and a column of small values tells little.
pub(super) fn share(bindings: &mut [Binding]) {
    let timed = |binding: &Binding| {
        matches!(binding.field.dimension(), Dimension::Instant | Dimension::Span)
    };
    let said = |binding: &&Binding| {
        timed(binding) && matches!(binding.unit_from, UnitFrom::Title | UnitFrom::User)
    };
    let mut units: Vec<Unit> = bindings.iter().filter(said).map(|b| b.unit).collect();
    units.dedup();
    let sole = match units.as_slice() {
        [unit] => Some(*unit),
        // Of guesses the finest holds for relative times: only large values betray it.
        [] => bindings
            .iter()
            .filter(|b| timed(b) && b.is_guess())
            .map(|b| b.unit)
            .min_by(|a, b| a.factor.total_cmp(&b.factor)),
        _ => None,
    };
    let Some(unit) = sole else { return };
    for binding in bindings {
        if timed(binding) && binding.is_guess() {
            binding.unit = unit;
        }
    }
}

/// Lengths of time between two times, and the two.
const BETWEEN: [(Field, &[(Field, Field)]); 3] = [
    (Field::Duration, &[(Field::Start, Field::End), (Field::Submit, Field::End)]),
    (Field::Wait, &[(Field::Submit, Field::Start)]),
    (Field::Turnaround, &[(Field::Submit, Field::End)]),
];

/// Gives guessed lengths of time the unit that the times of the first rows leave: the one in which
/// they are what lies between two times, else the largest in which they are not longer than that.
pub(super) fn by_times(bindings: &mut [Binding], ahead: &[ByteRecord]) {
    for (field, between) in BETWEEN {
        let Some(at) = bindings.iter().position(|b| b.field == field && b.is_guess()) else {
            continue;
        };
        let sure = |field: Field| bindings.iter().find(|b| b.field == field && !b.is_guess());
        let pairs: Vec<(&Binding, &Binding)> =
            between.iter().filter_map(|(from, to)| Some((sure(*from)?, sure(*to)?))).collect();
        let rows: Vec<(f64, Vec<f64>)> = ahead
            .iter()
            .filter_map(|row| {
                let binding = &bindings[at];
                let cell = value::given(row.get(binding.column)?)?;
                let length = binding.style.number(cell).filter(|length| *length > 0.0)?;
                let gap = |(from, to): &(&Binding, &Binding)| {
                    let gap = nanos(to, row)? - nanos(from, row)?;
                    (gap > 0.0).then_some(gap)
                };
                let gaps: Vec<f64> = pairs.iter().filter_map(gap).collect();
                (!gaps.is_empty()).then_some((length, gaps))
            })
            .collect();
        if let Some((unit, from)) = between_times(&rows, bindings[at].unit) {
            let binding = &mut bindings[at];
            (binding.unit, binding.unit_from) = (unit, from);
        }
    }
}

fn between_times(rows: &[(f64, Vec<f64>)], guess: Unit) -> Option<(Unit, UnitFrom)> {
    if rows.is_empty() {
        return None;
    }
    let equal = |unit: &Unit| {
        let near =
            |length: f64, gap: f64| (length - gap).abs() <= (0.01 * gap).max(gap.min(1e10) * 0.2);
        let row = |(length, gaps): &&(f64, Vec<f64>)| {
            gaps.iter().any(|gap| near(length * unit.factor, *gap))
        };
        rows.iter().filter(row).count()
    };
    let units = Unit::of(Dimension::Span);
    if let Some(unit) = units.iter().max_by_key(|unit| equal(unit))
        && 2 * equal(unit) >= rows.len()
    {
        return Some((*unit, UnitFrom::Times));
    }
    let longer = |unit: &Unit| {
        let row = |(length, gaps): &&(f64, Vec<f64>)| {
            let longest = gaps.iter().copied().fold(0.0, f64::max);
            length * unit.factor > 1.01 * longest + 2e9
        };
        rows.iter().filter(row).count()
    };
    if 2 * longer(&guess) <= rows.len() {
        return None;
    }
    let fits = BY_SIZE.into_iter().find(|unit| 10 * longer(unit) <= rows.len())?;
    Some((fits, UnitFrom::Guess))
}

/// A time of a row, in nanoseconds.
fn nanos(binding: &Binding, row: &ByteRecord) -> Option<f64> {
    let cell = value::given(row.get(binding.column)?)?;
    match binding.style.number(cell) {
        Some(number) => {
            let nanos = number * binding.unit.factor;
            let dated = !binding.since_1970 || BELIEVED.contains(&(nanos as i64));
            (number > 0.0 && dated).then_some(nanos)
        }
        None => binding.style.date(cell).map(|dated| dated.at.nanos() as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_does_not_tell_the_unit() {
        let mut ends: Vec<f64> = (0..9).map(|job| 3660.0 + 600.0 * f64::from(job)).collect();
        for mark in [9_999_999_999.0, 1e300] {
            ends.push(mark);
            assert_eq!(guess(Dimension::Instant, &ends).0, Unit::SECONDS, "{mark}");
        }
        assert_eq!(without_lone(&[1.0, 2.0, 3.0, 7200.0]), 3);
        assert_eq!(without_lone(&[1.0, 7200.0]), 2, "two values tell nothing of each other");
        assert_eq!(without_lone(&[]), 0);
        assert_eq!(guess(Dimension::Instant, &[1.5e8, 3e8]).0, Unit::MILLIS);
    }

    #[test]
    fn times_tell_the_unit_of_what_lies_between_them() {
        let rows = |factor: f64| [3600e9, 60e9, 30e9].map(|gap| (gap / factor, vec![gap])).to_vec();
        for unit in [Unit::MILLIS, Unit::SECONDS, Unit::HOURS] {
            let found = between_times(&rows(unit.factor), Unit::SECONDS);
            assert_eq!(found, Some((unit, UnitFrom::Times)));
        }
        // They ran for half of the time since their submission.
        let half = [3600e9, 60e9, 30e9].map(|gap| (gap / 2e6, vec![gap]));
        assert_eq!(between_times(&half, Unit::SECONDS), Some((Unit::MILLIS, UnitFrom::Guess)));
        assert_eq!(between_times(&half, Unit::MILLIS), None);
    }
}
