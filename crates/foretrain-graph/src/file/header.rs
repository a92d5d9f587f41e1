//! The JSON header in the file's key-value metadata.

use foretrain_core::{InputError, Result};
use serde::{Deserialize, Serialize};

use super::{FORMAT_VERSION, damaged};
use crate::step_graph::{Group, Queue, StepMeta};

/// Key of the header in the key-value metadata.
pub(super) const KEY: &str = "foretrain";
const FORMAT: &str = "foretrain-graph";

/// The header. Fields may be added within a version; readers ignore those they do not know.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Header {
    format: String,
    version: u32,
    writer: String,
    pub(super) nodes: u64,
    pub(super) edges: Section,
    pub(super) meta: StepMeta,
    pub(super) queues: Vec<Queue>,
    pub(super) groups: Vec<Group>,
}

/// Where the edge table lies in the file.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Section {
    pub(super) rows: u64,
    pub(super) offset: u64,
    pub(super) length: u64,
}

/// The part of the header that every version has.
#[derive(Deserialize)]
struct Stamp {
    format: String,
    version: u32,
    #[serde(default)]
    writer: String,
}

impl Header {
    pub(super) fn new(nodes: u64, edges: Section, graph: &crate::StepGraph) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: FORMAT_VERSION,
            writer: concat!("foretrain ", env!("CARGO_PKG_VERSION")).to_owned(),
            nodes,
            edges,
            meta: graph.meta.clone(),
            queues: graph.queues.clone(),
            groups: graph.groups.clone(),
        }
    }

    pub(super) fn to_json(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| InputError::new(format!("cannot write the header: {error}")))
    }

    pub(super) fn parse(json: &str) -> Result<Self> {
        let bad = |error| damaged(format!("its header is not as expected: {error}"));
        let stamp: Stamp = serde_json::from_str(json).map_err(bad)?;
        if stamp.format != FORMAT {
            let format = stamp.format.escape_debug();
            return Err(InputError::new(format!(
                "expected a \"{FORMAT}\" file, found a \"{format}\" file"
            )));
        }
        if stamp.version == 0 || stamp.version > FORMAT_VERSION {
            let (version, writer) = (stamp.version, stamp.writer.escape_debug());
            return Err(InputError::new(format!(
                "the graph file has format version {version} (written by \"{writer}\"), but this \
                 release reads versions 1 to {FORMAT_VERSION}"
            ))
            .hint("use the release that wrote the file or a later one"));
        }
        serde_json::from_str(json).map_err(bad)
    }
}
