//! Recorded ranks that are simulated together, so that their waiting for each other comes out of
//! the simulation instead of being copied from the recording.

use std::collections::{BTreeMap, BTreeSet};

use foretrain_core::stats::median_i64;
use foretrain_core::{Ledger, Nanos};
use foretrain_graph::{CollectiveKind, Group, GroupId, NodeId, StepGraph};
use foretrain_trace::align::{
    MatchedCollectives, MatchedOp, RankOps, Waits, align_clocks, match_ops, waits,
};
use foretrain_trace::build::TRACE_ROW;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::recording::Recording;

/// One rank's part of a joint job.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// Position of its recording.
    pub(crate) recording: usize,
    /// Its steady step. Communication that meets other members has its transfer time as work;
    /// the rest keeps what was recorded, waiting included.
    pub(crate) graph: StepGraph,
}

/// Ranks whose steady steps meet in their collectives.
#[derive(Clone, Debug)]
pub(crate) struct Joint {
    /// In the order of the recordings.
    pub(crate) members: Vec<Member>,
    /// How many collectives of one step meet, over all groups.
    pub(crate) meetings: usize,
    /// Median spread of the ends of matched collectives after clock alignment.
    pub(crate) residual: Nanos,
}

/// What the engine lets meet: an operation of a matched group, by its number within a step.
type Place = (u32, Channel, u32);

/// Where each communication node of a step that meets others does so.
type Places = BTreeMap<NodeId, Place>;

/// Each kind of collective of a group is one sequence, messages are one per direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Channel {
    Collective(CollectiveKind),
    /// Messages sent by the recording at this position.
    From(usize),
}

/// Joins ranks. The error says, as a lowercase fragment, why they cannot be simulated together.
pub(crate) fn join(recordings: &[Recording]) -> Result<Joint, String> {
    let ops: Vec<RankOps> = recordings.iter().map(Recording::rank_ops).collect();
    let matched = match_ops(&ops, &mut Ledger::new());
    let clocks = align_clocks(&ops, &matched).map_err(|error| error.message().to_owned())?;
    let waits = waits(&ops, &matched, &clocks);
    let joining = Joining { recordings, ops: &ops, matched: &matched, waits: &waits };
    let nodes = joining.nodes();
    let groups = joining.groups(&nodes);
    let transfers = joining.transfers(&nodes, &groups);
    let mut members = Vec::new();
    for (position, recording) in recordings.iter().enumerate() {
        let graph = recording
            .steady()
            .ok_or_else(|| format!("rank {} holds no whole step", recording.rank()))?;
        members.push(Member { recording: position, graph });
    }
    let meetings = joining.connect(&mut members, &groups, &transfers)?;
    Ok(Joint { members, meetings, residual: clocks.residual.median })
}

struct Joining<'a> {
    recordings: &'a [Recording],
    ops: &'a [RankOps],
    matched: &'a MatchedCollectives,
    waits: &'a Waits,
}

/// Matched group of each recording's groups, by the name that its step graphs give them.
type GroupNumbers = Vec<FxHashMap<String, u32>>;

/// For each recording, the step and the node of each trace row.
type Nodes = Vec<FxHashMap<i64, (usize, NodeId)>>;

