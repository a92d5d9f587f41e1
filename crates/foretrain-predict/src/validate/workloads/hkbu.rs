//! Seven schedulers on three networks (HKBU's ddl-benchmarks): 8 to 32 GPUs from at most 8.

use std::collections::BTreeMap;

use foretrain_core::{Nanos, Result};
use foretrain_workload::{Profile, StepTimes, named};

use super::super::ValidationSet;
use super::super::corpus::Corpus;
use super::super::report::{Row, SetOutcome, Skipped};
use super::network::Network;
use super::{Record, on_table, step_ms};

/// GPUs on a node of that cluster.
const PER_NODE: u32 = 4;
/// The scheduler that calibrates: it overlaps nothing, so its growth is the time of an all-reduce.
const CALIBRATES: &str = "BSP-A2A";
/// Tokens of a sample of BERT.
const SEQUENCE: u64 = 64;
/// Points of two networks that differ by less were measured on one.
const SAME_NETWORK: f64 = 0.025;

/// What is known of a scheduler that is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Given {
    /// Nothing of its own: one GPU, and four under `BSP-A2A`.
    OneScheduler,
    /// And its own row of four GPUs.
    OwnFour,
    /// And the row of eight GPUs under `BSP-A2A`.
    OwnFourOneEight,
}

/// The set for one amount of knowledge.
pub(in super::super) struct Hkbu(pub(in super::super) Given);

impl ValidationSet for Hkbu {
    fn name(&self) -> &'static str {
        match self.0 {
            Given::OneScheduler => "ddp-hkbu",
            Given::OwnFour => "ddp-hkbu-own-4",
            Given::OwnFourOneEight => "ddp-hkbu-one-8",
        }
    }

    fn about(&self) -> &'static str {
        match self.0 {
            Given::OneScheduler => {
                "ResNet-50, BERT-Base and BERT-Large on 8 to 32 GPUs (4 per node) over three networks \
                 under seven schedulers (HKBU ddl-benchmarks). Given: the step on one GPU, and on four \
                 under BSP-A2A, which is one node and tells the rate within it. The network between \
                 nodes is known by its nominal rate only; what TCP and servers reach of it are round \
                 figures, chosen with this table in sight, so they are not blind. Steps are built from \
                 the models' layers and simulated under each strategy."
            }
            Given::OwnFour => {
                "The same, with each scheduler's own step on four GPUs given too: its overhead within a \
                 node is carried along."
            }
            Given::OwnFourOneEight => {
                "The same, with the step on eight GPUs under BSP-A2A given too (that row is not scored): \
                 it tells the rate between two nodes."
            }
        }
    }

    fn unit(&self) -> &'static str {
        "ms"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        on_table(corpus, "ddp_scaling_hkbu_ddl_benchmarks.csv", |rows, outcome| {
            let table = Table::of(rows, outcome);
            for name in ["ResNet-50", "BERT-Base", "BERT-Large"] {
                let profile = named(name)?.profile(Some(SEQUENCE));
                let model = Profile { name: name.into(), ..profile };
                for link in LINKS {
                    let machine = Machine { table: &table, model: &model, link, given: self.0 };
                    machine.score(outcome)?;
                }
            }
            Ok(())
        })
    }
}

/// A network by its name in the table.
#[derive(Clone, Copy)]
struct Link {
    name: &'static str,
    /// Nominal, bytes per second.
    line: f64,
    is_tcp: bool,
}

const LINKS: [Link; 3] = [
    Link { name: "10GbE with TCP/IP", line: 1.25e9, is_tcp: true },
    Link { name: "100GbIB with RDMA", line: 12.5e9, is_tcp: false },
    Link { name: "100GbE with TCP/IP", line: 12.5e9, is_tcp: true },
];

