//! One rank's trace with everything that can be read off it.

use foretrain_core::{Ledger, Nanos, Severity};
use foretrain_graph::StepGraph;
use foretrain_trace::Trace;
use foretrain_trace::align::RankOps;
use foretrain_trace::build::{Context, Typical, build_step, build_steps, steady_step};
use foretrain_trace::collectives::{Collectives, recognise};
use foretrain_trace::index::TraceIndex;
use foretrain_trace::steps::{Step, Steps, find_steps};

/// A trace and what it means.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The events.
    pub trace: Trace,
    /// Threads, streams, launches.
    pub index: TraceIndex,
    /// Communication.
    pub collectives: Collectives,
    /// Steps.
    pub steps: Steps,
    /// Typical latencies.
    pub typical: Typical,
    /// The graph of each step; none after [`Recording::survey`].
    pub graphs: Vec<StepGraph>,
    /// What the analysis repaired, dropped or inferred (neither the reader's ledger nor that of
    /// the graphs included).
    pub ledger: Ledger,
    /// What building `graphs` inferred.
    pub graph_ledger: Ledger,
}

impl Recording {
    /// Analyses a trace and builds the graph of every step. `boundaries` are step boundaries
    /// given by hand, on the trace's clock.
    pub fn analyse(trace: Trace, boundaries: Option<&[Nanos]>) -> Self {
        let mut recording = Self::survey(trace, boundaries);
        let mut ledger = Ledger::new();
        recording.graphs = build_steps(&recording.context(), &mut ledger);
        recording.graph_ledger = ledger;
        recording
    }

    /// Analyses a trace without building graphs, which weigh more than all else. `boundaries` as
    /// in [`Recording::analyse`].
    pub fn survey(trace: Trace, boundaries: Option<&[Nanos]>) -> Self {
        let mut ledger = Ledger::new();
        let index = TraceIndex::new(&trace, &mut ledger);
        let collectives = recognise(&trace, &mut ledger);
        let steps = find_steps(&trace, &index, boundaries, &mut ledger);
        let typical = Typical::measure(&trace, &index);
        if steps.steps.len() == 1 {
            ledger.record(
                Severity::Note,
                "one-step",
                "only one step in the recording: n=1, no spread over steps",
            );
        }
        let (graphs, graph_ledger) = (Vec::new(), Ledger::new());
        Self { trace, index, collectives, steps, typical, graphs, ledger, graph_ledger }
    }

    /// Builds the graph of one step, and says what that inferred. `None` if there is no such
    /// step.
    pub fn build_graph(&self, step: usize) -> Option<(StepGraph, Ledger)> {
        self.steps.steps.get(step)?;
        let mut ledger = Ledger::new();
        let graph = build_step(&self.context(), step, &mut ledger);
        Some((graph, ledger))
    }

    fn context(&self) -> Context<'_> {
        Context::new(&self.trace, &self.index, &self.collectives, &self.steps)
    }

    /// Global rank, 0 if unknown.
    pub fn rank(&self) -> u32 {
        self.trace.meta.rank.unwrap_or(0)
    }

    /// Its communication, reduced to what relates it to other ranks.
    pub fn rank_ops(&self) -> RankOps {
        RankOps::new(self.rank(), &self.trace, &self.collectives)
    }

    /// Ranks in the recorded job: as stated, else the largest group seen, else 1.
    pub fn world_size(&self) -> u32 {
        let largest = self.collectives.groups.iter().map(|group| group.size).max();
        self.trace.meta.world_size.unwrap_or(0).max(largest.unwrap_or(0)).max(1)
    }

    /// Recorded step times of complete steps (of all, if none is complete).
    pub fn step_times(&self) -> Vec<Nanos> {
        let times = |complete: bool| -> Vec<Nanos> {
            let steps = self.steps.steps.iter();
            steps.filter(|s| !(complete && s.incomplete)).map(Step::duration).collect()
        };
        let complete = times(true);
        if complete.is_empty() { times(false) } else { complete }
    }

    /// The periodic graph of the steady step. `None` if the trace holds no step.
    pub fn steady(&self) -> Option<StepGraph> {
        steady_step(&self.graphs, &self.steps, &self.typical, None)
    }

    /// The same without learning from one step.
    pub fn steady_without(&self, step: usize) -> Option<StepGraph> {
        steady_step(&self.graphs, &self.steps, &self.typical, Some(step))
    }
}
