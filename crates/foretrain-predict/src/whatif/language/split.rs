//! Cutting text where no quote and no parenthesis is open.

/// Positions of the characters outside quotes and parentheses.
fn open_ground(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    let (mut quoted, mut escaped, mut depth) = (false, false, 0_usize);
    text.char_indices().filter(move |&(_, c)| {
        if escaped {
            escaped = false;
            return false;
        }
        match c {
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            _ => return !quoted && depth == 0,
        }
        false
    })
}

/// The parts between separators of open ground.
pub(super) fn at_all(text: &str, is_separator: impl Fn(usize, char) -> bool) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, c) in open_ground(text) {
        if is_separator(at, c) {
            parts.push(text[from..at].trim());
            from = at + c.len_utf8();
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// The text before and after the last character of open ground that `is_separator` accepts.
pub(super) fn at_last(
    text: &str,
    is_separator: impl Fn(usize, char) -> bool,
) -> Option<(&str, &str)> {
    let (at, c) = open_ground(text).filter(|&(at, c)| is_separator(at, c)).last()?;
    Some((text[..at].trim(), text[at + c.len_utf8()..].trim()))
}

/// Whether the character at `at` stands between spaces: elsewhere it belongs to a word.
pub(super) fn stands_alone(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at..].chars().nth(1);
    before.is_some_and(char::is_whitespace) && after.is_none_or(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_parentheses_hide_separators() {
        let text = r#"kernel("a + \" b") x2 + name:(c + d) + e+f"#;
        let parts = at_all(text, |at, c| c == '+' && stands_alone(text, at));
        assert_eq!(parts, [r#"kernel("a + \" b") x2"#, "name:(c + d)", "e+f"]);
        assert_eq!(at_last("a = (b = c) = d", |_, c| c == '='), Some(("a = (b = c)", "d")));
        assert_eq!(at_last("(a=b)", |_, c| c == '='), None);
    }
}
