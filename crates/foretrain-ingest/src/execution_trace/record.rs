//! One node of a JSON execution trace, in the layout of any schema version.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use foretrain_core::Nanos;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::loose::{Loose, plain_key};

/// The arguments of an operator, unparsed: most nodes never need them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arguments<'a> {
    pub(crate) values: Option<&'a RawValue>,
    pub(crate) shapes: Option<&'a RawValue>,
    pub(crate) types: Option<&'a RawValue>,
}

/// Communication arguments that newer schemas spell out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Communication<'a> {
    pub(crate) collective: Option<Cow<'a, str>>,
    pub(crate) dtype: Option<Cow<'a, str>>,
    pub(crate) group: Option<Cow<'a, str>>,
    pub(crate) description: Option<Cow<'a, str>>,
    pub(crate) in_elements: Option<u64>,
    pub(crate) out_elements: Option<u64>,
    pub(crate) size: Option<u64>,
    pub(crate) rank_start: Option<u64>,
    pub(crate) rank_stride: Option<u64>,
}

/// One node as recorded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record<'a> {
    pub(crate) id: Option<u64>,
    pub(crate) name: Cow<'a, str>,
    /// The enclosing operator first (`parent`, or the first of `ctrl_deps`), then further ones.
    pub(crate) control: Vec<u64>,
    pub(crate) data: Vec<u64>,
    pub(crate) sync: Vec<u64>,
    pub(crate) inputs: Arguments<'a>,
    pub(crate) outputs: Arguments<'a>,
    pub(crate) thread: Option<i64>,
    pub(crate) stream: Option<i64>,
    pub(crate) category: Option<Cow<'a, str>>,
    pub(crate) kernel_backend: Option<Cow<'a, str>>,
    pub(crate) start: Option<Nanos>,
    /// Microseconds.
    pub(crate) duration: Option<f64>,
    pub(crate) bytes: Option<u64>,
    pub(crate) grid: Option<String>,
    pub(crate) block: Option<String>,
    pub(crate) communication: Option<Box<Communication<'a>>>,
    // Chakra nodes as JSON.
    pub(crate) node_type: Option<i64>,
    pub(crate) on_cpu: Option<bool>,
    pub(crate) comm_type: Option<i64>,
    pub(crate) operations: Option<u64>,
    pub(crate) dimensions: Option<Vec<u64>>,
    pub(crate) peer: Option<i64>,
    pub(crate) tag: Option<i64>,
}

/// Names of fields that no known schema has, with how often they were met.
pub(crate) type UnknownFields = BTreeMap<String, u64>;

/// Distinct unknown names kept; a file of garbage must not fill the memory.
const MAX_UNKNOWN: usize = 64;

impl<'a> Record<'a> {
    /// Reads one JSON object. Fields of unknown names are counted in `unknown`.
    pub(crate) fn parse(
        json: &'a str,
        unknown: &mut UnknownFields,
    ) -> Result<Self, serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let record = deserializer.deserialize_map(RecordVisitor { unknown })?;
        deserializer.end()?;
        Ok(record)
    }

    fn set(&mut self, key: &str, value: Loose<'a>, unknown: &mut UnknownFields) {
        match plain_key(key).as_str() {
            "id" => self.id = value.id(),
            "name" => self.name = value.text().unwrap_or_default(),
            "parent" => self.control.splice(0..0, value.ids()).for_each(drop),
            "ctrldeps" | "controldeps" | "ctrldep" => self.control.extend(value.ids()),
            "datadeps" | "datadep" => self.data.extend(value.ids()),
            "syncdep" | "syncdeps" | "interthreaddep" => self.sync.extend(value.ids()),
            "tid" => self.thread = narrow(&value),
            "stream" => self.stream = narrow(&value),
            "cat" => self.category = value.text(),
            "kernelbackend" => self.kernel_backend = value.text(),
            "ts" | "timestamp" | "starttimemicros" => self.start = value.micros(),
            "dur" | "runtime" | "durationmicros" | "exclusivedur" => {
                self.duration = value.number().or(self.duration);
            }
            "nodetype" | "type" => self.node_type = narrow(&value),
            "iscpuop" => self.on_cpu = value.truth(),
            "commtype" => self.comm_type = narrow(&value),
            "commsize" | "tensorsize" => self.bytes = value.id().or(self.bytes),
            "numops" => self.operations = value.id(),
            "involveddim" => self.dimensions = Some(value.ids()),
            "commsrc" | "commdst" | "commgroup" | "commtag" | "commpriority" => {
                self.set_message(key, &value);
            }
            "collectivename" | "dtype" | "pgname" | "pgdesc" | "inmsgnelems" | "outmsgnelems"
            | "pgsize" | "globalrankstart" | "globalrankstride" => {
                self.set_communication(key, value);
            }
            key if IGNORED.contains(&key) => {}
            _ => count_unknown(unknown, key),
        }
    }

    fn set_message(&mut self, key: &str, value: &Loose<'a>) {
        match plain_key(key).as_str() {
            "commsrc" | "commdst" => self.peer = narrow(value),
            "commtag" => self.tag = narrow(value),
            "commgroup" => {
                let group = value.int().map(|group| group.to_string().into());
                self.communication.get_or_insert_default().group = group;
            }
            _ => {}
        }
    }

    fn set_communication(&mut self, key: &str, value: Loose<'a>) {
        let facts = self.communication.get_or_insert_default();
        match plain_key(key).as_str() {
            "collectivename" => facts.collective = value.text(),
            "dtype" => facts.dtype = value.text(),
            "pgname" => facts.group = value.text(),
            "pgdesc" => facts.description = value.text(),
            "inmsgnelems" => facts.in_elements = value.id(),
            "outmsgnelems" => facts.out_elements = value.id(),
            "pgsize" => facts.size = value.id(),
            "globalrankstart" => facts.rank_start = value.id(),
            _ => facts.rank_stride = value.id(),
        }
    }
}

