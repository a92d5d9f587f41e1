//! Finding the next event after one that is damaged.

/// Keys that begin an event or may come second in it.
const EVENT_KEYS: [&[u8]; 9] =
    [b"ph", b"name", b"cat", b"pid", b"tid", b"ts", b"dur", b"id", b"bp"];

/// Bytes that [`next_event`] must see behind a brace to judge it.
pub(super) const LOOKAHEAD: usize = 64;

/// The offset of the next opening brace at or after `from` that begins an event: it follows a
/// comma and is followed by one of the event keys. Arguments follow a colon, so they do not
/// match.
pub(super) fn next_event(bytes: &[u8], from: usize) -> Option<usize> {
    let start = from.min(bytes.len());
    memchr::memchr_iter(b'{', &bytes[start..])
        .map(|at| start + at)
        .find(|&at| follows_comma(bytes, at) && precedes_key(&bytes[at + 1..]))
}

fn follows_comma(bytes: &[u8], at: usize) -> bool {
    bytes[..at].trim_ascii_end().ends_with(b",")
}

fn precedes_key(rest: &[u8]) -> bool {
    let rest = rest[..rest.len().min(LOOKAHEAD)].trim_ascii_start();
    let Some(rest) = rest.strip_prefix(b"\"") else { return false };
    EVENT_KEYS.iter().any(|key| {
        rest.strip_prefix(*key)
            .and_then(|rest| rest.strip_prefix(b"\""))
            .is_some_and(|rest| rest.trim_ascii_start().starts_with(b":"))
    })
}

/// The offset of the bracket that ends the array of events, for when no event follows: the
/// last one that is followed by a comma, a closing brace or nothing.
pub(super) fn last_bracket(bytes: &[u8], from: usize) -> Option<usize> {
    let start = from.min(bytes.len());
    memchr::memrchr_iter(b']', &bytes[start..]).map(|at| start + at).find(|&at| {
        match bytes[at + 1..].trim_ascii_start() {
            [] | [b'}', ..] => true,
            [b',', rest @ ..] => rest.trim_ascii_start().starts_with(b"\""),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_and_string_contents_are_no_events() {
        let text = br#"{"name": "a, {\"ph\": ", "args": {"name": 1}, }, {"ph": "X"}"#;
        assert_eq!(next_event(text, 1), Some(text.len() - 11));
        assert_eq!(next_event(text, text.len()), None);
    }

    #[test]
    fn the_end_of_the_array_is_the_last_bracket() {
        let text = br#"{"args": {"x": [1, 2]} ], "traceName": "t"}"#;
        assert_eq!(last_bracket(text, 0), Some(23));
    }
}
