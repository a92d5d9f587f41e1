//! A layout as the graphs of its stages, for the engine.
//!
//! Each stage is one class of ranks. Its queues are the compute stream, a stream for communication
//! beside kernels, one for what replicas exchange, and one for each direction in which it sends or
//! receives. The graphs hold every kernel and collective (or, at less detail, every layer) of every
//! micro-batch, with what waits for what; simulated, they give the time of the closed form.

mod pass;
mod stage;

use foretrain_core::{InputError, Nanos, Result};
use foretrain_graph::{Job, NodeId, QueueId, RankClass};
use foretrain_sim::{Program, SimOptions};

use crate::layout::Schedule;
use crate::step::Laid;

/// How much a graph shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// A node per layer and pass.
    Layers,
    /// A node per kernel and collective.
    #[default]
    Operations,
}

/// Most nodes of a job's graphs: with their timeline these take about a gigabyte and some seconds.
const MOST_NODES: u64 = 4_000_000;

impl Laid<'_> {
    /// The graphs of all stages.
    ///
    /// # Errors
    /// If the schedule has no form for the number of micro-batches, or the graphs would be too large.
    pub fn graphs(&self, detail: Detail) -> Result<Job> {
        let orders = self.job.orders_of(self.layout, self.micro_batches)?;
        let units: usize = self.chunks.iter().map(|chunk| chunk.units.len()).sum();
        let each = if detail == Detail::Layers { 3 } else { 80 };
        let nodes = (units as u64).saturating_mul(self.micro_batches).saturating_mul(each);
        if nodes > MOST_NODES {
            return Err(InputError::new(format!(
                "{} micro-batches would make some {nodes} nodes, more than {MOST_NODES}",
                self.micro_batches
            ))
            .hint(match detail {
                Detail::Operations => {
                    "ask for layers instead of operations, or for a smaller batch"
                }
                Detail::Layers => "ask for a smaller batch, or for larger micro-batches (mbs)",
            }));
        }
        let ranks = self.layout.devices() / u64::from(self.layout.pipeline);
        let mut classes = Vec::new();
        for stage in 0..self.layout.pipeline {
            let graph = stage::StageGraph::new(self, &orders, stage, detail)?.build()?;
            classes.push(RankClass { graph, multiplicity: ranks });
        }
        Ok(Job { classes })
    }

    /// The step time that the engine gives for the graphs.
    ///
    /// # Errors
    /// As [`graphs`](Self::graphs), and if the engine refuses them.
    pub fn simulated(&self, detail: Detail) -> Result<Nanos> {
        let job = self.graphs(detail)?;
        let refused = |error: foretrain_sim::SimError| InputError::new(error.to_string());
        let program = Program::compile(&job).map_err(refused)?;
        let timeline = program.run(&SimOptions::iterations(1)).map_err(refused)?;
        let apart = matches!(self.layout.schedule, Schedule::ZbH2 | Schedule::ZbV);
        if !apart {
            return Ok(timeline.makespan());
        }
        let spans = job.classes.iter().zip(&timeline.classes).map(|(class, times)| {
            // What a stage receives may be waited for before its first pass.
            let graph = &class.graph;
            let computes = |id: &NodeId| graph.node(*id).queue == QueueId::from_index(0);
            let starts = graph.node_ids().filter(computes).map(|id| times.start[id.index()]);
            let ends = times.end.iter().copied();
            ends.max().unwrap_or(Nanos::ZERO) - starts.min().unwrap_or(Nanos::ZERO)
        });
        Ok(spans.max().unwrap_or(Nanos::ZERO))
    }
}
