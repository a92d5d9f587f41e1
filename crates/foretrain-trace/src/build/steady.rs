//! From the graphs of several recorded steps to one periodic graph of the steady step: the
//! structure of a representative step, with medians and spreads over all of them, and edges that
//! lead from one step to the next.

use foretrain_core::Nanos;
use foretrain_core::stats::{median, median_i64, robust_std};
use foretrain_graph::attributes::well_known;
use foretrain_graph::{Edge, EdgeKind, Node, NodeId, NodeKind, StepGraph};
use rustc_hash::FxHashMap;

use super::assemble::{STEP_BEGIN, STEP_END, TRACE_ROW};
use super::typical::Typical;
use super::usual::usual;
use crate::steps::Steps;

/// A node's identity across steps: where it runs, what it is, and the how-manieth of its like.
type Key<'a> = (&'a str, NodeKind, &'a str);

/// Builds the periodic graph from the graphs of all steps, leaving one out if asked. `None` if no
/// step is left.
pub fn steady_step(
    graphs: &[StepGraph],
    steps: &Steps,
    typical: &Typical,
    leave_out: Option<usize>,
) -> Option<StepGraph> {
    let used: Vec<usize> = usable_steps(graphs, steps, leave_out);
    let base = representative(graphs, &used)?;
    let lookups: FxHashMap<usize, Lookup<'_>> =
        used.iter().map(|&i| (i, Lookup::new(&graphs[i]))).collect();
    let matches: Vec<(usize, Vec<Option<NodeId>>)> = used
        .iter()
        .map(|&i| (i, match_nodes(&graphs[base], &lookups[&base], &lookups[&i])))
        .collect();
    let mut builder = Builder { source: &graphs[base], out: StepGraph::new(), new_id: Vec::new() };
    builder.copy_nodes(graphs, &matches);
    builder.keep_totals(graphs, &used);
    builder.copy_edges(graphs, &matches);
    builder.link_carried(graphs, base, &lookups[&base]);
    builder.close_cycle(step_gap(steps), typical);
    builder.bound_launch_queue(typical);
    let mut out = builder.out;
    out.meta = graphs[base].meta.clone();
    out.meta.step = format!("median of {} steps", used.len());
    let times: Vec<i64> = used.iter().map(|&i| steps.steps[i].duration().nanos()).collect();
    out.meta.recorded_step = middle(&times);
    Some(out)
}

/// Steps to learn from: complete ones if there are any, and of those the usual ones.
fn usable_steps(graphs: &[StepGraph], steps: &Steps, leave_out: Option<usize>) -> Vec<usize> {
    let all: Vec<usize> = (0..graphs.len()).filter(|&i| Some(i) != leave_out).collect();
    let complete: Vec<usize> =
        all.iter().copied().filter(|&i| !steps.steps[i].incomplete).collect();
    let used = if complete.is_empty() { all } else { complete };
    let times: Vec<Nanos> = used.iter().map(|&i| steps.steps[i].duration()).collect();
    usual(&times).into_iter().map(|i| used[i]).collect()
}

/// The step whose time is nearest to the median (the earliest of equals).
fn representative(graphs: &[StepGraph], used: &[usize]) -> Option<usize> {
    let time = |i: usize| graphs[i].meta.recorded_step.unwrap_or(Nanos::ZERO).nanos();
    let mut times: Vec<i64> = used.iter().map(|&i| time(i)).collect();
    let middle = median_i64(&mut times)?;
    used.iter().copied().min_by_key(|&i| (time(i).abs_diff(middle), i))
}

/// Usual time from the end of one step to the start of the next.
fn step_gap(steps: &Steps) -> Nanos {
    let mut gaps: Vec<i64> =
        steps.steps.windows(2).map(|pair| (pair[1].start - pair[0].end).nanos()).collect();
    median_i64(&mut gaps).map_or(Nanos::ZERO, Nanos::from_nanos).clamp_positive()
}

/// Nodes of one graph by identity; carried-in work is not part of the step.
struct Lookup<'a> {
    graph: &'a StepGraph,
    by_key: FxHashMap<Key<'a>, Vec<NodeId>>,
    ordinal: Vec<u32>,
}

