//! Ranks from file names, for traces that do not state theirs.

/// How a file name gives a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NamedRank {
    /// After a word such as "rank" or "worker".
    Word(u32),
    /// Before Chakra's ending, as in `name.3.et`: the convention of that format.
    Chakra(u32),
    /// Only a number at the end of the stem: means something next to its siblings.
    Trailing(u32),
}

/// Endings that are no part of a stem.
const ENDINGS: [&str; 8] =
    [".gz", ".zst", ".json", ".trace", ".pt", ".txt", ".chrome_trace", ".et"];

/// The rank that a file name states, if any.
pub fn rank_of(file_name: &str) -> Option<NamedRank> {
    let lower = file_name.to_ascii_lowercase();
    for word in ["rank", "worker", "proc", "_r", "-r", ".r", "gpu"] {
        if let Some(rank) = number_after(&lower, word) {
            return Some(NamedRank::Word(rank));
        }
    }
    chakra(&lower).map(NamedRank::Chakra).or(trailing(stem(&lower)).map(NamedRank::Trailing))
}

/// The number before `.et`.
fn chakra(name: &str) -> Option<u32> {
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(name);
    let (_, digits) = name.strip_suffix(".et")?.rsplit_once('.')?;
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { plausible(digits) } else { None }
}

/// The part of a file name before its endings.
pub(crate) fn stem(name: &str) -> &str {
    let mut stem = name;
    while let Some(shorter) = ENDINGS.iter().find_map(|ending| stem.strip_suffix(ending)) {
        stem = shorter;
    }
    stem
}

/// The number that follows a word, with one separator at most between. The word must not go on
/// to the left ("crank0"), and the number must end ("r50net" is no rank).
fn number_after(name: &str, word: &str) -> Option<u32> {
    name.match_indices(word).find_map(|(at, _)| {
        let before = name[..at].chars().next_back();
        if word.starts_with(|c: char| c.is_alphabetic()) && before.is_some_and(char::is_alphabetic)
        {
            return None;
        }
        let rest = &name[at + word.len()..];
        let rest = rest.strip_prefix(['-', '_', '.', '=']).unwrap_or(rest);
        let digits = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
        let next = rest[digits.len()..].chars().next();
        if next.is_some_and(char::is_alphabetic) { None } else { plausible(digits) }
    })
}

/// A number at the end of a stem, after a separator or letters.
fn trailing(stem: &str) -> Option<u32> {
    let start = stem.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    // TensorBoard's handler writes host_process.timestamp: neither number is a rank.
    if start > 0 && stem[..start].ends_with('.') {
        return None;
    }
    plausible(&stem[start..])
}

/// Ranks have at most seven digits; longer numbers are timestamps.
fn plausible(digits: &str) -> Option<u32> {
    if digits.is_empty() || digits.len() > 7 { None } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_use_give_their_rank() {
        use NamedRank::{Chakra, Trailing, Word};
        for (name, want) in [
            ("rank0.json", Some(Word(0))),
            ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", Some(Word(34))),
            ("worker3_step_12.1694128201557.pt.trace.json", Some(Word(3))),
            ("worker0.1623143089861.pt.trace.json.gz", Some(Word(0))),
            ("sampled_rank-1.json.gz", Some(Word(1))),
            ("mtia_inference_rank_7.json", Some(Word(7))),
            ("trace_r12.json", Some(Word(12))),
            ("megatron_kineto_5.json.gz", Some(Trailing(5))),
            ("7.json", Some(Trailing(7))),
            ("Resnet50_DataParallel.45.et", Some(Chakra(45))),
            ("chakra_trace.1.et.gz", Some(Chakra(1))),
            ("workload.et", None),
            ("7f9abe8a4e8c_7101.1700560457683344186.pt.trace.json.gz", None),
            ("resnet_r50net.json", None),
            ("trace.json", None),
            ("crank0x.json", None),
        ] {
            assert_eq!(rank_of(name), want, "{name}");
        }
    }
}
