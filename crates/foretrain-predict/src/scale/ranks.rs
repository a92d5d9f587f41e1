//! Which recorded ranks stand for the job, and which of them for a job of another size.

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::stats::median;
use foretrain_core::{Evidence, EvidenceKind, InputError, Nanos, Result};
use foretrain_graph::{CollectiveKind, Group, Job, NodeId, StepGraph};
use foretrain_rewrite::{collectives, recost_collectives};
use rustc_hash::FxHashMap;

use super::layout::Layout;
use super::links::{Transfer, replayed_transfers};
use super::origin::Origin;
use super::steady::settled_timeline;
use crate::interference::{Loads, Span, spans};
use crate::joint::{Joint, Member, join};
use crate::recording::Recording;
use crate::roles::{GivenRole, Role};
use crate::transfer::{Transfers, transfers};

/// A recorded rank and the ranks that behave like it.
#[derive(Clone)]
pub(crate) struct Class {
    /// Where it comes from.
    pub(crate) origin: Origin,
    /// Its steady step.
    pub(crate) graph: StepGraph,
    /// What its groups are for.
    pub(crate) layout: Layout,
    /// How its recorded communication splits into transfer and waiting.
    pub(crate) transfers: Transfers,
    /// When its communication moved data in the replay.
    pub(crate) replayed: Vec<Transfer>,
    /// Part of each transfer that is not due to others on the same links.
    pub(crate) alone: FxHashMap<NodeId, f64>,
    /// When its nodes occupied their device in the replay.
    pub(crate) spans: Vec<Span>,
    /// What its nodes are to their device.
    pub(crate) loads: Arc<Loads>,
    /// Number of the model replica it belongs to, among those at hand.
    replica: usize,
}

impl Class {
    fn new(origin: Origin, graph: StepGraph, transfers: Transfers, roles: &[GivenRole]) -> Self {
        let layout = Layout::new(origin.world_size, &graph, roles);
        Self {
            origin,
            graph,
            layout,
            transfers,
            replayed: Vec::new(),
            alone: FxHashMap::default(),
            spans: Vec::new(),
            loads: Arc::default(),
            replica: 0,
        }
    }
}

/// The recorded ranks that are simulated.
#[derive(Clone)]
pub(crate) struct Ranks {
    /// At least one.
    pub(crate) classes: Vec<Class>,
    /// The class whose step the answer describes.
    pub(crate) lead: usize,
    /// Whether the classes wait for each other in the simulation; else waiting is carried along
    /// as it was recorded.
    pub(crate) is_joint: bool,
    /// Step time of the classes replayed unchanged.
    pub(crate) replayed: Nanos,
}

/// More nodes than this in all are not simulated jointly: an answer should take a second.
const MOST_JOINT_NODES: usize = 400_000;

impl Ranks {
    /// All recorded ranks where they can be simulated together, else the one with the median step.
    pub(crate) fn of_recordings(
        recordings: &[Recording],
        roles: &[GivenRole],
        evidence: &mut Vec<Evidence>,
        warnings: &mut Vec<String>,
    ) -> Result<Self> {
        let origins: Vec<Origin> = recordings.iter().map(Origin::of_recording).collect();
        let with_steps = (0..recordings.len()).filter(|&i| !recordings[i].graphs.is_empty());
        let lead = match (representative(&origins, with_steps), recordings.first()) {
            (Some(lead), _) => lead,
            (None, Some(first)) => return Err(no_step(&first.trace.meta.path)),
            (None, None) => return Err(InputError::new("no trace given")),
        };
        if recordings.len() > 1 {
            let joined = join(recordings).and_then(|Joint { members, meetings, residual }| {
                let class = |member: Member| {
                    let origin = origins[member.recording].clone();
                    Class::new(origin, member.graph, Transfers::default(), roles)
                };
                let classes = members.into_iter().map(class).collect();
                let clocks = format!("; clocks aligned to {residual} (median)");
                Self::joint(classes, lead, meetings, &clocks, evidence)
            });
            match joined {
                Ok(ranks) => return Ok(ranks),
                Err(why) => warnings.push(not_joined(&why, &origins[lead])),
            }
        }
        let steady = recordings[lead].steady();
        let graph = steady.ok_or_else(|| no_step(&recordings[lead].trace.meta.path))?;
        let transfers = transfers(recordings, lead, &graph, evidence);
        Self::alone(Class::new(origins[lead].clone(), graph, transfers, roles))
    }

