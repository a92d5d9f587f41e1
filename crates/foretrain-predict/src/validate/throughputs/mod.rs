//! Placements on several nodes from one node's rows, in throughput tables of scheduler studies.
//!
//! A model's computation and what its synchronisation shows come from its own rows on one node. One
//! node says nothing of the network, so how much more a placement costs is learned from the other
//! models of the same cluster; the model asked is left out.

mod bytes;
mod curves;
mod hiding;
mod models;
mod table;
mod whole;

use std::collections::{BTreeMap, BTreeSet};

use super::ValidationSet;
use super::corpus::Corpus;
use super::report::{Row, SetOutcome, Skipped};
use curves::{Peaks, Point};
use table::{Measured, read};

/// One study.
pub(super) struct Throughputs {
    /// The set's name.
    pub(super) name: &'static str,
    /// Sources of rows, those of one cluster together: what one table tells of a cluster holds for the
    /// others.
    clusters: &'static [&'static [&'static str]],
    /// Whether steps are counted of all workers, so that a step of all of them counts as many.
    counts_workers: bool,
    about: &'static str,
    predict: fn(&[Measured]) -> Vec<Prediction>,
}

/// A row and what is predicted for it.
struct Prediction {
    /// Position among the rows.
    row: usize,
    /// Or why there is none.
    seconds: Result<f64, String>,
}

/// Pollux: T4 on AWS, 50 Gbit/s.
pub(super) const POLLUX: Throughputs = Throughputs {
    name: "scaling-pollux",
    clusters: &[&["pollux-osdi21:placements", "pollux-osdi21:scalability"]],
    counts_workers: false,
    about: SEPARATED,
    predict: bytes::predict,
};
/// Sia: A100 and RTX 2080 Ti. `scalability-dgx-ext` repeats rows of the other tables and is left out.
pub(super) const SIA: Throughputs = Throughputs {
    name: "scaling-sia",
    clusters: &[
        &["sia-sosp23:placements-dgx", "sia-sosp23:scalability-dgx"],
        &["sia-sosp23:placements-dgx-ext"],
        &["sia-sosp23:placements-rtx", "sia-sosp23:scalability-rtx"],
    ],
    counts_workers: false,
    about: SEPARATED,
    predict: bytes::predict,
};
/// `ElasticFlow`: A100, strong scaling.
pub(super) const ELASTICFLOW: Throughputs = Throughputs {
    name: "scaling-elasticflow",
    clusters: &[&["elasticflow-asplos23:throughputs_A100"]],
    counts_workers: false,
    about: WHOLE,
    predict: whole::predict,
};
/// Gavel: consolidated and spread placements on V100, P100, K80. Its scheduler adds up the steps of all
/// workers, and the table's batches are per GPU: K80s would else work eight times as fast in a group of
/// eight.
pub(super) const GAVEL: Throughputs = Throughputs {
    name: "scaling-gavel",
    clusters: &[&["gavel-osdi20:simulation_throughputs"]],
    counts_workers: true,
    about: SPREAD,
    predict: bytes::predict,
};
/// Muri: V100, eight on each node.
pub(super) const MURI: Throughputs = Throughputs {
    name: "scaling-muri",
    clusters: &[&["muri-sigcomm22:trace-data"]],
    counts_workers: false,
    about: WHOLE,
    predict: whole::predict,
};

const SEPARATED: &str = "Step times of six models by placement and batch, with the time that \
    synchronisation shows. Given: every row of the model on one node, which tells its computation by \
    batch and how much of it hides synchronisation, its number of parameters, and of the other models of \
    the cluster all rows: per number of nodes and GPUs how long a byte takes. Asked: every row on several \
    nodes.";
const SPREAD: &str = "Step times of models with all GPUs in one server and with GPUs spread over servers, \
    synchronisation not separated. Given: every row of the model in one server, of which one GPU tells \
    its computation and several how much of it hides synchronisation, its number of parameters, and of \
    the other models all rows: per number of GPUs how long a byte takes. Asked: every spread row.";
const WHOLE: &str = "Step times of models on one and on several nodes, synchronisation not separated. \
    Given: every row of the model on one node, and of the other models all rows: how much longer their \
    steps take than one node's at an equal batch per GPU, the median. Asked: every row on several nodes.";

impl ValidationSet for Throughputs {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        self.about
    }
    fn unit(&self) -> &'static str {
        "s"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        let mut outcome = SetOutcome::default();
        let Some(path) = corpus.root().file(&["fleet/scaling_throughput.csv.gz"]) else {
            return outcome;
        };
        let rows = match read(&path) {
            Ok(rows) => rows,
            Err(error) => {
                let what = "scaling_throughput.csv.gz".into();
                outcome.skipped.push(Skipped { what, why: error.to_string() });
                return outcome;
            }
        };
        let mut seen = Seen::default();
        for cluster in self.clusters {
            self.score_cluster(cluster, &rows, &mut seen, &mut outcome);
        }
        outcome.notes = seen.notes();
        outcome
    }
}

