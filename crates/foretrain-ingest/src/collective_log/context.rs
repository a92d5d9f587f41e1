//! What lines around tables tell of all processes.

use foretrain_graph::CollectiveKind;

use super::facts::Remark;

/// What holds for all processes.
#[derive(Default)]
pub(super) struct Context {
    /// The last benchmark that was named, and how many were before.
    pub(super) program: (Option<CollectiveKind>, Option<u32>),
    pub(super) programs: u64,
    /// Ranks and nodes of the last communicator.
    pub(super) communicator: Option<(u32, Option<u32>)>,
}

impl Context {
    /// Takes in what a line tells.
    pub(super) fn learn(&mut self, remark: &Remark) {
        match remark {
            Remark::Program { kind, devices } => {
                self.program = (*kind, *devices);
                self.programs += 1;
            }
            Remark::Communicator { ranks, nodes } => self.communicator = Some((*ranks, *nodes)),
            Remark::Begin { .. } => self.communicator = None,
            _ => {}
        }
    }
}
