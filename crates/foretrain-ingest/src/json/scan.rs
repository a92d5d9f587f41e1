//! A strict JSON scanner over a window of bytes that may end anywhere.
//!
//! It accepts what RFC 8259 accepts (UTF-8 is checked by the caller, nesting is bounded) and
//! tells apart text that is wrong from text that is merely not all there yet. The second matters:
//! the window is then filled further and the value is scanned again.

/// Nesting accepted inside one value; the bound of `serde_json` too.
pub const MAX_DEPTH: u32 = 127;

/// Why a value could not be scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanError {
    /// The window ends before the value does.
    Incomplete,
    /// The byte at this offset of the window cannot stand there.
    Invalid(usize),
}

/// What a value is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// The field is not there.
    #[default]
    Absent,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A string without escapes.
    Text,
    /// A string with escapes.
    Escaped,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// Where a value lies in the window. Strings exclude their quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Value {
    /// What it is.
    pub kind: Kind,
    start: u32,
    end: u32,
}

impl Value {
    /// Whether the field is there and not null.
    pub fn is_some(self) -> bool {
        !matches!(self.kind, Kind::Absent | Kind::Null)
    }

    /// Whether it is a string.
    pub fn is_text(self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Escaped)
    }

    /// Its text in the window it was scanned from; escapes are left as they are.
    pub fn raw(self, window: &str) -> &str {
        window.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

/// The result of scanning.
pub type Scan<T> = Result<T, ScanError>;

/// A position in a window.
#[derive(Clone, Copy, Debug)]
pub struct Scanner<'a> {
    bytes: &'a [u8],
    pos: usize,
}

impl<'a> Scanner<'a> {
    /// Starts at an offset of the window. Offsets beyond `u32` are never reached: values that
    /// large are refused before.
    pub fn new(bytes: &'a [u8], pos: usize) -> Self {
        Self { bytes, pos }
    }

    /// The current offset.
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// The byte at the current offset.
    pub fn peek(&self) -> Scan<u8> {
        self.bytes.get(self.pos).copied().ok_or(ScanError::Incomplete)
    }

    /// Moves on by one byte.
    pub fn bump(&mut self) {
        self.pos += 1;
    }

    /// Skips white space.
    pub fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.pos) {
            self.pos += 1;
        }
    }

    /// Skips white space and takes `byte`.
    pub fn expect(&mut self, byte: u8) -> Scan<()> {
        self.skip_space();
        if self.peek()? != byte {
            return self.invalid();
        }
        self.pos += 1;
        Ok(())
    }

    /// The current byte cannot stand here.
    pub fn invalid<T>(&self) -> Scan<T> {
        Err(ScanError::Invalid(self.pos))
    }

    /// The bytes of a span.
    pub fn bytes_of(&self, value: Value) -> &'a [u8] {
        self.bytes.get(value.start as usize..value.end as usize).unwrap_or(&[])
    }

    /// Scans any value.
    pub fn value(&mut self) -> Scan<Value> {
        self.skip_space();
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => self.container(),
            _ => self.scalar(),
        }
    }

    fn span(&self, kind: Kind, start: usize) -> Value {
        Value { kind, start: start as u32, end: self.pos as u32 }
    }

    fn scalar(&mut self) -> Scan<Value> {
        match self.peek()? {
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal(b"true", Kind::Bool),
            b'f' => self.literal(b"false", Kind::Bool),
            b'n' => self.literal(b"null", Kind::Null),
            _ => self.invalid(),
        }
    }

    fn literal(&mut self, word: &[u8], kind: Kind) -> Scan<Value> {
        let start = self.pos;
        for &byte in word {
            if self.peek()? != byte {
                return self.invalid();
            }
            self.pos += 1;
        }
        Ok(self.span(kind, start))
    }

    fn digits(&mut self) -> Scan<()> {
        if !self.peek()?.is_ascii_digit() {
            return self.invalid();
        }
        while self.bytes.get(self.pos).is_some_and(u8::is_ascii_digit) {
            self.pos += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Scan<Value> {
        let start = self.pos;
        if self.peek()? == b'-' {
            self.pos += 1;
        }
        if self.peek()? == b'0' {
            self.pos += 1;
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.pos) == Some(&b'.') {
            self.pos += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.pos) {
            self.pos += 1;
            if let b'+' | b'-' = self.peek()? {
                self.pos += 1;
            }
            self.digits()?;
        }
        // A number that touches the end of the window may go on in the next block.
        self.peek()?;
        Ok(self.span(Kind::Number, start))
    }

    /// Scans a string; the current byte is its opening quote.
    pub fn string(&mut self) -> Scan<Value> {
        self.pos += 1;
        let start = self.pos;
        let mut kind = Kind::Text;
        loop {
            self.pos += plain_prefix(self.bytes.get(self.pos..).unwrap_or(&[]));
            match self.peek()? {
                b'"' => {
                    let value = self.span(kind, start);
                    self.pos += 1;
                    return Ok(value);
                }
                b'\\' => {
                    kind = Kind::Escaped;
                    self.escape()?;
                }
                _ => return self.invalid(),
            }
        }
    }

    fn escape(&mut self) -> Scan<()> {
        self.pos += 1;
        match self.peek()? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.pos += 1,
            b'u' => {
                self.pos += 1;
                for _ in 0..4 {
                    if !self.peek()?.is_ascii_hexdigit() {
                        return self.invalid();
                    }
                    self.pos += 1;
                }
            }
            _ => return self.invalid(),
        }
        Ok(())
    }

    /// Takes a key and its colon.
    pub fn key(&mut self) -> Scan<Value> {
        self.skip_space();
        if self.peek()? != b'"' {
            return self.invalid();
        }
        let key = self.string()?;
        self.expect(b':')?;
        Ok(key)
    }

    /// Skips an array or object without recursion: a bit per level tells which it is.
    fn container(&mut self) -> Scan<Value> {
        let start = self.pos;
        let kind = if self.peek()? == b'{' { Kind::Object } else { Kind::Array };
        let mut levels: u128 = 0;
        let mut depth: u32 = 0;
        loop {
            self.skip_space();
            let open = self.peek()?;
            if open == b'{' || open == b'[' {
                if depth == MAX_DEPTH {
                    return self.invalid();
                }
                self.pos += 1;
                depth += 1;
                levels = levels << 1 | u128::from(open == b'{');
                self.skip_space();
                if self.peek()? != open + 2 {
                    if open == b'{' {
                        self.key()?;
                    }
                    continue;
                }
            } else {
                self.scalar()?;
            }
            if self.close(&mut levels, &mut depth)? {
                return Ok(self.span(kind, start));
            }
        }
    }

    /// After a value: takes closing brackets up to a comma. True if the outermost closed.
    fn close(&mut self, levels: &mut u128, depth: &mut u32) -> Scan<bool> {
        loop {
            self.skip_space();
            let in_object = *levels & 1 == 1;
            match self.peek()? {
                b',' => {
                    self.pos += 1;
                    if in_object {
                        self.key()?;
                    }
                    return Ok(false);
                }
                b'}' if in_object => {}
                b']' if !in_object => {}
                _ => return self.invalid(),
            }
            self.pos += 1;
            *levels >>= 1;
            *depth -= 1;
            if *depth == 0 {
                return Ok(true);
            }
        }
    }
}

