//! Elements with escaped text.

/// A document under construction.
#[derive(Default)]
pub(super) struct Document {
    text: String,
    open: Vec<&'static str>,
}

impl Document {
    /// Opens an element; its attributes are names with values.
    pub(super) fn open(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.text.push_str(">\n");
        self.open.push(name);
    }

    /// Closes what was opened last.
    pub(super) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.text.push_str(&format!("</{name}>\n"));
        }
    }

    /// An element without content.
    pub(super) fn empty(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.text.push_str("/>\n");
    }

    /// An element that holds text.
    pub(super) fn text(&mut self, name: &'static str, attributes: &[(&str, &str)], text: &str) {
        self.tag(name, attributes);
        self.text.push_str(&format!(">{}</{name}>\n", escaped(text)));
    }

    /// The text with everything closed.
    pub(super) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.text.push_str(&format!("<{name}"));
        for (attribute, value) in attributes {
            self.text.push_str(&format!(" {attribute}=\"{}\"", escaped(value)));
        }
    }
}

/// Text as XML allows it; control characters, most of which it does not allow, as `?`.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\n' => safe.push('\n'),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('?'),
            c => safe.push(c),
        }
    }
    safe
}

/// A coordinate: a tenth of a pixel is finer than anyone sees.
pub(super) fn at(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_place() {
        let mut document = Document::default();
        document.open("svg", &[("class", "a\"><script>")]);
        document.text("title", &[], "</title>\u{1b}[31m & more");
        let text = document.finish();
        assert_eq!(
            text,
            "<svg class=\"a&quot;&gt;&lt;script&gt;\">\n<title>&lt;/title&gt;?[31m &amp; more</title>\n</svg>\n"
        );
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!([at(12.0), at(0.04), at(7.25)], ["12", "0", "7.2"]);
    }
}
