//! Tables of unknown make, read by what their titles say.

use super::{Kind, Schema};
use crate::jobs::field::{Dimension, Field, Unit};
use crate::jobs::{features::Class, instant, span, value};

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

/// The field that a title and some cells under it speak of, and the unit in the title.
pub(in crate::jobs) fn bindable(
    title: &str,
    cells: &[&[u8]],
    taken: &[Field],
) -> Option<(Field, Option<Unit>)> {
    let (plain, unit) = parts(title);
    let fields = Field::ALL.iter().copied().filter(|field| !taken.contains(field));
    let mut named = fields.filter(|field| field.titles().contains(&plain.as_str()));
    let field = named.find(|field| fits(*field, cells))?;
    let unit = unit.and_then(|unit| Unit::parse(unit, field.dimension()).ok());
    Some((field, unit))
}

/// Whether at least half of the cells that hold anything can be values of the field.
fn fits(field: Field, cells: &[&[u8]]) -> bool {
    let given: Vec<&[u8]> = cells.iter().filter_map(|cell| value::given(cell)).collect();
    let number = |cell: &[u8]| value::number(cell.strip_suffix(b"%").unwrap_or(cell)).is_some();
    let good = given.iter().filter(|cell| match field.dimension() {
        Dimension::Text if field == Field::Class => {
            std::str::from_utf8(cell).is_ok_and(|text| text.parse::<Class>().is_ok())
        }
        Dimension::Text => true,
        Dimension::Instant => number(cell) || instant::date(cell).is_some(),
        Dimension::Span => number(cell) || span::written(cell).is_some(),
        Dimension::Number | Dimension::Share | Dimension::Size => number(cell),
    });
    2 * good.count() >= given.len()
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
    }
}
