//! Which nodes of which classes meet in a collective.

use std::collections::BTreeMap;

use foretrain_graph::{CollectiveKind, Job, Node};

use crate::error::SimError;
use crate::program::{NONE, Program};

/// All rendezvous of one iteration. A group that only one class holds meets too, with itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meetings {
    /// Meeting of each slot, or `NONE`.
    pub(crate) of: Vec<u32>,
    first: Vec<u32>,
    members: Vec<u32>,
    /// How many ranks of its class each member stands for in the meeting.
    parties: Vec<u64>,
}

impl Meetings {
    pub(crate) fn len(&self) -> usize {
        self.first.len().saturating_sub(1)
    }

    /// The slots that meet.
    pub(crate) fn members(&self, meeting: usize) -> &[u32] {
        &self.members[self.first[meeting] as usize..self.first[meeting + 1] as usize]
    }

    /// The slots that run as one with a slot: those that it meets, or it alone.
    pub(crate) fn together<'a>(&'a self, slot: &'a u32) -> &'a [u32] {
        match self.of[*slot as usize] {
            NONE => std::slice::from_ref(slot),
            meeting => self.members(meeting as usize),
        }
    }

    /// The slots of a unit, which is a slot or, counted from the number of slots on, a meeting.
    pub(crate) fn of_unit<'a>(&'a self, unit: &'a u32) -> &'a [u32] {
        match (*unit as usize).checked_sub(self.of.len()) {
            Some(meeting) => self.members(meeting),
            None => std::slice::from_ref(unit),
        }
    }

    /// How many ranks each member stands for, in the order of [`Self::members`].
    pub(crate) fn parties(&self, meeting: usize) -> &[u64] {
        &self.parties[self.first[meeting] as usize..self.first[meeting + 1] as usize]
    }
}

/// What makes two nodes of different classes one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Collective(Option<CollectiveKind>),
    /// A message from the class with this index.
    From(usize),
}

#[derive(Default)]
struct GroupUse<'a> {
    /// Classes that list the group, ascending, with the size they state.
    holders: Vec<(usize, u32)>,
    calls: BTreeMap<(Operation, u32), Vec<u32>>,
    name: &'a str,
}

/// Finds who meets whom.
pub(crate) fn compile(job: &Job, program: &Program) -> Result<Meetings, SimError> {
    let mut groups: BTreeMap<&str, GroupUse<'_>> = BTreeMap::new();
    for (class, rank_class) in job.classes.iter().enumerate() {
        for group in &rank_class.graph.groups {
            let entry = groups.entry(&group.name).or_default();
            entry.name = &group.name;
            if entry.holders.last().is_none_or(|(holder, _)| *holder != class) {
                entry.holders.push((class, group.size));
            }
        }
    }
    let mut meetings =
        Meetings { of: vec![NONE; program.node_count()], first: vec![0], ..Meetings::default() };
    for (class, rank_class) in job.classes.iter().enumerate() {
        let graph = &rank_class.graph;
        for id in graph.node_ids() {
            let node = graph.node(id);
            let Some(group) = meets(&node).then_some(node.group).flatten() else { continue };
            let slot = program.slot_of(class, id);
            let Some(group) = groups.get_mut(graph.groups[group.index()].name.as_str()) else {
                continue;
            };
            if group.holders.len() == 1 {
                meetings.push(&[slot], &group.holders, program);
                continue;
            }
            let operation = operation(class, &node, group, program.name_of(slot as usize))?;
            group.calls.entry((operation, node.sequence)).or_default().push(slot);
        }
    }
    for group in groups.values() {
        for ((operation, sequence), slots) in &group.calls {
            check_members(group, *operation, *sequence, slots, program)?;
            meetings.push(slots, &group.holders, program);
        }
    }
    Ok(meetings)
}

impl Meetings {
    fn push(&mut self, slots: &[u32], holders: &[(usize, u32)], program: &Program) {
        let index = self.len() as u32;
        let ranks: u64 = holders
            .iter()
            .map(|(class, _)| program.multiplicity[*class])
            .fold(0, u64::saturating_add);
        for &slot in slots {
            self.of[slot as usize] = index;
            self.members.push(slot);
            let multiplicity = program.multiplicity[program.class[slot as usize] as usize];
            let size = holders.iter().map(|(_, size)| u64::from(*size)).max().unwrap_or(0);
            self.parties.push(party(multiplicity, ranks, size));
        }
        self.first.push(self.members.len() as u32);
    }
}

/// How many of a class's ranks are in one communicator of `size` ranks (0 if not known), where
/// the classes of the group have `ranks` ranks in all.
fn party(multiplicity: u64, ranks: u64, size: u64) -> u64 {
    if size == 0 || size >= ranks {
        return multiplicity;
    }
    let share = size as f64 * multiplicity as f64 / ranks as f64;
    (share.round() as u64).clamp(1, multiplicity)
}

fn meets(node: &Node) -> bool {
    node.kind.communicates()
}

fn operation(
    class: usize,
    node: &Node,
    group: &GroupUse<'_>,
    name: &str,
) -> Result<Operation, SimError> {
    let sends = match node.collective {
        Some(CollectiveKind::Send) => true,
        Some(CollectiveKind::Recv) => false,
        other => return Ok(Operation::Collective(other)),
    };
    let &[(low, _), (high, _)] = group.holders.as_slice() else {
        return Err(SimError::AmbiguousPeer {
            group: group.name.to_owned(),
            operation: word(node.collective).to_owned(),
            node: name.to_owned(),
            class,
            classes: group.holders.len(),
        });
    };
    let other = if class == low { high } else { low };
    Ok(Operation::From(if sends { class } else { other }))
}

fn word(kind: Option<CollectiveKind>) -> &'static str {
    kind.unwrap_or(CollectiveKind::Unknown).as_str()
}

fn check_members(
    group: &GroupUse<'_>,
    operation: Operation,
    sequence: u32,
    slots: &[u32],
    program: &Program,
) -> Result<(), SimError> {
    let class_of = |slot: u32| program.class[slot as usize] as usize;
    let operation = match operation {
        Operation::Collective(kind) => word(kind).to_owned(),
        Operation::From(class) => format!("the message from class {class}"),
    };
    for pair in slots.windows(2) {
        if class_of(pair[0]) == class_of(pair[1]) {
            return Err(SimError::DuplicateMember {
                group: group.name.to_owned(),
                operation,
                sequence,
                class: class_of(pair[0]),
                first: program.name_of(pair[0] as usize).to_owned(),
                second: program.name_of(pair[1] as usize).to_owned(),
            });
        }
    }
    let issues = |class: usize| slots.iter().any(|&slot| class_of(slot) == class);
    let list = |wanted: bool| {
        let classes = group.holders.iter().map(|(class, _)| *class);
        let classes: Vec<_> =
            classes.filter(|&class| issues(class) == wanted).map(|c| c.to_string()).collect();
        classes.join(", ")
    };
    if slots.len() == group.holders.len() {
        return Ok(());
    }
    Err(SimError::MissingMember {
        group: group.name.to_owned(),
        operation,
        sequence,
        present: list(true),
        missing: list(false),
    })
}
