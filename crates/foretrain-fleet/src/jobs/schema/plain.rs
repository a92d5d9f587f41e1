//! Tables of unknown make, read by what their titles say.

use foretrain_core::Bytes;

use super::{Kind, Schema};
use crate::jobs::field::{Dimension, Field, Unit};
use crate::jobs::style::Style;
use crate::jobs::{features::Class, span, tres, value};

/// A table that no schema knows.
pub(in crate::jobs) static PLAIN: Schema = Schema {
    name: "plain",
    about: "any table whose titles say what its columns hold",
    kind: Kind::Jobs,
    columns: &[],
    headerless: None,
    complete: None,
};

/// A title in small letters without punctuation, and the unit that it ends with.
fn parts(title: &str) -> (String, Option<&'static str>) {
    let mut words: Vec<String> = vec![String::new()];
    let mut before = ' ';
    for letter in title.chars() {
        // `submitTime` is two words.
        let begins = letter.is_uppercase() && before.is_lowercase();
        if !letter.is_alphanumeric() && letter != '%' || begins {
            words.push(String::new());
        }
        if letter.is_alphanumeric() || letter == '%' {
            words.last_mut().into_iter().for_each(|word| word.extend(letter.to_lowercase()));
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    let unit = words.last().and_then(|word| unit_name(word)).filter(|_| words.len() > 1);
    if unit.is_some() {
        words.pop();
    }
    (words.concat(), unit)
}

/// A unit's name as [`Unit::parse`] takes it.
fn unit_name(word: &str) -> Option<&'static str> {
    Some(match word {
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "ms" | "msec" | "millis" | "milliseconds" => "ms",
        "us" | "usec" | "micros" | "microseconds" => "us",
        "ns" | "nanos" | "nanoseconds" => "ns",
        "min" | "mins" | "minutes" => "min",
        "h" | "hr" | "hours" => "h",
        "d" | "days" => "d",
        "%" | "pct" | "percent" => "%",
        "milli" => "milli",
        "bytes" | "b" => "B",
        "kb" => "KB",
        "mb" => "MB",
        "mib" => "MiB",
        "gb" => "GB",
        "gib" => "GiB",
        _ => return None,
    })
}

/// The unit that a title ends with, if it is one of this dimension.
pub(in crate::jobs) fn unit_of(title: &str, dimension: Dimension) -> Option<Unit> {
    Unit::parse(parts(title).1?, dimension).ok()
}

/// What a title and some cells under it speak of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::jobs) enum Meant {
    /// A field, and the unit in the title.
    Held(Field, Option<Unit>),
    /// A field by the title, which none of the cells can be.
    Misfit(Field),
}

/// The field that a title and some cells under it speak of, and the unit in the title.
pub(in crate::jobs) fn bindable(
    title: &str,
    cells: &[&[u8]],
    taken: &[Field],
) -> Option<(Field, Option<Unit>)> {
    match meant(title, cells, taken, Style::default())? {
        Meant::Held(field, unit) => Some((field, unit)),
        Meant::Misfit(_) => None,
    }
}

/// As [`bindable`], in a table of a style; also what a title speaks of if its cells do not.
pub(in crate::jobs) fn meant(
    title: &str,
    cells: &[&[u8]],
    taken: &[Field],
    style: Style,
) -> Option<Meant> {
    let (plain, unit) = parts(title);
    let named = || {
        let fields = Field::ALL.iter().copied().filter(|field| !taken.contains(field));
        fields.filter(|field| field.titles().contains(&plain.as_str()))
    };
    let given: Vec<&[u8]> = cells.iter().filter_map(|cell| value::given(cell)).collect();
    let good = |field: Field| given.iter().filter(|cell| fits(field, &plain, cell, style)).count();
    let listed = plain == "gpus" && is_listed(&given, style);
    let holds =
        |field: &Field| 2 * good(*field) >= given.len() && !(listed && *field == Field::Gpus);
    let held = |field: Field| {
        let unit = unit.and_then(|unit| Unit::parse(unit, field.dimension()).ok());
        Meant::Held(field, unit)
    };
    // A queue is a name more often than a time; an empty column does not tell.
    if given.is_empty() && named().any(|field| field == Field::Queue) {
        return Some(held(Field::Queue));
    }
    if let Some(field) = named().find(holds) {
        return Some(held(field));
    }
    // Cells that are of another kind are counted one by one, as long as some are of this.
    let field = named().find(|field| field.dimension() != Dimension::Text)?;
    Some(if good(field) > 0 { held(field) } else { Meant::Misfit(field) })
}

/// Whether cells under `gpus` are lists: numbers with one decimal comma would have one comma each.
fn is_listed(given: &[&[u8]], style: Style) -> bool {
    let commas = |cell: &&&[u8]| cell.iter().filter(|&&byte| byte == b',').count();
    let lists = given.iter().filter(|cell| style.number(cell).is_none() || commas(cell) > 0);
    style.comma
        && lists.map(|cell| commas(&cell)).max().is_some_and(|most| most > 1)
        && !given.iter().any(|cell| tres::read(cell).is_some())
}