impl Joining<'_> {
    /// The step graph's node of each member of a matched operation, by recording and trace row.
    fn nodes(&self) -> Nodes {
        let of_graph = |(step, graph): (usize, &StepGraph)| -> Vec<(i64, (usize, NodeId))> {
            communication(graph)
                .filter_map(|id| {
                    let row = graph.node_attributes.get_i64(TRACE_ROW, id.index())?;
                    Some((row, (step, id)))
                })
                .collect()
        };
        let of_rank = |r: &Recording| {
            r.graphs.iter().enumerate().flat_map(of_graph).collect::<FxHashMap<_, _>>()
        };
        self.recordings.iter().map(of_rank).collect()
    }

    /// Trace row of each member of an operation.
    fn rows<'b>(&'b self, op: &'b MatchedOp) -> impl Iterator<Item = (usize, i64)> + 'b {
        op.members.iter().map(|member| {
            let position = member.rank as usize;
            (position, i64::from(self.ops[position].ops[member.op as usize].row))
        })
    }

    fn groups(&self, nodes: &Nodes) -> GroupNumbers {
        let mut groups: GroupNumbers = vec![FxHashMap::default(); self.recordings.len()];
        for op in &self.matched.ops {
            for (position, row) in self.rows(op) {
                let Some(&(step, id)) = nodes[position].get(&row) else { continue };
                let graph = &self.recordings[position].graphs[step];
                if let Some(group) = graph.node(id).group {
                    let name = graph.groups[group.index()].name.clone();
                    groups[position].entry(name).or_insert(op.group);
                }
            }
        }
        groups
    }

    /// Median transfer time over the steps of each place where operations meet.
    fn transfers(&self, nodes: &Nodes, groups: &GroupNumbers) -> BTreeMap<Place, Nanos> {
        let mut seen: BTreeMap<Place, Vec<i64>> = BTreeMap::new();
        for wait in &self.waits.ops {
            let op = &self.matched.ops[wait.op as usize];
            for (position, row) in self.rows(op) {
                let Some(&(step, id)) = nodes[position].get(&row) else { continue };
                let graph = &self.recordings[position].graphs[step];
                if let Some(place) = self.place(position, graph, id, groups) {
                    seen.entry(place).or_default().push(wait.transfer.nanos());
                }
            }
        }
        seen.into_iter()
            .filter_map(|(place, mut times)| {
                Some((place, Nanos::from_nanos(median_i64(&mut times)?)))
            })
            .collect()
    }

    fn place(
        &self,
        position: usize,
        graph: &StepGraph,
        id: NodeId,
        groups: &GroupNumbers,
    ) -> Option<Place> {
        let node = graph.node(id);
        let name = &graph.groups[node.group?.index()].name;
        let group = *groups[position].get(name)?;
        let channel = match node.collective {
            Some(CollectiveKind::Send) => Channel::From(position),
            Some(CollectiveKind::Recv) => {
                let members = &self.matched.groups[group as usize].members;
                let [a, b] = members.as_slice() else { return None };
                let own = position as u32;
                Channel::From(if *a == own { *b } else { *a } as usize)
            }
            kind => Channel::Collective(kind.unwrap_or(CollectiveKind::Unknown)),
        };
        Some((group, channel, node.sequence))
    }

    /// Gives the groups names that are equal where members meet and different elsewhere, and the
    /// operations that meet their transfer times. Returns how many meet.
    fn connect(
        &self,
        members: &mut [Member],
        groups: &GroupNumbers,
        transfers: &BTreeMap<Place, Nanos>,
    ) -> Result<usize, String> {
        let places: Vec<Places> = members
            .iter()
            .map(|member| {
                let graph = &member.graph;
                let place = |id| self.place(member.recording, graph, id, groups);
                communication(graph)
                    .filter_map(|id| Some((id, place(id)?)))
                    .filter(|(_, place)| transfers.contains_key(place))
                    .collect()
            })
            .collect();
        let meetings = self.count_meetings(&places)?;
        let mut identities = Vec::new();
        for (member, places) in members.iter_mut().zip(&places) {
            for (id, place) in places {
                member.graph.set_work(*id, transfers[place]);
            }
            let numbers = &groups[member.recording];
            let known = member.graph.groups.iter().map(|g| numbers.get(&g.name).copied());
            let known: Vec<Option<u32>> = known.collect();
            part_unplaced(&mut member.graph, places);
            identities.push(known);
        }
        name_groups(members, &identities);
        Ok(meetings)
    }

    /// How many operations meet, if every rank that shares a group issues each of them.
    fn count_meetings(&self, places: &[Places]) -> Result<usize, String> {
        let mut present: BTreeMap<Place, usize> = BTreeMap::new();
        let mut holders: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        for (member, places) in places.iter().enumerate() {
            for place in places.values() {
                *present.entry(*place).or_insert(0) += 1;
                holders.entry(place.0).or_default().insert(member);
            }
        }
        let lone = present.iter().find(|(place, count)| **count != holders[&place.0].len());
        match lone {
            Some(((group, _, sequence), count)) => Err(format!(
                "operation {sequence} of group {} is in the usual step of {count} of the {} ranks that share the group",
                self.matched.groups[*group as usize].name,
                holders[group].len()
            )),
            None => Ok(present.len()),
        }
    }
}

