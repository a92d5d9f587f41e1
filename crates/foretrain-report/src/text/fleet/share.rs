//! Shared layers as tables.

use foretrain_core::words::counted;
use foretrain_core::{Bytes, Nanos};

use crate::json::{FleetSharePlanReport, FleetShareReport};
use crate::text::TextStyle;
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::percent;

/// Rows of the tables that could go on for long.
const SHOWN: usize = 12;

/// What models could share, and what retraining would keep.
pub fn fleet_share(report: &FleetShareReport, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading("Layers in common");
    sheet.field("compared", rule(&report.rule));
    if let Some(model) = &report.weakened_by {
        sheet.warning(&format!(
            "{model} does not tell how its convolutions go over their input, so all models are \
             compared by their weights alone"
        ));
    }
    let (most, all) = (Bytes::new(report.most_saved_bytes), Bytes::new(report.bytes));
    let part = percent(report.most_saved_fraction);
    sheet.field(
        "saves",
        &format!("at most {most} of {all} ({part}), if every model keeps its accuracy"),
    );
    models(report, &mut sheet);
    pairs(report, &mut sheet);
    groups(report, &mut sheet);
    if let Some(plan) = &report.plan {
        planned(report, plan, &mut sheet);
    }
    sheet.finish()
}

fn rule(rule: &str) -> &'static str {
    match rule {
        "exact" => "by all they do: shape, stride, padding, dilation, groups, bias, type",
        "any-stride" => "by all they do but the stride",
        _ => "by the shape and type of their weights",
    }
}

fn models(report: &FleetShareReport, sheet: &mut Sheet) {
    sheet.blank();
    let mut table = Table::new(&[
        ("Model", Side::Left),
        ("Layers", Side::Right),
        ("Take", Side::Right),
        ("Other weights", Side::Right),
    ]);
    for model in &report.models {
        table.row(vec![
            model.name.clone(),
            model.layers.to_string(),
            Bytes::new(model.bytes).to_string(),
            Bytes::new(model.private_bytes).to_string(),
        ]);
    }
    sheet.table(table);
}

fn pairs(report: &FleetShareReport, sheet: &mut Sheet) {
    // With two models the pair is the workload.
    if report.models.len() < 3 {
        return;
    }
    sheet.heading("Pairs");
    let mut table = Table::new(&[
        ("Model", Side::Left),
        ("Model", Side::Left),
        ("Layers", Side::Right),
        ("Saves", Side::Right),
        ("Of both", Side::Right),
    ]);
    for pair in report.pairs.iter().take(SHOWN) {
        table.row(vec![
            pair.a.clone(),
            pair.b.clone(),
            pair.layers.to_string(),
            Bytes::new(pair.bytes).to_string(),
            percent(pair.fraction),
        ]);
    }
    sheet.table(table);
    more(report.pairs.len(), sheet);
}

fn groups(report: &FleetShareReport, sheet: &mut Sheet) {
    sheet.heading("Groups");
    if report.groups.is_empty() {
        sheet.line("No two models have a layer in common.");
        return;
    }
    let mut table = Table::new(&[
        ("Layer", Side::Left),
        ("Layers", Side::Right),
        ("Each", Side::Right),
        ("Saves", Side::Right),
        ("In", Side::Left),
    ]);
    table.keep_whole([0]);
    for group in report.groups.iter().take(SHOWN) {
        table.row(vec![
            group.layer.clone(),
            group.layers.to_string(),
            Bytes::new(group.layer_bytes).to_string(),
            Bytes::new(group.saving_bytes).to_string(),
            group.models.join(", "),
        ]);
    }
    sheet.table(table);
    more(report.groups.len(), sheet);
}

fn more(count: usize, sheet: &mut Sheet) {
    if count > SHOWN {
        sheet.line(&format!("... and {} more (all in --json)", count - SHOWN));
    }
}

fn planned(report: &FleetShareReport, plan: &FleetSharePlanReport, sheet: &mut Sheet) {
    sheet.heading("Plan");
    sheet.field("accuracy", &plan.accuracy);
    let saved = Bytes::new(plan.saved_bytes);
    let part = percent(plan.saved_bytes as f64 / (report.bytes as f64).max(1.0));
    let (retrainings, epochs) = (plan.steps.len(), plan.model_epochs);
    let time = plan
        .time_ns
        .map_or(String::new(), |time| format!(", {}", super::time(Nanos::from_nanos(time))));
    sheet.field("saves", &format!("{saved} ({part})"));
    sheet.field(
        "costs",
        &format!(
            "{}, {} of single models{time}",
            counted(retrainings, "retraining"),
            counted(epochs, "epoch")
        ),
    );
    if let Some(spread) = &plan.spread {
        let [low, middle, high] = spread.saved_bytes.map(Bytes::new);
        let draws = counted(spread.draws, "plan");
        sheet.field("by luck", &format!("{middle} saved ({low} to {high} in 8 of 10 of {draws})"));
    }
    for note in &plan.notes {
        sheet.paragraph("note: ", note);
    }
    if plan.steps.is_empty() {
        return;
    }
    sheet.blank();
    let mut table = Table::new(&[
        ("Retraining", Side::Right),
        ("Layer", Side::Left),
        ("Layers", Side::Right),
        ("Kept by", Side::Right),
        ("Trained", Side::Right),
        ("Epochs", Side::Right),
        ("Saved so far", Side::Right),
    ]);
    table.keep_whole([1]);
    for (number, step) in plan.steps.iter().enumerate().take(SHOWN) {
        let layer = report.groups.get(step.group).map_or("", |group| group.layer.as_str());
        table.row(vec![
            (number + 1).to_string(),
            layer.into(),
            step.layers.to_string(),
            format!("{} of {}", step.kept.len(), step.models.len()),
            step.trained.to_string(),
            step.epochs.to_string(),
            Bytes::new(step.saved_bytes).to_string(),
        ]);
    }
    sheet.table(table);
    more(plan.steps.len(), sheet);
}
