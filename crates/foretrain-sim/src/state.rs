//! What both paths keep.

/// Times per task, in order of iteration and slot.
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
}

/// A meeting under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gathering {
    pub(crate) arrived: u32,
    pub(crate) latest: i64,
}

impl Gathering {
    pub(crate) fn add(&mut self, arrival: i64) {
        self.arrived += 1;
        self.latest = self.latest.max(arrival);
    }
}
