//! Steps from repetition: the same sequence of kernels (or operators) again and again.

use foretrain_core::{NameId, Nanos};
use rustc_hash::FxHashMap;

use super::{Step, StepSource, Steps, busiest_thread, new_step};
use crate::category::Category;
use crate::index::{NO_ROW, TraceIndex};
use crate::table::Trace;

/// Share of positions that must agree with the position one period later.
const AGREEMENT: f64 = 0.9;

/// Shortest pattern that counts as a step; shorter ones are loops inside a step.
const MIN_PERIOD: usize = 4;

/// Finds at least two repetitions of a pattern.
pub(super) fn repetitions(trace: &Trace, index: &TraceIndex) -> Option<Steps> {
    let rows = sequence(trace, index)?;
    let names: Vec<NameId> = rows.iter().map(|&row| trace.name[row as usize]).collect();
    let (offset, period) = find_period(&names)?;
    let mut starts: Vec<Nanos> = (offset..names.len())
        .step_by(period)
        .filter(|&i| i + period <= names.len())
        .map(|i| boundary(trace, index, rows[i]))
        .collect();
    starts.dedup();
    let last_row = rows[offset + period * starts.len() - 1] as usize;
    let last_end = trace.end(last_row);
    let next = rows.get(offset + period * starts.len()).map(|&row| boundary(trace, index, row));
    let steps = to_steps(&starts, last_end, next);
    (steps.len() >= 2).then(|| Steps {
        steps,
        source: StepSource::Pattern,
        main: busiest_thread(trace, index),
    })
}

/// Rows whose names make the pattern: kernels of the busiest stream, else outermost operators of
/// the busiest thread.
fn sequence(trace: &Trace, index: &TraceIndex) -> Option<Vec<u32>> {
    let stream = index.streams.iter().max_by_key(|stream| stream.rows.len());
    if let Some(stream) = stream
        && stream.rows.len() >= 2 * MIN_PERIOD
    {
        return Some(stream.rows.clone());
    }
    let thread = index.thread(busiest_thread(trace, index)?)?;
    let operators: Vec<u32> = thread
        .rows
        .iter()
        .copied()
        .filter(|&row| {
            trace.category[row as usize] == Category::CpuOp && index.parent[row as usize] == NO_ROW
        })
        .collect();
    (operators.len() >= 2 * MIN_PERIOD).then_some(operators)
}

/// Where a step that begins with this row begins on the host.
fn boundary(trace: &Trace, index: &TraceIndex, row: u32) -> Nanos {
    let launch = index.launch[row as usize];
    let at = trace.start[row as usize];
    if launch == NO_ROW { at } else { trace.start[launch as usize].min(at) }
}

fn to_steps(starts: &[Nanos], last_end: Nanos, next: Option<Nanos>) -> Vec<Step> {
    let mut ends: Vec<Nanos> = starts.iter().skip(1).copied().collect();
    // The last repetition has no successor to end at. Its own work ends earlier than its idle
    // tail, so the usual period is the better end, where the work fits into it.
    let mut periods: Vec<i64> = starts.windows(2).map(|w| (w[1] - w[0]).nanos()).collect();
    let usual = foretrain_core::stats::median_i64(&mut periods).map(Nanos::from_nanos);
    if let (Some(&last), Some(usual)) = (starts.last(), usual) {
        ends.push(next.unwrap_or_else(|| last_end.max(last + usual)));
    }
    starts
        .iter()
        .zip(ends)
        .enumerate()
        .filter(|(_, (start, end))| *end > **start)
        .map(|(i, (&start, end))| new_step(format!("repetition {}", i + 1), start, end))
        .collect()
}

/// The smallest period (and where the first full repetition begins) at which the sequence agrees
/// with itself. Candidates are the spacings of names that occur equally often, rarest first, so
/// the search is linear in the length for each of a few candidates.
fn find_period(names: &[NameId]) -> Option<(usize, usize)> {
    let mut positions: FxHashMap<NameId, Vec<usize>> = FxHashMap::default();
    let mut order: Vec<NameId> = Vec::new();
    for (i, &name) in names.iter().enumerate() {
        let entry = positions.entry(name).or_default();
        if entry.is_empty() {
            order.push(name);
        }
        entry.push(i);
    }
    let mut candidates: Vec<usize> = Vec::new();
    order.sort_by_key(|name| positions[name].len());
    for name in order.iter().filter(|name| positions[*name].len() >= 2).take(32) {
        let at = &positions[name];
        let mut spacings: Vec<i64> = at.windows(2).map(|w| (w[1] - w[0]) as i64).collect();
        candidates.extend(foretrain_core::stats::median_i64(&mut spacings).map(|p| p as usize));
        // A name that occurs m times per step is spaced m per period.
        candidates.push((at[at.len() - 1] - at[0]) / (at.len() - 1));
    }
    candidates.sort_unstable();
    candidates.dedup();
    candidates
        .into_iter()
        .filter(|&period| period >= MIN_PERIOD && 2 * period <= names.len())
        .map(|period| (first_agreeing(names, period), period))
        .find(|&(offset, period)| agreement(&names[offset..], period) >= AGREEMENT)
}

fn agreement(names: &[NameId], period: usize) -> f64 {
    let pairs = names.len() - period;
    let equal = (0..pairs).filter(|&i| names[i] == names[i + period]).count();
    equal as f64 / pairs as f64
}

/// Skips a lead-in that does not repeat.
fn first_agreeing(names: &[NameId], period: usize) -> usize {
    let lead = (0..names.len() - period).find(|&i| names[i] == names[i + period]).unwrap_or(0);
    if lead + 2 * period <= names.len() { lead } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(text: &str) -> Vec<NameId> {
        text.bytes().map(|b| NameId::new(u32::from(b))).collect()
    }

    #[test]
    fn the_whole_step_is_found_not_the_loop_inside_it() {
        let step = "xabcdabcdabcdabcdy";
        let text = step.repeat(4);
        assert_eq!(find_period(&ids(&text)), Some((0, step.len())));
    }

    #[test]
    fn a_lead_in_is_skipped_and_noise_is_no_pattern() {
        let text = format!("zq{}", "abcdefgh".repeat(3));
        assert_eq!(find_period(&ids(&text)), Some((2, 8)));
        assert_eq!(find_period(&ids("abcdefghijklmnopqrstuvwxyz")), None);
    }
}
