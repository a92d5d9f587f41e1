//! The arguments of a communication operation, from the nested records that belong to it.

use std::borrow::Cow;

use foretrain_core::DType;
use foretrain_graph::CollectiveKind;
use serde::Deserialize;

use super::communication::{self, Level};
use super::record::Record;
use super::tensors::{self, Argument};

/// What the records of one operation say together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Parameters {
    pub(super) kind: Option<CollectiveKind>,
    pub(super) wait: bool,
    /// Number by which a later wait names this operation.
    pub(super) sequence: Option<i64>,
    pub(super) group: GroupKey,
    pub(super) role: String,
    pub(super) size: Option<u64>,
    pub(super) ranks: Option<(u64, u64)>,
    /// This rank within the group, for operations without a root.
    pub(super) rank: Option<i64>,
    pub(super) bytes: Option<u64>,
    pub(super) dtype: Option<DType>,
    pub(super) peer: Option<i64>,
    pub(super) storages: Vec<i64>,
}

/// How a record names its process group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum GroupKey {
    /// Not at all.
    #[default]
    Unknown,
    /// By name.
    Name(String),
    /// By an address that differs between ranks.
    Address(i64),
}

impl Parameters {
    /// Reads the records of one operation, outermost first.
    pub(super) fn of(records: &[&Record<'_>]) -> Self {
        let mut found = Self::default();
        for record in records {
            found.read(record);
        }
        found.storages.sort_unstable();
        found.storages.dedup();
        found
    }

    fn read(&mut self, record: &Record<'_>) {
        let (inputs, outputs) =
            (tensors::parse(record.inputs.values), tensors::parse(record.outputs.values));
        for argument in inputs.iter().chain(&outputs) {
            // One argument is one buffer, or the list of tensors that make it up.
            self.bytes = self.bytes.max(argument.bytes());
            argument.tensors(&mut |tensor| self.storages.push(tensor.storage));
        }
        let dtype = || tensors::dtype(&record.inputs).or_else(|| tensors::dtype(&record.outputs));
        self.dtype = self.dtype.or_else(dtype);
        match communication::host_level(&record.name) {
            Some(Level::Parameters) => self.read_positional(&inputs),
            Some(Level::Dispatcher) => {
                self.kind = self.kind.or_else(|| communication::kind_of(&record.name));
                self.read_peer(&inputs);
            }
            _ => self.kind = self.kind.or_else(|| communication::kind_of(&record.name)),
        }
        self.wait |= communication::is_wait(&record.name);
        self.read_named(record);
    }

    /// `c10d::send(tensors, group, peer, tag)` and `recv_`.
    fn read_peer(&mut self, inputs: &[Argument]) {
        if matches!(self.kind, Some(CollectiveKind::Send | CollectiveKind::Recv))
            && let Some(Argument::Int(peer)) = inputs.get(2)
        {
            self.peer = Some(*peer);
        }
    }

    /// `record_param_comms([tensors,] sequence, group, rank, collective, in split, out split
    /// [, first rank, stride] [, size])`, with changes over the versions.
    fn read_positional(&mut self, inputs: &[Argument]) {
        let Some(name_at) = inputs.iter().position(|a| matches!(a, Argument::Str(_))) else {
            return;
        };
        let Argument::Str(name) = &inputs[name_at] else { return };
        self.wait |= communication::is_wait(name);
        self.kind = communication::kind_of(name).or(self.kind);
        if let [.., sequence, group, rank] = &inputs[..name_at] {
            self.sequence = first_int(sequence);
            self.read_group(group);
            if let Argument::Int(rank) = rank {
                self.read_rank(*rank);
            }
        }
        let tail: Vec<i64> = inputs[name_at + 1..]
            .iter()
            .filter_map(|a| if let Argument::Int(value) = a { Some(*value) } else { None })
            .collect();
        if let Some(&size) = tail.last() {
            self.size = u64::try_from(size).ok().filter(|&size| size > 0);
        }
        if let [start, stride, _] = tail[..]
            && let (Ok(start), Ok(stride)) = (u64::try_from(start), u64::try_from(stride))
        {
            self.ranks = Some((start, stride));
        }
    }

    fn read_group(&mut self, group: &Argument) {
        match group {
            Argument::Int(number) if (1..1 << 20).contains(number) => {
                self.group = GroupKey::Name(number.to_string());
            }
            Argument::Int(address) if *address != 0 => self.group = GroupKey::Address(*address),
            Argument::List(parts) => {
                if let Some(Argument::Str(name)) = parts.first() {
                    self.group = GroupKey::Name(name.clone());
                }
                if let Some(Argument::Str(role)) = parts.get(1) {
                    self.role.clone_from(role);
                }
            }
            _ => {}
        }
    }

    fn read_rank(&mut self, rank: i64) {
        use CollectiveKind as K;
        match self.kind {
            Some(K::Send | K::Recv) => self.peer = Some(rank),
            // With a root, the number is the root's.
            Some(K::Broadcast | K::Reduce | K::Gather | K::Scatter) | None => {}
            Some(_) => self.rank = Some(rank),
        }
    }

    fn read_named(&mut self, record: &Record<'_>) {
        let Some(named) = &record.communication else { return };
        let text = |value: &Option<Cow<'_, str>>| value.as_ref().map(ToString::to_string);
        if let Some(name) = &named.collective {
            self.wait |= communication::is_wait(name);
            self.kind = communication::kind_of(name).or(self.kind);
        }
        if let Some(name) = text(&named.group) {
            self.group = GroupKey::Name(name);
        }
        if let Some(role) = text(&named.description) {
            self.role = role;
        }
        let dtype = named.dtype.as_deref().and_then(DType::parse);
        self.dtype = dtype.or(self.dtype);
        if let (Some(dtype), Some(elements)) = (dtype, named.in_elements.max(named.out_elements)) {
            self.bytes = Some(dtype.bytes_of(elements));
        }
        self.size = named.size.or(self.size);
        if let (Some(start), Some(stride)) = (named.rank_start, named.rank_stride) {
            self.ranks = Some((start, stride));
        }
    }
}

fn first_int(argument: &Argument) -> Option<i64> {
    match argument {
        Argument::Int(value) => Some(*value),
        Argument::List(items) => items.first().and_then(first_int),
        _ => None,
    }
}

/// One process group as listed at its creation.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct GroupConfig {
    #[serde(default, rename = "pg_name")]
    pub(super) name: String,
    #[serde(default, rename = "pg_desc")]
    pub(super) description: String,
    #[serde(default)]
    pub(super) ranks: Vec<u32>,
    #[serde(default, rename = "group_size")]
    pub(super) size: u32,
}

