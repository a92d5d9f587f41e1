//! A page of text (or the same as HTML) under construction. Whatever comes from files may hold control characters, which a
//! terminal would obey: here and in tables they are replaced, so that no page has to.

use foretrain_core::words::printable;

use super::TextStyle;
use super::fragment::Fragment;
use super::table::Table;

/// Headings, tables, paragraphs.
pub(super) struct Sheet {
    text: String,
    style: TextStyle,
    /// In place of the text, if that is what is wanted.
    html: Option<Fragment>,
}

/// Columns of a field's label.
const LABEL: usize = 12;
const BOLD: &str = "\u{1b}[1m";
const YELLOW: &str = "\u{1b}[33m";
const RESET: &str = "\u{1b}[0m";

impl Sheet {
    pub(super) fn new(style: TextStyle) -> Self {
        Self {
            text: String::new(),
            style: TextStyle { width: style.width.max(40), ..style },
            html: style.html.then(Fragment::default),
        }
    }

    /// A heading, with a blank line before it unless it is the first.
    pub(super) fn heading(&mut self, text: &str) {
        if let Some(html) = &mut self.html {
            return html.heading(text);
        }
        self.blank();
        if self.style.colour {
            self.push(&format!("{BOLD}{}{RESET}", printable(text)));
        } else {
            self.line(text);
        }
    }

    /// A blank line, never at the start.
    pub(super) fn blank(&mut self) {
        if let Some(html) = &mut self.html {
            return html.blank();
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// A line as it is.
    pub(super) fn line(&mut self, line: &str) {
        if let Some(html) = &mut self.html {
            return html.line(line);
        }
        self.push(&printable(line));
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A first mark and words broken at the width; lines after the first are indented by as much.
    pub(super) fn paragraph(&mut self, first: &str, text: &str) {
        if let Some(html) = &mut self.html {
            return html.paragraph(first, text);
        }
        for line in wrap(first, text, self.style.width) {
            self.line(&line);
        }
    }

    /// A label in a fixed column and text beside it.
    pub(super) fn field(&mut self, label: &str, text: &str) {
        if let Some(html) = &mut self.html {
            return html.field(label, text);
        }
        self.paragraph(&format!("{label:LABEL$}"), text);
    }

    /// A warning, marked by the word.
    pub(super) fn warning(&mut self, text: &str) {
        const MARK: &str = "warning: ";
        if let Some(html) = &mut self.html {
            return html.warning(text);
        }
        for line in wrap(MARK, text, self.style.width) {
            match line.strip_prefix(MARK).filter(|_| self.style.colour) {
                Some(rest) => self.push(&format!("{YELLOW}{MARK}{RESET}{}", printable(rest))),
                None => self.line(&line),
            }
        }
    }

    pub(super) fn table(&mut self, table: Table) {
        if let Some(html) = &mut self.html {
            return html.table(&table);
        }
        for line in table.lines(self.style.width) {
            self.line(&line);
        }
    }

    pub(super) fn finish(self) -> String {
        match self.html {
            Some(html) => html.finish(),
            None => self.text,
        }
    }
}

/// Breaks text between words after a first mark; lines that follow are indented by its length.
fn wrap(first: &str, text: &str, width: usize) -> Vec<String> {
    let indent = first.chars().count();
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut length = indent;
    for word in text.split_whitespace() {
        let size = word.chars().count();
        if length > indent && length + 1 + size > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            length = indent;
        }
        if length > indent {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += size;
    }
    lines.push(line.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_a_file_is_obeyed() {
        let wild = "a\u{1b}[31m";
        for colour in [false, true] {
            let mut sheet = Sheet::new(TextStyle { width: 80, colour, html: false });
            sheet.heading(wild);
            sheet.field(wild, wild);
            sheet.warning(wild);
            let mut table = Table::new(&[(wild, crate::text::table::Side::Left)]);
            table.row(vec![wild.into()]);
            sheet.table(table);
            let page = sheet.finish();
            assert!(!page.contains("\u{1b}[31m"), "{page:?}");
            assert_eq!(page.matches("a?[31m").count(), 6, "{page:?}");
        }
    }

    #[test]
    fn words_are_broken_and_indented() {
        let lines = wrap("warning: ", "one two three four", 16);
        assert_eq!(lines, ["warning: one two", "         three", "         four"]);
        assert_eq!(wrap("label       ", "text", 40), ["label       text"]);
        assert_eq!(wrap("", "averyveryverylongword", 8), ["averyveryverylongword"]);
    }
}
