//! Tables of step times in which synchronisation is not separated. What a placement costs is a time, not
//! a share: gradients are as large whatever the batch.

use foretrain_core::stats::median;

use super::Prediction;
use super::table::{ByBatch, Measured};

/// Others' growth is taken from at least so many models.
const FEWEST_OTHERS: usize = 2;

pub(super) fn predict(rows: &[Measured]) -> Vec<Prediction> {
    let asked = rows.iter().enumerate().filter(|(_, row)| !row.is_alone());
    asked.map(|(at, row)| Prediction { row: at, seconds: seconds(row, rows) }).collect()
}

fn seconds(row: &Measured, rows: &[Measured]) -> Result<f64, String> {
    let alone = on_one_node(row, rows).ok_or("no rows of this model on one node")?;
    let like = |other: &&Measured| {
        other.model != row.model && (other.nodes, other.gpus) == (row.nodes, row.gpus)
    };
    let mut growth: Vec<(&str, f64)> = rows
        .iter()
        .filter(like)
        .filter_map(|other| Some((other.model.as_str(), other.seconds - on_one_node(other, rows)?)))
        .collect();
    growth.sort_by(|a, b| a.0.cmp(b.0));
    // Each model counts once, however many batches it was measured with.
    let by_model: Vec<f64> = growth
        .chunk_by(|a, b| a.0 == b.0)
        .filter_map(|same| median(&same.iter().map(|one| one.1).collect::<Vec<f64>>()))
        .collect();
    if by_model.len() < FEWEST_OTHERS {
        return Err("fewer than two other models with this placement".into());
    }
    let growth = median(&by_model).ok_or("no growth known")?;
    Ok(alone + growth.max(0.0))
}

/// The step on one node at an equal batch per GPU: on as many GPUs if that was measured, else on the
/// most.
fn on_one_node(row: &Measured, rows: &[Measured]) -> Option<f64> {
    let own = || rows.iter().filter(|other| other.model == row.model && other.is_alone());
    let equal = own().any(|other| other.gpus == row.gpus);
    let most = own().map(|other| other.gpus).max()?;
    let gpus = if equal { row.gpus } else { most };
    ByBatch::new(own().filter(|other| other.gpus == gpus), |other| Some(other.seconds))
        .at(row.batch)
}
