//! One way to run a call: its time in parts, and the constants that each part rests on.

use foretrain_hardware::collectives::{Constant, Constants};

use super::time::Method;
use crate::nccl_tuner::Protocol;

/// Most constants that one candidate uses.
const MOST: usize = 14;

/// One way to run a call, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    pub(super) method: Method,
    pub(super) protocol: Option<Protocol>,
    pub(super) launch: f64,
    pub(super) propagation: f64,
    pub(super) transfer: f64,
    pub(super) reduction: f64,
    /// What the transfer waits for; names a link for people.
    pub(super) limit: Limit,
    uses: [(Constant, f64); MOST],
    count: usize,
}

/// The narrowest part of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Nothing is moved.
    None,
    /// The links within a node.
    Within,
    /// The NICs, or an oversubscribed level above them.
    Between,
    /// A CPU thread that moves the data.
    Thread,
}

/// A rate and the constants it is proportional to.
#[derive(Clone, Copy)]
pub(super) struct Rate {
    /// Bytes per second.
    pub(super) rate: f64,
    pub(super) by: [Option<Constant>; 2],
    pub(super) limit: Limit,
}

impl Candidate {
    pub(super) fn new(method: Method, protocol: Option<Protocol>) -> Self {
        Self {
            method,
            protocol,
            launch: 0.0,
            propagation: 0.0,
            transfer: 0.0,
            reduction: 0.0,
            limit: Limit::None,
            uses: [(Constant::Launch, 0.0); MOST],
            count: 0,
        }
    }

    /// Algorithm and protocol in one word, "ring Simple".
    pub(crate) fn way(&self) -> &'static str {
        use Protocol::{Ll, Ll128, Simple};
        match (self.method, self.protocol) {
            (Method::Ring, Some(Ll)) => "ring LL",
            (Method::Ring, Some(Ll128)) => "ring LL128",
            (Method::Ring, Some(Simple)) => "ring Simple",
            (Method::Tree, Some(Ll)) => "tree LL",
            (Method::Tree, Some(Ll128)) => "tree LL128",
            (Method::Tree, Some(Simple)) => "tree Simple",
            (Method::Pairwise, Some(Ll)) => "pairwise LL",
            (Method::PointToPoint, Some(Ll)) => "p2p LL",
            (method, _) => method.as_str(),
        }
    }

    pub(crate) fn total(&self) -> f64 {
        self.launch + self.propagation + self.transfer + self.reduction
    }

    /// Notes that the time changes by `ns` per relative change of a constant.
    fn uses(&mut self, constant: Constant, ns: f64) {
        let known = &mut self.uses[..self.count];
        match known.iter_mut().find(|(used, _)| *used == constant) {
            Some((_, sum)) => *sum += ns,
            None if self.count < MOST => {
                self.uses[self.count] = (constant, ns);
                self.count += 1;
            }
            None => debug_assert!(false, "a candidate uses more than {MOST} constants"),
        }
    }

    /// Adds a fixed cost of `constant` microseconds.
    #[must_use]
    pub(super) fn starts(mut self, values: &Constants, constant: Constant) -> Self {
        let ns = values[constant] * 1e3;
        self.launch += ns;
        self.uses(constant, ns);
        self
    }

    /// Adds `count` hops of `constant` microseconds, each with `extra` nanoseconds more.
    #[must_use]
    pub(super) fn hops(
        mut self,
        values: &Constants,
        count: f64,
        constant: Constant,
        extra: f64,
    ) -> Self {
        let ns = count * values[constant] * 1e3;
        self.propagation += ns + count * extra;
        self.uses(constant, ns);
        self
    }

    /// Adds hops whose latency is a ratio times a constant.
    #[must_use]
    pub(super) fn scaled_hops(
        mut self,
        values: &Constants,
        count: f64,
        (constant, ratio): (Constant, Constant),
        extra: f64,
    ) -> Self {
        let ns = count * values[constant] * values[ratio] * 1e3;
        self.propagation += ns + count * extra;
        self.uses(constant, ns);
        self.uses(ratio, ns);
        self
    }

    /// Adds latency that rests on no constant, ns.
    #[must_use]
    pub(super) fn late(mut self, ns: f64) -> Self {
        self.propagation += ns;
        self
    }

    /// Moves `bytes` at `rate`; of several ways at once the slowest counts.
    #[must_use]
    pub(super) fn moves(mut self, ways: &[(f64, Rate)]) -> Self {
        let slowest = ways.iter().map(|(bytes, rate)| (transfer_ns(*bytes, rate.rate), rate));
        let slowest = slowest.max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((ns, rate)) = slowest.filter(|(ns, _)| *ns > 0.0) {
            self.transfer += ns;
            self.limit = rate.limit;
            for constant in rate.by.into_iter().flatten() {
                self.uses(constant, -ns);
            }
        }
        self
    }

    /// Adds a constant's share of a step of `step` nanoseconds.
    #[must_use]
    pub(super) fn part_of_step(
        mut self,
        values: &Constants,
        constant: Constant,
        step: f64,
    ) -> Self {
        let ns = values[constant] * step;
        self.transfer += ns;
        self.uses(constant, ns);
        self
    }

    /// Adds arithmetic that the transfer does not hide.
    #[must_use]
    pub(super) fn reduces(mut self, ns: f64, by: Option<Constant>) -> Self {
        self.reduction += ns;
        if let Some(constant) = by {
            self.uses(constant, -ns);
        }
        self
    }

    /// Derivative of the time's logarithm with respect to each constant's logarithm.
    pub(crate) fn sensitivities(&self) -> impl Iterator<Item = (Constant, f64)> + '_ {
        let total = self.total();
        self.uses[..self.count].iter().map(move |(constant, ns)| (*constant, ns / total))
    }

    /// Relative spread of the time from the spreads of its constants.
    pub(super) fn spread(&self, spreads: &Constants) -> f64 {
        if !self.total().is_finite() || self.total() <= 0.0 {
            return spreads[Constant::Launch];
        }
        let squares = self.sensitivities().map(|(c, part)| (part * spreads[c]).powi(2));
        squares.sum::<f64>().sqrt()
    }
}

/// Bytes over a rate in ns; infinite for a rate of zero.
pub(super) fn transfer_ns(bytes: f64, rate: f64) -> f64 {
    match rate {
        _ if bytes <= 0.0 => 0.0,
        rate if rate > 0.0 => bytes / rate * 1e9,
        _ => f64::INFINITY,
    }
}