    /// The same from step graphs, one per rank.
    pub(crate) fn of_graphs(
        graphs: &[StepGraph],
        roles: &[GivenRole],
        evidence: &mut Vec<Evidence>,
        warnings: &mut Vec<String>,
    ) -> Result<Self> {
        let origins: Vec<Origin> = graphs.iter().map(Origin::of_graph).collect();
        let has_times = |graph: &StepGraph| graph.node_ids().any(|id| graph.work(id) > Nanos::ZERO);
        let timed = (0..graphs.len()).filter(|&i| has_times(&graphs[i]));
        let lead = match (representative(&origins, timed), origins.first()) {
            (Some(lead), _) => lead,
            (None, Some(first)) => return Err(no_times(&first.path)),
            (None, None) => return Err(InputError::new("no step graph given")),
        };
        if graphs.len() > 1 {
            let mut meeting = graphs.to_vec();
            let meetings = share_transfers(&mut meeting);
            let classes = origins.iter().cloned().zip(meeting);
            let classes =
                classes.map(|(o, graph)| Class::new(o, graph, Transfers::default(), roles));
            match Self::joint(classes.collect(), lead, meetings, "", evidence) {
                Ok(ranks) => return Ok(ranks),
                Err(why) => warnings.push(not_joined(&why, &origins[lead])),
            }
        }
        let graph = graphs[lead].clone();
        let transfers = transfers(&[], 0, &graph, evidence);
        Self::alone(Class::new(origins[lead].clone(), graph, transfers, roles))
    }

    fn alone(mut class: Class) -> Result<Self> {
        let job = Job::uniform(class.graph.clone(), 1);
        let (timeline, replayed, _) = settled_timeline(&job, &[], &[], None)?;
        class.replayed = replayed_transfers(&job, &timeline).remove(0);
        class.spans = spans(&job, &timeline).remove(0);
        Ok(Self { classes: vec![class], lead: 0, is_joint: false, replayed })
    }

    /// Fails if even one replica is too large to simulate rank by rank, or its ranks do not fit
    /// together.
    fn joint(
        mut classes: Vec<Class>,
        mut lead: usize,
        meetings: usize,
        clocks: &str,
        evidence: &mut Vec<Evidence>,
    ) -> std::result::Result<Self, String> {
        number_replicas(&mut classes);
        let at_hand = classes.len();
        if nodes(&classes) > MOST_JOINT_NODES {
            let (rank, replica) = (classes[lead].origin.rank, classes[lead].replica);
            classes.retain(|class| class.replica == replica);
            lead = classes.iter().position(|class| class.origin.rank == rank).unwrap_or(0);
            if classes.len() < 2 || nodes(&classes) > MOST_JOINT_NODES {
                return Err(format!("their steps have more than {MOST_JOINT_NODES} nodes"));
            }
        }
        let job = Job::from_ranks(classes.iter().map(|class| class.graph.clone()));
        let (timeline, replayed, _) =
            settled_timeline(&job, &[], &[], None).map_err(|error| error.message().to_owned())?;
        let replays = replayed_transfers(&job, &timeline).into_iter().zip(spans(&job, &timeline));
        for (class, (transfers, spans)) in classes.iter_mut().zip(replays) {
            (class.replayed, class.spans) = (transfers, spans);
        }
        let left_out = match at_hand - classes.len() {
            0 => String::new(),
            n => format!(", {n} like them left out to answer in time"),
        };
        evidence.push(Evidence::new(
            EvidenceKind::Measured,
            "transfer and waiting",
            format!(
                "{} ranks simulated together{left_out}; transfers are the shortest over the members of {meetings} operations, waiting is simulated{clocks}",
                classes.len()
            ),
            0.05,
        ));
        Ok(Self { classes, lead, is_joint: true, replayed })
    }

    /// The class whose step the answer describes.
    pub(crate) fn lead(&self) -> &Class {
        &self.classes[self.lead]
    }

    /// The graph of the lead, to change.
    pub(crate) fn lead_graph(&mut self) -> &mut StepGraph {
        &mut self.classes[self.lead].graph
    }

    /// The graphs of the others, to change.
    pub(crate) fn other_graphs(&mut self) -> impl Iterator<Item = &mut StepGraph> {
        let lead = self.lead;
        let others = self.classes.iter_mut().enumerate().filter(move |(i, _)| *i != lead);
        others.map(|(_, class)| &mut class.graph)
    }

