//! Inputs of recorded operators.

use foretrain_core::DType;
use foretrain_trace::Trace;
use serde_json::Value;

/// A tensor that an operator reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Operand {
    /// Its extents; none for what is no tensor.
    pub(super) shape: Vec<u64>,
    /// Bytes of an element, if its type is known.
    pub(super) each: Option<u64>,
    /// Whether it may hold the places of rows: whole numbers of more than a byte.
    pub(super) is_index: bool,
}

impl Operand {
    /// Numbers in it.
    pub(super) fn elements(&self) -> u64 {
        if self.shape.is_empty() {
            0
        } else {
            self.shape.iter().fold(1, |n, &x| n.saturating_mul(x))
        }
    }

    /// Its size; nothing for what is no tensor.
    pub(super) fn bytes(&self) -> Option<u64> {
        match self.elements() {
            0 => Some(0),
            elements => Some(elements.saturating_mul(self.each?)),
        }
    }
}

/// The inputs of an operator, by position. Empty if none were recorded, or one is a list of tensors
/// whose members nobody wrote down.
pub(super) fn operands(trace: &Trace, row: u32) -> Vec<Operand> {
    let text = |column: &[foretrain_core::NameId]| trace.names.get(column[row as usize]).to_owned();
    parse(&text(&trace.shapes), &text(&trace.types)).unwrap_or_default()
}

fn parse(shapes: &str, types: &str) -> Option<Vec<Operand>> {
    let shapes: Vec<Value> = serde_json::from_str(shapes).ok()?;
    let types: Vec<String> = serde_json::from_str(types).unwrap_or_default();
    let mut all = Vec::with_capacity(shapes.len());
    for (at, shape) in shapes.iter().enumerate() {
        let kind = types.get(at).map_or("", String::as_str);
        if kind == "TensorList" || kind.starts_with("GenericList") {
            return None;
        }
        let extents: Option<Vec<u64>> = shape.as_array()?.iter().map(Value::as_u64).collect();
        let dtype = DType::parse(kind);
        all.push(Operand {
            shape: extents.unwrap_or_default(),
            each: dtype.map(|dtype| dtype.bytes_of(1)),
            is_index: dtype.is_some_and(is_index),
        });
    }
    Some(all)
}

const fn is_index(dtype: DType) -> bool {
    matches!(dtype, DType::I64 | DType::I32 | DType::I16 | DType::U64 | DType::U32)
}

#[cfg(test)]
pub(super) fn of(shapes: &str, types: &str) -> Vec<Operand> {
    parse(shapes, types).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_types_stand_side_by_side() {
        let found = of("[[4, 8], [], [8]]", r#"["c10::BFloat16", "Scalar", "long int"]"#);
        let bytes: Vec<_> = found.iter().map(Operand::bytes).collect();
        assert_eq!(bytes, [Some(64), Some(0), Some(64)]);
        assert_eq!(of("[[4]]", "[]")[0].bytes(), None, "a tensor of unknown type");
        assert!(of("[[], []]", r#"["TensorList", "Scalar"]"#).is_empty());
        for wrong in ["", "{}", "[1, 2]", "[[1"] {
            assert!(of(wrong, "[]").is_empty(), "{wrong}");
        }
    }
}
