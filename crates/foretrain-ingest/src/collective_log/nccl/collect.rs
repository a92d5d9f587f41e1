//! Gathering the facts of the largest communicator from the lines of all ranks.

use std::collections::{BTreeMap, BTreeSet};

use foretrain_core::{Ledger, Severity};

use super::lines::{channels, choice, communicator, graph, message, nics};
use super::tables::{CostLine, CostTables, EnabledMatrix};
use super::{Choice, Communicator, NcclFacts};

/// Graphs, choices and processes that are kept: more than any job prints of one communicator.
const MOST_GRAPHS: usize = 32;
const MOST_CHOICES: usize = 4096;
const MOST_PROCESSES: usize = 65_536;
/// Characters of a name that are kept.
const LONGEST: usize = 100;

/// Takes in lines.
#[derive(Debug, Default)]
pub(in super::super) struct Collector {
    facts: NcclFacts,
    /// Ranks of the communicator that each process set up last.
    processes: BTreeMap<String, u32>,
    /// Ranks of the communicators that the facts are of.
    graphs_of: u32,
    costs_of: u32,
    channels_of: u32,
    costs: CostTables,
    enabled: EnabledMatrix,
    /// What makes two choices the same one.
    chosen: BTreeSet<(String, u64, String)>,
}

impl Collector {
    /// Takes in a line, if it is one of the library.
    pub(in super::super) fn line(&mut self, line: &str, number: u64, ledger: &mut Ledger) {
        if let Some((process, text)) = message(line) {
            self.message(process, text.trim(), number, ledger);
        } else if line.contains("CCL version ") {
            self.version(line);
        } else if line.contains('|')
            && let Some(row) = self.enabled.row(line)
            && !self.facts.enabled.iter().any(|known| known.kind == row.kind)
        {
            self.facts.enabled.push(row);
        }
    }

    /// The facts.
    pub(in super::super) fn finish(self) -> NcclFacts {
        self.facts
    }

    fn message(&mut self, process: &str, text: &str, number: u64, ledger: &mut Ledger) {
        if let Some(found) = communicator(text) {
            self.communicator(process, found);
            return;
        }
        let ranks = self.processes.get(process).copied().unwrap_or(0);
        if let Some(found) = channels(text) {
            if ranks > self.channels_of || self.facts.channels.is_none() {
                (self.facts.channels, self.channels_of) = (Some(found), ranks);
            }
        } else if let Some(found) = text.starts_with("Pattern ").then(|| graph(text)).flatten() {
            if ranks > self.graphs_of {
                self.facts.graphs.clear();
                self.graphs_of = ranks;
            }
            let graphs = &mut self.facts.graphs;
            if ranks == self.graphs_of && graphs.len() < MOST_GRAPHS && !graphs.contains(&found) {
                graphs.push(found);
            }
        } else if let Some(found) = choice(text) {
            self.choice(found, number, ledger);
        } else if text.contains('|')
            && let Some(CostLine::Row(costs)) = self.costs.line(process, text)
        {
            if ranks > self.costs_of {
                self.facts.costs.clear();
                self.costs_of = ranks;
            }
            let known = &mut self.facts.costs;
            let is_new = costs.iter().all(|cost| {
                let key = |c: &super::TunedCost| (c.kind, c.algorithm, c.protocol);
                !known.iter().any(|other| key(other) == key(cost))
            });
            if ranks == self.costs_of && is_new {
                known.extend(costs);
            }
        } else {
            self.network(text);
        }
    }

    fn version(&mut self, text: &str) {
        let (before, version) = text.split_once("CCL version ").unwrap_or_default();
        let version =
            version.split_whitespace().next().unwrap_or_default().trim_matches(['"', ',']);
        if self.facts.version.is_none() && version.starts_with(|c: char| c.is_ascii_digit()) {
            let prefix = if before.ends_with('R') { "RCCL " } else { "" };
            self.facts.version = Some(format!("{prefix}{}", short(version)));
        }
    }

    fn communicator(&mut self, process: &str, found: Communicator) {
        if self.processes.len() < MOST_PROCESSES || self.processes.contains_key(process) {
            self.processes.insert(short(process), found.ranks);
        }
        let known = self.facts.communicator.get_or_insert(found);
        if found.ranks > known.ranks {
            *known = found;
        } else if found.ranks == known.ranks {
            known.nodes = known.nodes.or(found.nodes);
            known.local_ranks = known.local_ranks.or(found.local_ranks);
            known.multi_node_nvlink = known.multi_node_nvlink.or(found.multi_node_nvlink);
        }
    }

    fn choice(&mut self, found: Choice, number: u64, ledger: &mut Ledger) {
        let kind = found.kind.map(|kind| kind.to_string()).unwrap_or_default();
        let way = format!("{:?}/{:?}/{:?}", found.algorithm, found.protocol, found.channels);
        if self.facts.choices.len() >= MOST_CHOICES {
            let message = "more choices of algorithms than are kept";
            ledger.record_at(Severity::Note, "choices-many", message, || format!("line {number}"));
        } else if self.chosen.insert((kind, found.size.get(), way)) {
            self.facts.choices.push(found);
        }
    }

    fn network(&mut self, text: &str) {
        let network = &mut self.facts.network;
        if text.contains("CCL version ") {
            self.version(text);
        } else if let Some(name) = text.strip_prefix("Using network ") {
            network.name.get_or_insert_with(|| short(name));
        } else if let Some(rest) = text.strip_prefix("NVLS multicast support is ") {
            let available = rest.starts_with("available");
            self.facts.nvls = Some(available && self.facts.nvls != Some(false));
        } else if text.starts_with("GPU Direct RDMA Enabled") || text.contains("/GDRDMA") {
            network.gpu_direct = Some(true);
        } else if text.starts_with("GPU Direct RDMA Disabled") {
            network.gpu_direct.get_or_insert(false);
        } else if let Some(rest) = text.strip_prefix("NET/") {
            let (transport, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let rest = rest.trim_start_matches([':', ' ']);
            if let Some(listed) = rest.strip_prefix("Using ").filter(|rest| rest.starts_with('[')) {
                let listed = nics(listed);
                if listed.len() > network.nics.len() {
                    network.nics = listed;
                }
                let builtin = matches!(transport, "IB" | "Socket");
                if !builtin {
                    network.plugin.get_or_insert_with(|| short(transport));
                }
            } else if transport == "OFI" {
                libfabric(rest, network);
            }
        }
    }
}

/// Lines of the plugin for libfabric.
fn libfabric(text: &str, network: &mut super::Network) {
    let lower = text.to_ascii_lowercase();
    if let Some(provider) = lower.strip_prefix("selected provider is ") {
        let name = provider.split([' ', ',']).next().unwrap_or_default();
        network.provider.get_or_insert_with(|| short(name));
        let count = provider.split("(found ").nth(1).and_then(|rest| rest.split(' ').next());
        network.nic_count = network.nic_count.or(count.and_then(|count| count.parse().ok()));
    } else if let Some(at) = lower.find("aws-ofi-nccl ").filter(|at| *at <= 16) {
        let name = lower[at..].split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        network.plugin.get_or_insert_with(|| short(&name));
    }
}

fn short(text: &str) -> String {
    text.trim().chars().take(LONGEST).collect()
}