impl<'a> Lookup<'a> {
    fn new(graph: &'a StepGraph) -> Self {
        let mut by_key: FxHashMap<Key<'a>, Vec<NodeId>> = FxHashMap::default();
        let mut ordinal = vec![0; graph.node_count()];
        for id in graph.node_ids().filter(|&id| !graph.is_carried_in(id)) {
            let like = by_key.entry(key(graph, id)).or_default();
            ordinal[id.index()] = like.len() as u32;
            like.push(id);
        }
        Self { graph, by_key, ordinal }
    }

    fn find(&self, key: &Key<'_>, ordinal: u32) -> Option<NodeId> {
        self.by_key.get(key)?.get(ordinal as usize).copied()
    }
}

fn key(graph: &StepGraph, id: NodeId) -> Key<'_> {
    let queue = &graph.queues[graph.queue(id).index()];
    (&queue.name, graph.kind(id), graph.name(id))
}

fn match_nodes(
    base: &StepGraph,
    base_lookup: &Lookup<'_>,
    other: &Lookup<'_>,
) -> Vec<Option<NodeId>> {
    base.node_ids()
        .map(|id| {
            let carried = base.is_carried_in(id);
            let ordinal = base_lookup.ordinal[id.index()];
            if carried { None } else { other.find(&key(base, id), ordinal) }
        })
        .collect()
}

/// How many steps back the launch of carried-in work is looked for.
const MOST_STEPS_BACK: usize = 8;

/// A step before the representative one, and what it launched by trace row.
struct EarlierStep<'a> {
    lookup: Lookup<'a>,
    launched: FxHashMap<i64, NodeId>,
}

impl<'a> EarlierStep<'a> {
    fn new(graph: &'a StepGraph) -> Self {
        let launched = graph
            .node_ids()
            .filter(|&id| !graph.is_carried_in(id))
            .filter_map(|id| Some((graph.node_attributes.get_i64(TRACE_ROW, id.index())?, id)))
            .collect();
        Self { lookup: Lookup::new(graph), launched }
    }
}

struct Builder<'a> {
    source: &'a StepGraph,
    out: StepGraph,
    /// New id of each source node; `None` for carried-in ones.
    new_id: Vec<Option<NodeId>>,
}

