//! Mending of objects that are almost JSON.
//!
//! Profilers have written raw control characters, source text with its quotes, keys short of a
//! quote, bytes of other encodings, and bare `nan` and `inf`. The rules here only apply to text
//! that the strict scanner refused, so they never change valid input.

use super::scan::MAX_DEPTH;

/// What was mended in one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mending {
    /// Control characters inside strings; kept as characters.
    pub control_characters: u32,
    /// Quotes inside strings that were not escaped; kept as characters.
    pub stray_quotes: u32,
    /// Keys without one or both quotes.
    pub key_quotes: u32,
    /// Backslashes that begin no escape; kept as characters.
    pub bad_escapes: u32,
    /// Bare `nan` or `inf`; the value is taken as not available.
    pub not_finite: u32,
    /// Stretches that are not UTF-8; each became U+FFFD.
    pub bad_utf8: u32,
    /// Commas too many or too few.
    pub commas: u32,
}

impl Mending {
    /// Whether anything was mended.
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }
}

/// Rewrites the value at the start of `bytes` as JSON. Gives the text and how many bytes the
/// value took, or `None` if it cannot be told what was meant.
pub fn repair(bytes: &[u8], mending: &mut Mending) -> Option<(String, usize)> {
    let mut mender = Mender {
        bytes,
        pos: 0,
        out: Vec::with_capacity(bytes.len().min(1 << 16)),
        found: *mending,
    };
    mender.value(0, Inside::Object)?;
    let length = mender.pos;
    let text = match String::from_utf8(mender.out) {
        Ok(text) => text,
        Err(error) => {
            let bytes = error.into_bytes();
            let bad = bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count();
            mender.found.bad_utf8 += u32::try_from(bad).unwrap_or(u32::MAX);
            String::from_utf8_lossy(&bytes).into_owned()
        }
    };
    *mending = mender.found;
    Some((text, length))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Object,
    Array,
}

struct Mender<'a> {
    bytes: &'a [u8],
    pos: usize,
    out: Vec<u8>,
    found: Mending,
}

impl Mender<'_> {
    fn skip_space(&mut self) {
        self.pos = after_space(self.bytes, self.pos);
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.bytes.get(self.pos).copied()
    }

    fn value(&mut self, depth: u32, inside: Inside) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(inside),
            _ => self.bare(),
        }
    }

    fn emit(&mut self, byte: u8) {
        self.out.push(byte);
    }

    fn object(&mut self, depth: u32) -> Option<()> {
        self.pos += 1;
        self.emit(b'{');
        let mut first = true;
        loop {
            if self.separator(b'}', &mut first)? {
                return Some(());
            }
            self.key()?;
            self.emit(b':');
            self.value(depth + 1, Inside::Object)?;
        }
    }

    fn array(&mut self, depth: u32) -> Option<()> {
        self.pos += 1;
        self.emit(b'[');
        let mut first = true;
        loop {
            if self.separator(b']', &mut first)? {
                return Some(());
            }
            self.value(depth + 1, Inside::Array)?;
        }
    }

    /// Takes what stands between two members; true if the container ended.
    fn separator(&mut self, end: u8, first: &mut bool) -> Option<bool> {
        let mut commas = 0_u32;
        while self.peek()? == b',' {
            self.pos += 1;
            commas += 1;
        }
        let ended = self.peek()? == end;
        let wanted = u32::from(!*first && !ended);
        self.found.commas += commas.abs_diff(wanted);
        if ended {
            self.pos += 1;
            self.emit(end);
        } else if !*first {
            self.emit(b',');
        }
        *first = false;
        Some(ended)
    }

    /// A key with its colon; either quote may be missing.
    fn key(&mut self) -> Option<()> {
        let opened = self.peek()? == b'"';
        let start = self.pos + usize::from(opened);
        let rest = self.bytes.get(start..)?;
        let stop =
            rest.iter().position(|b| matches!(b, b'"' | b':' | b'{' | b'}' | b'\n' | b'\\'))?;
        let closed = rest[stop] == b'"';
        let colon = after_space(rest, stop + usize::from(closed));
        if rest.get(colon) != Some(&b':') || stop == 0 {
            return None;
        }
        self.found.key_quotes += u32::from(!(opened && closed));
        self.emit(b'"');
        self.out.extend(rest[..stop].iter().filter(|b| **b >= 0x20));
        self.emit(b'"');
        self.pos = start + colon + 1;
        Some(())
    }

    fn string(&mut self, inside: Inside) -> Option<()> {
        self.pos += 1;
        self.emit(b'"');
        loop {
            let byte = *self.bytes.get(self.pos)?;
            match byte {
                b'"' if closes(self.bytes, self.pos + 1, inside) => {
                    self.pos += 1;
                    self.emit(b'"');
                    return Some(());
                }
                b'"' => {
                    self.found.stray_quotes += 1;
                    self.out.extend(b"\\\"");
                }
                b'\\' => self.escape(),
                0..=0x1f => {
                    self.found.control_characters += 1;
                    self.out.extend(format!("\\u{byte:04x}").bytes());
                }
                _ => self.emit(byte),
            }
            self.pos += 1;
        }
    }

    /// Copies an escape; leaves the position on its last byte.
    fn escape(&mut self) {
        let rest = self.bytes.get(self.pos + 1..).unwrap_or(&[]);
        let length = match rest {
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 1,
            [b'u', hex @ ..] if hex.len() >= 4 && hex[..4].iter().all(u8::is_ascii_hexdigit) => 5,
            _ => 0,
        };
        self.emit(b'\\');
        if length == 0 {
            self.found.bad_escapes += 1;
            self.emit(b'\\');
        } else {
            self.out.extend(&rest[..length]);
            self.pos += length;
        }
    }

    /// A value without quotes: a number or literal, or one of the spellings of not-a-number.
    fn bare(&mut self) -> Option<()> {
        let rest = self.bytes.get(self.pos..)?;
        let length = rest.iter().position(|b| matches!(b, b',' | b'}' | b']' | b'\n' | b'\r'))?;
        let word = rest[..length].trim_ascii_end();
        if serde_json::from_slice::<serde::de::IgnoredAny>(word).is_ok() {
            self.out.extend(word);
        } else if is_not_finite(word) {
            self.found.not_finite += 1;
            self.out.extend(b"null");
        } else {
            return None;
        }
        self.pos += word.len();
        Some(())
    }
}

