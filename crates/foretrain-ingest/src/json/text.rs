//! Strings of JSON.

use std::borrow::Cow;

use super::scan::{Kind, Value};

/// The string that a value stands for; numbers and the rest as written.
pub fn decode(value: Value, window: &str) -> Cow<'_, str> {
    let raw = value.raw(window);
    if value.kind == Kind::Escaped { Cow::Owned(unescape(raw)) } else { Cow::Borrowed(raw) }
}

/// Resolves escapes; a lone surrogate becomes U+FFFD, an unknown escape stays as written.
pub fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(code) = rest.chars().next() else { break };
        rest = &rest[code.len_utf8()..];
        match code {
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            '"' | '\\' | '/' => out.push(code),
            'u' => rest = push_unicode(&mut out, rest),
            other => out.extend(['\\', other]),
        }
    }
    out.push_str(rest);
    out
}

fn push_unicode<'a>(out: &mut String, rest: &'a str) -> &'a str {
    let Some(high) = hex4(rest) else {
        out.push('\u{fffd}');
        return rest;
    };
    let after = &rest[4..];
    if (0xd800..0xdc00).contains(&high)
        && let Some(low) = after.strip_prefix("\\u").and_then(hex4)
        && (0xdc00..0xe000).contains(&low)
    {
        let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
        return &after[6..];
    }
    out.push(char::from_u32(high).unwrap_or('\u{fffd}'));
    after
}

fn hex4(text: &str) -> Option<u32> {
    let digits = text.get(..4)?;
    digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn surrogates_pair_up_or_are_replaced() {
        assert_eq!(unescape(r"a\ud83d\ude00b"), "a😀b");
        assert_eq!(unescape(r"\ud83dx"), "\u{fffd}x");
        assert_eq!(unescape(r"\u00e9\n\q"), "é\n\\q");
    }

    proptest! {
        #[test]
        fn undoes_what_serde_json_wrote(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(unescape(&json[1..json.len() - 1]), text);
        }
    }
}
