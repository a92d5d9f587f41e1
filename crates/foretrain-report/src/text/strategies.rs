//! Strategies and passes as tables.

use foretrain_rewrite::strategy::{Kind, Parameter, PassKind, Preset};

use super::TextStyle;
use super::sheet::Sheet;
use super::table::{Side, Table};

/// All of them.
pub fn strategies<'a>(
    presets: impl IntoIterator<Item = &'a Preset>,
    passes: impl IntoIterator<Item = &'a PassKind>,
    style: TextStyle,
) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading("Strategies");
    let mut table =
        Table::new(&[("Name", Side::Left), ("Passes", Side::Left), ("About", Side::Left)]);
    table.keep_whole([0]);
    for preset in presets {
        table.row(vec![preset.name.into(), preset.passes.into(), preset.about.into()]);
    }
    sheet.table(table);
    sheet.heading("Passes, in the order in which they are applied");
    let mut table = Table::new(&[
        ("Pass", Side::Left),
        ("Stage", Side::Left),
        ("Parameters", Side::Left),
        ("About", Side::Left),
    ]);
    table.keep_whole([0, 1]);
    for kind in passes {
        let parameters: Vec<String> = kind.parameters.iter().map(written).collect();
        let about = kind.about.split_inclusive(['.', ':']).next().unwrap_or(kind.about);
        table.row(vec![
            kind.name.into(),
            kind.stage.as_str().into(),
            parameters.join(", "),
            about.trim_end_matches(':').into(),
        ]);
    }
    sheet.table(table);
    sheet.blank();
    sheet.paragraph("", "Compose them as in --strategy \"fuse(25MiB, first=1MiB) | compress(half) | ring\"; `foretrain strategies NAME` says more of one.");
    sheet.finish()
}

/// One pass.
pub fn strategy_pass(kind: &PassKind, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading(kind.name);
    sheet.field("stage", kind.stage.as_str());
    sheet.field("about", kind.about);
    sheet.field("source", kind.source);
    if kind.parameters.is_empty() {
        return sheet.finish();
    }
    sheet.blank();
    let mut table = Table::new(&[
        ("Parameter", Side::Left),
        ("Kind", Side::Left),
        ("Default", Side::Left),
        ("About", Side::Left),
    ]);
    for parameter in kind.parameters {
        let kind = match parameter.kind {
            Kind::Word(words) => words.join(", "),
            other => other.as_str().into(),
        };
        let default = parameter.default.unwrap_or("-").into();
        table.row(vec![parameter.name.into(), kind, default, parameter.about.into()]);
    }
    sheet.table(table);
    sheet.finish()
}

/// One named strategy.
pub fn strategy_preset(preset: &Preset, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading(preset.name);
    sheet.field("about", preset.about);
    sheet.field("passes", preset.passes);
    sheet.finish()
}

fn written(parameter: &Parameter) -> String {
    match parameter.default {
        Some(default) => format!("{}={default}", parameter.name),
        None => parameter.name.to_owned(),
    }
}