fn is_not_finite(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word);
    let word = word.to_ascii_lowercase();
    matches!(
        word.as_slice(),
        b"nan"
            | b"inf"
            | b"infinity"
            | b"nan(ind)"
            | b"nan(snan)"
            | b"1.#inf"
            | b"1.#qnan"
            | b"1.#ind"
    )
}

fn after_space(bytes: &[u8], from: usize) -> usize {
    let space = |b: &&u8| matches!(b, b' ' | b'\n' | b'\r' | b'\t');
    from + bytes.get(from..).unwrap_or(&[]).iter().take_while(space).count()
}

/// Whether a quote before `after` ends its string: only if what follows can follow a value.
fn closes(bytes: &[u8], after: usize, inside: Inside) -> bool {
    let next = after_space(bytes, after);
    match (bytes.get(next), inside) {
        (Some(b'}'), Inside::Object) | (Some(b']' | b','), Inside::Array) => true,
        (Some(b','), Inside::Object) => begins_key(bytes, after_space(bytes, next + 1)),
        _ => false,
    }
}

/// Whether a key with its colon (quotes optional) or the end of the object stands at `at`.
fn begins_key(bytes: &[u8], at: usize) -> bool {
    const LONGEST_KEY: usize = 80;
    let rest = bytes.get(at..).unwrap_or(&[]);
    if rest.first() == Some(&b'}') {
        return true;
    }
    let opened = usize::from(rest.first() == Some(&b'"'));
    let body = &rest[opened..rest.len().min(LONGEST_KEY)];
    let part_of_key = |b: &&u8| b.is_ascii_alphanumeric() || b" _-.()/%#&".contains(b);
    let stop = body.iter().take_while(part_of_key).count();
    let closed = usize::from(body.get(stop) == Some(&b'"'));
    stop > 0
        && (opened + closed) > 0
        && rest.get(after_space(rest, opened + stop + closed)) == Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mended(text: &[u8]) -> (serde_json::Value, Mending) {
        let mut mending = Mending::default();
        let (json, length) = repair(text, &mut mending).expect("can be mended");
        assert_eq!(length, text.len());
        (serde_json::from_str(&json).expect("is JSON now"), mending)
    }

    #[test]
    fn control_characters_become_escapes() {
        let (value, mending) = mended(b"{\"name\": \"a\nb\x01c\", \"ts\": 1}");
        assert_eq!(value["name"], "a\nb\u{1}c");
        assert_eq!(mending, Mending { control_characters: 2, ..Mending::default() });
    }

    #[test]
    fn source_text_with_quotes_is_kept_whole() {
        let (value, mending) = mended(
            b"{\"ph\": \"X\", \"name\": \"_x = Lib(\"t\", \"I\")\n(1): <module>\", \"pid\": 3}",
        );
        assert_eq!(value["name"], "_x = Lib(\"t\", \"I\")\n(1): <module>");
        assert_eq!(value["pid"], 3);
        assert_eq!((mending.stray_quotes, mending.control_characters), (4, 1));
    }

    #[test]
    fn keys_get_their_quotes_back() {
        for text in ["{\"ph\":\"X\",tid\": 0 }", "{\"ph\":\"X\", \"tid: 0}"] {
            let (value, mending) = mended(text.as_bytes());
            assert_eq!((&value["tid"], mending.key_quotes), (&0.into(), 1), "{text}");
        }
    }

    #[test]
    fn values_that_are_not_numbers_become_null() {
        for word in ["nan", "NaN", "-nan", "inf", "Infinity", "-Infinity", "+inf", "-nan(ind)"] {
            let (value, mending) =
                mended(format!("{{\"a\": {word}, \"b\": [1,{word}]}}").as_bytes());
            assert_eq!(value, serde_json::json!({"a": null, "b": [1, null]}), "{word}");
            assert_eq!(mending.not_finite, 2);
        }
    }

    #[test]
    fn foreign_bytes_are_replaced() {
        let (value, mending) = mended(b"{\"name\": \"a\xff\xfeb\", \"ts\": 1}");
        assert_eq!(value["name"], "a\u{fffd}\u{fffd}b");
        assert_eq!(mending.bad_utf8, 2);
    }

    #[test]
    fn nonsense_is_left_alone() {
        for text in ["{\"a\": }", "{\"a\": x}", "{\"a\": 1", "{:1}", "{\"a\" \"b\"}", ""] {
            assert_eq!(repair(text.as_bytes(), &mut Mending::default()), None, "{text}");
        }
        let deep = "{\"a\":".repeat(500);
        assert_eq!(repair(deep.as_bytes(), &mut Mending::default()), None);
    }

    proptest! {
        #[test]
        fn result_is_json_whatever_went_in(bytes in prop::collection::vec(
            prop::sample::select(b"{}[]\",:\\ \nabn1-.u0\xff\x01".to_vec()), 0..60)) {
            let mut text = b"{".to_vec();
            text.extend(bytes);
            if let Some((json, length)) = repair(&text, &mut Mending::default()) {
                prop_assert!(length <= text.len());
                prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{}", json);
            }
        }
    }
}