impl Link {
    /// A ring is one TCP connection per node: around 20 Gbit/s without tuning. RDMA and slow lines
    /// give about nine tenths of the line.
    fn ring(self) -> f64 {
        let most = if self.is_tcp { 2.5e9 } else { f64::MAX };
        (0.9 * self.line).min(most)
    }
    /// Servers speak over a connection per pair of nodes, 1 GB/s each, and both directions of TCP
    /// share the processor: two thirds of the line.
    fn servers(self, nodes: u32) -> f64 {
        if self.is_tcp {
            (self.line * 2.0 / 3.0).min(1e9 * f64::from(nodes))
        } else {
            0.9 * self.line
        }
    }
    /// One way, microseconds.
    fn hop_us(self) -> f64 {
        if self.is_tcp { 40.0 } else { 5.0 }
    }
}

/// The passes of a scheduler of the table. Server shares are spread over all workers; the sum within a
/// node is part of the way to them.
fn strategy(scheduler: &str, gpus: u32) -> Option<String> {
    let servers = format!("partition(4096000B) | servers(count={gpus})");
    Some(match scheduler {
        "BSP-A2A" => "bsp".into(),
        "WFBP-A2A" => "wfbp".into(),
        "MG-WFBP" => "mg-wfbp".into(),
        "ByteScheduler-A2A" => "bytescheduler".into(),
        "BSP-PS" => format!("{servers} | after-backward"),
        "WFBP-PS" => servers,
        "ByteScheduler-PS" => format!("{servers} | priority(credit=16MiB)"),
        _ => return None,
    })
}

/// Steps in ms by model, network, scheduler and GPUs.
struct Table(BTreeMap<(String, String, String, u32), f64>);

impl Table {
    fn of(rows: &[Record], outcome: &mut SetOutcome) -> Self {
        let mut table = BTreeMap::new();
        for row in rows {
            let text = |column| row.text(column).to_owned();
            match (row.count("gpus"), row.number("step_time_ms")) {
                (Some(gpus), Some(ms)) if ms > 0.0 => {
                    table.insert((text("dnn"), text("connection"), text("method"), gpus), ms);
                }
                _ => outcome
                    .skipped
                    .push(Skipped { what: row.place.clone(), why: "no GPUs or step time".into() }),
            }
        }
        Self(table)
    }

    fn ms(&self, model: &str, link: &str, scheduler: &str, gpus: u32) -> Option<f64> {
        self.0.get(&(model.into(), link.into(), scheduler.into(), gpus)).copied()
    }

    fn schedulers(&self, model: &str, link: &str) -> Vec<String> {
        let of = self.0.keys().filter(|key| key.0 == model && key.1 == link);
        let mut names: Vec<String> = of.map(|key| key.2.clone()).collect();
        names.dedup();
        names
    }

    /// Whether a scheduler's steps on several nodes are those of another network: measured over the
    /// wrong interface.
    fn copies(&self, model: &str, link: &str, scheduler: &str) -> Option<&'static str> {
        let steps = |link: &str| {
            [8, 16, 32].map(|gpus| self.ms(model, link, scheduler, gpus).unwrap_or(f64::NAN))
        };
        let own = steps(link);
        let slower = LINKS.iter().find(|other| {
            other.line < 0.5 * own_line(link)
                && own
                    .iter()
                    .zip(steps(other.name))
                    .all(|(a, b)| (a / b - 1.0).abs() < SAME_NETWORK)
        });
        // Where communication is hidden, all networks look alike.
        let alone = self.ms(model, link, scheduler, 1).unwrap_or(f64::MAX);
        let shows = own.iter().all(|step| *step > 1.5 * alone);
        slower.filter(|_| shows).map(|other| other.name)
    }
}

fn own_line(link: &str) -> f64 {
    LINKS.iter().find(|one| one.name == link).map_or(0.0, |one| one.line)
}

struct Machine<'a> {
    table: &'a Table,
    model: &'a Profile,
    link: Link,
    given: Given,
}

