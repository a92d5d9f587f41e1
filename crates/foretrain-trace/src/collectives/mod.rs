//! Which events are communication, of what kind, size and group.
//!
//! Recognition follows names and arguments of every generation of profilers and libraries that
//! the tables in `names.rs` hold. A device row that only looks like communication is listed apart
//! as unclassified; it is never silently counted as computation. Every field says where it
//! comes from ([`Provenance`]), and what nobody recorded stays unknown.

mod facts;
mod groups;
mod link;
mod names;
mod recognise;
mod siblings;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod text;
mod words;

use foretrain_core::{Bytes, DType, Nanos};
use foretrain_graph::CollectiveKind;
use serde::{Deserialize, Serialize};

use crate::table::{ProcessGroup, Trace};

pub use groups::{GroupIndex, parse_ranks};
pub use names::{Algorithm, Library, Protocol};
pub use recognise::recognise;

/// Where a field of a [`CollectiveOp`] comes from.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Nowhere: the field is unknown.
    #[default]
    Unknown,
    /// The event's own arguments.
    KernelArgs,
    /// The `record_param_comms` row that issued it.
    ParamComms,
    /// The backend's annotation or the `c10d` operator around the launch.
    Annotation,
    /// The kernel's name.
    KernelName,
    /// The same operation of other steps.
    SiblingStep,
    /// Deduced by a rule, such as an all-gather's output from its input and group size.
    Inferred,
}

/// The source of each field that may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Provenance {
    /// Of [`CollectiveOp::kind`].
    pub kind: Source,
    /// Of [`CollectiveOp::dtype`].
    pub dtype: Source,
    /// Of [`CollectiveOp::input_bytes`].
    pub input: Source,
    /// Of [`CollectiveOp::output_bytes`].
    pub output: Source,
    /// Of [`CollectiveOp::group`].
    pub group: Source,
}

/// One communication operation of one rank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CollectiveOp {
    /// Row of the device kernel; for a host backend the row that carries the communication.
    pub row: u32,
    /// Whether it occupies a device stream.
    pub on_device: bool,
    /// Start relative to the trace's base.
    pub start: Nanos,
    /// End relative to the trace's base.
    pub end: Nanos,
    /// Who moves the data.
    pub library: Library,
    /// What is done.
    pub kind: CollectiveKind,
    /// How, if the name tells.
    pub algorithm: Option<Algorithm>,
    /// Wire protocol, if the name tells.
    pub protocol: Option<Protocol>,
    /// Element type.
    pub dtype: Option<DType>,
    /// Size of this rank's input buffer.
    pub input_bytes: Option<Bytes>,
    /// Size of this rank's output buffer.
    pub output_bytes: Option<Bytes>,
    /// The larger of this rank's input and output; `None` if neither is known.
    pub bytes: Option<Bytes>,
    /// Communicator group. Operations without any hint share a synthesised one per stream.
    pub group: Option<GroupIndex>,
    /// How many operations of this kind the group issued before this one in the trace.
    pub nth: u32,
    /// Sequence number as recorded; only good for checks.
    pub recorded_sequence: Option<i64>,
    /// The host row that issued it: `record_param_comms`, else the `c10d` operator or annotation.
    pub issue_row: Option<u32>,
    /// The other side of a send or receive: global rank, or rank in the group, as recorded.
    pub peer: Option<u32>,
    /// Where the fields come from.
    pub provenance: Provenance,
}

impl CollectiveOp {
    /// End minus start: waiting for the other ranks included.
    pub fn duration(&self) -> Nanos {
        self.end - self.start
    }

    /// When it was issued, to order the operations of a group. Host backends may start two queued
    /// operations in either order; the order of issue is the same on every rank.
    pub fn issued(&self, trace: &Trace) -> Nanos {
        let row = self.issue_row.filter(|_| !self.on_device);
        row.map_or(self.start, |row| trace.start[row as usize])
    }
}

/// The communication of one rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Collectives {
    /// Recognised operations by start.
    pub ops: Vec<CollectiveOp>,
    /// Device rows that look like communication but that no rule knows, by start; their kind is
    /// [`CollectiveKind::Unknown`] and they belong to no group.
    pub unclassified: Vec<CollectiveOp>,
    /// Communicator groups: those of the trace's header, then others as met.
    pub groups: Vec<ProcessGroup>,
}
