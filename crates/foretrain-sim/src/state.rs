//! What several paths keep.

use foretrain_core::Nanos;

use crate::program::Program;
use crate::timeline::Timeline;

/// Times per task, in order of iteration and slot.
#[derive(Default)]
pub(crate) struct Columns {
    /// Ready time until the task starts, then its start.
    pub(crate) start: Vec<i64>,
    pub(crate) end: Vec<i64>,
    pub(crate) wait: Vec<i64>,
}

/// The end of a task that has not ended.
pub(crate) const UNFINISHED: i64 = i64::MIN;

impl Columns {
    pub(crate) fn new(tasks: usize) -> Self {
        Self { start: vec![0; tasks], end: vec![UNFINISHED; tasks], wait: vec![0; tasks] }
    }

    fn clear(&mut self) {
        for column in [&mut self.start, &mut self.end, &mut self.wait] {
            column.clear();
        }
    }

    /// Makes room for so many tasks.
    pub(crate) fn reserve(&mut self, tasks: usize) {
        for column in [&mut self.start, &mut self.end, &mut self.wait] {
            column.reserve(tasks.saturating_sub(column.len()));
        }
    }

    /// Adds or removes tasks at the end.
    pub(crate) fn resize(&mut self, tasks: usize) {
        self.start.resize(tasks, 0);
        self.end.resize(tasks, UNFINISHED);
        self.wait.resize(tasks, 0);
    }

    /// Members of an iteration that begins at `base` have waited until `latest`.
    pub(crate) fn waited(&mut self, base: usize, members: &[u32], latest: i64) {
        for &member in members {
            let index = base + member as usize;
            self.wait[index] = latest - self.start[index];
        }
    }

    /// How much later the `count` tasks from `to` on are than those from `from` on; `None` if that
    /// differs from task to task.
    pub(crate) fn shift(&self, from: usize, to: usize, count: usize) -> Option<i64> {
        let shift = |column: &[i64], i: usize| column[to + i] - column[from + i];
        let by = if count > 0 { shift(&self.end, 0) } else { 0 };
        let is_shifted = |i| shift(&self.end, i) == by && shift(&self.start, i) == by;
        (0..count).all(is_shifted).then_some(by)
    }

    /// Fills an iteration with the times of the one before, that much later.
    pub(crate) fn repeat(&mut self, iteration: usize, nodes: usize, by: i64) {
        for to in iteration * nodes..(iteration + 1) * nodes {
            let from = to - nodes;
            self.start[to] = self.start[from].saturating_add(by);
            self.end[to] = self.end[from].saturating_add(by);
            self.wait[to] = self.wait[from];
        }
    }
}

/// Memory for runs to work in. Fresh memory costs a good part of a run, so that many runs had better
/// share it.
#[derive(Default)]
pub struct Workspace {
    columns: Columns,
}

impl Workspace {
    /// Takes over the memory of a timeline that is no longer needed.
    pub fn recycle(&mut self, timeline: Timeline) {
        let empty = |mut column: Vec<Nanos>| -> Vec<i64> {
            column.clear();
            // Keeps the allocation.
            column.into_iter().map(Nanos::nanos).collect()
        };
        if let Some(class) = timeline.classes.into_iter().next() {
            let (start, end, wait) = (empty(class.start), empty(class.end), empty(class.wait));
            self.columns = Columns { start, end, wait };
        }
    }

    /// The columns, empty, to keep.
    pub(crate) fn take(&mut self) -> Columns {
        self.columns.clear();
        std::mem::take(&mut self.columns)
    }

    /// The columns, empty, to give back.
    pub(crate) fn borrow(&mut self) -> &mut Columns {
        self.columns.clear();
        &mut self.columns
    }

    /// Gives columns back.
    pub(crate) fn keep(&mut self, columns: Columns) {
        self.columns = columns;
    }
}

/// What occupies a queue and makes progress; a collective is led by the queue of its first member.
#[derive(Clone, Default)]
pub(crate) struct Activity {
    pub(crate) task: u32,
    /// Edges of negative lag, last first: lag, edge and source.
    early: Vec<(i64, u32, u32)>,
}

impl Activity {
    /// Members of an iteration that begins at `base` start to make progress.
    pub(crate) fn begin(&mut self, program: &Program, task: u32, base: u32, members: &[u32]) {
        self.task = task;
        self.early.clear();
        for &member in members {
            let first = program.out_first[member as usize];
            let out = program.out_of(member as usize).iter();
            for (index, edge) in out.take_while(|edge| edge.lag < 0).enumerate() {
                self.early.push((edge.lag, first + index as u32, base + member));
            }
        }
        self.early.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Its end, or where it lets an overlapping task go before.
    pub(crate) fn next_point(&self, end: i64) -> i64 {
        self.early.last().map_or(end, |(lag, ..)| end.saturating_add(*lag))
    }

    /// An edge whose target it lets go by now, and the edge's source.
    pub(crate) fn let_go(&mut self, end: i64, now: i64) -> Option<(u32, u32)> {
        let due = self.early.pop_if(|(lag, ..)| end.saturating_add(*lag) <= now)?;
        Some((due.1, due.2))
    }
}

/// Meetings under way, of all iterations.
pub(crate) struct Gatherings {
    /// How many have arrived, and the latest arrival.
    of: Vec<(u32, i64)>,
    meetings: usize,
}

impl Gatherings {
    pub(crate) fn new(program: &Program, iterations: usize) -> Self {
        let meetings = program.meetings.len();
        Self { of: vec![(0, 0); meetings * iterations], meetings }
    }

    /// A member of a meeting of so many arrives; the latest arrival once all have.
    pub(crate) fn arrive(
        &mut self,
        iteration: usize,
        meeting: usize,
        members: usize,
        at: i64,
    ) -> Option<i64> {
        let (arrived, latest) = &mut self.of[iteration * self.meetings + meeting];
        *arrived += 1;
        *latest = (*latest).max(at);
        (*arrived as usize == members).then_some(*latest)
    }
}
