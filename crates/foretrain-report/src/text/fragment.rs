//! A page as an HTML fragment, for notebooks and browsers: no scripts, nothing from elsewhere, and
//! whatever comes from files is escaped.

use foretrain_core::words::printable;

use super::table::{Side, Table};

/// HTML under construction.
#[derive(Default)]
pub(super) struct Fragment {
    html: String,
    /// Lines that keep their form, until something else comes.
    lines: Vec<String>,
    /// Whether a list of fields is open.
    fields: bool,
}

/// Of one fragment: colours follow the page around it, so that dark themes stay dark.
const STYLE: &str = "\
<style>\
.foretrain{font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;max-width:72em}\
.foretrain h3{font-size:15px;margin:1em 0 .4em}\
.foretrain h3:first-of-type{margin-top:0}\
.foretrain p{margin:.4em 0}\
.foretrain dl{display:grid;grid-template-columns:max-content auto;gap:.1em 1em;margin:.4em 0}\
.foretrain dt{font-weight:600}\
.foretrain dd{margin:0}\
.foretrain table{border-collapse:collapse;margin:.4em 0;font-variant-numeric:tabular-nums}\
.foretrain th,.foretrain td{padding:.15em .7em;text-align:left;vertical-align:top;background:none}\
.foretrain th{border-bottom:1px solid;font-weight:600}\
.foretrain .n{text-align:right;white-space:nowrap}\
.foretrain .w{border-left:3px solid #c80;padding-left:.6em}\
.foretrain pre{margin:.4em 0;white-space:pre-wrap}\
</style>";

impl Fragment {
    pub(super) fn heading(&mut self, text: &str) {
        self.close();
        self.element("h3", "", text);
    }

    /// A gap ends what belongs together.
    pub(super) fn blank(&mut self) {
        self.close();
    }

    pub(super) fn line(&mut self, line: &str) {
        self.close_fields();
        self.lines.push(escaped(line));
    }

    pub(super) fn paragraph(&mut self, first: &str, text: &str) {
        self.close();
        self.element("p", "", &format!("{first}{text}"));
    }

    pub(super) fn field(&mut self, label: &str, text: &str) {
        self.close_lines();
        if !self.fields {
            self.html.push_str("<dl>");
            self.fields = true;
        }
        self.element("dt", "", label);
        self.element("dd", "", text);
    }

    pub(super) fn warning(&mut self, text: &str) {
        self.close();
        self.element("p", " class=\"w\"", &format!("warning: {text}"));
    }

    pub(super) fn table(&mut self, table: &Table) {
        self.close();
        self.html.push_str("<table><thead><tr>");
        let class = |side| if side == Side::Right { " class=\"n\"" } else { "" };
        for (name, side) in table.columns() {
            self.element("th", class(*side), name);
        }
        self.html.push_str("</tr></thead><tbody>");
        for row in table.rows() {
            self.html.push_str("<tr>");
            for (cell, (_, side)) in row.iter().zip(table.columns()) {
                self.element("td", class(*side), cell);
            }
            self.html.push_str("</tr>");
        }
        self.html.push_str("</tbody></table>\n");
    }

    pub(super) fn finish(mut self) -> String {
        self.close();
        format!("<div class=\"foretrain\">{STYLE}\n{}</div>\n", self.html)
    }

    fn element(&mut self, name: &str, attributes: &str, text: &str) {
        let text = escaped(text);
        self.html.push_str(&format!("<{name}{attributes}>{text}</{name}>"));
    }

    fn close(&mut self) {
        self.close_fields();
        self.close_lines();
    }

    fn close_fields(&mut self) {
        if std::mem::take(&mut self.fields) {
            self.html.push_str("</dl>\n");
        }
    }

    fn close_lines(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        if !lines.is_empty() {
            self.html.push_str(&format!("<pre>{}</pre>\n", lines.join("\n")));
        }
    }
}

/// Text that HTML does not take for anything else.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for letter in printable(text.trim_end()).chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            letter => html.push(letter),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::TextStyle;
    use crate::text::sheet::Sheet;

    #[test]
    fn nothing_from_a_file_becomes_an_element() {
        let wild = "<img src=x onerror=\"alert('1')\">&";
        let mut sheet = Sheet::new(TextStyle::html());
        sheet.heading(wild);
        sheet.field(wild, wild);
        sheet.paragraph(wild, wild);
        sheet.line(wild);
        sheet.warning(wild);
        let mut table = Table::new(&[(wild, Side::Left)]);
        table.row(vec![wild.into()]);
        sheet.table(table);
        let page = sheet.finish();
        assert!(!page.contains("<img") && !page.contains("'1'"), "{page}");
        assert_eq!(page.matches("&lt;img src=x").count(), 9, "{page}");
    }

    #[test]
    fn every_element_is_closed() {
        let mut sheet = Sheet::new(TextStyle::html());
        sheet.heading("Step time");
        sheet.field("job", "2 ranks");
        sheet.field("step", "11 ms");
        let mut table = Table::new(&[("GPUs", Side::Right), ("Largest owner", Side::Left)]);
        table.row(vec!["8".into(), "compute".into()]);
        sheet.table(table);
        sheet.line("a  b");
        sheet.line("c  d");
        sheet.blank();
        sheet.line("e");
        let page = sheet.finish();
        for name in ["div", "h3", "dl", "dt", "dd", "table", "thead", "tbody", "tr", "pre"] {
            let opened = page.matches(&format!("<{name}>")).count()
                + page.matches(&format!("<{name} ")).count();
            assert!(opened > 0, "{name}: {page}");
            assert_eq!(opened, page.matches(&format!("</{name}>")).count(), "{name}: {page}");
        }
        assert!(page.contains("<td class=\"n\">8</td><td>compute</td>"), "{page}");
        assert!(page.contains("<pre>a  b\nc  d</pre>") && page.contains("<pre>e</pre>"), "{page}");
    }
}
