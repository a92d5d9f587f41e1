//! Tables that tell synchronisation from computation.
//!
//! Between nodes a model's synchronisation shows in proportion to its bytes where nothing hides it, and
//! to what shows within a node where as much is hidden as there. Each alone misleads (small models are
//! bound by latency, large ones by bytes), so the geometric mean of both stands for the model.

use std::collections::BTreeMap;

use foretrain_core::stats::median;
use foretrain_workload::{ResNet, Transformer};

use super::table::{Measured, by_batch};
use super::{Prediction, models};

/// What one node tells of a model.
struct Alone {
    /// Median synchronisation on its largest number of GPUs, seconds.
    synchronisation: f64,
}

/// Models on few others' placements cannot be learned from.
const FEWEST_OTHERS: usize = 3;

type Cell = (u32, u32);

pub(super) fn predict(rows: &[Measured]) -> Vec<Prediction> {
    let alone: BTreeMap<&str, Alone> =
        models(rows).into_iter().filter_map(|model| Some((model, of(rows, model)?))).collect();
    let mut shown: BTreeMap<(&str, Cell), Vec<f64>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.nodes > 1) {
        if let Some(synchronisation) = row.synchronisation {
            let cell = (row.nodes, row.gpus);
            shown.entry((&row.model, cell)).or_default().push(synchronisation);
        }
    }
    let shown: BTreeMap<(&str, Cell), f64> =
        shown.into_iter().filter_map(|(key, values)| Some((key, median(&values)?))).collect();
    let asked = rows.iter().enumerate().filter(|(_, row)| row.nodes > 1);
    let one = |(at, row): (usize, &Measured)| Prediction {
        row: at,
        seconds: seconds(row, rows, &alone, &shown),
    };
    asked.map(one).collect()
}

fn of(rows: &[Measured], model: &str) -> Option<Alone> {
    let own = || rows.iter().filter(|row| row.model == model && row.is_alone() && row.gpus > 1);
    let most = own().map(|row| row.gpus).max()?;
    let full: Vec<f64> =
        own().filter(|row| row.gpus == most).filter_map(|row| row.synchronisation).collect();
    Some(Alone { synchronisation: median(&full)? })
}

fn computation(row: &Measured) -> Option<f64> {
    row.synchronisation.map(|synchronisation| row.seconds - synchronisation)
}

fn seconds(
    row: &Measured,
    rows: &[Measured],
    alone: &BTreeMap<&str, Alone>,
    shown: &BTreeMap<(&str, Cell), f64>,
) -> Result<f64, String> {
    let own = alone.get(row.model.as_str()).ok_or("no rows of this model on one node")?;
    let together =
        rows.iter().filter(|other| other.model == row.model && other.is_alone() && other.gpus > 1);
    let computation = by_batch(together, computation, row.batch).ok_or("no computation known")?;
    let shows = |model: &str, alone: &Alone| {
        parameters(model).map(|count| (count * alone.synchronisation).sqrt())
    };
    let own = shows(&row.model, own).ok_or("the size of this model is not known")?;
    let cell = (row.nodes, row.gpus);
    let others: Vec<f64> = alone
        .iter()
        .filter(|(model, _)| **model != row.model)
        .filter_map(|(model, one)| Some((shown.get(&(*model, cell))? / shows(model, one)?).ln()))
        .collect();
    if others.len() < FEWEST_OTHERS {
        return Err("fewer than three other models with this placement".into());
    }
    let times = median(&others).ok_or("no other model known")?.exp();
    Ok(computation + times * own)
}

/// Parameters of the studies' models. Where no formula is at hand, estimates by architecture: YOLOv3
/// on COCO; DeepSpeech 2 with five recurrent layers of 800; NeuMF on a million ratings.
fn parameters(model: &str) -> Option<f64> {
    Some(match model {
        "bert" => Transformer::bert_base(384).profile().parameters() as f64,
        "imagenet" => ResNet::resnet50().profile().parameters() as f64,
        "cifar10" => ResNet { classes: 10, ..ResNet::resnet18() }.profile().parameters() as f64,
        "yolov3" => 61.9e6,
        "deepspeech2" => 38e6,
        "ncf" => 1.2e6,
        _ => return None,
    })
}
