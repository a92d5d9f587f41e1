//! Interned names. A trace repeats a few thousand kernel and operator names millions of times;
//! each is stored once and rows hold a 32-bit id.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// A name in some [`Names`] table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NameId(u32);

impl NameId {
    /// The empty name, present in every table.
    pub const EMPTY: NameId = NameId(0);
    /// The id with this index.
    pub const fn new(index: u32) -> Self {
        Self(index)
    }
    /// The position in the table.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// The raw 32-bit index.
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// A table of distinct strings, each stored once. Ids are given in order of first appearance,
/// so equal input gives equal ids.
#[derive(Clone, Debug)]
pub struct Names {
    text: String,
    // End of each string in `text`; the start is the previous end.
    ends: Vec<usize>,
    lookup: HashTable<u32>,
}

impl Default for Names {
    fn default() -> Self {
        Self::new()
    }
}

impl Names {
    /// A table that holds only the empty name.
    pub fn new() -> Self {
        let mut names = Self { text: String::new(), ends: Vec::new(), lookup: HashTable::new() };
        names.intern("");
        names
    }

    /// The id of `name`, added if new.
    pub fn intern(&mut self, name: &str) -> NameId {
        let hash = FxBuildHasher.hash_one(name);
        let (text, ends) = (&self.text, &self.ends);
        if let Some(&id) = self.lookup.find(hash, |&id| slice(text, ends, id) == name) {
            return NameId(id);
        }
        let id = u32::try_from(self.ends.len()).expect("more than 4294967295 distinct names");
        self.text.push_str(name);
        self.ends.push(self.text.len());
        let (text, ends) = (&self.text, &self.ends);
        self.lookup.insert_unique(hash, id, |&id| FxBuildHasher.hash_one(slice(text, ends, id)));
        NameId(id)
    }

    /// The id of `name` if it is in the table.
    pub fn find(&self, name: &str) -> Option<NameId> {
        let hash = FxBuildHasher.hash_one(name);
        self.lookup
            .find(hash, |&id| slice(&self.text, &self.ends, id) == name)
            .map(|&id| NameId(id))
    }

    /// The string behind an id; the empty string for an id of another table that is too large.
    pub fn get(&self, id: NameId) -> &str {
        if id.index() < self.ends.len() { slice(&self.text, &self.ends, id.0) } else { "" }
    }

    /// How many distinct names there are, the empty one included.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether only the empty name is there.
    pub fn is_empty(&self) -> bool {
        self.len() <= 1
    }

    /// All names in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (NameId, &str)> {
        (0..self.ends.len() as u32).map(|id| (NameId(id), slice(&self.text, &self.ends, id)))
    }

    /// Approximate heap use in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * 8 + self.lookup.capacity() * 5
    }
}

fn slice<'a>(text: &'a str, ends: &[usize], id: u32) -> &'a str {
    let end = ends[id as usize];
    let start = if id == 0 { 0 } else { ends[id as usize - 1] };
    &text[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interning_is_stable_and_deduplicates() {
        let mut names = Names::new();
        let first = names.intern("aten::mm");
        let second = names.intern("ncclDevKernel_AllReduce");
        assert_eq!(names.intern("aten::mm"), first);
        assert_ne!(first, second);
        assert_eq!(names.get(first), "aten::mm");
        assert_eq!(names.find("nothing"), None);
        assert_eq!(names.get(NameId::EMPTY), "");
        assert_eq!(names.get(NameId::new(99)), "");
        assert_eq!(names.len(), 3);
    }
}
