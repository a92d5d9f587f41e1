//! Cells as numbers, and the many ways to write nothing.

/// What tables write where there is no value.
const NOTHING: [&[u8]; 12] = [
    b"", b"-", b"na", b"n/a", b"nan", b"nat", b"nil", b"none", b"null", b"\\n", b"<na>", b"unknown",
];

/// A cell without the blanks around it; nothing if it says that there is no value.
pub(super) fn given(cell: &[u8]) -> Option<&[u8]> {
    let cell = cell.trim_ascii();
    // The longest way to write nothing has seven letters; most values start with a digit.
    let nothing = match cell.first() {
        None => true,
        Some(b'0'..=b'9') => false,
        Some(_) if cell.len() > 7 => false,
        Some(_) => NOTHING.iter().any(|word| cell.eq_ignore_ascii_case(word)),
    };
    (!nothing).then_some(cell)
}

/// A finite decimal number.
pub(super) fn number(cell: &[u8]) -> Option<f64> {
    if let Some(value) = short_decimal(cell) {
        return Some(value);
    }
    // Not everything that Rust reads as a number is one in a table.
    if !cell.iter().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E')) {
        return None;
    }
    let value: f64 = std::str::from_utf8(cell).ok()?.parse().ok()?;
    value.is_finite().then_some(value)
}

/// Powers of ten that a double holds exactly.
const TENS: [f64; 16] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// A number of at most 15 digits: as it and the power of ten are exact, one division rounds right.
fn short_decimal(cell: &[u8]) -> Option<f64> {
    let (negative, digits) = match cell.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, cell),
    };
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let (mut whole, mut decimals, mut point, mut seen) = (0_u64, 0_usize, false, 0_usize);
    for &byte in digits {
        match byte {
            b'0'..=b'9' => {
                whole = whole * 10 + u64::from(byte - b'0');
                seen += 1;
                decimals += usize::from(point);
            }
            b'.' if !point => point = true,
            _ => return None,
        }
    }
    if seen == 0 || seen > 15 {
        return None;
    }
    let value = whole as f64 / TENS[decimals];
    Some(if negative { -value } else { value })
}

/// A number with a decimal comma, perhaps with points between thousands: `2,5`, `1.234,5`.
pub(super) fn comma(cell: &[u8]) -> Option<f64> {
    let at = cell.iter().position(|&byte| byte == b',')?;
    let (whole, decimals) = (&cell[..at], &cell[at + 1..]);
    let mut plain = [0_u8; 32];
    let mut length = 0;
    let mut push = |byte: u8| {
        *plain.get_mut(length)? = byte;
        length += 1;
        Some(())
    };
    let unsigned = whole.strip_prefix(b"-").unwrap_or(whole);
    let mut groups = unsigned.split(|&byte| byte == b'.').peekable();
    let mut first = true;
    while let Some(group) = groups.next() {
        let grouped =
            if first { groups.peek().is_none() || group.len() <= 3 } else { group.len() == 3 };
        if group.is_empty() || !grouped || !group.iter().all(u8::is_ascii_digit) {
            return None;
        }
        first = false;
    }
    for &byte in whole.iter().filter(|&&byte| byte != b'.') {
        push(byte)?;
    }
    push(b'.')?;
    if decimals.is_empty() || !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    for &byte in decimals {
        push(byte)?;
    }
    number(&plain[..length])
}

/// A whole number, if the cell is one.
pub(super) fn integer(cell: &[u8]) -> Option<i64> {
    let (negative, digits) = match cell.split_first()? {
        (b'-', rest) => (true, rest),
        _ => (false, cell),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0_i64;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_in_many_ways() {
        for cell in ["", "  ", "NaN", "NaT", "None", "null", "\\N", "N/A", "-", "<NA>"] {
            assert_eq!(given(cell.as_bytes()), None, "{cell}");
        }
        assert_eq!(given(b" -1 "), Some(&b"-1"[..]));
        assert_eq!(given(b"nanette"), Some(&b"nanette"[..]));
    }

    #[test]
    fn numbers_are_finite_decimals() {
        for (cell, value) in
            [("0", 0.0), ("-1", -1.0), ("12.5", 12.5), ("1.56e12", 1.56e12), (".5", 0.5)]
        {
            assert_eq!(number(cell.as_bytes()), Some(value), "{cell}");
        }
        assert_eq!(number(b"123456789.123456789"), Some(123_456_789.123_456_79));
        for cell in ["", ".", "-", "1e999", "inf", "NaN", "0x10", "1,5", "1 h"] {
            assert_eq!(number(cell.as_bytes()), None, "{cell}");
        }
        assert_eq!(integer(b"1669329643000000000000"), None, "it would not fit");
        assert_eq!(integer(b"-12"), Some(-12));
        assert_eq!(integer(b"1.0"), None);
    }

    #[test]
    fn decimal_commas() {
        for (cell, value) in
            [("2,5", 2.5), ("-0,25", -0.25), ("1.234,5", 1234.5), ("12345,0", 12_345.0)]
        {
            assert_eq!(comma(cell.as_bytes()), Some(value), "{cell}");
        }
        for cell in ["", ",", "5", "1,", ",5", "1,2,3", "1.23,5", "12.34.567,8", "a,5", "--1,5"] {
            assert_eq!(comma(cell.as_bytes()), None, "{cell}");
        }
    }

    proptest::proptest! {
        #[test]
        fn short_numbers_are_read_as_the_library_reads_them(text in "-?[0-9]{1,9}(\\.[0-9]{0,6})?") {
            proptest::prop_assert_eq!(number(text.as_bytes()), text.parse::<f64>().ok());
        }
    }
}
