//! Tables over several lines: costs, and what is enabled.

use std::collections::BTreeMap;

use foretrain_core::Bandwidth;
use foretrain_cost::nccl_tuner::{Algorithm, Protocol};
use foretrain_graph::CollectiveKind;

use super::super::kind::kind_of;
use super::super::number::{Printed, integer};
use super::lines::{algorithm, protocol};
use super::{Enabled, TunedCost};

/// Processes whose tables are told apart.
const MOST: usize = 64;

/// The columns of cost tables, by the process that prints one.
#[derive(Debug, Default)]
pub(super) struct CostTables {
    columns: BTreeMap<String, Vec<(Algorithm, Protocol)>>,
    /// Algorithms of a header whose protocols follow on the next line.
    algorithms: BTreeMap<String, Vec<Algorithm>>,
}

/// What a line is to a cost table.
#[derive(Debug, PartialEq)]
pub(super) enum CostLine {
    /// The columns.
    Header,
    /// Costs of one operation.
    Row(Vec<TunedCost>),
}

impl CostTables {
    /// Tries a line. Since NCCL 2.18 two lines of titles name algorithms and protocols; before,
    /// one names both: `Latency/AlgBw |    Tree/    LL |    Tree/ LL128 | ...`.
    pub(super) fn line(&mut self, process: &str, text: &str) -> Option<CostLine> {
        let (title, cells) = text.split_once('|')?;
        let cells = cells.split('|').map(str::trim).filter(|cell| !cell.is_empty());
        let room = self.columns.len() < MOST || self.columns.contains_key(process);
        match title.trim() {
            "Algorithm" if room => {
                self.algorithms.insert(process.to_owned(), cells.filter_map(algorithm).collect());
                self.columns.insert(process.to_owned(), Vec::new());
            }
            "Protocol" => {
                let algorithms = self.algorithms.get(process)?;
                let protocols = Protocol::ALL.len();
                // Old tables repeat the protocols for places that hold no algorithm.
                let columns = cells.enumerate().map_while(|(at, cell)| {
                    Some((*algorithms.get(at / protocols)?, protocol(cell)?))
                });
                self.columns.insert(process.to_owned(), columns.collect());
            }
            "Latency/AlgBw" if room => {
                let columns = cells.map_while(|cell| {
                    let (algo, proto) = cell.split_once('/')?;
                    Some((algorithm(algo.trim())?, protocol(proto.trim())?))
                });
                self.columns.insert(process.to_owned(), columns.collect());
            }
            operation => {
                let kind = kind_of(operation).filter(|_| !operation.contains(' '))?;
                let columns = self.columns.get(process)?;
                let costs = cells.zip(columns).map(|(cell, column)| cost(kind, *column, cell));
                // A torn row tells nothing.
                let mut costs: Vec<_> = costs.collect::<Option<_>>()?;
                costs.retain(|cost| cost.algbw > Bandwidth::ZERO);
                return Some(CostLine::Row(costs));
            }
        }
        Some(CostLine::Header)
    }
}

/// `   25.2/  11.3`: latency and bandwidth, zero for what is not used.
fn cost(
    kind: CollectiveKind,
    (algorithm, protocol): (Algorithm, Protocol),
    cell: &str,
) -> Option<TunedCost> {
    let (latency, rate) = cell.split_once('/')?;
    let number = |text: &str| Printed::parse(text.trim())?.sane();
    let algbw = Bandwidth::from_gb_per_sec(number(rate)?);
    Some(TunedCost { kind, algorithm, protocol, latency_us: number(latency)?, algbw })
}

/// The matrix of what is enabled (since NCCL 2.24). Only its first line says who prints it.
#[derive(Debug, Default)]
pub(super) struct EnabledMatrix {
    protocols: Vec<Protocol>,
    algorithms: Vec<Algorithm>,
}

impl EnabledMatrix {
    /// The row on a line, with whatever a launcher put before it.
    pub(super) fn row(&mut self, line: &str) -> Option<Enabled> {
        let mut parts = line.split('|');
        let (title, protocols, algorithms) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some_and(|rest| !rest.trim().is_empty()) {
            return None;
        }
        let title = title.split_whitespace().next_back()?;
        if title.ends_with("Function") {
            self.protocols = protocols.split_whitespace().map_while(protocol).collect();
            self.algorithms = algorithms.split_whitespace().map_while(algorithm).collect();
            return None;
        }
        let kind = kind_of(title.rsplit([':', '>']).next()?)?;
        let allowed = |text: &str| -> Option<Vec<bool>> {
            text.split_whitespace().map(|word| integer(word).map(|mode| mode > 0)).collect()
        };
        let (by_protocol, by_algorithm) = (allowed(protocols)?, allowed(algorithms)?);
        let whole = !by_protocol.is_empty()
            && by_protocol.len() == self.protocols.len()
            && by_algorithm.len() == self.algorithms.len();
        whole.then(|| Enabled {
            kind,
            algorithms: kept(&self.algorithms, &by_algorithm),
            protocols: kept(&self.protocols, &by_protocol),
        })
    }
}

fn kept<T: Copy>(all: &[T], allowed: &[bool]) -> Vec<T> {
    all.iter().zip(allowed).filter(|(_, allowed)| **allowed).map(|(item, _)| *item).collect()
}