    /// The usual recorded step: of the lead, or the median over the ranks where they are joined.
    /// What was not recorded is replayed.
    pub(crate) fn recorded_step(&self) -> Nanos {
        if !self.is_joint {
            return self.lead().origin.usual_step().unwrap_or(self.replayed);
        }
        let times = self.classes.iter().filter_map(|c| Some(c.origin.usual_step()?.nanos() as f64));
        median(&times.collect::<Vec<f64>>()).map_or(self.replayed, Nanos::from_nanos_f64)
    }

    /// Positions of the classes that stand for a job of `replicas` replicas, the lead first: all,
    /// or as many recorded replicas as the job has.
    pub(crate) fn for_replicas(&self, replicas: u32) -> Vec<usize> {
        let own = self.lead().replica;
        let mut kept: Vec<usize> = vec![own];
        for class in &self.classes {
            if !kept.contains(&class.replica) {
                kept.push(class.replica);
            }
        }
        kept.truncate(replicas.max(1) as usize);
        let others = (0..self.classes.len()).filter(|&i| i != self.lead);
        std::iter::once(self.lead)
            .chain(others)
            .filter(|&i| kept.contains(&self.classes[i].replica))
            .collect()
    }
}

fn nodes(classes: &[Class]) -> usize {
    classes.iter().map(|class| class.graph.node_count()).sum()
}

/// Ranks that share a group which splits the model belong to one replica.
fn number_replicas(classes: &mut [Class]) {
    let mut replica: Vec<usize> = (0..classes.len()).collect();
    for a in 0..classes.len() {
        for b in 0..a {
            if share_a_model(&classes[a], &classes[b]) {
                let (from, to) = (replica[a].max(replica[b]), replica[a].min(replica[b]));
                replica.iter_mut().filter(|r| **r == from).for_each(|r| *r = to);
            }
        }
    }
    for (class, replica) in classes.iter_mut().zip(replica) {
        class.replica = replica;
    }
}

fn share_a_model(a: &Class, b: &Class) -> bool {
    let splits_the_model = |class: &Class, group: usize| {
        matches!(class.layout.role(group), Role::TensorParallel | Role::PipelineParallel)
    };
    a.graph.groups.iter().enumerate().any(|(i, group)| {
        let shared =
            |(j, other): (usize, &Group)| other.name == group.name && splits_the_model(b, j);
        splits_the_model(a, i) && b.graph.groups.iter().enumerate().any(shared)
    })
}

/// Gives operations that meet the shortest of their recorded times; returns how many meet.
fn share_transfers(graphs: &mut [StepGraph]) -> usize {
    let mut shortest: BTreeMap<(String, Option<CollectiveKind>, u32), (Nanos, usize)> =
        BTreeMap::new();
    let key = |graph: &StepGraph, id: NodeId| {
        let node = graph.node(id);
        let kind = match node.collective {
            Some(CollectiveKind::Recv) => Some(CollectiveKind::Send),
            kind => kind,
        };
        Some((graph.groups[node.group?.index()].name.clone(), kind, node.sequence))
    };
    for graph in graphs.iter() {
        for node in collectives(graph) {
            let Some(key) = key(graph, node.id) else { continue };
            let entry = shortest.entry(key).or_insert((node.work, 0));
            *entry = (entry.0.min(node.work), entry.1 + 1);
        }
    }
    for graph in graphs.iter_mut() {
        recost_collectives(graph, |graph, node| {
            let (transfer, members) = *shortest.get(&key(graph, node.id)?)?;
            (members > 1).then_some(transfer)
        });
    }
    shortest.values().filter(|(_, members)| *members > 1).count()
}

/// The rank that stands for all: the one with the median step time.
fn representative(origins: &[Origin], usable: impl Iterator<Item = usize>) -> Option<usize> {
    let mut order: Vec<(Option<Nanos>, usize)> =
        usable.map(|i| (origins[i].usual_step(), i)).collect();
    order.sort_unstable();
    order.get(order.len() / 2).map(|&(_, i)| i)
}

fn not_joined(why: &str, lead: &Origin) -> String {
    format!(
        "ranks are not simulated together: {why}; waiting is carried along as rank {} recorded it",
        lead.rank
    )
}

fn no_step(path: &str) -> InputError {
    InputError::new("the trace holds no host or device work, so there is no step to predict from")
        .in_file(path)
        .hint("record with ProfilerActivity.CPU (and CUDA) around at least one whole step")
}

fn no_times(path: &str) -> InputError {
    InputError::new("the graph holds no durations, so there is no step time to predict from")
        .in_file(path)
        .hint("execution traces tell what ran, not how long: give the profiler trace of the run")
}
