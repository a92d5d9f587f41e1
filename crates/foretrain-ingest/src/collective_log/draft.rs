//! What readers of the several formats agree on before anything is deduced.

use foretrain_core::DType;
use foretrain_graph::CollectiveKind;

use super::facts::Facts;
use super::number::Printed;

/// One table as met.
#[derive(Clone, Debug, Default)]
pub(super) struct Draft {
    /// What stood around it.
    pub(super) facts: Facts,
    /// Rows in order.
    pub(super) rows: Vec<DraftRow>,
    /// Times are those of the issuing thread.
    pub(super) cpu_time: bool,
    /// No time is printed, only bandwidths.
    pub(super) untimed: bool,
    /// The tool's own mean over all rows and placements.
    pub(super) printed_average: Option<Printed>,
}

/// One row as met.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct DraftRow {
    pub(super) line: u64,
    /// Bytes.
    pub(super) size: u64,
    pub(super) count: Option<u64>,
    pub(super) dtype: Option<DType>,
    pub(super) redop: Option<String>,
    pub(super) root: Option<u32>,
    /// The operation, where every row names it.
    pub(super) kind: Option<CollectiveKind>,
    /// Microseconds of a rank's processor.
    pub(super) processor: Option<Printed>,
    pub(super) out_of_place: Option<Figures>,
    pub(super) in_place: Option<Figures>,
}

/// The figures of one placement. Time in microseconds, rates in gigabytes per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) time: Printed,
    pub(super) algbw: Option<Printed>,
    pub(super) busbw: Option<Printed>,
    pub(super) check: super::Check,
}

impl DraftRow {
    /// Figures of both placements, where there are any.
    pub(super) fn figures(&self) -> impl Iterator<Item = &Figures> {
        self.out_of_place.iter().chain(&self.in_place)
    }

    /// Whether it belongs to the same sweep.
    pub(super) fn same_sweep(&self, other: &Self) -> bool {
        (self.kind, self.dtype, &self.redop, self.root)
            == (other.kind, other.dtype, &other.redop, other.root)
    }
}