/// Length of the prefix free of quotes, backslashes and control characters, eight bytes at a
/// time.
fn plain_prefix(bytes: &[u8]) -> usize {
    let mut chunks = bytes.chunks_exact(8);
    let mut length = 0;
    for chunk in &mut chunks {
        let word = chunk.iter().rev().fold(0_u64, |word, &byte| word << 8 | u64::from(byte));
        let special = special_bytes(word);
        if special != 0 {
            return length + (special.trailing_zeros() / 8) as usize;
        }
        length += 8;
    }
    let rest = chunks.remainder();
    length + rest.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20).unwrap_or(rest.len())
}

/// The high bit of every byte that ends a plain run; bits above the first set one may be wrong,
/// which does not matter to `trailing_zeros` (the borrow runs upwards only).
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let zero_in = |x: u64| x.wrapping_sub(ONES) & !x & HIGH;
    let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
    control | zero_in(word ^ (ONES * b'"' as u64)) | zero_in(word ^ (ONES * b'\\' as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(text: &[u8]) -> Scan<usize> {
        let mut scanner = Scanner::new(text, 0);
        scanner.value()?;
        Ok(scanner.pos())
    }

    #[test]
    fn the_offset_of_the_fault_is_exact() {
        for (text, at) in [
            ("{\"a\":nan}", 6),
            ("{\"a\" 1}", 5),
            ("[1 2]", 3),
            ("{\"a\":\"b\nc\"}", 7),
            ("[\"\\x\"]", 3),
            ("[01]", 2),
            ("{tid\":0}", 1),
        ] {
            assert_eq!(scan(text.as_bytes()), Err(ScanError::Invalid(at)), "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(scan(deep(127).as_bytes()).is_ok());
        assert_eq!(scan(deep(128).as_bytes()), Err(ScanError::Invalid(127)));
        assert_eq!(scan("[".repeat(1_000_000).as_bytes()), Err(ScanError::Invalid(127)));
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json_on_any_text(text in r#"[\[\]{},:"\\0-9eE.+\-a-f ntrulsé\n]{0,40}"#) {
            // A trailing blank closes a top-level number, which events never are.
            let padded = format!("{text} ");
            let ours = match scan(padded.as_bytes()) {
                Ok(end) => padded[end..].trim_matches([' ', '\n', '\r', '\t']).is_empty(),
                Err(_) => false,
            };
            let oracle = serde_json::from_str::<&serde_json::value::RawValue>(&padded).is_ok();
            prop_assert_eq!(ours, oracle);
        }

        #[test]
        fn plain_prefix_matches_a_byte_loop(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let want = bytes.iter().position(|&b| b == b'"' || b == b'\\' || b < 0x20);
            prop_assert_eq!(plain_prefix(&bytes), want.unwrap_or(bytes.len()));
        }
    }
}
