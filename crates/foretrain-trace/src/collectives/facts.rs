//! Gathers the fields of an operation from arguments, issue rows and names, best source first.

use foretrain_core::{Bytes, DType};
use foretrain_graph::CollectiveKind;

use super::groups::{GroupIndex, Groups};
use super::link::Context;
use super::names::{IssueName, NameFacts, kind_of, peer_of};
use super::text::{first_input_elements, strings};
use super::{Provenance, Source};
use crate::table::{CommArgs, Trace};

/// A value with its source; the first one noted stays.
#[derive(Clone, Copy, Debug)]
struct Sourced<T> {
    value: Option<T>,
    source: Source,
}

impl<T> Default for Sourced<T> {
    fn default() -> Self {
        Self { value: None, source: Source::Unknown }
    }
}

impl<T: Copy> Sourced<T> {
    fn note(&mut self, value: Option<T>, source: Source) {
        if self.value.is_none() && value.is_some() {
            *self = Self { value, source };
        }
    }
}

/// What is known of one operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    kind: Sourced<CollectiveKind>,
    dtype: Sourced<DType>,
    input: Sourced<u64>,
    output: Sourced<u64>,
    group: Sourced<GroupIndex>,
    pub(crate) sequence: Option<i64>,
    pub(crate) peer: Option<u32>,
}

impl Facts {
    /// Reads every source of the operation at `row`.
    pub(crate) fn gather(
        trace: &Trace,
        row: u32,
        name: Option<&NameFacts>,
        context: &Context,
        groups: &mut Groups,
    ) -> Self {
        let mut facts = Self::default();
        if let Some(args) = trace.comm_args_of(row as usize) {
            facts.take_args(trace, args, Source::KernelArgs, groups);
        }
        for &(issue, row) in context {
            if issue == IssueName::ParamComms {
                facts.take_param_comms(trace, row as usize, groups);
            }
        }
        for &(issue, row) in context {
            if issue != IssueName::ParamComms {
                facts.take_annotation(trace, row as usize, issue == IssueName::Annotation);
            }
        }
        match name {
            Some(name) => {
                let kind = Some(name.kind).filter(|kind| *kind != CollectiveKind::Unknown);
                facts.kind.note(kind, Source::KernelName);
                facts.dtype.note(name.dtype, Source::KernelName);
            }
            None => facts.take_annotation(trace, row as usize, true),
        }
        facts
    }

    fn take_args(&mut self, trace: &Trace, args: &CommArgs, source: Source, groups: &mut Groups) {
        let count = |elements: i64| u64::try_from(elements).ok();
        self.kind.note(kind_of(trace.names.get(args.collective)), source);
        self.dtype.note(DType::parse(trace.names.get(args.dtype)), source);
        // Inputs and outputs of different sources may describe different operations.
        if self.input.value.is_none() && self.output.value.is_none() {
            self.input.note(count(args.in_elements), source);
            self.output.note(count(args.out_elements), source);
        }
        if self.group.value.is_none() {
            self.group.note(groups.of_args(trace, args), source);
        }
        self.sequence = self.sequence.or(Some(args.sequence).filter(|&n| n >= 0));
        self.peer = self.peer.or(u32::try_from(args.peer).ok());
    }

    fn take_param_comms(&mut self, trace: &Trace, row: usize, groups: &mut Groups) {
        let source = Source::ParamComms;
        let types = strings(trace.names.get(trace.types[row]));
        if let Some(args) = trace.comm_args_of(row) {
            self.take_args(trace, args, source, groups);
            let inputs = trace.names.get(args.concrete_inputs);
            if !inputs.is_empty() {
                self.take_positions(&strings(inputs), &types, groups);
            }
        }
        let first = types.first().map(String::as_str).unwrap_or_default();
        self.dtype.note(DType::parse(first), source);
        if self.output.value.is_none() {
            self.input.note(first_input_elements(trace.names.get(trace.shapes[row])), source);
        }
    }

