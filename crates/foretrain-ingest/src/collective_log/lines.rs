//! The lines of a text, each of bounded length.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};

use foretrain_core::{InputError, Ledger, Result, Severity};

/// Bytes of a line that are looked at; no table is as wide.
const WIDEST: usize = 64 * 1024;
/// Bytes after which a line has no end: devices may give zeros for ever.
const LONGEST: usize = 1 << 28;

/// Calls `each` with every line and its number, counted from one. Windows line ends, carriage
/// returns of progress bars and bytes that are no UTF-8 are dealt with. A stream that breaks gives
/// what it holds.
///
/// # Errors
/// If nothing can be read at all.
pub(crate) fn for_each_line(
    text: impl Read,
    path: &str,
    ledger: &mut Ledger,
    mut each: impl FnMut(u64, &str, &mut Ledger),
) -> Result<()> {
    let mut reader = BufReader::new(text);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        match (&mut reader).take(WIDEST as u64).read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) if number == 1 => return Err(InputError::io(&error, path)),
            Err(error) => {
                let message = "the file is cut off or damaged here; what came before was read";
                ledger.record_at(Severity::Dropped, "cut-off", message, || {
                    format!("line {number} ({error})")
                });
                break;
            }
        }
        if line.len() == WIDEST && line.last() != Some(&b'\n') {
            let message = "line too long for a table; its end was not looked at";
            ledger.record_at(Severity::Note, "long-line", message, || format!("line {number}"));
            // An error in the rest of the line comes again with the next line.
            if let Ok(LONGEST) = (&mut reader).take(LONGEST as u64).skip_until(b'\n') {
                let message = "a line has no end; what follows was not read";
                ledger.record_at(Severity::Dropped, "endless-line", message, || {
                    format!("line {number}")
                });
                break;
            }
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\r', '\n']);
        // What a terminal would show: the text after the last carriage return.
        let shown = text.rsplit('\r').next().unwrap_or_default();
        each(number, &without_colours(shown), ledger);
    }
    Ok(())
}

/// The text without terminal escape sequences.
fn without_colours(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if rest.next() == Some('[') {
            rest.by_ref().find(|c| ('@'..='~').contains(c));
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_end_ends_the_reading() {
        let (mut ledger, mut seen) = (Ledger::new(), 0);
        let text = std::io::Read::chain(&b"one\n"[..], std::io::repeat(0));
        for_each_line(text, "zeros", &mut ledger, |_, _, _| seen += 1).unwrap();
        assert_eq!(seen, 1);
        assert!(ledger.get("endless-line").is_some());
    }

    fn lines(text: &[u8]) -> (Vec<String>, Ledger) {
        let (mut all, mut ledger) = (Vec::new(), Ledger::new());
        for_each_line(text, "x", &mut ledger, |_, line, _| all.push(line.to_owned())).unwrap();
        (all, ledger)
    }

    #[test]
    fn line_ends_colours_and_bad_bytes_do_not_matter() {
        let (all, ledger) = lines(b"a\r\n\x1b[1;31mb\x1b[0m\n10%\r100%\nc\xff\n\nd");
        assert_eq!(all, ["a", "b", "100%", "c\u{fffd}", "", "d"]);
        assert!(ledger.is_empty());
    }

    #[test]
    fn an_endless_line_is_cut_and_the_next_one_read() {
        let mut text = vec![b'x'; 3 * WIDEST + 7];
        text.extend_from_slice(b"\nnext\n");
        let (all, ledger) = lines(&text);
        assert_eq!((all.len(), all[0].len(), all[1].as_str()), (2, WIDEST, "next"));
        assert_eq!(ledger.get("long-line").unwrap().places, ["line 1"]);
    }
}
