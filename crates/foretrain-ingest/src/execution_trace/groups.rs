//! Process groups: those listed in the file and those that operations name.

use foretrain_core::Ledger;
use foretrain_core::diagnostics::Severity;
use foretrain_graph::GroupId;

use super::draft::Draft;
use super::parameters::{self, GroupKey, Parameters};
use super::record::Record;
use crate::graph_file::StatedRank;

/// Name of the group when an operation tells none and the file lists none.
const DEFAULT: &str = "0";
/// Ranks spelled out per group at most; a size is untrusted input.
const MAX_RANKS: u64 = 1 << 20;

/// Names of groups known so far.
#[derive(Debug, Default)]
pub(super) struct Groups {
    declared: Vec<String>,
    addresses: Vec<i64>,
    assumed: u64,
    /// The largest group that an operation named this rank in: size, place, global rank if told.
    rank: Option<(u64, u32, Option<u32>)>,
}

impl Groups {
    /// Takes in the groups that the file lists.
    pub(super) fn declare(&mut self, records: &[Record<'_>], draft: &mut Draft) {
        for config in records.iter().filter_map(parameters::group_configs).flatten() {
            let id = draft.group(&config.name);
            let group = &mut draft.graph.groups[id.index()];
            group.role = config.description;
            group.size = config.size.max(config.ranks.len() as u32);
            group.ranks = config.ranks;
            // The default group lists no ranks: it has all.
            if group.ranks.is_empty() && group.role == "default_pg" {
                group.ranks = (0..group.size.min(MAX_RANKS as u32)).collect();
            }
            if !self.declared.contains(&config.name) {
                self.declared.push(config.name);
            }
        }
    }

    /// The name of the operation's group.
    pub(super) fn name(&self, found: &Parameters) -> String {
        match &found.group {
            GroupKey::Name(name) => name.clone(),
            GroupKey::Address(address) => {
                let known = self.addresses.iter().position(|known| known == address);
                known.unwrap_or(self.addresses.len()).to_string()
            }
            GroupKey::Unknown => match &self.declared[..] {
                [only] => only.clone(),
                _ => DEFAULT.to_owned(),
            },
        }
    }

    /// The group of an operation, with what the operation says of it.
    pub(super) fn resolve(
        &mut self,
        found: &Parameters,
        draft: &mut Draft,
        ledger: &mut Ledger,
    ) -> GroupId {
        let id = draft.group(&self.name(found));
        match found.group {
            GroupKey::Address(address) if !self.addresses.contains(&address) => {
                self.addresses.push(address);
                ledger.record(
                    Severity::Inferred,
                    "group-by-address",
                    "a process group is known by its address only; it is numbered by first use",
                );
            }
            GroupKey::Unknown if self.declared.len() != 1 => self.assumed += 1,
            _ => {}
        }
        let group = &mut draft.graph.groups[id.index()];
        if group.role.is_empty() {
            group.role.clone_from(&found.role);
        }
        if group.size == 0 {
            group.size = found.size.and_then(|size| u32::try_from(size).ok()).unwrap_or(0);
        }
        if let (true, Some((start, stride))) = (group.ranks.is_empty(), found.ranks) {
            group.ranks = spread(start, stride, group.size.into());
        }
        if let Some(place) = found.rank.and_then(|place| u32::try_from(place).ok())
            && self.rank.is_none_or(|(size, ..)| u64::from(group.size) > size)
        {
            let global = group.ranks.get(place as usize).copied();
            self.rank = Some((group.size.into(), place, global));
        }
        id
    }

    /// This rank: globally where the members of its largest group are known, else its place there.
    pub(super) fn rank(&self) -> (u32, StatedRank) {
        match self.rank {
            Some((_, _, Some(global))) => (global, StatedRank::Global),
            Some((_, place, None)) => (place, StatedRank::WithinGroup),
            None => (0, StatedRank::Unknown),
        }
    }

    /// Ranks of the job: the size of the largest group, at least 1.
    pub(super) fn world_size(&self, draft: &Draft) -> u32 {
        draft.graph.groups.iter().map(|group| group.size).max().unwrap_or(0).max(1)
    }

    /// Tells what was assumed.
    pub(super) fn report(&self, ledger: &mut Ledger) {
        ledger.record_many(
            Severity::Inferred,
            "group-assumed",
            "the operation names no process group; it is counted to group \"0\"",
            self.assumed,
            None,
        );
    }
}

fn spread(start: u64, stride: u64, size: u64) -> Vec<u32> {
    if size > MAX_RANKS || (stride == 0 && size > 1) {
        return Vec::new();
    }
    let rank = |i: u64| u32::try_from(start.checked_add(stride.checked_mul(i)?)?).ok();
    (0..size).map(rank).collect::<Option<_>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_start_and_stride() {
        assert_eq!(spread(4, 8, 3), [4, 12, 20]);
        assert_eq!(spread(0, u64::MAX, 3), [0u32; 0]);
        assert_eq!(spread(0, 1, u64::MAX), [0u32; 0]);
    }

    #[test]
    fn the_only_declared_group_is_that_of_nameless_operations() {
        let groups = Groups { declared: vec!["7".into()], ..Groups::default() };
        assert_eq!(groups.name(&Parameters::default()), "7");
        assert_eq!(Groups::default().name(&Parameters::default()), DEFAULT);
    }
}