/// The groups that a `## process_group:init ##` record lists, `None` if it is not one.
pub(super) fn group_configs(record: &Record<'_>) -> Option<Vec<GroupConfig>> {
    if !record.name.contains("process_group:init") {
        return None;
    }
    let configs = tensors::parse(record.inputs.values).into_iter().find_map(|argument| {
        let Argument::Str(text) = argument else { return None };
        serde_json::from_str(&text).ok()
    });
    Some(configs.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::super::record::UnknownFields;
    use super::*;

    fn parameters(json: &[&str]) -> Parameters {
        let mut unknown = UnknownFields::new();
        let records: Vec<_> =
            json.iter().map(|text| Record::parse(text, &mut unknown).unwrap()).collect();
        Parameters::of(&records.iter().collect::<Vec<_>>())
    }

    #[test]
    fn old_positional_arguments_are_understood() {
        let found = parameters(&[
            r#"{"name": "record_param_comms", "inputs": [[[1, 9, 0, 100, 2, "cuda:3"]], 337, 93825114103440, 3, "allreduce", [], [], 8],
                "input_types": ["GenericList[Tensor(c10::Half)]"]}"#,
            r#"{"name": "nccl:all_reduce", "inputs": [[1, 9, 0, 100, 2, "cuda:3"]]}"#,
        ]);
        assert_eq!(found.kind, Some(CollectiveKind::AllReduce));
        assert_eq!((found.bytes, found.dtype), (Some(200), Some(DType::F16)));
        assert_eq!((found.sequence, found.size, found.rank), (Some(337), Some(8), Some(3)));
        assert_eq!(found.group, GroupKey::Address(93_825_114_103_440));
        assert_eq!(found.storages, [9]);
    }

    #[test]
    fn waits_and_pairs_of_sequence_numbers_are_understood() {
        let wait = parameters(&[
            r#"{"name": "record_param_comms", "inputs": [337, 0, 0, "wait", [], [], 1]}"#,
        ]);
        assert!(wait.wait);
        assert_eq!((wait.sequence, wait.group), (Some(337), GroupKey::Unknown));
        let new = parameters(&[
            r#"{"name": "record_param_comms", "inputs": [[1, 9, 0, 4, 4, "cuda:0"], [12, false], ["5", "tp"], 1, "_allgather_base", [], [], 4, 1, 2]}"#,
        ]);
        assert_eq!((new.sequence, new.ranks, new.size), (Some(12), Some((4, 1)), Some(2)));
        assert_eq!((new.group, new.role.as_str()), (GroupKey::Name("5".into()), "tp"));
    }

    #[test]
    fn the_larger_buffer_counts() {
        let gather = parameters(&[
            r#"{"name": "c10d::_allgather_base_", "inputs": [[1, 9, 0, 64, 4, "cpu"], [2, 8, 0, 16, 4, "cpu"], "<Object>"]}"#,
        ]);
        assert_eq!((gather.bytes, gather.kind), (Some(256), Some(CollectiveKind::AllGather)));
    }
}
