//! The JSON of `strategies`.

use foretrain_rewrite::strategy::{Kind, Parameter, PassKind, Preset};
use schemars::JsonSchema;
use serde::Serialize;

/// What strategies can be composed of. Lists that were not asked for are empty.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StrategiesReport {
    /// `foretrain/strategies/1`.
    pub schema: String,
    /// Strategies that have a name.
    pub strategies: Vec<StrategyReport>,
    /// Passes.
    pub passes: Vec<PassReport>,
}

/// A named strategy.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StrategyReport {
    /// Its name.
    pub name: String,
    /// Its passes.
    pub passes: String,
    /// What it stands for.
    pub about: String,
}

/// A pass.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PassReport {
    /// Its name.
    pub name: String,
    /// Its place: step, fuse, shard, partition, compress, topology or schedule, in this order.
    pub stage: String,
    /// What it does.
    pub about: String,
    /// Where the mechanism is described.
    pub source: String,
    /// What it can be told; the first may be given without its name.
    pub parameters: Vec<ParameterReport>,
}

/// A parameter of a pass.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ParameterReport {
    /// Its name.
    pub name: String,
    /// `size`, `time`, `count`, `number`, `flag` or `word`.
    pub kind: String,
    /// The words it may be.
    pub words: Vec<String>,
    /// Its value where none is given.
    pub default: Option<String>,
    /// What it means.
    pub about: String,
}

impl StrategiesReport {
    /// A report of these.
    pub fn new<'a>(
        strategies: impl IntoIterator<Item = &'a Preset>,
        passes: impl IntoIterator<Item = &'a PassKind>,
    ) -> Self {
        Self {
            schema: "foretrain/strategies/1".into(),
            strategies: strategies.into_iter().map(Into::into).collect(),
            passes: passes.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<&Preset> for StrategyReport {
    fn from(preset: &Preset) -> Self {
        Self { name: preset.name.into(), passes: preset.passes.into(), about: preset.about.into() }
    }
}

impl From<&PassKind> for PassReport {
    fn from(kind: &PassKind) -> Self {
        Self {
            name: kind.name.into(),
            stage: kind.stage.as_str().into(),
            about: kind.about.into(),
            source: kind.source.into(),
            parameters: kind.parameters.iter().map(Into::into).collect(),
        }
    }
}

impl From<&Parameter> for ParameterReport {
    fn from(parameter: &Parameter) -> Self {
        let words = match parameter.kind {
            Kind::Word(words) => words.iter().map(|word| (*word).to_owned()).collect(),
            _ => Vec::new(),
        };
        Self {
            name: parameter.name.into(),
            kind: parameter.kind.as_str().into(),
            words,
            default: parameter.default.map(Into::into),
            about: parameter.about.into(),
        }
    }
}
