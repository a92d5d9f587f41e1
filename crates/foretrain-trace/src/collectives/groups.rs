//! The communicator groups of one rank's trace.

use std::collections::BTreeMap;

use foretrain_core::{NameId, define_id};
use rustc_hash::FxHashMap;

use crate::table::{CommArgs, ProcessGroup, Trace};

define_id!(
    /// A row of the group table that recognition returns.
    GroupIndex
);

/// Group lists longer than this are not expanded from their abbreviated form.
const MAX_EXPANDED: u64 = 1 << 20;

/// Global ranks as written ("[0, 1, 2, 3]"). An abbreviated list ("[0, 8, ..., 56]") is
/// expanded if its stride is constant and gives exactly `size` ranks; otherwise the result is
/// empty, as for any text that is not such a list.
pub fn parse_ranks(text: &str, size: u32) -> Vec<u32> {
    let Some(inner) = text.trim().strip_prefix('[').and_then(|t| t.strip_suffix(']')) else {
        return Vec::new();
    };
    let (mut head, mut tail, mut abbreviated) = (Vec::new(), Vec::new(), false);
    for item in inner.split([',', ' ']).filter(|item| !item.is_empty()) {
        if item == "..." {
            abbreviated = true;
        } else if let Ok(rank) = item.parse::<u32>() {
            if abbreviated { tail.push(rank) } else { head.push(rank) }
        } else {
            return Vec::new();
        }
    }
    if abbreviated { expand(&head, &tail, size) } else { head }
}

fn expand(head: &[u32], tail: &[u32], size: u32) -> Vec<u32> {
    let gaps = |part: &[u32]| -> Option<Vec<u32>> {
        part.windows(2).map(|w| w[1].checked_sub(w[0])).collect()
    };
    let (Some(head_gaps), Some(tail_gaps)) = (gaps(head), gaps(tail)) else { return Vec::new() };
    let (Some(&first), Some(&last)) = (head.first(), tail.last().or(head.last())) else {
        return Vec::new();
    };
    let Some(&stride) = head_gaps.first().or(tail_gaps.first()) else { return Vec::new() };
    let uniform = stride > 0 && head_gaps.iter().chain(&tail_gaps).all(|&gap| gap == stride);
    let count = u64::from(size);
    let reach = u64::from(first) + u64::from(stride) * count.saturating_sub(1);
    // A list that breaks off after "..." has no tail to check the stride against.
    let fits = if tail.is_empty() { count >= head.len() as u64 } else { reach == u64::from(last) };
    if !uniform || !fits || count > MAX_EXPANDED || reach > u64::from(u32::MAX) {
        return Vec::new();
    }
    (0..size).map(|i| first + stride * i).collect()
}

/// Collects groups while operations are recognised.
pub(crate) struct Groups {
    table: Vec<ProcessGroup>,
    by_name: BTreeMap<String, Vec<u32>>,
    seen: FxHashMap<(NameId, NameId, NameId, u32), Option<GroupIndex>>,
    pointers: BTreeMap<(String, u32), GroupIndex>,
    unnamed: BTreeMap<Option<i32>, GroupIndex>,
}

impl Groups {
    pub(crate) fn new(trace: &Trace) -> Self {
        let mut groups = Self {
            table: Vec::new(),
            by_name: BTreeMap::new(),
            seen: FxHashMap::default(),
            pointers: BTreeMap::new(),
            unnamed: BTreeMap::new(),
        };
        for group in &trace.meta.groups {
            groups.merge(group.clone());
        }
        groups
    }

    pub(crate) fn into_table(self) -> Vec<ProcessGroup> {
        self.table
    }

    pub(crate) fn size(&self, group: GroupIndex) -> u32 {
        self.table.get(group.index()).map_or(0, |group| group.size)
    }

    /// The group that collective arguments state; `None` if they state none.
    pub(crate) fn of_args(&mut self, trace: &Trace, args: &CommArgs) -> Option<GroupIndex> {
        let key = (args.group, args.group_description, args.group_ranks, args.group_size);
        if let Some(&known) = self.seen.get(&key) {
            return known;
        }
        let ranks = parse_ranks(trace.names.get(args.group_ranks), args.group_size);
        let size = if args.group_size > 0 { args.group_size } else { ranks.len() as u32 };
        let group = ProcessGroup {
            name: trace.names.get(args.group).to_owned(),
            description: trace.names.get(args.group_description).to_owned(),
            backend: String::new(),
            size,
            ranks,
        };
        let found = if !group.name.is_empty() {
            Some(self.merge(group))
        } else if !group.ranks.is_empty() {
            Some(self.by_ranks(group))
        } else if size > 1 {
            Some(self.by_size(size))
        } else {
            None
        };
        self.seen.insert(key, found);
        found
    }

    /// The group behind a pointer or number in positional inputs.
    pub(crate) fn of_position(&mut self, text: &str, size: u32) -> GroupIndex {
        // Small numbers are names; anything else is an address, which differs between ranks.
        let is_name = text.parse::<u64>().is_ok_and(|number| number < 1_000_000);
        if is_name {
            let name = text.to_owned();
            return self.merge(ProcessGroup { name, size, ..ProcessGroup::default() });
        }
        let key = (text.to_owned(), size);
        if let Some(&known) = self.pointers.get(&key) {
            return known;
        }
        let alike = self.pointers.keys().filter(|(_, other)| *other == size).count();
        let index = match self.only_of_size(size) {
            Some(index) if alike == 0 => index,
            _ => self.add(format!("unnamed #{alike}"), size),
        };
        self.pointers.insert(key, index);
        index
    }