/// Known fields that the step graph has no use for.
const IGNORED: [&str; 22] = [
    "rfid",
    "fwparent",
    "seqid",
    "scope",
    "fwtid",
    "opschema",
    "kernelfile",
    "tensorrange",
    "insplitsize",
    "outsplitsize",
    "ph",
    "pid",
    "externalid",
    "inclusivedur",
    "inputshapes",
    "outputshapes",
    "correlation",
    "iswait",
    "seq",
    "isp2p",
    "isasync",
    "rank",
];

fn narrow(value: &Loose<'_>) -> Option<i64> {
    value.int().and_then(|value| i64::try_from(value).ok())
}

fn count_unknown(unknown: &mut UnknownFields, key: &str) {
    if let Some(count) = unknown.get_mut(key) {
        *count += 1;
    } else if unknown.len() < MAX_UNKNOWN {
        unknown.insert(key.chars().take(80).collect(), 1);
    }
}

struct RecordVisitor<'u> {
    unknown: &'u mut UnknownFields,
}

impl<'de> Visitor<'de> for RecordVisitor<'_> {
    type Value = Record<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut record = Record::default();
        while let Some(Key(key)) = map.next_key()? {
            match &*key {
                "inputs" => merge(&mut record.inputs, read_arguments(map.next_value()?)),
                "outputs" => merge(&mut record.outputs, read_arguments(map.next_value()?)),
                "input_shapes" => record.inputs.shapes = Some(map.next_value()?),
                "input_types" => record.inputs.types = Some(map.next_value()?),
                "output_shapes" => record.outputs.shapes = Some(map.next_value()?),
                "output_types" => record.outputs.types = Some(map.next_value()?),
                "input_strides" | "output_strides" => {
                    map.next_value::<IgnoredAny>()?;
                }
                "attrs" | "attr" => {
                    for (name, value) in map.next_value::<AttributeList<'de>>()?.0 {
                        record.set(&name, value, self.unknown);
                    }
                }
                "args" => apply_kineto(&mut record, map.next_value::<KinetoArgs>()?),
                _ => record.set(&key, map.next_value()?, self.unknown),
            }
        }
        Ok(record)
    }
}

/// A key, borrowed where it has no escapes.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Loose::deserialize(deserializer)? {
            Loose::Str(text) => Ok(Self(text)),
            _ => Ok(Self(Cow::Borrowed(""))),
        }
    }
}

fn merge<'a>(into: &mut Arguments<'a>, from: Arguments<'a>) {
    into.values = from.values.or(into.values);
    into.shapes = from.shapes.or(into.shapes);
    into.types = from.types.or(into.types);
}