/// Operations without a partner at hand keep their recorded time: they move to groups of their
/// own, where the engine lets them wait for nobody.
fn part_unplaced(graph: &mut StepGraph, places: &Places) {
    let unplaced: Vec<NodeId> =
        communication(graph).filter(|id| !places.contains_key(id)).collect();
    let shared: FxHashSet<GroupId> = places.keys().filter_map(|&id| graph.node(id).group).collect();
    let mut parted: FxHashMap<GroupId, GroupId> = FxHashMap::default();
    for id in unplaced {
        let mut node = graph.node(id);
        let Some(group) = node.group else { continue };
        if !shared.contains(&group) {
            continue;
        }
        let own = *parted.entry(group).or_insert_with(|| {
            let shared = &graph.groups[group.index()];
            let name = format!("{} (unmatched)", shared.name);
            graph.add_group(Group { name, ..shared.clone() })
        });
        node.group = Some(own);
        graph.set_node(id, node);
    }
}

/// A group of the job: one that several ranks share, or one of a single rank.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Identity {
    Shared(u32),
    Own { member: usize, group: usize },
}

/// Names groups so that the engine, which goes by names, lets exactly those meet that are one.
/// `numbers` holds the matched group of each member's groups; further groups are its own.
fn name_groups(members: &mut [Member], numbers: &[Vec<Option<u32>>]) {
    let mut names: BTreeMap<Identity, String> = BTreeMap::new();
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    for (member, part) in members.iter_mut().enumerate() {
        for (group, entry) in part.graph.groups.iter_mut().enumerate() {
            let number = numbers[member].get(group).copied().flatten();
            let identity = number.map_or(Identity::Own { member, group }, Identity::Shared);
            let name = names.entry(identity).or_insert_with(|| {
                let used = uses.entry(entry.name.clone()).or_insert(0);
                *used += 1;
                if *used == 1 { entry.name.clone() } else { format!("{} #{used}", entry.name) }
            });
            entry.name.clone_from(name);
        }
    }
}

/// Communication nodes of the step itself, not those it was carried in with.
fn communication(graph: &StepGraph) -> impl Iterator<Item = NodeId> + '_ {
    graph.node_ids().filter(|&id| graph.kind(id).communicates() && !graph.is_carried_in(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretrain_graph::{Node, NodeKind, QueueKind};

    fn member(groups: &[&str]) -> Member {
        let mut graph = StepGraph::new();
        for name in groups {
            graph.add_group(Group { name: (*name).into(), ..Group::default() });
        }
        Member { recording: 0, graph }
    }

    fn names(member: &Member) -> Vec<&str> {
        member.graph.groups.iter().map(|group| group.name.as_str()).collect()
    }

    #[test]
    fn groups_meet_by_identity_and_not_by_name() {
        // Two tensor-parallel pairs under one name, and a name that each rank uses for itself.
        let mut members = [
            member(&["tp", "own"]),
            member(&["tp", "own"]),
            member(&["tp", "own"]),
            member(&["tp of the second pair"]),
        ];
        let numbers =
            [vec![Some(0), None], vec![Some(0), None], vec![Some(1), None], vec![Some(1)]];
        name_groups(&mut members, &numbers);
        assert_eq!(names(&members[0]), ["tp", "own"]);
        assert_eq!(names(&members[1]), ["tp", "own #2"]);
        assert_eq!(names(&members[2]), ["tp #2", "own #3"]);
        assert_eq!(names(&members[3]), ["tp #2"], "one group has one name on all its ranks");
    }

    #[test]
    fn operations_without_partners_leave_the_shared_group() {
        let mut graph = StepGraph::new();
        let queue = graph.add_queue("stream 7", QueueKind::Stream);
        let group = graph.add_group(Group { name: "dp".into(), ..Group::default() });
        let name = graph.names.intern("all-reduce");
        let mut ids = Vec::new();
        for sequence in 0..3 {
            let node = Node::new(NodeKind::Collective, name, queue, Nanos::from_nanos(5));
            ids.push(graph.add_node(Node { group: Some(group), sequence, ..node }));
        }
        let place = |sequence| (0, Channel::Collective(CollectiveKind::AllReduce), sequence);
        let places: Places = [(ids[0], place(0)), (ids[2], place(2))].into();
        part_unplaced(&mut graph, &places);
        assert_eq!(graph.node(ids[0]).group, Some(group));
        assert_eq!(graph.node(ids[2]).group, Some(group));
        let parted = graph.node(ids[1]).group.expect("a group of its own");
        assert_eq!(graph.groups[parted.index()].name, "dp (unmatched)");
    }
}
