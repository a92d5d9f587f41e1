//! Text for people.

use std::borrow::Cow;

/// A count and its noun, in the plural if there are not one of them.
pub fn counted(count: impl TryInto<u128>, noun: &str) -> String {
    let count = count.try_into().unwrap_or_default();
    format!("{count} {}", of_number(count, noun, &format!("{noun}s")))
}

/// A word as it goes with so many: `is` or `are`, `family` or `families`.
pub fn of_number<'a>(count: impl TryInto<u128>, one: &'a str, several: &'a str) -> &'a str {
    if count.try_into().is_ok_and(|count| count == 1) { one } else { several }
}

/// Text from a file on its way to a terminal, which would obey control characters: these, and marks
/// that turn the direction of writing, as `?`.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.contains(is_obeyed) { text.replace(is_obeyed, "?").into() } else { text.into() }
}

/// The same text for files that others read, each such character by its number: `\u{1b}`.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match is_obeyed(letter) {
            true => safe.extend(letter.escape_unicode()),
            false => safe.push(letter),
        }
    }
    safe.into()
}

fn is_obeyed(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([of_number(1_usize, "is", "are"), of_number(0_u8, "is", "are")], ["is", "are"]);
        assert_eq!([counted(1_u32, "step"), counted(0_u32, "step")], ["1 step", "0 steps"]);
    }

    #[test]
    fn no_terminal_is_told_what_to_do() {
        let wild = "a\u{1b}[31m\n\u{202e}ü";
        assert_eq!(printable(wild), "a?[31m??ü");
        assert_eq!(escaped(wild), "a\\u{1b}[31m\\u{a}\\u{202e}ü");
        assert!(matches!(printable("plain"), Cow::Borrowed("plain")));
    }
}