/// What is counted over all rows of a set.
#[derive(Default)]
struct Seen {
    /// Rows by all that they say of a measurement, their table aside.
    rows: BTreeSet<String>,
    /// How many came twice.
    repeated: usize,
    curves: BTreeMap<String, Vec<Point>>,
}

impl Seen {
    /// Whether a row says something that no earlier one said. Tables of a study share runs.
    fn is_new(&mut self, row: &Measured) -> bool {
        let Measured { device, model, nodes, gpus, batch, seconds, synchronisation, .. } = row;
        let new = self.rows.insert(format!(
            "{device} {model} {nodes} {gpus} {batch} {seconds} {synchronisation:?}"
        ));
        self.repeated += usize::from(!new);
        new
    }

    /// Adds a row to its strong-scaling curve, with the step predicted for it if it was asked.
    fn draw(&mut self, row: &Measured, predicted: Option<f64>) {
        let global = row.batch * f64::from(row.gpus);
        let curve = format!("{} {} {} {global:.0}", row.source, row.device, row.model);
        self.curves.entry(curve).or_default().push(Point {
            nodes: row.nodes,
            gpus: row.gpus,
            measured: global / row.seconds,
            predicted: predicted.map(|seconds| global / seconds),
        });
    }

    fn notes(&self) -> Vec<String> {
        let repeated = (self.repeated > 0).then(|| {
            format!("{} rows repeat a run of another table and count once", self.repeated)
        });
        let peaks = Peaks::of(self.curves.values().map(Vec::as_slice)).sentence();
        repeated.into_iter().chain(peaks).collect()
    }
}

impl Throughputs {
    /// Devices of a cluster are machines of their own.
    fn score_cluster(
        &self,
        sources: &[&str],
        rows: &[Measured],
        seen: &mut Seen,
        outcome: &mut SetOutcome,
    ) {
        let own = || rows.iter().filter(|row| sources.contains(&row.source.as_str()));
        let devices: BTreeSet<&str> = own().map(|row| row.device.as_str()).collect();
        for device in devices {
            let rows: Vec<Measured> =
                own().filter(|row| row.device == device).map(|row| self.step_of_all(row)).collect();
            for row in rows.iter().filter(|row| row.is_alone()) {
                seen.draw(row, None);
            }
            let mut predictions = (self.predict)(&rows);
            let key = |row: &Measured| (row.source.clone(), row.model.clone());
            predictions.sort_by_key(|prediction| key(&rows[prediction.row]));
            for Prediction { row, seconds } in predictions {
                let row = &rows[row];
                if !seen.is_new(row) {
                    continue;
                }
                let group = format!("{}, {device}, {}", row.source.replace(':', " "), row.model);
                let what = row.what();
                match seconds {
                    Ok(predicted) => {
                        seen.draw(row, Some(predicted));
                        outcome.rows.push(Row {
                            group,
                            what,
                            predicted,
                            measured: row.seconds,
                            ..Row::default()
                        });
                    }
                    Err(why) => {
                        outcome.skipped.push(Skipped { what: format!("{group}: {what}"), why });
                    }
                }
            }
        }
    }

    /// The row with the time of a step that all its workers take together.
    fn step_of_all(&self, row: &Measured) -> Measured {
        let steps = if self.counts_workers { f64::from(row.gpus) } else { 1.0 };
        Measured { seconds: row.seconds * steps, ..row.clone() }
    }
}

/// Models of a table, each once.
fn models(rows: &[Measured]) -> Vec<&str> {
    let mut models: Vec<&str> = rows.iter().map(|row| row.model.as_str()).collect();
    models.sort_unstable();
    models.dedup();
    models
}
