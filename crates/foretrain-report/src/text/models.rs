//! Models as tables.

use foretrain_core::units::significant;

use super::TextStyle;
use super::sheet::Sheet;
use super::table::{Side, Table};
use crate::json::{ModelLayerReport, ModelReport, ModelsReport};

/// A list of models, or one with its layers.
pub fn models(report: &ModelsReport, style: TextStyle) -> String {
    match report.models.as_slice() {
        [model] if !report.layers.is_empty() => one(model, &report.layers, style),
        models => list(models, style),
    }
}

fn list(models: &[ModelReport], style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    let mut table = Table::new(&[
        ("Model", Side::Left),
        ("Family", Side::Left),
        ("Parameters", Side::Right),
        ("Active", Side::Right),
        ("Layers", Side::Right),
        ("Source", Side::Left),
    ]);
    table.keep_whole([0]);
    for model in models {
        table.row(vec![
            model.name.clone(),
            model.family.clone(),
            short(model.parameters as f64),
            short(model.active_parameters as f64),
            model.body_layers.to_string(),
            model.source.clone(),
        ]);
    }
    sheet.table(table);
    sheet.blank();
    sheet.paragraph("", "`foretrain models NAME` shows the layers of one; a config.json, a TOML file or an ONNX file will do for NAME (see docs/models.md).");
    sheet.finish()
}

fn one(model: &ModelReport, layers: &[ModelLayerReport], style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading(&model.name);
    sheet.field("family", &model.family);
    sheet.field("source", &model.source);
    let mut parameters = grouped(model.parameters);
    if model.active_parameters != model.parameters {
        parameters =
            format!("{parameters}, of which a token meets {}", grouped(model.active_parameters));
    }
    sheet.field("parameters", &parameters);
    let mut work = format!("{}FLOP per sample", short(model.forward_flops_per_sample));
    if let (Some(tokens), Some(each)) = (model.sequence, model.forward_flops_per_token) {
        work = format!("{work} of {tokens} tokens, {}FLOP per token", short(each));
    }
    sheet.field("forward", &work);
    for assumption in &model.assumptions {
        sheet.field("assumed", assumption);
    }
    sheet.blank();
    let mut table = Table::new(&[
        ("Layer", Side::Left),
        ("Times", Side::Right),
        ("Operation", Side::Left),
        ("Kind", Side::Left),
        ("Split", Side::Left),
        ("Parameters", Side::Right),
        ("FLOP", Side::Right),
    ]);
    table.keep_whole([0, 2]);
    for layer in layers {
        let (mut name, mut times) = (layer.name.clone(), layer.repeat.to_string());
        for op in &layer.operations {
            table.row(vec![
                std::mem::take(&mut name),
                std::mem::take(&mut times),
                op.name.clone(),
                op.kind.clone(),
                op.split.clone(),
                if op.tied { "tied".into() } else { or_dash(op.parameters as f64) },
                or_dash(op.forward_flops_per_sample),
            ]);
        }
    }
    sheet.table(table);
    sheet.finish()
}

fn or_dash(value: f64) -> String {
    if value > 0.0 { short(value) } else { "-".into() }
}

/// Three digits and a prefix: `8.03 G`.
fn short(value: f64) -> String {
    let prefixes = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let (unit, prefix) = prefixes.into_iter().find(|(unit, _)| value >= *unit).unwrap_or((1.0, ""));
    format!("{} {prefix}", significant(value / unit, 3))
}

/// Digits in groups of three.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_or_grouped() {
        assert_eq!(short(8_030_261_248.0), "8.03 G");
        assert_eq!(short(12.0).trim(), "12.0");
        assert_eq!(grouped(8_030_261_248), "8,030,261,248");
        assert_eq!(grouped(12), "12");
    }

    #[test]
    fn a_model_is_shown_with_its_layers() {
        let model = foretrain_workload::named("mixtral-8x7b").unwrap();
        let text = models(&ModelsReport::one(&model, Some(2048)), TextStyle::default());
        insta::assert_snapshot!(text);
    }
}
