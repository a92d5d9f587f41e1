//! Placements on several nodes from one node's rows, in throughput tables of scheduler studies.
//!
//! A model's computation and what its synchronisation shows come from its own rows on one node. One
//! node says nothing of the network, so how much more a placement costs is learned from the other
//! models of the same table; the model asked is left out.

mod separated;
mod table;
mod whole;

use super::ValidationSet;
use super::corpus::Corpus;
use super::report::{Row, SetOutcome, Skipped};
use table::{Measured, read};

/// One study.
pub(super) struct Throughputs {
    /// The set's name.
    pub(super) name: &'static str,
    /// How the sources of its rows begin; tables of one cluster are predicted together.
    sources: &'static [&'static str],
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

/// Pollux: T4 on AWS, 25 Gbit/s.
pub(super) const POLLUX: Throughputs = Throughputs {
    name: "scaling-pollux",
    sources: &["pollux-osdi21:placements"],
    about: SEPARATED,
    predict: separated::predict,
};
/// Sia: A100 and RTX 2080 Ti.
pub(super) const SIA: Throughputs = Throughputs {
    name: "scaling-sia",
    sources: &[
        "sia-sosp23:placements-dgx",
        "sia-sosp23:placements-dgx-ext",
        "sia-sosp23:placements-rtx",
    ],
    about: SEPARATED,
    predict: separated::predict,
};
/// ElasticFlow: A100, strong scaling.
pub(super) const ELASTICFLOW: Throughputs = Throughputs {
    name: "scaling-elasticflow",
    sources: &["elasticflow-asplos23:throughputs_A100"],
    about: WHOLE,
    predict: whole::predict,
};
/// Gavel: consolidated and spread placements on V100, P100, K80.
pub(super) const GAVEL: Throughputs = Throughputs {
    name: "scaling-gavel",
    sources: &["gavel-osdi20:simulation_throughputs"],
    about: WHOLE,
    predict: whole::predict,
};

const SEPARATED: &str = "Step times of six models by placement and batch, with the time that \
    synchronisation shows. Given: every row of the model on one node, which tells its computation by \
    batch and its synchronisation, its number of parameters, and of the other models all rows: per \
    placement how many times the geometric mean of bytes and synchronisation on one node it costs them, \
    the median. Asked: every row on several nodes.";
const WHOLE: &str = "Step times of models on one and on several nodes, synchronisation not separated. \
    Given: every row of the model on one node (consolidated, where nodes are not told), and of the other \
    models all rows: how much longer their steps take than one node's at an equal batch per GPU, the \
    median. Asked: every row on several nodes.";

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
        for source in self.sources {
            self.score_source(source, &rows, &mut outcome);
        }
        outcome
    }
}

impl Throughputs {
    /// Devices of a source are machines of their own.
    fn score_source(&self, source: &str, rows: &[Measured], outcome: &mut SetOutcome) {
        let own = || rows.iter().filter(|row| row.source == source);
        let mut devices: Vec<&str> = own().map(|row| row.device.as_str()).collect();
        devices.sort_unstable();
        devices.dedup();
        for device in devices {
            let rows: Vec<Measured> = own().filter(|row| row.device == device).cloned().collect();
            let mut predictions = (self.predict)(&rows);
            predictions.sort_by(|a, b| rows[a.row].model.cmp(&rows[b.row].model));
            for Prediction { row, seconds } in predictions {
                let row = &rows[row];
                let group = format!("{}, {device}, {}", source.replace(':', " "), row.model);
                let what = row.what();
                match seconds {
                    Ok(predicted) => outcome.rows.push(Row {
                        group,
                        what,
                        predicted,
                        measured: row.seconds,
                        ..Row::default()
                    }),
                    Err(why) => {
                        outcome.skipped.push(Skipped { what: format!("{group}: {what}"), why });
                    }
                }
            }
        }
    }
}

/// Models of a table, each once.
fn models(rows: &[Measured]) -> Vec<&str> {
    let mut models: Vec<&str> = rows.iter().map(|row| row.model.as_str()).collect();
    models.sort_unstable();
    models.dedup();
    models
}
