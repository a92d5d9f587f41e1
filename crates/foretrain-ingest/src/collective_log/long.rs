//! Records of one placement each, as CSV and JSON files of rccl-tests have them.

use foretrain_core::Ledger;

use super::draft::{Draft, DraftRow, Figures};

/// One placement of one size.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// The row without figures.
    pub(super) row: DraftRow,
    pub(super) in_place: bool,
    pub(super) figures: Figures,
    /// Devices that took part.
    pub(super) ranks: Option<u32>,
    pub(super) nodes: Option<u32>,
}

/// Adds a record to the last table, or to a new one if it is of another job.
pub(super) fn push(drafts: &mut Vec<Draft>, record: Record, ledger: &mut Ledger) {
    let same_job =
        |draft: &Draft| (draft.facts.ranks, draft.facts.nodes) == (record.ranks, record.nodes);
    if !drafts.last().is_some_and(same_job) {
        let mut draft = Draft::default();
        (draft.facts.ranks, draft.facts.nodes) = (record.ranks, record.nodes);
        drafts.push(draft);
    }
    let Some(draft) = drafts.last_mut() else { return };
    if record.in_place
        && let Some(last) = draft.rows.last_mut()
        && last.size == record.row.size
        && last.same_sweep(&record.row)
        && last.in_place.is_none()
    {
        last.in_place = Some(record.figures);
        return;
    }
    ledger.cover("rows", 0, 1);
    let mut row = record.row;
    let place = if record.in_place { &mut row.in_place } else { &mut row.out_of_place };
    *place = Some(record.figures);
    draft.rows.push(row);
}
