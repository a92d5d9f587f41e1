//! Placements by the bytes of gradients: what a byte takes in a placement comes from the other models,
//! how much of it a model hides from its own rows on one node.

use std::collections::{BTreeMap, BTreeSet};

use super::hiding::{Cell, Group, Rates, Step, rates, share_hidden, shown};
use super::models::parameters;
use super::table::{ByBatch, Measured};
use super::{Prediction, models};

/// Placements of fewer other models cannot be learned from.
const FEWEST_OTHERS: usize = 3;

pub(super) fn predict(rows: &[Measured]) -> Vec<Prediction> {
    let alone: BTreeMap<&str, ByBatch> =
        models(rows).into_iter().map(|model| (model, computation(model, rows))).collect();
    let groups = groups(rows, &alone);
    let own: BTreeMap<&str, Own> =
        models(rows).into_iter().map(|model| (model, Own::new(model, &groups))).collect();
    let asked = rows.iter().enumerate().filter(|(_, row)| !row.is_alone());
    let one = |(at, row): (usize, &Measured)| {
        let model = row.model.as_str();
        Prediction { row: at, seconds: seconds(row, &alone[model], &own[model]) }
    };
    asked.map(one).collect()
}

/// What is known of a model before its placements on several nodes are looked at.
struct Own {
    /// What the other models' placements cost.
    rates: Rates,
    share: f64,
}

impl Own {
    fn new(model: &str, groups: &[Group<'_>]) -> Self {
        let others: Vec<&Group<'_>> = groups.iter().filter(|group| group.model != model).collect();
        let mut rates = rates(&others);
        rates.retain(|cell, _| {
            let known: BTreeSet<&str> = others
                .iter()
                .filter(|group| group.cell == *cell)
                .map(|group| group.model)
                .collect();
            known.len() >= FEWEST_OTHERS
        });
        let alone: Vec<&Group<'_>> =
            groups.iter().filter(|group| group.model == model && group.cell.0 == 1).collect();
        Self { share: share_hidden(&alone, &rates), rates }
    }
}

/// Rows on several GPUs whose computation and bytes are known.
fn groups<'a>(rows: &'a [Measured], alone: &BTreeMap<&str, ByBatch>) -> Vec<Group<'a>> {
    let mut steps: BTreeMap<(&str, Cell), Vec<Step>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.gpus > 1) {
        if let Some(computation) = alone[row.model.as_str()].at(row.batch) {
            let step = Step { computation, seconds: row.seconds };
            steps.entry((&row.model, (row.nodes, row.gpus))).or_default().push(step);
        }
    }
    let group =
        |((model, cell), steps)| Some(Group { model, cell, size: parameters(model)?, steps });
    steps.into_iter().filter_map(group).collect()
}

/// Computation of a model's step by batch per GPU, by one node's rows: of several GPUs where
/// synchronisation is told apart (they share the host as they will on other nodes), else of one GPU.
fn computation(model: &str, rows: &[Measured]) -> ByBatch {
    let own = || rows.iter().filter(|row| row.model == model && row.is_alone());
    let several = |row: &&Measured| row.gpus > 1 && row.synchronisation.is_some();
    if own().any(|row| several(&row)) {
        let apart = |row: &Measured| row.synchronisation.map(|shows| row.seconds - shows);
        ByBatch::new(own().filter(several), apart)
    } else {
        ByBatch::new(own().filter(|row| row.gpus == 1), |row| Some(row.seconds))
    }
}

fn seconds(row: &Measured, alone: &ByBatch, own: &Own) -> Result<f64, String> {
    let computation = alone.at(row.batch).ok_or("no rows of this model on one node")?;
    let size = parameters(&row.model).ok_or("the size of this model is not known")?;
    let rate = own.rates.get(&(row.nodes, row.gpus));
    let rate = rate.ok_or("fewer than three other models with this placement")?;
    Ok(computation + shown(rate * size, own.share, computation))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four models, of which none hides anything, on a network slower than a node; rows hold the same
    /// global batch of 64.
    fn rows() -> Vec<Measured> {
        let models = ["cifar10", "imagenet", "yolov3", "bert"];
        let placements = [(1, 1, 0.0), (1, 2, 1e-10), (1, 4, 2e-10), (2, 8, 1e-9), (4, 16, 5e-9)];
        let row = |model: &str, (nodes, gpus, rate): (u32, u32, f64)| {
            let batch = 64.0 / f64::from(gpus);
            let shows = rate * parameters(model).expect("known");
            Measured {
                source: "made-up".into(),
                device: "T4".into(),
                model: model.into(),
                nodes,
                gpus,
                batch,
                placement: String::new(),
                seconds: 0.02 * batch + shows,
                synchronisation: Some(shows),
            }
        };
        models.iter().flat_map(|model| placements.map(|placement| row(model, placement))).collect()
    }

    #[test]
    fn a_curve_that_rises_and_falls_is_predicted_to_do_so_without_its_own_rows_beyond_a_node() {
        let mut rows = rows();
        let truth: Vec<f64> = rows.iter().map(|row| row.seconds).collect();
        // Rows that are asked must not matter: what is measured of them is spoilt.
        for row in rows.iter_mut().filter(|row| row.model == "yolov3" && row.nodes > 1) {
            row.seconds *= 7.0;
        }
        let predicted: Vec<(u32, f64, f64)> = predict(&rows)
            .into_iter()
            .filter(|one| rows[one.row].model == "yolov3")
            .map(|one| (rows[one.row].gpus, one.seconds.expect("predicted"), truth[one.row]))
            .collect();
        assert_eq!(predicted.len(), 2);
        for (gpus, seconds, truth) in &predicted {
            assert!((seconds / truth - 1.0).abs() < 0.1, "{gpus} GPUs: {seconds} for {truth}");
        }
        // Of equal global batch the shorter step is the higher throughput: 4, 8, 16 GPUs.
        let on_a_node = rows.iter().find(|row| row.model == "yolov3" && row.gpus == 4);
        let on_a_node = on_a_node.expect("a row").seconds;
        assert!(predicted[0].1 < on_a_node && predicted[0].1 < predicted[1].1, "{predicted:?}");
    }

    #[test]
    fn too_few_models_are_named_as_the_reason() {
        let few: Vec<Measured> =
            rows().into_iter().filter(|row| row.model != "bert" || row.nodes == 1).collect();
        let of = |model: &str| {
            let mut all = predict(&few).into_iter();
            all.find(|one| few[one.row].model == model).expect("asked").seconds
        };
        assert!(of("yolov3").expect_err("two others").contains("fewer than three"));
    }
}