/// Whether titles of one field are of less worth than others: what was asked for than what was got,
/// and what each node has than the whole.
pub(in crate::jobs) fn rank(title: &str) -> u8 {
    match parts(title).0.as_str() {
        _ if is_per_node(title) => 2,
        plain if plain.starts_with("req") => 1,
        _ => 0,
    }
}

/// Whether GPUs under a title are those of each node.
pub(in crate::jobs) fn is_per_node(title: &str) -> bool {
    matches!(parts(title).0.as_str(), "trespernode" | "gres" | "gpuspernode")
}

/// Whether a cell can be a value of the field.
fn fits(field: Field, title: &str, cell: &[u8], style: Style) -> bool {
    let number = |cell: &[u8]| {
        style.number(cell.strip_suffix(b"%").unwrap_or(cell).trim_ascii_end()).is_some()
    };
    match field.dimension() {
        Dimension::Text if field == Field::Class => {
            std::str::from_utf8(cell).is_ok_and(|text| text.parse::<Class>().is_ok())
        }
        // Plain numbers under these are counts, which another column may hold already.
        Dimension::Text
            if matches!(
                (field, title),
                (Field::Devices, "gpus") | (Field::Machine, "nodes") | (Field::GpuKind, "gpu")
            ) =>
        {
            !number(cell)
        }
        Dimension::Text => true,
        Dimension::Instant => number(cell) || style.date(cell).is_some(),
        Dimension::Span => number(cell) || span::written(cell).is_some(),
        Dimension::Number if field == Field::Gpus => number(cell) || tres::read(cell).is_some(),
        Dimension::Size => {
            let written =
                || std::str::from_utf8(cell).is_ok_and(|text| text.parse::<Bytes>().is_ok());
            number(cell) || written()
        }
        Dimension::Number | Dimension::Share => number(cell),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_speak_of_fields_and_units() {
        let field = |title, cell: &[u8]| {
            bindable(title, &[cell], &[]).map(|(field, unit)| (field, unit.map(|unit| unit.name)))
        };
        assert_eq!(field("submitTimeMs", b"5"), Some((Field::Submit, Some("ms"))));
        assert_eq!(field("duration_days", b"5"), Some((Field::Duration, Some("d"))));
        assert_eq!(field("Duration (s)", b"5"), Some((Field::Duration, Some("s"))));
        assert_eq!(field("queue", b"12"), Some((Field::Wait, None)));
        assert_eq!(field("queue", b"prod"), Some((Field::Queue, None)));
        assert_eq!(field("gpu", b"V100"), Some((Field::GpuKind, None)));
        assert_eq!(field("GPU util %", b"12"), Some((Field::Utilisation, Some("%"))));
        assert_eq!(field("arch", b"x86_64"), None);
        assert_eq!(field("colour", b"red"), None);
        assert_eq!(field("creationTimestamp", b"5"), Some((Field::Submit, None)));
        assert_eq!(field("AllocTRES", b"cpu=4,gres/gpu=2"), Some((Field::Gpus, None)));
        assert_eq!(field("gpus", b"0,1"), Some((Field::Devices, None)));
        assert_eq!(field("mem", b"16 GiB"), Some((Field::Memory, None)));
    }

    #[test]
    fn titles_that_cells_do_not_bear_out_are_told() {
        let of = |title, cells: &[&[u8]]| meant(title, cells, &[], Style::default());
        assert_eq!(of("start", &[b"soon"]), Some(Meant::Misfit(Field::Start)));
        let some: [&[u8]; 3] = [b"3600", b"UNLIMITED", b"long"];
        assert_eq!(of("duration", &some), Some(Meant::Held(Field::Duration, None)));
        assert_eq!(of("queue", &[b"prod"]), Some(Meant::Held(Field::Queue, None)));
        assert_eq!(of("queue", &[b"", b""]), Some(Meant::Held(Field::Queue, None)));
        assert_eq!(of("queue", &[b"12.5"]), Some(Meant::Held(Field::Wait, None)));
        assert_eq!(of("colour", &[b"red"]), None);
        let german = Style { comma: true, ..Style::default() };
        let gpus = |cells: &[&[u8]]| meant("gpus", cells, &[], german);
        assert_eq!(gpus(&[b"0,5", b"2,0"]), Some(Meant::Held(Field::Gpus, None)));
        assert_eq!(gpus(&[b"0,1", b"0,1,2,3"]), Some(Meant::Held(Field::Devices, None)));
        let taken = meant("gpus", &[b"8"], &[Field::Gpus], Style::default());
        assert_eq!(taken, None, "a count is no list");
    }
}
