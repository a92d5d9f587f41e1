//! The JSON file around the nodes.

use std::fmt;

use foretrain_core::diagnostics::Severity;
use foretrain_core::{InputError, Ledger, Result};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::loose::{Loose, plain_key};
use super::record::{Record, UnknownFields};
use crate::graph_file::SeenIds;

/// What a JSON execution trace holds.
#[derive(Debug, Default)]
pub(crate) struct Document<'a> {
    pub(crate) schema: Option<String>,
    /// Chakra nodes as JSON (`workload_graph`) rather than PyTorch ones.
    pub(crate) chakra: bool,
    pub(crate) world_size: Option<u64>,
    /// Nodes with distinct ids, in the order of the file.
    pub(crate) records: Vec<Record<'a>>,
    /// Nodes met, damaged ones included.
    pub(crate) seen: u64,
    pub(crate) unknown: UnknownFields,
}

impl<'a> Document<'a> {
    /// Reads as many nodes as the text holds.
    ///
    /// # Errors
    /// If the text is no JSON object with nodes.
    pub(crate) fn parse(text: &'a str, path: &str, ledger: &mut Ledger) -> Result<Self> {
        let mut document = Document::default();
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let outcome = deserializer
            .deserialize_map(DocumentVisitor { document: &mut document, ledger })
            .and_then(|()| deserializer.end());
        if let Err(error) = outcome {
            let place = format!("line {}, column {}", error.line(), error.column());
            if document.records.is_empty() {
                return Err(InputError::new(format!("not a readable execution trace: {error}"))
                    .at(place)
                    .in_file(path)
                    .hint("expected a JSON object with \"schema\" and a list of \"nodes\""));
            }
            ledger.record_many(
                Severity::Dropped,
                "truncated-file",
                "the JSON ends early or is damaged; what follows was left out",
                1,
                Some(place),
            );
        }
        Ok(document)
    }
}

struct DocumentVisitor<'d, 'a> {
    document: &'d mut Document<'a>,
    ledger: &'d mut Ledger,
}

impl<'de> Visitor<'de> for DocumentVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with \"schema\" and \"nodes\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Loose::Str(key)) = map.next_key::<Loose<'de>>()? {
            match plain_key(&key).as_str() {
                "nodes" | "workloadgraph" => {
                    self.document.chakra = plain_key(&key) == "workloadgraph";
                    map.next_value_seed(NodesSeed {
                        document: &mut *self.document,
                        ledger: &mut *self.ledger,
                    })?;
                }
                "schema" | "version" => {
                    let text = map.next_value::<Loose<'de>>()?.text();
                    self.document.schema = text.map(|text| text.chars().take(80).collect());
                }
                "ngpus" => self.document.world_size = map.next_value::<Loose<'de>>()?.id(),
                "pid" | "time" | "startts" | "finishts" | "workloadname" | "soc" => {
                    map.next_value::<IgnoredAny>()?;
                }
                other => {
                    map.next_value::<IgnoredAny>()?;
                    if self.document.unknown.len() < 64 {
                        let name = other.chars().take(80).collect();
                        *self.document.unknown.entry(name).or_default() += 1;
                    }
                }
            }
        }
        Ok(())
    }
}

struct NodesSeed<'d, 'a> {
    document: &'d mut Document<'a>,
    ledger: &'d mut Ledger,
}

impl<'de> DeserializeSeed<'de> for NodesSeed<'_, 'de> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for NodesSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of nodes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut ids = SeenIds::default();
        while let Some(raw) = seq.next_element::<&'de RawValue>()? {
            let place = self.document.seen;
            self.document.seen += 1;
            match Record::parse(raw.get(), &mut self.document.unknown) {
                Ok(record) => match record.id {
                    Some(id) if ids.is_new(id, self.ledger) => self.document.records.push(record),
                    Some(_) => {}
                    None => self.ledger.record(
                        Severity::Dropped,
                        "node-without-id",
                        "a node without an id was left out",
                    ),
                },
                Err(error) => self.ledger.record_at(
                    Severity::Dropped,
                    "damaged-node",
                    "a node cannot be read",
                    || format!("nodes.{place}: {error}"),
                ),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_file_keeps_its_whole_nodes() {
        let text = r#"{"schema": "1.0.1", "nodes": [{"id": 1}, {"id": 2}, {"id"#;
        let mut ledger = Ledger::new();
        let document = Document::parse(text, "a.json", &mut ledger).unwrap();
        assert_eq!(document.records.len(), 2);
        assert_eq!(ledger.count("truncated-file"), 1);
    }

    #[test]
    fn a_bad_node_does_not_harm_its_neighbours() {
        let text = r#"{"nodes": [{"id": 1}, 7, {"id": 2, "inputs": 3}, {"id": 3}]}"#;
        let mut ledger = Ledger::new();
        let document = Document::parse(text, "a.json", &mut ledger).unwrap();
        assert_eq!((document.records.len(), document.seen), (3, 4));
        assert!(ledger.get("damaged-node").unwrap().places[0].starts_with("nodes.1: "));
    }

    #[test]
    fn other_json_is_refused_with_a_place() {
        let error = Document::parse("[1, 2]", "a.json", &mut Ledger::new()).unwrap_err();
        assert!(error.to_string().contains("line 1"), "{error}");
        assert!(!error.hints().is_empty());
    }
}
