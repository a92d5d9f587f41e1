//! Which groups of different ranks are one group.

use std::collections::BTreeMap;

use foretrain_core::{Ledger, Severity};

use super::RankOps;

/// What identifies a group over ranks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupKey {
    /// The sorted member ranks, and the name: two groups of the same members are two sequences.
    Members(Vec<u32>, String),
    /// Name and size, where nobody lists the members.
    Named(String, u32),
}

/// For each group its occurrences as (position in `ranks`, group index on that rank).
pub(crate) type Occurrences = BTreeMap<GroupKey, Vec<(u32, u32)>>;

/// Joins the groups of all ranks that have operations.
///
/// Groups of one name with different member lists stay apart. Where members are not listed, a
/// name that more ranks use than the group has places for stands for several groups that
/// cannot be told apart; it is left out with a warning.
pub(crate) fn identify(ranks: &[RankOps], order: &[usize], ledger: &mut Ledger) -> Occurrences {
    let mut found = Occurrences::new();
    let mut unlisted = Vec::new();
    for &position in order {
        let rank = &ranks[position];
        for index in used_groups(rank) {
            let Some(group) = rank.groups.get(index as usize) else { continue };
            let here = (position as u32, index);
            if group.ranks.is_empty() {
                unlisted.push((here, GroupKey::Named(group.name.clone(), group.size)));
            } else {
                found.entry(members_key(&group.ranks, &group.name)).or_default().push(here);
            }
        }
    }
    // A rank that does not list the members joins the one listed group that fits.
    let mut listed: BTreeMap<String, Vec<GroupKey>> = BTreeMap::new();
    for key in found.keys() {
        if let GroupKey::Members(_, name) = key {
            listed.entry(name.clone()).or_default().push(key.clone());
        }
    }
    for (here, key) in unlisted {
        let key = the_fitting(&listed, &key, ranks[here.0 as usize].rank).unwrap_or(key);
        found.entry(key).or_default().push(here);
    }
    found.retain(|key, occurrences| {
        let overfull = matches!(key, GroupKey::Named(_, size)
            if *size > 0 && occurrences.len() > *size as usize);
        if overfull {
            ledger.record_at(
                Severity::Warning,
                "group-ambiguous",
                "more ranks use a group's name than it has members, and no trace lists them",
                || format!("{key:?}"),
            );
        }
        !overfull
    });
    found
}

fn used_groups(rank: &RankOps) -> Vec<u32> {
    let mut used: Vec<u32> = rank.ops.iter().map(|op| op.group).collect();
    used.sort_unstable();
    used.dedup();
    used
}

fn members_key(ranks: &[u32], name: &str) -> GroupKey {
    let mut members = ranks.to_vec();
    members.sort_unstable();
    members.dedup();
    GroupKey::Members(members, name.to_owned())
}

fn the_fitting(
    listed: &BTreeMap<String, Vec<GroupKey>>,
    key: &GroupKey,
    rank: u32,
) -> Option<GroupKey> {
    let GroupKey::Named(name, size) = key else { return None };
    let mut fitting = listed.get(name)?.iter().filter(|key| match key {
        GroupKey::Members(members, _) => {
            members.binary_search(&rank).is_ok() && (*size == 0 || *size as usize == members.len())
        }
        GroupKey::Named(..) => false,
    });
    let only = fitting.next()?;
    fitting.next().is_none().then(|| only.clone())
}