impl Machine<'_> {
    fn measured(&self, scheduler: &str, gpus: u32) -> Option<f64> {
        self.table.ms(&self.model.name, self.link.name, scheduler, gpus)
    }

    fn bytes(&self) -> f64 {
        4.0 * self.model.parameters() as f64
    }

    /// The network that `gpus` see, from what is given. `None` if that is not in the table.
    fn network(&self, gpus: u32) -> Option<Network> {
        let alone = self.measured(CALIBRATES, 1)?;
        let nodes = gpus.div_ceil(PER_NODE);
        let mut network = Network::new(PER_NODE, PER_NODE, f64::MAX, self.link.ring());
        network.hop_between_us = self.link.hop_us();
        let rate = |network: &Network, gpus: u32| {
            let shown = self.measured(CALIBRATES, gpus)? - alone;
            let moving = shown / 1e3 - network.ring_latency_us(gpus, 2.0) / 1e6;
            let share = 2.0 * f64::from(gpus - 1) / f64::from(gpus);
            (moving > 0.0).then(|| share * self.bytes() / moving)
        };
        network.within = rate(&network, PER_NODE)?;
        if self.given == Given::OwnFourOneEight {
            network.between = rate(&network, 2 * PER_NODE)?;
        }
        network.replicas = gpus;
        network.to_servers = self.to_servers(network.within, nodes);
        Some(network)
    }

    /// PCIe and host memory carry the sums within the node (as much as a ring of four) and what the
    /// NIC sends, so neither hides the other.
    fn to_servers(&self, within: f64, nodes: u32) -> f64 {
        let share = 2.0 * f64::from(PER_NODE - 1) / f64::from(PER_NODE);
        let local = share / within;
        if nodes > 1 { 1.0 / (local + 1.0 / self.link.servers(nodes)) } else { 1.0 / local }
    }

    fn predicted(&self, scheduler: &str, gpus: u32) -> Result<Option<f64>> {
        let alone = self.measured(CALIBRATES, 1);
        let passes = strategy(scheduler, gpus);
        let (Some(network), Some(alone), Some(passes)) = (self.network(gpus), alone, passes) else {
            return Ok(None);
        };
        let times = StepTimes::of_step(Nanos::from_micros_f64(alone * 1e3));
        step_ms(self.model, &times, &network, &passes).map(Some)
    }

    fn score(&self, outcome: &mut SetOutcome) -> Result<()> {
        let group = format!("{}, {}", self.model.name, self.link.name);
        for scheduler in self.table.schedulers(&self.model.name, self.link.name) {
            let what = |gpus: u32| format!("{scheduler}, {gpus} GPUs");
            if let Some(other) = self.table.copies(&self.model.name, self.link.name, &scheduler) {
                outcome.skipped.push(Skipped {
                    what: format!("{group}: {scheduler}"),
                    why: format!("on several nodes all steps are those over {other}: measured over the wrong interface"),
                });
                continue;
            }
            let overhead = match (self.given, self.measured(&scheduler, PER_NODE)) {
                (Given::OneScheduler, _) | (_, None) => 0.0,
                (_, Some(own)) => match self.predicted(&scheduler, PER_NODE)? {
                    Some(predicted) => own - predicted,
                    None => 0.0,
                },
            };
            for gpus in [8, 16, 32] {
                let is_given = self.given == Given::OwnFourOneEight
                    && scheduler == CALIBRATES
                    && gpus == 2 * PER_NODE;
                if is_given {
                    continue;
                }
                match (self.measured(&scheduler, gpus), self.predicted(&scheduler, gpus)?) {
                    (Some(measured), Some(predicted)) => outcome.rows.push(Row {
                        group: group.clone(),
                        what: what(gpus),
                        predicted: predicted + overhead,
                        measured,
                        ..Row::default()
                    }),
                    _ => outcome.skipped.push(Skipped {
                        what: format!("{group}: {}", what(gpus)),
                        why: "a row that it is predicted from is missing, or the scheduler is unknown".into(),
                    }),
                }
            }
        }
        Ok(())
    }
}
