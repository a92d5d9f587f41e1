//! What launchers, schedulers and log collectors put before a line.

/// A line without its prefixes, and which of several processes it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The label of the process; empty without one. Time stamps are no label.
    pub(super) source: &'a str,
    pub(super) text: &'a str,
}

/// Prefixes that may stand one behind another.
const MOST: usize = 4;

/// Takes off the prefixes that are in use:
/// `[1,0]<stdout>:` of Open MPI, `[0]` of Hydra, `0:` of `srun --label`, `host:` of pdsh, `pod |`
/// of compose, time stamps, `>` of quotations.
pub(super) fn strip(line: &str) -> Line<'_> {
    let (mut source, mut text) = ("", line.trim());
    for _ in 0..MOST {
        if let Some(rest) = time_stamp(text).or_else(|| text.strip_prefix("> ")) {
            text = rest.trim_start();
        } else if let Some((label, rest)) = label(text) {
            // The outermost label tells processes apart best: a host before its ranks.
            source = if source.is_empty() { label } else { source };
            text = rest.trim_start();
        } else {
            break;
        }
    }
    Line { source, text }
}

fn label(text: &str) -> Option<(&str, &str)> {
    bracketed(text).or_else(|| piped(text)).or_else(|| before_colon(text))
}

/// `[1,0]<stdout>:`, `[0] `, `[prterun-host@1,0]<stdout>: `.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (label, rest) = text.strip_prefix('[')?.split_once(']')?;
    let digits_last = label.ends_with(|c: char| c.is_ascii_digit());
    if label.len() > 128 || !digits_last || label.contains(char::is_whitespace) {
        return None;
    }
    let rest = ["<stdout>", "<stderr>"].iter().find_map(|s| rest.strip_prefix(s)).unwrap_or(rest);
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    Some((label, rest))
}

/// `worker-0  | `.
fn piped(text: &str) -> Option<(&str, &str)> {
    let (label, rest) = text.split_once('|')?;
    is_name(label.trim_end()).then_some((label.trim_end(), rest))
}

/// `0: `, `host: `, but not `host:12:34`.
fn before_colon(text: &str) -> Option<(&str, &str)> {
    let (label, rest) = text.split_once(':')?;
    (is_name(label) && (rest.is_empty() || rest.starts_with(' '))).then_some((label, rest))
}

fn is_name(text: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.len() <= 128
        && text.chars().all(inside)
}

/// `2024-05-01T12:00:00.123Z`, `[2024-05-01 12:00:00]`, `12:00:00`, `Nov 5 12:00:00`,
/// `Tue Nov 5 12:00:00 2024`. A label of Open MPI may follow without a space.
fn time_stamp(text: &str) -> Option<&str> {
    if let Some((stamp, rest)) = text.strip_prefix('[').and_then(|t| t.split_once(']')) {
        return time_stamp(stamp)?.is_empty().then_some(rest);
    }
    let (first, _) = first_word(text);
    let (weekday, mut rest) = match strip_one_of(text, &WEEKDAYS) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if let Some(after_month) = strip_one_of(rest, &MONTHS) {
        let (day, after) = first_word(after_month);
        rest = (day.len() <= 2 && digits(day)).then_some(after)?;
    } else if date(first) {
        (_, rest) = first_word(text);
    }
    let (word, after) = first_word(rest);
    let joined = word.split_once('T').is_some_and(|(day, time)| date(day) && clock(time));
    if !joined && !clock(word) {
        return None;
    }
    // Only stamps that begin with the weekday end with the year; 1024 may be a size.
    let (year, after_year) = first_word(after);
    Some(if weekday && year.len() == 4 && digits(year) { after_year } else { after })
}

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn strip_one_of<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    let (word, rest) = first_word(text);
    words.contains(&word).then_some(rest)
}

/// The first word and what follows it; a label in brackets ends a word too.
fn first_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    let (word, rest) = text.split_at(text.find([' ', '\t', '[']).unwrap_or(text.len()));
    (word.trim_end_matches(':'), rest.trim_start())
}

/// `2024-05-01` or `2024/05/01`.
fn date(word: &str) -> bool {
    let parts: Vec<&str> = word.split(['-', '/']).collect();
    parts.len() == 3 && parts[0].len() == 4 && parts.iter().all(|p| digits(p))
}

/// `12:00:00`, with a fraction, a zone or neither.
fn clock(word: &str) -> bool {
    let parts: Vec<&str> = word.splitn(3, ':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    let zone = |c: char| c.is_ascii_digit() || ".,Z+-:".contains(c);
    hour.len() == 2
        && digits(hour)
        && minute.len() == 2
        && digits(minute)
        && second.get(..2).is_some_and(digits)
        && second.chars().all(zone)
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_in_use_come_off() {
        for (line, source, text) in [
            ("   8  2  float", "", "8  2  float"),
            ("[1,0]<stdout>:           8", "1,0", "8"),
            ("   [1,12]<stderr>:# x", "1,12", "# x"),
            ("[0]        1024 256", "0", "1024 256"),
            ("[prterun-a-12@1,3]<stdout>: # x", "prterun-a-12@1,3", "# x"),
            ("0: #  Rank", "0", "#  Rank"),
            ("node-07: 15:   8  2", "node-07", "8  2"),
            ("worker-0  |  8  2", "worker-0", "8  2"),
            ("2024-05-01T12:00:00.123456789Z  8  2", "", "8  2"),
            ("[2024-05-01 12:00:00] 8  2", "", "8  2"),
            ("2024-05-01 12:00:00,123 8  2", "", "8  2"),
            ("Tue Nov  5 12:00:00 2024[1,0]<stdout>:  8  2", "1,0", "8  2"),
            ("Nov  5 12:00:00 1024 256 float", "", "1024 256 float"),
            ("12:00:01 4096  1024 float", "", "4096  1024 float"),
            ("> 8  2", "", "8  2"),
            ("2048  512  float", "", "2048  512  float"),
            ("host:21:57 [0] NCCL INFO x", "", "host:21:57 [0] NCCL INFO x"),
            ("", "", ""),
        ] {
            assert_eq!(strip(line), Line { source, text }, "{line:?}");
        }
    }
}
