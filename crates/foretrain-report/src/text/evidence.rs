//! What an answer rests on.

use foretrain_core::Evidence;

use super::sheet::Sheet;
use super::table::{Side, Table};
use super::units::{name, percent};

/// The lines of evidence, if there are any.
pub(super) fn evidence(evidence: &[Evidence], sheet: &mut Sheet) {
    if evidence.is_empty() {
        return;
    }
    sheet.heading("What this rests on");
    let mut table = Table::new(&[
        ("Support", Side::Left),
        ("For", Side::Left),
        ("Because", Side::Left),
        ("Spread", Side::Right),
    ]);
    for line in evidence {
        let spread = match line.relative_spread {
            s if s > 0.0 && s.is_finite() => percent(s),
            _ => "-".into(),
        };
        table.row(vec![
            line.kind.as_str().into(),
            name(&line.what, 40),
            name(&line.source, 160),
            spread,
        ]);
    }
    table.keep_whole([0, 3]);
    table.at_most(1, 32);
    sheet.table(table);
}
