//! Program order of host threads.

use foretrain_core::diagnostics::Severity;
use foretrain_core::{Ledger, Nanos};
use foretrain_graph::{Edge, EdgeKind, NodeId};
use rustc_hash::FxHashMap;

use super::draft::Draft;

/// A host node in the order of ids, which is the order in which operators started.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostNode {
    pub(super) node: NodeId,
    pub(super) thread: i64,
    pub(super) start: Option<Nanos>,
    pub(super) end: Option<Nanos>,
}

/// Collects host nodes and links them.
#[derive(Debug, Default)]
pub(super) struct ThreadOrder {
    nodes: Vec<HostNode>,
    latest: FxHashMap<i64, usize>,
}

/// Threads that take turns change seldom; with at least this many nodes per turn on average a
/// change of thread is taken for a hand-over (the caller of `backward()` sleeps meanwhile).
const NODES_PER_TURN: usize = 16;

impl ThreadOrder {
    /// Adds the next node.
    pub(super) fn push(&mut self, host: HostNode) {
        self.latest.insert(host.thread, self.nodes.len());
        self.nodes.push(host);
    }

    /// The latest node of the thread, or of any thread if it has none yet.
    pub(super) fn latest(&self, thread: i64) -> Option<NodeId> {
        let own = self.latest.get(&thread).map(|&at| self.nodes[at].node);
        own.or_else(|| self.nodes.last().map(|host| host.node))
    }

    /// Adds the edges: one per pair of neighbours on a thread, with the recorded gap between them
    /// as lag, and one per hand-over between threads.
    pub(super) fn link(&self, draft: &mut Draft, ledger: &mut Ledger) {
        let switches = self.nodes.windows(2).filter(|w| w[0].thread != w[1].thread).count();
        let turns = switches * NODES_PER_TURN <= self.nodes.len() || switches <= 1;
        let mut last: FxHashMap<i64, usize> = FxHashMap::default();
        let mut hand_overs = 0;
        for (at, host) in self.nodes.iter().enumerate() {
            let own = last.insert(host.thread, at).map(|own| &self.nodes[own]);
            let previous = at.checked_sub(1).map(|previous| &self.nodes[previous]);
            let switched = previous.is_some_and(|previous| previous.thread != host.thread);
            let hand_over = switched && (turns || own.is_none());
            if let Some(own) = own {
                // Over a hand-over the thread slept: its gap is the other thread's work.
                let lag = if hand_over { Nanos::ZERO } else { gap(own, host) };
                let edge = Edge::new(own.node, host.node, EdgeKind::ThreadOrder).inferred();
                draft.edge(edge.with_lag(lag));
            }
            if let Some(previous) = previous.filter(|_| hand_over) {
                hand_overs += 1;
                let edge = Edge::new(previous.node, host.node, EdgeKind::Data).inferred();
                draft.edge(edge.with_lag(gap(previous, host)));
            }
        }
        ledger.record_many(
            Severity::Inferred,
            "thread-hand-over",
            "threads take turns: the next one starts when the one before has stopped",
            hand_overs,
            None,
        );
    }
}

fn gap(earlier: &HostNode, later: &HostNode) -> Nanos {
    earlier.end.zip(later.start).map_or(Nanos::ZERO, |(end, start)| (start - end).clamp_positive())
}
