//! The columns of a table, from its header.

use super::number::Printed;
use super::row::check;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Size,
    Count,
    Type,
    Redop,
    Root,
    /// Microseconds.
    Time,
    AlgBw,
    BusBw,
    /// Wrong elements, or in old logs the largest deviation.
    Wrong,
    /// A date and a time of day.
    TimeStamp,
    // Only in CSV files.
    Name,
    InPlace,
    Ranks,
    DevicesPerRank,
    Nodes,
    Cycle,
    /// Anything else, one word.
    Other,
}

impl Column {
    /// The column of this title; units and the kind of mean may be glued on.
    pub(super) fn titled(title: &str) -> Self {
        let lower = title.trim().trim_start_matches('#').to_ascii_lowercase();
        let (name, detail) = lower.split_once([':', '(']).unwrap_or((&lower, ""));
        match name.trim() {
            "time" | "cputime" if !detail.starts_with(['p', 'm']) => Self::Time,
            "size" => Self::Size,
            "count" => Self::Count,
            "type" => Self::Type,
            "redop" => Self::Redop,
            "root" => Self::Root,
            "algbw" => Self::AlgBw,
            "busbw" => Self::BusBw,
            "wrong" | "error" => Self::Wrong,
            "timestamp" => Self::TimeStamp,
            "name" | "collective" => Self::Name,
            "inplace" => Self::InPlace,
            "ranks" | "gpus" => Self::Ranks,
            "gpusperrank" => Self::DevicesPerRank,
            "nodes" => Self::Nodes,
            "numcycle" => Self::Cycle,
            _ => Self::Other,
        }
    }
}

/// The columns from `size` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) all: Vec<Column>,
    /// Where the element type stands.
    pub(super) type_at: usize,
    pub(super) cpu_time: bool,
    /// The check is a deviation, not a number of elements.
    pub(super) deviation: bool,
}

impl Columns {
    /// Whether a line is the header of a table, whole or torn.
    pub(super) fn announced_by(text: &str) -> bool {
        text.contains("algbw") && (text.contains("size") || text.contains("count"))
    }

    /// The columns of a header line; `None` if it is none or not whole.
    pub(super) fn of_header(text: &str) -> Option<Self> {
        // Cheap refusal: nearly every line of a log is something else.
        if !Self::announced_by(text) {
            return None;
        }
        let titles: Vec<&str> = text.split_whitespace().filter(|word| *word != "#").collect();
        let title = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"#_%:()/".contains(&b);
        let titles =
            &titles[titles.iter().position(|title| Column::titled(title) == Column::Size)?..];
        // Units in titles have capitals.
        let is_title = |word: &&str| word.split('(').next().is_some_and(|w| w.bytes().all(title));
        if titles.iter().all(is_title) { Self::new(titles) } else { None }
    }

    /// The columns of a header that a terminal has wrapped: all words of both lines are titles.
    pub(super) fn of_wrapped_header(first: &str, second: &str) -> Option<Self> {
        let before = Self::of_header(first).map_or(0, |columns| columns.all.len());
        let whole = [" ", ""].iter().find_map(|glue| {
            let text = [first, second].join(glue);
            let mut words = text.split_whitespace().filter(|word| *word != "#");
            words
                .all(|word| Column::titled(word) != Column::Other)
                .then(|| Self::of_header(&text))?
        });
        whole.filter(|columns| columns.all.len() > before)
    }

    pub(super) fn new(titles: &[&str]) -> Option<Self> {
        let from = titles.iter().position(|title| Column::titled(title) == Column::Size)?;
        let titles = &titles[from..];
        let all: Vec<Column> = titles.iter().map(|title| Column::titled(title)).collect();
        let type_at = all.iter().position(|column| *column == Column::Type)?;
        let complete =
            [Column::Time, Column::AlgBw, Column::BusBw].iter().all(|column| all.contains(column));
        (complete && equal_placements(&all)).then(|| Self {
            type_at,
            cpu_time: titles.iter().any(|title| title.contains("cputime")),
            deviation: titles.contains(&"error"),
            all,
        })
    }

    /// Columns of a table whose header is missing, by the words after the element type.
    pub(super) fn of_shape(words: &[&str]) -> Option<Self> {
        let has_redop = words.first().is_some_and(|w| w.starts_with(|c: char| c.is_alphabetic()));
        let figure = |word: &&&str| Printed::parse(word).is_some() || check(word, false).is_some();
        let figures = words.iter().skip(usize::from(has_redop)).take_while(figure).count();
        let mut titles = vec!["size", "count", "type"];
        titles.extend(has_redop.then_some("redop"));
        titles.extend((figures == 9).then_some("root"));
        for _ in 0..2 {
            titles.extend(["time", "algbw", "busbw", "#wrong"]);
        }
        if figures == 8 || figures == 9 { Self::new(&titles) } else { None }
    }
}

/// Both placements have the same columns, or there is only one.
fn equal_placements(all: &[Column]) -> bool {
    let starts: Vec<usize> = (0..all.len()).filter(|at| all[*at] == Column::Time).collect();
    match starts[..] {
        [_] => true,
        [first, second] => {
            let length = second - first;
            all.get(second..second + length) == Some(&all[first..second])
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Option<(usize, usize)> {
        Columns::of_header(text).map(|columns| (columns.all.len(), columns.type_at))
    }

    #[test]
    fn headers_of_every_generation_are_read() {
        let groups = "time algbw busbw #wrong time algbw busbw #wrong";
        assert_eq!(count(&format!("# size count type redop root {groups}")), Some((13, 2)));
        assert_eq!(count(&format!("#  timestamp size count type root {groups}")), Some((12, 2)));
        assert_eq!(
            count(
                "size(B) count(elems) total_input_size(B) type time:avg(us) time:p50(us) algbw(GB/s) busbw(GB/s)"
            ),
            Some((8, 3))
        );
        let old = Columns::of_header("#  size count type cputime algbw busbw error").unwrap();
        assert!(old.cpu_time && old.deviation);
        for text in [
            "# (B) (elements) (us) (GB/s)",
            "the algbw is size over time",
            "# size count type redop root time algbw busbw #wrong time algbw bushost NCCL INFO busbw",
            "# size count type redop root time algbw busbw #wrong time algbw busbw",
            "",
        ] {
            assert_eq!(count(text), None, "{text}");
        }
        let wrapped = Columns::of_wrapped_header("# size count type time algbw", "busbw #wrong");
        assert_eq!(wrapped.map(|columns| columns.all.len()), Some(7));
        assert_eq!(Columns::of_wrapped_header("# size count type time algbw busbw", "(B)"), None);
        let stats = Columns::of_header("size type time:p50(us) time:avg(us) algbw busbw").unwrap();
        assert_eq!(stats.all[2..4], [Column::Other, Column::Time]);
    }
}
