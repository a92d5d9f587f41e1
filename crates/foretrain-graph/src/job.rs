//! A job: step graphs and how many ranks each stands for.

use crate::step_graph::StepGraph;

/// Ranks that behave alike.
#[derive(Clone, Debug)]
pub struct RankClass {
    /// The step of each of these ranks.
    pub graph: StepGraph,
    /// How many ranks the class stands for, at least 1.
    pub multiplicity: u64,
}

/// A set of rank classes that meet in collectives. Groups of different classes with equal names
/// are one group: a collective starts when the last member of every class in it has arrived.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// The classes.
    pub classes: Vec<RankClass>,
}

impl Job {
    /// A job of `multiplicity` equal ranks.
    pub fn uniform(graph: StepGraph, multiplicity: u64) -> Self {
        Self { classes: vec![RankClass { graph, multiplicity }] }
    }

    /// A job in which every graph is one rank.
    pub fn from_ranks(graphs: impl IntoIterator<Item = StepGraph>) -> Self {
        let classes = graphs.into_iter().map(|graph| RankClass { graph, multiplicity: 1 });
        Self { classes: classes.collect() }
    }

    /// Number of ranks in all.
    pub fn ranks(&self) -> u64 {
        self.classes.iter().map(|class| class.multiplicity).sum()
    }
}