    /// Positional inputs: tensors if any, sequence, group, rank, name, split sizes ..., group size.
    fn take_positions(&mut self, inputs: &[String], types: &[String], groups: &mut Groups) {
        let first = types.first().map(String::as_str).unwrap_or_default();
        let data = first == "TensorList" || DType::parse(first).is_some();
        let Some(inputs) = inputs.get(usize::from(data)..).filter(|inputs| inputs.len() >= 4)
        else {
            return;
        };
        self.sequence = self.sequence.or(inputs[0].parse().ok());
        self.kind.note(kind_of(&inputs[3]), Source::ParamComms);
        let size = inputs.last().and_then(|size| size.parse::<u32>().ok()).unwrap_or(0);
        if self.group.value.is_none() && !inputs[1].is_empty() {
            self.group.note(Some(groups.of_position(&inputs[1], size)), Source::ParamComms);
        }
    }

    fn take_annotation(&mut self, trace: &Trace, row: usize, lists_inputs: bool) {
        let (name, source) = (trace.name_of(row), Source::Annotation);
        let kind = kind_of(name);
        self.kind.note(kind, source);
        let types = strings(trace.names.get(trace.types[row]));
        self.dtype.note(types.first().and_then(|first| DType::parse(first)), source);
        self.peer = self.peer.or(peer_of(name));
        // Operators that are not in place list their outputs first.
        let in_place = matches!(kind, Some(CollectiveKind::AllReduce | CollectiveKind::Broadcast));
        if self.output.value.is_none() && (lists_inputs || in_place) {
            self.input.note(first_input_elements(trace.names.get(trace.shapes[row])), source);
        }
    }

    pub(crate) fn kind(&self) -> CollectiveKind {
        self.kind.value.unwrap_or(CollectiveKind::Unknown)
    }

    pub(crate) fn group(&self) -> Option<GroupIndex> {
        self.group.value
    }

    pub(crate) fn dtype(&self) -> Option<DType> {
        self.dtype.value
    }

    /// Fills the group for which nothing speaks but the stream.
    pub(crate) fn infer_group(&mut self, group: Option<GroupIndex>) {
        self.group.note(group, Source::Inferred);
    }

    /// Fills the missing one of input and output from the other. With n ranks an all-gather's
    /// output is n inputs, and a reduce-scatter's input n outputs.
    pub(crate) fn infer_sizes(&mut self, group_size: u32) {
        use CollectiveKind as K;
        let n = u64::from(group_size);
        let many = |elements: Option<u64>| elements.filter(|_| n > 0)?.checked_mul(n);
        let share = |elements: Option<u64>| elements.filter(|e| n > 0 && e % n == 0).map(|e| e / n);
        let (input, output) = (self.input.value, self.output.value);
        let (from_output, from_input) = match self.kind() {
            K::AllReduce | K::Broadcast | K::AllToAll => (output, input),
            K::AllGather => (share(output), many(input)),
            K::ReduceScatter => (many(output), share(input)),
            K::Recv => {
                // A receive has no input; what is listed as such is the buffer it fills.
                self.output.note(input, self.input.source);
                self.input = Sourced::default();
                return;
            }
            _ => return,
        };
        self.input.note(from_output, Source::Inferred);
        self.output.note(from_input, Source::Inferred);
    }

    pub(crate) fn bytes(&self) -> (Option<Bytes>, Option<Bytes>) {
        let size = |elements: Option<u64>| Some(Bytes::new(self.dtype.value?.bytes_of(elements?)));
        (size(self.input.value), size(self.output.value))
    }

    pub(crate) fn provenance(&self) -> Provenance {
        let (input, output) = self.bytes();
        let known =
            |bytes: Option<Bytes>, source| if bytes.is_some() { source } else { Source::Unknown };
        Provenance {
            kind: self.kind.source,
            dtype: self.dtype.source,
            input: known(input, self.input.source),
            output: known(output, self.output.source),
            group: self.group.source,
        }
    }
}