    /// Makes groups for operations of which nothing is known but the stream they use (`None`
    /// on the host), in order of appearance.
    ///
    /// The only group of a header is taken for the one meant. A job without any stated group
    /// whose communication all runs on one stream is taken to use one group of all ranks; the
    /// result tells whether that was done.
    pub(crate) fn add_unnamed(
        &mut self,
        trace: &Trace,
        places: impl Iterator<Item = Option<i32>>,
    ) -> bool {
        let nothing_stated = self.table.is_empty();
        let only = (self.table.len() == 1).then(|| GroupIndex::new(0));
        for place in places {
            if self.unnamed.contains_key(&place) {
                continue;
            }
            let number = self.unnamed.keys().filter(|known| known.is_some()).count();
            let index = match (only, place) {
                (Some(index), _) if self.unnamed.is_empty() => index,
                (_, Some(_)) => self.add(format!("unnamed stream #{number}"), 0),
                (_, None) => self.add("unnamed host group".to_owned(), 0),
            };
            self.unnamed.insert(place, index);
        }
        if let ([group], true, Some(size)) =
            (self.table.as_mut_slice(), nothing_stated, trace.meta.world_size)
        {
            group.size = size;
            return true;
        }
        false
    }

    /// The group made for a place.
    pub(crate) fn unnamed(&self, place: Option<i32>) -> Option<GroupIndex> {
        self.unnamed.get(&place).copied()
    }

    fn only_of_size(&self, size: u32) -> Option<GroupIndex> {
        let mut fitting = (0..self.table.len()).filter(|&i| self.table[i].size == size);
        let only = fitting.next()?;
        fitting.next().is_none().then(|| GroupIndex::from_index(only))
    }

    fn by_size(&mut self, size: u32) -> GroupIndex {
        match self.only_of_size(size) {
            Some(index) => index,
            None => self.add(format!("unnamed of {size}"), size),
        }
    }

    fn by_ranks(&mut self, mut group: ProcessGroup) -> GroupIndex {
        if let Some(i) = self.table.iter().position(|known| known.ranks == group.ranks) {
            return GroupIndex::from_index(i);
        }
        let number = self.table.len();
        group.name = format!("unnamed #{number}");
        self.merge(group)
    }

    fn add(&mut self, name: String, size: u32) -> GroupIndex {
        let index = GroupIndex::from_index(self.table.len());
        self.by_name.entry(name.clone()).or_default().push(index.get());
        self.table.push(ProcessGroup { name, size, ..ProcessGroup::default() });
        index
    }

    /// The row for a named group. Rows of one name stay apart where ranks or sizes differ, and
    /// fill each other's gaps where they agree.
    fn merge(&mut self, group: ProcessGroup) -> GroupIndex {
        let rows = self.by_name.entry(group.name.clone()).or_default();
        for &row in rows.iter() {
            let known = &mut self.table[row as usize];
            let ranks =
                known.ranks.is_empty() || group.ranks.is_empty() || known.ranks == group.ranks;
            let size = known.size == 0 || group.size == 0 || known.size == group.size;
            if ranks && size {
                fill(known, group);
                return GroupIndex::new(row);
            }
        }
        let index = GroupIndex::from_index(self.table.len());
        rows.push(index.get());
        self.table.push(group);
        let row = &mut self.table[index.index()];
        row.size = if row.size == 0 { row.ranks.len() as u32 } else { row.size };
        index
    }
}

fn fill(known: &mut ProcessGroup, more: ProcessGroup) {
    if known.ranks.is_empty() {
        known.ranks = more.ranks;
    }
    if known.size == 0 {
        known.size = if more.size == 0 { known.ranks.len() as u32 } else { more.size };
    }
    if known.description.is_empty() {
        known.description = more.description;
    }
    if known.backend.is_empty() {
        known.backend = more.backend;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rank_lists() {
        assert_eq!(parse_ranks("[0, 1, 5]", 3), [0, 1, 5]);
        assert_eq!(parse_ranks("[0, 8, ..., 48, 56]", 8), [0, 8, 16, 24, 32, 40, 48, 56]);
        assert_eq!(parse_ranks("[0, 1, ... 7]", 8), (0..8).collect::<Vec<_>>());
        assert_eq!(parse_ranks("[0, 1, ..., 7]", 8), (0..8).collect::<Vec<_>>());
        assert_eq!(parse_ranks("[0, 1, ..., 9]", 8), Vec::<u32>::new());
        assert_eq!(parse_ranks("[0, 1, 2, ...]", 4), [0, 1, 2, 3]);
        assert_eq!(parse_ranks("all", 4), Vec::<u32>::new());
    }

    #[test]
    fn groups_of_one_name_and_different_ranks_stay_apart() {
        let mut groups = Groups::new(&Trace::default());
        let group = |ranks: &[u32]| ProcessGroup {
            name: "1".into(),
            ranks: ranks.to_vec(),
            ..ProcessGroup::default()
        };
        let a = groups.merge(group(&[0, 1]));
        let b = groups.merge(group(&[2, 3]));
        assert_ne!(a, b);
        assert_eq!(groups.merge(group(&[0, 1])), a);
        assert_eq!(groups.size(b), 2);
    }

    proptest! {
        #[test]
        fn any_rank_text_is_survived(text in "[\\[\\]0-9,. ]{0,60}", size in any::<u32>()) {
            let ranks = parse_ranks(&text, size.min(1 << 22));
            prop_assert!(ranks.len() as u64 <= MAX_EXPANDED.max(60));
        }
    }
}
