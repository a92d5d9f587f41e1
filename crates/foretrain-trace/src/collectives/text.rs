//! Scanning the JSON texts that the trace table keeps for shapes, types and positional inputs.
//!
//! The texts come from files, so nothing here trusts them: unknown forms give `None`.

/// Number of elements of the first input in an "Input Dims" text. A tensor is a list of
/// extents, a tensor list a list of those, whose sizes add up. `None` if the first input is not
/// a tensor with at least one dimension, or the count does not fit.
pub(crate) fn first_input_elements(dims: &str) -> Option<u64> {
    let mut depth = 0_u32;
    let mut total = 0_u64;
    let mut product: Option<u64> = None;
    let mut bytes = dims.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'[' => depth += 1,
            b']' => {
                total = total.checked_add(product.take().unwrap_or(0))?;
                depth = depth.checked_sub(1)?;
                if depth <= 1 {
                    break;
                }
            }
            b',' if depth <= 1 => return None,
            b'0'..=b'9' if depth >= 2 => {
                let mut extent = u64::from(byte - b'0');
                while let Some(digit) = bytes.next_if(u8::is_ascii_digit) {
                    extent = extent.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
                }
                product = Some(product.unwrap_or(1).checked_mul(extent)?);
            }
            b' ' | b',' | b'\n' | b'\t' => {}
            _ => return None,
        }
    }
    (total > 0).then_some(total)
}

/// The strings of a flat JSON array; numbers and other bare words count as strings, nested
/// arrays are kept as text.
pub(crate) fn strings(array: &str) -> Vec<String> {
    let mut out = Vec::new();
    let Some(inner) = array.trim().strip_prefix('[') else { return out };
    let inner = inner.strip_suffix(']').unwrap_or(inner);
    let mut item = String::new();
    let (mut depth, mut quoted, mut escaped, mut seen) = (0_u32, false, false, false);
    for c in inner.chars() {
        match c {
            _ if escaped => {
                item.push(c);
                escaped = false;
            }
            '\\' if quoted => escaped = true,
            '"' => {
                quoted = !quoted;
                seen = true;
            }
            ',' if !quoted && depth == 0 => {
                out.push(std::mem::take(&mut item));
                seen = false;
            }
            _ if !quoted && c.is_whitespace() => {}
            _ => {
                if !quoted && c == '[' {
                    depth += 1;
                } else if !quoted && c == ']' {
                    depth = depth.saturating_sub(1);
                }
                item.push(c);
                seen = true;
            }
        }
    }
    if seen || !item.is_empty() || !out.is_empty() {
        out.push(item);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn elements_of_tensors_and_tensor_lists() {
        assert_eq!(first_input_elements("[[[4, 2048, 4096]], [], []]"), Some(33_554_432));
        assert_eq!(first_input_elements("[[[3],[4,5]], []]"), Some(23));
        assert_eq!(first_input_elements("[[2240]]"), Some(2240));
        assert_eq!(first_input_elements("[[], [5]]"), None);
        assert_eq!(first_input_elements("[[[99999999999, 99999999999, 9]]]"), None);
        assert_eq!(first_input_elements("nonsense"), None);
    }

    #[test]
    fn arrays_of_strings() {
        let got = strings(r#"["", "337", "[]", 8]"#);
        assert_eq!(got, ["", "337", "[]", "8"]);
        assert_eq!(strings("[]"), Vec::<String>::new());
        assert_eq!(strings(r#"[[1, 2], "a,\"b"]"#), ["[1,2]", "a,\"b"]);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in "[\\[\\], \"\\\\a0-9]{0,40}") {
            let _ = first_input_elements(&text);
            let _ = strings(&text);
        }
    }
}
