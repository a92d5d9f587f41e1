//! A device that swaps models, as tables.

use foretrain_core::words::counted;
use foretrain_core::{Bytes, Nanos};

use super::{amount, time};
use crate::json::{FleetEdgeReport, FleetEdgeRunReport};
use crate::text::TextStyle;
use crate::text::sheet::Sheet;
use crate::text::table::{Side, Table};
use crate::text::units::percent;

/// Runs side by side: what sharing does at each size of memory.
pub fn fleet_edge(report: &FleetEdgeReport, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    sheet.heading("Models by turns");
    sheet.field("models", &report.models.join(", "));
    let streams = format!(
        "{} each at {} per second, worth nothing after {}",
        counted(report.frames, "frame"),
        amount(report.frames_per_second),
        time(Nanos::from_nanos(report.deadline_ns))
    );
    sheet.field("streams", &streams);
    let shared = match report.shared_pairs {
        0 => "no pair; add [[shared]] tables to see what that would change".into(),
        1 => "1 pair of models".into(),
        pairs => format!("{pairs} pairs of models"),
    };
    sheet.field("shared", &shared);
    if !report.runs.iter().any(|run| run.fits) {
        sheet.warning(&format!(
            "no batch fits: the least memory in which every model can run with one of its batches is {}",
            Bytes::new(report.least_memory_bytes)
        ));
    }
    sheet.blank();
    let mut table = Table::new(&[
        ("Memory", Side::Left),
        ("Layers", Side::Left),
        ("Batches", Side::Left),
        ("Frames processed", Side::Left),
        ("Loading", Side::Right),
        ("Evictions", Side::Right),
    ]);
    table.keep_whole([0, 1]);
    for run in &report.runs {
        table.row(row(run));
    }
    sheet.table(table);
    sheet.finish()
}

fn row(run: &FleetEdgeRunReport) -> Vec<String> {
    let memory = match (run.memory_bytes, run.level) {
        (None, _) => "all models stay".into(),
        (Some(bytes), None) => Bytes::new(bytes).to_string(),
        (Some(bytes), Some(level)) => format!("{} (level {level})", Bytes::new(bytes)),
    };
    let layers = if run.shared { "shared" } else { "apart" };
    if !run.fits {
        let none = String::new;
        return vec![memory, layers.into(), none(), "no batch fits".into(), none(), none()];
    }
    let join = |parts: Vec<String>| parts.join(", ");
    let batches = run.served.iter().map(|served| served.batch.to_string()).collect();
    let frames = run.served.iter().map(|served| percent(served.processed_fraction)).collect();
    vec![
        memory,
        layers.into(),
        join(batches),
        join(frames),
        run.loading_fraction.map_or(String::new(), percent),
        run.evictions.to_string(),
    ]
}
