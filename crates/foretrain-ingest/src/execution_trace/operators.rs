//! The operators of an execution trace as they were called, for readers of what a model computes.

use foretrain_core::{Ledger, Result};
use serde_json::Value;

use super::document::Document;
use super::hierarchy::Hierarchy;
use super::record::{Arguments, Record};
use super::tensors::{self, Argument, Tensor};

/// A tensor that an operator was given or gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its extents; empty where they were not recorded, and for scalars.
    pub shape: Vec<u64>,
    /// Numbers that it holds.
    pub elements: u64,
    /// The memory it lies in; views share it, and freed memory is used again.
    pub storage: i64,
    /// Where it begins there.
    pub offset: i64,
}

/// One call of an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Operator {
    /// Its name, `aten::addmm`.
    pub name: String,
    /// The position of the operator that called it.
    pub parent: Option<usize>,
    /// By argument, its tensors: none for a number, several for a list of tensors.
    pub inputs: Vec<Vec<Operand>>,
    /// Truth values among the arguments, by position.
    pub flags: Vec<(usize, bool)>,
    /// Its results.
    pub outputs: Vec<Operand>,
}

/// Reads the operators of a JSON execution trace of any schema, in the order in which they began.
/// Damage is handled as [`read`](super::read) does.
///
/// # Errors
/// If the text is no execution trace of PyTorch, or holds no nodes.
pub fn operators(bytes: &[u8], path: &str, ledger: &mut Ledger) -> Result<Vec<Operator>> {
    let text = super::decode(bytes, ledger);
    let mut document = Document::parse(&text, path, ledger)?;
    super::report_schema(document.schema.as_deref(), !document.chakra, ledger);
    if document.records.is_empty() || document.chakra {
        return Err(super::no_nodes(document.schema.as_deref(), path));
    }
    document.records.sort_by_key(|record| record.id);
    let records = &document.records;
    let parents = Hierarchy::new(records, ledger).parent;
    Ok(records.iter().zip(parents).map(|(record, parent)| operator(record, parent)).collect())
}

fn operator(record: &Record<'_>, parent: Option<u32>) -> Operator {
    let (inputs, flags) = read(&record.inputs);
    Operator {
        name: record.name.to_string(),
        parent: parent.map(|parent| parent as usize),
        inputs,
        flags,
        outputs: read(&record.outputs).0.into_iter().flatten().collect(),
    }
}

/// Tensors by argument, and truth values.
fn read(arguments: &Arguments<'_>) -> (Vec<Vec<Operand>>, Vec<(usize, bool)>) {
    let values = tensors::parse(arguments.values);
    let shapes: Vec<Value> = arguments
        .shapes
        .and_then(|shapes| serde_json::from_str(shapes.get()).ok())
        .unwrap_or_default();
    let mut flags = Vec::new();
    let mut operands = Vec::with_capacity(values.len());
    for (at, value) in values.iter().enumerate() {
        if let Argument::Bool(flag) = value {
            flags.push((at, *flag));
        }
        let mut found = Vec::new();
        collect(value, shapes.get(at), &mut found);
        operands.push(found);
    }
    (operands, flags)
}

/// Shapes nest as the tensors do.
fn collect(value: &Argument, shape: Option<&Value>, found: &mut Vec<Operand>) {
    match value {
        Argument::Tensor(tensor) => found.push(operand(tensor, shape)),
        Argument::List(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, shape.and_then(|shape| shape.get(at)), found);
            }
        }
        _ => {}
    }
}

fn operand(tensor: &Tensor, shape: Option<&Value>) -> Operand {
    let extents = shape.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let shape: Option<Vec<u64>> = extents.iter().map(Value::as_u64).collect();
    // A shape that is not the tensor's says nothing.
    let shape = shape.filter(|shape| {
        shape.iter().try_fold(1_u64, |all, n| all.checked_mul(*n)) == Some(tensor.elements)
    });
    Operand {
        shape: shape.unwrap_or_default(),
        elements: tensor.elements,
        storage: tensor.storage,
        offset: tensor.offset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_their_tensors_in_place() {
        let text = r#"{"schema": "1.1.1", "nodes": [
            {"id": 1, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1,
             "inputs": {"values": [], "shapes": [], "types": []},
             "outputs": {"values": [], "shapes": [], "types": []}, "attrs": []},
            {"id": 3, "name": "aten::cat", "ctrl_deps": 2, "inputs": {
                "values": [[[8, 9, 0, 6, 4, "cpu"], [10, 11, 2, 3, 4, "cpu"]], 1, true],
                "shapes": [[[2, 3], [3]], [], []], "types": []},
             "outputs": {"values": [[12, 13, 0, 9, 4, "cpu"]], "shapes": [[2, 5]], "types": []},
             "attrs": []},
            {"id": 2, "name": "outer", "ctrl_deps": 1,
             "inputs": {"values": [], "shapes": [], "types": []},
             "outputs": {"values": [], "shapes": [], "types": []}, "attrs": []}]}"#;
        let found = operators(text.as_bytes(), "x.json", &mut Ledger::new()).unwrap();
        let cat = &found[2];
        assert_eq!((cat.name.as_str(), cat.parent), ("aten::cat", Some(1)));
        assert_eq!(cat.inputs.iter().map(Vec::len).collect::<Vec<_>>(), [2, 0, 0]);
        let second = &cat.inputs[0][1];
        assert_eq!((second.shape.as_slice(), second.storage, second.offset), (&[3][..], 11, 2));
        assert_eq!(cat.flags, [(2, true)]);
        // Nine numbers have no shape of ten.
        assert!(cat.outputs[0].shape.is_empty() && cat.outputs[0].elements == 9);
    }

    #[test]
    fn what_is_no_execution_trace_is_refused() {
        for text in ["", "{}", "[1]", r#"{"nodes": []}"#, r#"{"workload_graph": []}"#] {
            assert!(operators(text.as_bytes(), "x.json", &mut Ledger::new()).is_err(), "{text}");
        }
    }
}
