//! The argument lists of operators: tensors, their bytes and element types.

use std::fmt;

use foretrain_core::DType;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::record::Arguments;

/// A tensor as PyTorch records it: `[id, storage, offset, elements, bytes per element, device]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tensor {
    pub(crate) id: i64,
    pub(crate) storage: i64,
    pub(crate) offset: i64,
    pub(crate) elements: u64,
    pub(crate) element_bytes: u64,
}

impl Tensor {
    /// Size of the tensor's elements; saturates.
    pub(crate) fn bytes(&self) -> u64 {
        self.elements.saturating_mul(self.element_bytes)
    }
}

/// One argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Argument {
    /// A tensor.
    Tensor(Tensor),
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Text, a device, or a placeholder such as `<None>`.
    Str(String),
    /// A list or tuple.
    List(Vec<Argument>),
    /// Anything else.
    Other,
}

impl Argument {
    /// Calls `visit` on each tensor in the argument.
    pub(crate) fn tensors(&self, visit: &mut impl FnMut(&Tensor)) {
        match self {
            Self::Tensor(tensor) => visit(tensor),
            Self::List(items) => items.iter().for_each(|item| item.tensors(visit)),
            _ => {}
        }
    }

    /// Bytes of all tensors in the argument, `None` if it holds none.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let mut total: Option<u64> = None;
        self.tensors(&mut |tensor| {
            total = Some(total.unwrap_or(0).saturating_add(tensor.bytes()));
        });
        total
    }
}

/// The parsed values; damaged ones read as none.
pub(crate) fn parse(raw: Option<&RawValue>) -> Vec<Argument> {
    let parsed = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    match parsed {
        Some(Argument::List(items)) => items,
        _ => Vec::new(),
    }
}

/// The element type of the first tensor among the recorded types.
pub(crate) fn dtype(arguments: &Arguments<'_>) -> Option<DType> {
    dtype_in(arguments.types?.get())
}

/// The element type of the first `Tensor(...)` in a list of types.
pub(crate) fn dtype_in(types: &str) -> Option<DType> {
    types.match_indices("Tensor(").find_map(|(at, word)| {
        let name = &types[at + word.len()..];
        DType::parse(&name[..name.find(')')?])
    })
}

/// JSON or Python text of nested lists without white space, `None` when it holds no extent.
pub(crate) fn compact_shapes(text: &str) -> Option<Box<str>> {
    if !text.bytes().any(|b| b.is_ascii_digit()) {
        return None;
    }
    Some(text.chars().filter(|c| !c.is_whitespace()).collect::<String>().into())
}

impl<'de> Deserialize<'de> for Argument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgumentVisitor)
    }
}

struct ArgumentVisitor;

impl<'de> Visitor<'de> for ArgumentVisitor {
    type Value = Argument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an argument")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Argument, E> {
        Ok(Argument::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Argument, E> {
        Ok(Argument::Int(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Argument, E> {
        Ok(i64::try_from(value).map_or(Argument::Other, Argument::Int))
    }
    fn visit_f64<E>(self, _: f64) -> Result<Argument, E> {
        Ok(Argument::Other)
    }
    fn visit_str<E>(self, value: &str) -> Result<Argument, E> {
        Ok(Argument::Str(value.to_owned()))
    }
    fn visit_unit<E>(self) -> Result<Argument, E> {
        Ok(Argument::Other)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Argument, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(as_tensor(&items).map_or(Argument::List(items), Argument::Tensor))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Argument, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Argument::Other)
    }
}

fn as_tensor(items: &[Argument]) -> Option<Tensor> {
    use Argument::{Int, Str};
    let [Int(id), Int(storage), Int(offset), Int(elements), Int(element_bytes), Str(device)] =
        items
    else {
        return None;
    };
    // "<None>" and the like are never devices.
    if device.starts_with('<') {
        return None;
    }
    Some(Tensor {
        id: *id,
        storage: *storage,
        offset: *offset,
        elements: u64::try_from(*elements).ok()?,
        element_bytes: u64::try_from(*element_bytes).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_found_in_nested_lists() {
        let raw: &RawValue = serde_json::from_str(
            r#"[[[1, 2, 0, 10, 2, "cuda:0"], [3, 4, 0, 5, 2, "cuda:0"]], 7, "allreduce", [8, 8]]"#,
        )
        .unwrap();
        let arguments = parse(Some(raw));
        assert_eq!(arguments.len(), 4);
        assert_eq!(arguments[0].bytes(), Some(30));
        assert_eq!(arguments[3].bytes(), None);
        assert_eq!(dtype_in(r#"["Int", "GenericList[Tensor(c10::Half)]"]"#), Some(DType::F16));
        assert_eq!(compact_shapes("[[], []]"), None);
        assert_eq!(compact_shapes("[[2, 3]]").as_deref(), Some("[[2,3]]"));
    }

    #[test]
    fn impossible_sizes_saturate_or_are_no_tensor() {
        let raw: &RawValue = serde_json::from_str(
            r#"[[1, 2, 0, 9223372036854775807, 8, "cpu"], [1, 2, 0, -4, 8, "cpu"]]"#,
        )
        .unwrap();
        let arguments = parse(Some(raw));
        assert_eq!(arguments[0].bytes(), Some(u64::MAX));
        assert_eq!(arguments[1].bytes(), None);
    }
}
