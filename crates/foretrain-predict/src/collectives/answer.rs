//! The answer's plain data.

use foretrain_core::{Bandwidth, Bytes, Estimate, Evidence, Nanos, Quantity};
use foretrain_cost::nccl_tuner::Protocol;
use foretrain_cost::{CollectiveTime, Method, Terms};
use foretrain_graph::CollectiveKind;

use super::network::Step;
use crate::validate::Scores;

/// Collectives on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectivesAnswer {
    /// The cluster.
    pub cluster: String,
    /// Its device.
    pub device: String,
    /// Devices on a node.
    pub devices_per_node: u32,
    /// What-if: bytes that a connection may have in flight.
    pub window: Option<Bytes>,
    /// What-if: links of a ring that have the added latency, if not all have it.
    pub late_links: Option<u32>,
    /// By operation, then ranks, then added latency, as asked.
    pub sweeps: Vec<Sweep>,
    /// Numbers of ranks that could not be answered.
    pub left_out: Vec<LeftOut>,
    /// Every measured run that could be put beside a prediction.
    pub comparisons: Vec<Comparison>,
    /// Measured runs that could not.
    pub uncompared: Vec<Uncompared>,
    /// What the times rest on, from strong to weak.
    pub evidence: Vec<Evidence>,
}

/// A number of ranks without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// How many were asked.
    pub ranks: u32,
    /// Why not, a lowercase fragment.
    pub why: String,
}

/// An operation on a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// Which operation.
    pub kind: CollectiveKind,
    /// Ranks of the group.
    pub ranks: u32,
    /// Nodes they are on.
    pub nodes: u32,
    /// Most of them on one node.
    pub ranks_per_node: u32,
    /// Payload rate of one rank to others of its node, one direction.
    pub intra_bandwidth: Bandwidth,
    /// Payload rate that the group has between nodes, per node and direction; a window's cap
    /// included.
    pub inter_bandwidth: Bandwidth,
    /// What-if: added to each hop between nodes, or to some.
    pub extra_latency: Nanos,
}

/// One operation on one group over sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Of what.
    pub setting: Setting,
    /// By size, as asked.
    pub points: Vec<Point>,
    /// What-ifs of the network, each on top of those before it.
    pub steps: Vec<Step>,
    /// The fastest way by size, from the smallest size asked to the largest.
    pub choices: Vec<Choice>,
    /// From this size on launch and propagation take less than a tenth of the time. `None` if
    /// they always take more.
    pub latency_minor_from: Option<Bytes>,
    /// What the bus bandwidth rises to.
    pub plateau: Plateau,
    /// What may look wrong and is not.
    pub notes: Vec<String>,
}

/// One size.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The larger of a rank's input and output buffer.
    pub size: Bytes,
    /// How long it takes and why.
    pub predicted: CollectiveTime,
}

/// The way that is fastest from a size on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Smallest size, at least the smallest that was asked.
    pub from: Bytes,
    /// Algorithm.
    pub algorithm: Method,
    /// Protocol, with NCCL and RCCL.
    pub protocol: Option<Protocol>,
}

/// The bus bandwidth of messages so large that nothing else matters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plateau {
    /// How high it is.
    pub bus_bandwidth: Bandwidth,
    /// What keeps it there.
    pub limit: Limit,
}

/// What keeps a bus bandwidth from rising.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The links within a node.
    Links,
    /// The NICs of a node.
    Nics,
    /// An oversubscribed level of the fabric.
    Oversubscription,
    /// Bytes that a connection may have in flight.
    Window,
    /// How fast a device reduces.
    Reduction,
    /// A CPU thread that moves the data.
    Thread,
    /// Nothing is moved.
    None,
}

impl Limit {
    /// The word for JSON.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Links => "links",
            Self::Nics => "nics",
            Self::Oversubscription => "oversubscription",
            Self::Window => "window",
            Self::Reduction => "reduction",
            Self::Thread => "thread",
            Self::None => "none",
        }
    }
    /// For people.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Links => "links in a node",
            Self::Nics => "NICs",
            Self::Oversubscription => "oversubscribed level",
            Self::Window => "window",
            Self::Reduction => "reduction",
            Self::Thread => "a thread",
            Self::None => "-",
        }
    }
}

/// A part of a collective's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// From the call to the first byte.
    Launch,
    /// Latency of the hops.
    Propagation,
    /// Bytes over the narrowest link.
    Transfer,
    /// Arithmetic that the transfer does not hide.
    Reduction,
}

impl Term {
    /// The word for tables and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Propagation => "propagation",
            Self::Transfer => "transfer",
            Self::Reduction => "reduction",
        }
    }
}

/// The largest part; the earlier of equals.
pub fn dominating_term(terms: &Terms) -> Term {
    let mut largest = (Term::Launch, terms.launch);
    for (term, time) in [
        (Term::Propagation, terms.propagation),
        (Term::Transfer, terms.transfer),
        (Term::Reduction, terms.reduction),
    ] {
        if time > largest.1 {
            largest = (term, time);
        }
    }
    largest.0
}

/// Share of launch and propagation in the time, 0 to 1.
pub fn latency_share(terms: &Terms) -> f64 {
    let latency = terms.launch.to_base() + terms.propagation.to_base();
    let total = latency + terms.transfer.to_base() + terms.reduction.to_base();
    if total > 0.0 { latency / total } else { 0.0 }
}

/// The bus bandwidth with the interval that follows from the time's.
pub fn bus_range(predicted: &CollectiveTime) -> Estimate<Bandwidth> {
    let (bus, time) = (predicted.bus_bandwidth, predicted.time.value.to_base());
    predicted.time.map(|at| if at > 0.0 { bus.get() * time / at } else { 0.0 })
}

/// A measured run beside the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The log.
    pub source: String,
    /// First and last line of the run's table.
    pub lines: (u64, u64),
    /// Of what.
    pub setting: Setting,
    /// Whether this operation and number of ranks were asked too.
    pub asked: bool,
    /// In the order of the log.
    pub rows: Vec<ComparedRow>,
    /// Errors of the predicted times of rows with a size; `None` without any.
    pub scores: Option<Scores>,
    /// What a reader should know of this run.
    pub notes: Vec<String>,
}

/// One measured size.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRow {
    /// Line of the log.
    pub line: u64,
    /// The larger of a rank's input and output buffer.
    pub size: Bytes,
    /// The shorter of the times in and out of place.
    pub measured: Nanos,
    /// Size over that time, times the operation's factor.
    pub measured_bus_bandwidth: Bandwidth,
    /// The model's answer.
    pub predicted: CollectiveTime,
    /// Predicted over measured time, less one, in percent.
    pub error_percent: f64,
    /// Whether the measured time is in the predicted 80 % interval.
    pub inside: bool,
}

/// A measured run without a prediction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncompared {
    /// The log.
    pub source: String,
    /// First and last line of the run's table.
    pub lines: (u64, u64),
    /// Rows in it.
    pub rows: usize,
    /// Why, a lowercase fragment.
    pub why: String,
}
