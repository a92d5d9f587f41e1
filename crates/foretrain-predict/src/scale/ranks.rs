//! Which recorded ranks stand for the job, and which of them for a job of another size.

use foretrain_core::stats::median;
use foretrain_core::{Evidence, EvidenceKind, InputError, Nanos, Result};
use foretrain_graph::{Group, Job, StepGraph};

use super::layout::Layout;
use super::steady::settled;
use crate::joint::{Joint, join};
use crate::recording::Recording;
use crate::roles::Role;
use crate::transfer::{Transfers, transfers};

/// A recorded rank and the ranks that behave like it.
pub(super) struct Class {
    /// Global rank as recorded.
    pub(super) rank: u32,
    /// Position of its recording.
    recording: usize,
    /// Its steady step.
    pub(super) graph: StepGraph,
    /// What its groups are for.
    pub(super) layout: Layout,
    /// How its recorded communication splits into transfer and waiting.
    pub(super) transfers: Transfers,
    /// Number of the model replica it belongs to, among those at hand.
    replica: usize,
}

impl Class {
    pub(super) fn recording<'a>(&self, recordings: &'a [Recording]) -> &'a Recording {
        &recordings[self.recording]
    }
}

/// The recorded ranks that are simulated.
pub(super) struct Ranks {
    /// At least one.
    pub(super) classes: Vec<Class>,
    /// The class whose step the answer describes.
    pub(super) lead: usize,
    /// Whether the classes wait for each other in the simulation; else waiting is carried along
    /// as it was recorded.
    pub(super) is_joint: bool,
    /// Step time of the classes replayed unchanged.
    pub(super) replayed: Nanos,
}

/// More nodes than this in all are not simulated jointly: an answer should take a second.
const MOST_JOINT_NODES: usize = 400_000;

impl Ranks {
    /// All recorded ranks where they can be simulated together, else the one with the median step.
    pub(super) fn new(
        recordings: &[Recording],
        evidence: &mut Vec<Evidence>,
        warnings: &mut Vec<String>,
    ) -> Result<Self> {
        let lead = representative(recordings)?;
        if recordings.len() > 1 {
            match join(recordings).and_then(|joint| Self::joint(recordings, joint, lead, evidence)) {
                Ok(ranks) => return Ok(ranks),
                Err(why) => warnings.push(format!(
                    "ranks are not simulated together: {why}; waiting is carried along as rank {} recorded it",
                    recordings[lead].rank()
                )),
            }
        }
        let graph = recordings[lead].steady().ok_or_else(|| no_step(&recordings[lead]))?;
        let (replayed, _) = settled(&Job::uniform(graph.clone(), 1))?;
        let transfers = transfers(recordings, lead, &graph, evidence);
        let layout = Layout::new(&recordings[lead], &graph);
        let rank = recordings[lead].rank();
        let class = Class { rank, recording: lead, graph, layout, transfers, replica: 0 };
        Ok(Self { classes: vec![class], lead: 0, is_joint: false, replayed })
    }

    /// Fails if even one replica is too large to simulate rank by rank, or its ranks do not fit
    /// together.
    fn joint(
        recordings: &[Recording],
        joint: Joint,
        lead: usize,
        evidence: &mut Vec<Evidence>,
    ) -> std::result::Result<Self, String> {
        let Joint { members, meetings, residual } = joint;
        let mut classes: Vec<Class> = members
            .into_iter()
            .map(|member| {
                let recording = &recordings[member.recording];
                Class {
                    rank: recording.rank(),
                    recording: member.recording,
                    layout: Layout::new(recording, &member.graph),
                    graph: member.graph,
                    transfers: Transfers::default(),
                    replica: 0,
                }
            })
            .collect();
        number_replicas(&mut classes);
        let at_hand = classes.len();
        let mut lead = lead;
        if nodes(&classes) > MOST_JOINT_NODES {
            let (rank, replica) = (classes[lead].rank, classes[lead].replica);
            classes.retain(|class| class.replica == replica);
            lead = classes.iter().position(|class| class.rank == rank).unwrap_or(0);
            if classes.len() < 2 || nodes(&classes) > MOST_JOINT_NODES {
                return Err(format!("their steps have more than {MOST_JOINT_NODES} nodes"));
            }
        }
        let job = Job::from_ranks(classes.iter().map(|class| class.graph.clone()));
        let (replayed, _) = settled(&job).map_err(|error| error.message().to_owned())?;
        let left_out = match at_hand - classes.len() {
            0 => String::new(),
            n => format!(", {n} like them left out to answer in time"),
        };
        evidence.push(Evidence::new(
            EvidenceKind::Measured,
            "transfer and waiting",
            format!(
                "{} ranks simulated together{left_out}; transfers are the shortest over the members of {meetings} operations, waiting is simulated; clocks aligned to {residual} (median)",
                classes.len()
            ),
            0.05,
        ));
        Ok(Self { classes, lead, is_joint: true, replayed })
    }

    /// The class whose step the answer describes.
    pub(super) fn lead(&self) -> &Class {
        &self.classes[self.lead]
    }

    /// The graph of the lead, to change.
    pub(super) fn lead_graph(&mut self) -> &mut StepGraph {
        &mut self.classes[self.lead].graph
    }

    /// The graphs of the others, to change.
    pub(super) fn other_graphs(&mut self) -> impl Iterator<Item = &mut StepGraph> {
        let lead = self.lead;
        let others = self.classes.iter_mut().enumerate().filter(move |(i, _)| *i != lead);
        others.map(|(_, class)| &mut class.graph)
    }

    /// The usual recorded step: of the lead, or the median over the ranks where they are joined.
    pub(super) fn recorded_step(&self, recordings: &[Recording]) -> Nanos {
        if !self.is_joint {
            return usual_step(self.lead().recording(recordings));
        }
        let times = self.classes.iter().map(|c| usual_step(c.recording(recordings)).nanos() as f64);
        median(&times.collect::<Vec<f64>>()).map_or(Nanos::ZERO, Nanos::from_nanos_f64)
    }

    /// Positions of the classes that stand for a job of `replicas` replicas, the lead first: all,
    /// or as many recorded replicas as the job has.
    pub(super) fn for_replicas(&self, replicas: u32) -> Vec<usize> {
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
        let shared = |(j, other): (usize, &Group)| {
            other.name == group.name && splits_the_model(b, j)
        };
        splits_the_model(a, i) && b.graph.groups.iter().enumerate().any(shared)
    })
}

/// The recording that stands for all: the one with the median step time.
fn representative(recordings: &[Recording]) -> Result<usize> {
    let mut order: Vec<(Nanos, usize)> = recordings
        .iter()
        .enumerate()
        .filter(|(_, r)| !r.graphs.is_empty())
        .map(|(i, r)| (usual_step(r), i))
        .collect();
    order.sort_unstable();
    match (order.get(order.len() / 2), recordings.first()) {
        (Some(&(_, i)), _) => Ok(i),
        (None, Some(first)) => Err(no_step(first)),
        (None, None) => Err(InputError::new("no trace given")),
    }
}

/// Median recorded step time of a rank.
fn usual_step(recording: &Recording) -> Nanos {
    let times: Vec<f64> = recording.step_times().iter().map(|t| t.nanos() as f64).collect();
    Nanos::from_nanos_f64(median(&times).unwrap_or(0.0))
}

fn no_step(recording: &Recording) -> InputError {
    InputError::new("the trace holds no host or device work, so there is no step to predict from")
        .in_file(&recording.trace.meta.path)
        .hint("record with ProfilerActivity.CPU (and CUDA) around at least one whole step")
}
