//! Machines and GPUs that cells name: lists, and the ranges of schedulers.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use super::job::{Job, Placement};

/// More GPUs than any machine has; a wrong range must not fill the memory.
const MOST_DEVICES: usize = 255;
/// As many nodes as Slurm can have: a longer range is none of a job.
const MOST_MACHINES: usize = 65_536;
/// Bytes of their names: a long name before a range would be written out for each.
const MOST_BYTES: usize = 16 << 20;

/// What separates machines and GPUs in a list.
fn between(c: char) -> bool {
    matches!(c, ',' | ';' | '|' | '[' | ']' | '"' | '\'' | ' ')
}

/// What may be wrong with a list of machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// A bracket that is not closed, or a range that goes down.
    Broken,
    /// More machines than any cluster has.
    TooMany,
}

/// A machine, or a list of them, with ranges as `node[01-03,07],gpu5`. What cannot be is left out.
pub(super) fn machines(cell: &[u8], job: &mut Job) -> Result<(), Wrong> {
    let text = String::from_utf8_lossy(cell);
    if text.eq_ignore_ascii_case("none assigned") || text.eq_ignore_ascii_case("(null)") {
        return Ok(());
    }
    let (mut rest, mut outcome, mut ranged) = (&*text, Ok(()), 0);
    loop {
        rest = rest.trim_start_matches(between);
        if rest.is_empty() {
            break;
        }
        // A bracket right behind a name is a range; one before a name belongs to a list.
        let (token, after) = token(rest);
        rest = after;
        if !token.contains('[') {
            push(token.to_owned(), job);
            continue;
        }
        match ranges(token, MOST_MACHINES.saturating_sub(ranged)) {
            Ok(names) => {
                ranged += names.len();
                names.into_iter().for_each(|name| push(name, job));
            }
            Err(wrong) => outcome = Err(wrong),
        }
    }
    if job.placements.len() > 1 {
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        let first: Vec<bool> =
            job.placements.iter().map(|placed| seen.insert(&placed.machine)).collect();
        let mut first = first.into_iter();
        job.placements.retain(|_| first.next().unwrap_or(true));
    }
    outcome
}

fn push(machine: String, job: &mut Job) {
    job.placements.push(Placement { machine, gpus: None });
}

/// What comes up to the next separator outside of the brackets of a range, and the rest.
fn token(text: &str) -> (&str, &str) {
    let (mut open, mut before) = (false, ' ');
    let end = text.find(|c: char| {
        let ends = match c {
            '[' if !open && !between(before) => {
                open = true;
                false
            }
            ']' if open => {
                open = false;
                false
            }
            _ => !open && between(c),
        };
        before = if c == ']' { 'x' } else { c };
        ends
    });
    text.split_at(end.unwrap_or(text.len()))
}

