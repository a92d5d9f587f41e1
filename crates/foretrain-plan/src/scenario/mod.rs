//! Plans as units of work: a scenario in, a row out, so that any launcher can spread many of them
//! over machines and one step can put the rows together again.

mod lines;
mod merge;
mod parquet;
mod rows;
mod run;
mod shard;
mod study;

use foretrain_core::Bytes;
use foretrain_hardware::Cluster;
use foretrain_workload::model::Model;
use serde::{Deserialize, Serialize};

pub use merge::merge;
pub use parquet::to_parquet;
pub use rows::{parse_rows, read_rows, to_json_lines};
pub use run::{Resolver, run};
pub use shard::Shard;
pub use study::{MOST_SCENARIOS, Study};

use crate::layout::Schedule;
use crate::{Software, Training};

/// One plan to be made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Scenario {
    /// A model of the library, or a file.
    pub model: String,
    /// What that name stood for ([`model_hash`]) when the scenario was written; `None` for whatever
    /// it stands for.
    #[serde(default)]
    pub model_hash: Option<String>,
    /// A cluster or node type, or a file.
    pub cluster: String,
    /// What that name stood for ([`cluster_hash`]).
    #[serde(default)]
    pub cluster_hash: Option<String>,
    /// Devices.
    pub devices: u32,
    /// What is trained.
    pub training: Training,
    /// How software runs it.
    pub software: Software,
    /// Choices that are made, as in `tp=8,pp=4`.
    #[serde(default)]
    pub pins: String,
    /// Schedules to try where the pins leave them open; those of the software if empty.
    #[serde(default)]
    pub schedules: Vec<Schedule>,
    /// Memory that a device may be filled with; all of it if `None`.
    #[serde(default)]
    pub memory: Option<Bytes>,
    /// US dollars per device and hour; the catalogue's if `None`.
    #[serde(default)]
    pub price: Option<f64>,
}

/// What became of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The best layout fits for certain.
    Fits,
    /// It fits in the middle of the memory's range.
    Tight,
    /// No layout fits; the row holds the one that comes nearest.
    TooLarge,
    /// There is no layout at all.
    Refused,
}

impl Outcome {
    /// Its name, as written in rows.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::Tight => "tight",
            Self::TooLarge => "too-large",
            Self::Refused => "refused",
        }
    }
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Fits, Self::Tight, Self::TooLarge, Self::Refused];
}

/// The answer to one scenario. Numbers that are no integers have nine digits at most, so that text
/// holds them exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultRow {
    /// The study it belongs to ([`Study::hash`]).
    pub study: String,
    /// Position in the study, counted from 0.
    pub scenario: u64,
    /// The scenario's model.
    pub model: String,
    /// The scenario's cluster.
    pub cluster: String,
    /// The scenario's devices.
    pub devices: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// Why there is no layout.
    pub reason: Option<String>,
    /// The best layout, or the one that comes nearest to fitting.
    pub layout: Option<String>,
    /// Its step time, nanoseconds.
    pub step_ns: Option<i64>,
    /// Lower end of the 80 % interval.
    pub step_low_ns: Option<i64>,
    /// Upper end.
    pub step_high_ns: Option<i64>,
    /// Tokens (or samples) per second.
    pub tokens_per_second: Option<f64>,
    /// Model FLOPs over the dense peak, 0 to 1.
    pub mfu: Option<f64>,
    /// US dollars for a million tokens.
    pub dollars_per_million_tokens: Option<f64>,
    /// Most likely use of the fullest device.
    pub memory_bytes: Option<u64>,
    /// Layouts that were looked at.
    pub looked_at: u64,
}

/// What a model is: two models with the same layers have the same hash.
pub fn model_hash(model: &Model) -> String {
    hash_of(&model.blocks)
}

/// What a cluster is.
pub fn cluster_hash(cluster: &Cluster) -> String {
    hash_of(cluster)
}

fn hash_of(value: &impl Serialize) -> String {
    // Plain data in a fixed order; none of it fails to serialise.
    hash(serde_json::to_string(value).unwrap_or_default().as_bytes())
}

/// FNV-1a, 64 bits: tells files apart that were mixed up, not those made to deceive.
fn hash(bytes: &[u8]) -> String {
    let fold = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, fold))
}