/// Old schemas have the bare list of values, newer ones an object.
fn read_arguments(raw: &RawValue) -> Arguments<'_> {
    if raw.get().starts_with('{')
        && let Ok(fields) = serde_json::from_str::<BTreeMap<Cow<'_, str>, &RawValue>>(raw.get())
    {
        let field = |name: &str| fields.get(name).copied();
        return Arguments {
            values: field("values"),
            shapes: field("shapes"),
            types: field("types"),
        };
    }
    Arguments { values: Some(raw), ..Arguments::default() }
}

struct AttributeList<'a>(Vec<(Cow<'a, str>, Loose<'a>)>);

impl<'de> Deserialize<'de> for AttributeList<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor;
        impl<'de> Visitor<'de> for ListVisitor {
            type Value = AttributeList<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of {name, type, value} objects")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(Attribute(name, value)) = seq.next_element()? {
                    list.push((name, value));
                }
                Ok(AttributeList(list))
            }
        }
        deserializer.deserialize_seq(ListVisitor)
    }
}

struct Attribute<'a>(Cow<'a, str>, Loose<'a>);

impl<'de> Deserialize<'de> for Attribute<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ItemVisitor;
        impl<'de> Visitor<'de> for ItemVisitor {
            type Value = Attribute<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a {name, type, value} object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut name, mut content) = (Cow::Borrowed(""), Loose::None);
                while let Some(Key(key)) = map.next_key()? {
                    let value: Loose<'de> = map.next_value()?;
                    match &*key {
                        "name" => name = value.text().unwrap_or_default(),
                        "type" | "doc_string" => {}
                        // "value", or the protobuf JSON mapping ("int64Val").
                        _ => content = value,
                    }
                }
                Ok(Attribute(name, content))
            }
        }
        deserializer.deserialize_map(ItemVisitor)
    }
}

/// What a merged Kineto event says in its `args`.
#[derive(Default)]
struct KinetoArgs {
    stream: Option<i64>,
    bytes: Option<u64>,
    grid: Option<String>,
    block: Option<String>,
}

impl<'de> Deserialize<'de> for KinetoArgs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = BTreeMap::<Cow<'de, str>, Loose<'de>>::deserialize(deserializer)?;
        let extent = |name: &str| match fields.get(name) {
            Some(Loose::List(sizes)) => {
                Some(sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
            }
            _ => None,
        };
        Ok(Self {
            stream: fields.get("stream").and_then(narrow),
            bytes: fields.get("bytes").and_then(Loose::id),
            grid: extent("grid"),
            block: extent("block"),
        })
    }
}

fn apply_kineto(record: &mut Record<'_>, args: KinetoArgs) {
    record.stream = args.stream.or(record.stream);
    record.bytes = args.bytes.or(record.bytes);
    record.grid = args.grid;
    record.block = args.block;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_layouts_give_the_same_record() {
        let old = r#"{"name": "aten::mm", "id": 5, "parent": 2, "tid": 1, "rf_id": 3,
            "inputs": [[1, 2, 0, 4, 4, "cpu"]], "input_shapes": [[2, 2]], "input_types": ["Tensor(float)"]}"#;
        let new = r#"{"id": 5, "name": "aten::mm", "ctrl_deps": 2,
            "inputs": {"values": [[1, 2, 0, 4, 4, "cpu"]], "shapes": [[2, 2]], "types": ["Tensor(float)"]},
            "attrs": [{"name": "rf_id", "type": "uint64", "value": 3}, {"name": "tid", "type": "uint64", "value": 1}]}"#;
        let mut unknown = UnknownFields::new();
        let (a, b) =
            (Record::parse(old, &mut unknown).unwrap(), Record::parse(new, &mut unknown).unwrap());
        assert_eq!((a.id, &a.name, &a.control, a.thread), (b.id, &b.name, &b.control, b.thread));
        assert_eq!(a.inputs.shapes.unwrap().get(), b.inputs.shapes.unwrap().get());
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn unknown_fields_are_named_and_capped() {
        let mut unknown = UnknownFields::new();
        Record::parse(r#"{"id": 1, "quantum": 7}"#, &mut unknown).unwrap();
        assert_eq!(unknown.get("quantum"), Some(&1));
        let many: String = (0..200).map(|i| format!(",\"q{i}\":0")).collect();
        Record::parse(&format!("{{\"id\":1{many}}}"), &mut unknown).unwrap();
        assert_eq!(unknown.len(), MAX_UNKNOWN);
    }
}