/// The names that a name with ranges stands for.
fn ranges(token: &str, most: usize) -> Result<Vec<String>, Wrong> {
    let mut names = vec![String::new()];
    let mut rest = token;
    while let Some((before, after)) = rest.split_once('[') {
        let (list, after) = after.split_once(']').ok_or(Wrong::Broken)?;
        rest = after;
        let mut numbers: Vec<(u64, u64, usize)> = Vec::new();
        let mut count = 0_u64;
        for range in list.split(',').map(str::trim) {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            let number = |text: &str| {
                let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                plain.then(|| text.parse::<u64>().ok()).flatten().ok_or(Wrong::Broken)
            };
            let (first, last) = (number(from)?, number(to)?);
            if last < first {
                return Err(Wrong::Broken);
            }
            count = count.saturating_add((last - first).saturating_add(1));
            numbers.push((first, last, from.len()));
        }
        let all = count.saturating_mul(names.len() as u64);
        let Some(all) = usize::try_from(all).ok().filter(|all| *all <= most) else {
            return Err(Wrong::TooMany);
        };
        let longest = names.iter().map(String::len).max().unwrap_or(0);
        let width = numbers.iter().map(|(_, _, width)| *width).max().unwrap_or(0).max(20);
        if all.saturating_mul(longest + before.len() + width + rest.len()) > MOST_BYTES {
            return Err(Wrong::TooMany);
        }
        let mut longer = Vec::with_capacity(all);
        for name in &names {
            for &(first, last, width) in &numbers {
                longer
                    .extend((first..=last).map(|number| format!("{name}{before}{number:0width$}")));
            }
        }
        names = longer;
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    Ok(names)
}

/// GPUs that are named: `gpu0;gpu1`, `0,1,2`, `gpu0..gpu7`. They are of the one machine.
pub(super) fn devices(cell: &[u8], job: &mut Job) {
    let text = String::from_utf8_lossy(cell);
    let index = |name: &str| -> Option<u32> {
        name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok()
    };
    let mut found: BTreeSet<u32> = BTreeSet::new();
    for name in text.split(between).filter(|name| !name.is_empty()) {
        if found.len() > MOST_DEVICES {
            break;
        }
        match name.split_once("..").or_else(|| name.split_once('-')) {
            Some((from, to)) => {
                let (Some(from), Some(to)) = (index(from), index(to)) else { continue };
                found.extend(from..=to.min(from.saturating_add(MOST_DEVICES as u32)));
            }
            None => found.extend(index(name)),
        }
    }
    if let Some(placed) = job.placements.last_mut() {
        placed.gpus = u32::try_from(found.len()).ok().filter(|count| *count > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cell: &str) -> (Vec<String>, Result<(), Wrong>) {
        let mut job = Job::default();
        let outcome = machines(cell.as_bytes(), &mut job);
        (job.placements.into_iter().map(|placed| placed.machine).collect(), outcome)
    }

    #[test]
    fn ranges_stand_for_machines() {
        for (cell, names) in [
            ("node[01-02]", "node01 node02"),
            ("node[02,04]", "node02 node04"),
            ("node[01-03,07],gpu5", "node01 node02 node03 node07 gpu5"),
            ("gpu5,node[9-11]-ib.x", "gpu5 node9-ib.x node10-ib.x node11-ib.x"),
            ("r[1-2]n[08-09]", "r1n08 r1n09 r2n08 r2n09"),
            ("n[1,1],n1", "n1"),
            ("[\"n1\",\"n2\"]", "n1 n2"),
            ("['n1', 'n2']", "n1 n2"),
            ("[n1, n2]", "n1 n2"),
            ("n1;n2|n1", "n1 n2"),
            ("None assigned", ""),
        ] {
            let (found, outcome) = of(cell);
            assert_eq!((found.join(" "), outcome), (names.to_owned(), Ok(())), "{cell}");
        }
    }

    #[test]
    fn what_no_cluster_has_is_refused() {
        assert_eq!(of("n[1-999999999],m1"), (vec!["m1".into()], Err(Wrong::TooMany)));
        assert_eq!(of("a[1-9999]b[1-9999]").1, Err(Wrong::TooMany));
        assert_eq!(of("a[0-18446744073709551615]").1, Err(Wrong::TooMany));
        assert_eq!(of("a[1-60000],b[1-60000]").0.len(), 60_000);
        // Long names and zeros are not written out sixty thousand times.
        assert_eq!(of(&format!("{}[1-60000]", "n".repeat(5_000))).1, Err(Wrong::TooMany));
        assert_eq!(of(&format!("n[{}1-60000]", "0".repeat(5_000))).1, Err(Wrong::TooMany));
        assert_eq!(of(&format!("n[1-60000]{}", "x".repeat(5_000))).1, Err(Wrong::TooMany));
        for cell in ["n[1-", "n[3-1]", "n[x]", "n[]", "n[1-2"] {
            assert_eq!(of(cell), (Vec::new(), Err(Wrong::Broken)), "{cell}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_much(text in "[a\\[\\],0-9\\- é]{0,30}") {
            proptest::prop_assert!(of(&text).0.len() <= MOST_MACHINES + text.len());
        }
    }
}