impl Builder<'_> {
    fn copy_nodes(&mut self, graphs: &[StepGraph], matches: &[(usize, Vec<Option<NodeId>>)]) {
        self.out.names = self.source.names.clone();
        self.out.queues = self.source.queues.clone();
        self.out.groups = self.source.groups.clone();
        for id in self.source.node_ids() {
            if self.source.is_carried_in(id) {
                self.new_id.push(None);
                continue;
            }
            let works: Vec<i64> = matches
                .iter()
                .filter_map(|(i, found)| Some(graphs[*i].work(found[id.index()]?).nanos()))
                .collect();
            let node = self.source.node(id);
            let work = middle(&works).unwrap_or(node.work);
            let new = self.out.add_node(Node { work, ..node });
            let attributes = &mut self.out.node_attributes;
            attributes.copy_row(new.index(), &self.source.node_attributes, id.index());
            attributes.set_i64(well_known::STEP_COUNT, new.index(), works.len() as i64);
            if let Some(spread) = relative_spread(&works) {
                attributes.set_f64(well_known::WORK_SPREAD, new.index(), spread);
            }
            self.new_id.push(Some(new));
        }
    }

    /// Durations are skewed, so medians of nodes sum to less than a usual step's total: to a third
    /// of it where pauses of the host meet other nodes in every step. Scales the nodes of each
    /// queue so that their sum is the median of the recorded sums.
    fn keep_totals(&mut self, graphs: &[StepGraph], used: &[usize]) {
        let recorded: Vec<FxHashMap<(&str, NodeKind), i64>> =
            used.iter().map(|&i| totals(&graphs[i])).collect();
        let own = totals(&self.out);
        let factors: FxHashMap<(&str, NodeKind), f64> = own
            .keys()
            .filter_map(|key| {
                let sums: Vec<i64> = recorded.iter().filter_map(|t| t.get(key).copied()).collect();
                let own = own[key] as f64;
                let factor = middle(&sums)?.nanos() as f64 / own;
                (own > 0.0).then_some((*key, factor))
            })
            .collect();
        let works: Vec<(NodeId, Nanos)> = self
            .out
            .node_ids()
            .filter_map(|id| {
                let queue = self.out.queues[self.out.queue(id).index()].name.as_str();
                let factor = factors.get(&(queue, self.out.kind(id)))?;
                Some((id, self.out.work(id).scale(*factor)))
            })
            .collect();
        for (id, work) in works {
            self.out.set_work(id, work);
        }
    }

    fn copy_edges(&mut self, graphs: &[StepGraph], matches: &[(usize, Vec<Option<NodeId>>)]) {
        let lags: Vec<FxHashMap<(NodeId, NodeId, EdgeKind), Nanos>> = matches
            .iter()
            .map(|(i, _)| {
                graphs[*i].edges().iter().map(|e| ((e.src, e.dst, e.kind), e.lag)).collect()
            })
            .collect();
        for edge in self.source.edges() {
            let (src, dst) = (self.new_id[edge.src.index()], self.new_id[edge.dst.index()]);
            let (Some(src), Some(dst)) = (src, dst) else { continue };
            let seen: Vec<i64> = matches
                .iter()
                .zip(&lags)
                .filter_map(|((_, found), lags)| {
                    let pair = (found[edge.src.index()]?, found[edge.dst.index()]?, edge.kind);
                    lags.get(&pair).map(|lag| lag.nanos())
                })
                .collect();
            let lag = middle(&seen).unwrap_or(edge.lag);
            self.out.add_edge(Edge { src, dst, lag, ..*edge });
        }
    }

    /// Waits for work that an earlier step launched become edges across steps: the node that the
    /// earlier step launched it as stands for it, one or more steps back.
    fn link_carried(&mut self, graphs: &[StepGraph], base: usize, lookup: &Lookup<'_>) {
        let nearest_first = graphs[base.saturating_sub(MOST_STEPS_BACK)..base].iter().rev();
        let earlier: Vec<EarlierStep<'_>> = nearest_first.map(EarlierStep::new).collect();
        for edge in self.source.edges() {
            let waits = matches!(
                edge.kind,
                EdgeKind::HostSync | EdgeKind::LaunchQueue | EdgeKind::EventWait | EdgeKind::Data
            );
            let Some(dst) = self.new_id[edge.dst.index()] else { continue };
            if !waits || self.new_id[edge.src.index()].is_some() {
                continue;
            }
            let launched = self.launched_in(&earlier, edge.src);
            let found = launched
                .and_then(|(distance, key, ordinal)| Some((distance, lookup.find(&key, ordinal)?)));
            if let Some((distance, source)) = found
                && let Some(src) = self.new_id[source.index()]
            {
                let edge = Edge { src, dst, ..*edge };
                self.out.add_edge(edge.with_distance(distance).inferred());
            }
        }
    }

    /// In which earlier step a carried-in node was launched, and as which node. `earlier` holds the
    /// steps before this one, the nearest first.
    fn launched_in<'b>(
        &self,
        earlier: &[EarlierStep<'b>],
        carried: NodeId,
    ) -> Option<(u16, Key<'b>, u32)> {
        let row = self.source.node_attributes.get_i64(TRACE_ROW, carried.index())?;
        earlier.iter().zip(1..).find_map(|(step, back)| {
            let id = *step.launched.get(&row)?;
            Some((back, key(step.lookup.graph, id), step.lookup.ordinal[id.index()]))
        })
    }

    /// The end of one step leads to the start of the next on every queue.
    fn close_cycle(&mut self, gap: Nanos, typical: &Typical) {
        let mut first: Vec<Option<NodeId>> = vec![None; self.out.queues.len()];
        let mut last: Vec<Option<NodeId>> = vec![None; self.out.queues.len()];
        let (mut begin, mut end) = (None, None);
        for id in self.out.node_ids() {
            let queue = self.out.queue(id).index();
            first[queue].get_or_insert(id);
            last[queue] = Some(id);
            if self.out.kind(id) == NodeKind::Mark {
                match self.out.name(id) {
                    STEP_BEGIN => begin = Some(id),
                    STEP_END => end = Some(id),
                    _ => {}
                }
            }
        }
        if let (Some(begin), Some(end)) = (begin, end) {
            let edge = Edge::new(end, begin, EdgeKind::ThreadOrder);
            self.out.add_edge(edge.with_lag(gap).with_distance(1));
        }
        let main = begin.map(|id| self.out.queue(id).index());
        for queue in 0..self.out.queues.len() {
            let (Some(first), Some(last)) = (first[queue], last[queue]) else { continue };
            if Some(queue) == main {
                continue;
            }
            let (kind, lag) = match self.out.queues[queue].kind {
                foretrain_graph::QueueKind::Stream => (EdgeKind::StreamOrder, typical.stream_gap),
                _ => (EdgeKind::ThreadOrder, Nanos::ZERO),
            };
            self.out.add_edge(Edge::new(last, first, kind).with_lag(lag).with_distance(1));
        }
    }

    /// A launch call returns only when at most `capacity` launches are queued: the host node after
    /// the n-th launch waits for the kernel `capacity` launches before, some steps back.
    fn bound_launch_queue(&mut self, typical: &Typical) {
        let launches = self.launches_in_order();
        let (count, capacity) = (launches.len(), typical.queue_capacity as usize);
        if count == 0 {
            return;
        }
        let mut next_on_thread: FxHashMap<NodeId, NodeId> = FxHashMap::default();
        for edge in self.out.edges() {
            if edge.kind == EdgeKind::ThreadOrder && edge.distance == 0 {
                next_on_thread.insert(edge.src, edge.dst);
            }
        }
        let mut edges = Vec::new();
        for (n, &(host, _)) in launches.iter().enumerate() {
            let back = capacity.saturating_sub(n).div_ceil(count);
            let (_, kernel) = launches[n + back * count - capacity];
            let (Some(&next), Ok(distance)) = (next_on_thread.get(&host), u16::try_from(back))
            else {
                continue;
            };
            let edge = Edge::new(kernel, next, EdgeKind::LaunchQueue);
            edges.push(edge.with_distance(distance).inferred());
        }
        for edge in edges {
            self.out.add_edge(edge);
        }
    }

    /// `(host node, kernel)` of every launch, in the order of the host nodes.
    fn launches_in_order(&self) -> Vec<(NodeId, NodeId)> {
        let mut launches: Vec<(NodeId, NodeId)> = self
            .out
            .edges()
            .iter()
            .filter(|e| e.kind == EdgeKind::Launch && e.distance == 0)
            .map(|e| (e.src, e.dst))
            .collect();
        let start = |id: NodeId| {
            let at = self.out.node_attributes.get_i64(well_known::RECORDED_START, id.index());
            at.unwrap_or(0) + self.out.work(id).nanos()
        };
        launches.sort_by_key(|&(host, kernel)| (start(host), host, kernel));
        launches
    }
}

/// Work of each kind on each queue, carried-in work aside.
fn totals(graph: &StepGraph) -> FxHashMap<(&str, NodeKind), i64> {
    let mut totals = FxHashMap::default();
    for id in graph.node_ids().filter(|&id| !graph.is_carried_in(id)) {
        let queue = graph.queues[graph.queue(id).index()].name.as_str();
        *totals.entry((queue, graph.kind(id))).or_insert(0) += graph.work(id).nanos();
    }
    totals
}

/// The median, the lower one for an even count: what disturbs a step adds time, and two values
/// cannot outvote a disturbance.
fn middle(values: &[i64]) -> Option<Nanos> {
    median_i64(&mut values.to_vec()).map(Nanos::from_nanos)
}

/// Robust standard deviation over median, from three values on.
fn relative_spread(works: &[i64]) -> Option<f64> {
    let values: Vec<f64> = works.iter().map(|&w| w as f64).collect();
    let center = median(&values).filter(|&m| m > 0.0)?;
    (values.len() >= 3).then(|| robust_std(&values).map(|s| s / center)).flatten()
}

#[cfg(test)]
mod tests;
