//! The passes there are, and strategies written in text or tables.

use std::sync::{PoisonError, RwLock};

use foretrain_core::{InputError, Result, suggest};
use serde::Deserialize;

use super::Strategy;
use super::parameters::Values;
use super::pass::{PassKind, Stage};
use super::presets::{PRESETS, Preset};

/// Stages of which a strategy has one pass at most, what two would be, and why that cannot be.
const EXCLUSIVE: [(Stage, &str, &str); 2] = [
    (Stage::Shard, "two ways of sharding", "states are sharded once"),
    (Stage::Topology, "two topologies", "gradients take one way"),
];

/// Passes that this process knows beside Foretrain's own.
static INSTALLED: RwLock<Vec<PassKind>> = RwLock::new(Vec::new());

/// Passes by name. Start from [`Registry::builtin`] and [add](Registry::add) your own.
pub struct Registry {
    kinds: Vec<PassKind>,
}

/// A strategy as a scenario file holds it: text, or a list of passes with their parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Written {
    /// `"fuse(25MiB) | ring"`, or the name of a preset.
    Text(String),
    /// `[[strategy]]` tables: `pass = "fuse"`, then parameters.
    Passes(Vec<WrittenPass>),
}

/// One pass of a scenario file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct WrittenPass {
    /// Its name.
    pub pass: String,
    /// Its parameters.
    #[serde(flatten)]
    pub parameters: std::collections::BTreeMap<String, Scalar>,
}

/// A parameter of a scenario file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// `true`, `false`.
    Flag(bool),
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// Text.
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

impl Registry {
    /// Foretrain's own passes.
    pub fn builtin() -> Self {
        Self { kinds: super::passes::all() }
    }

    /// Foretrain's own passes and those that were [installed](Self::install): what strategies that
    /// users write may name.
    pub fn current() -> Self {
        let mut registry = Self::builtin();
        registry.kinds.extend(INSTALLED.read().unwrap_or_else(PoisonError::into_inner).iter());
        registry
    }

    /// Makes a pass known to the whole process, in place of one of that name that was installed before.
    ///
    /// # Errors
    /// If Foretrain has a pass or preset of that name.
    pub fn install(kind: PassKind) -> Result<()> {
        // Refuses what is built in.
        Self::builtin().add(kind)?;
        let mut installed = INSTALLED.write().unwrap_or_else(PoisonError::into_inner);
        installed.retain(|other| other.name != kind.name);
        installed.push(kind);
        Ok(())
    }

    /// Adds a pass.
    ///
    /// # Errors
    /// If one of that name is there, or a preset is called so.
    pub fn add(&mut self, kind: PassKind) -> Result<()> {
        if self.kinds.iter().any(|k| k.name == kind.name) || preset(kind.name).is_some() {
            return Err(InputError::new(format!("there is a pass \"{}\" already", kind.name)));
        }
        self.kinds.push(kind);
        Ok(())
    }

    /// All passes, in the order in which they were added.
    pub fn kinds(&self) -> &[PassKind] {
        &self.kinds
    }

    /// Strategies that have a name.
    pub fn presets(&self) -> &'static [Preset] {
        PRESETS
    }

    /// Reads a strategy: `PASS | PASS(VALUE, NAME=VALUE) | ...`. A preset's name stands for its
    /// passes, and may be followed by more. Passes are applied in the order of their stages.
    ///
    /// # Errors
    /// If a pass or parameter is unknown, a value is not of its kind, a pass is there twice, or there
    /// are two topologies or two ways of sharding.
    pub fn parse(&self, text: &str) -> Result<Strategy> {
        let mut strategy = Strategy { passes: Vec::new(), text: text.trim().to_owned() };
        self.extend(&mut strategy, text)?;
        self.arrange(&mut strategy)?;
        Ok(strategy)
    }

    /// The same from a scenario file.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn build(&self, written: &Written) -> Result<Strategy> {
        let passes = match written {
            Written::Text(text) => return self.parse(text),
            Written::Passes(passes) => passes,
        };
        let mut strategy = Strategy { passes: Vec::new(), text: String::new() };
        for one in passes {
            let given: Vec<(String, String)> =
                one.parameters.iter().map(|(name, v)| (name.clone(), v.to_string())).collect();
            let words: Vec<String> = given.iter().map(|(n, v)| format!("{n}={v}")).collect();
            let bar = if strategy.text.is_empty() { "" } else { " | " };
            strategy.text += &format!("{bar}{}({})", one.pass, words.join(", "));
            self.push(&mut strategy, &one.pass, &given)?;
        }
        self.arrange(&mut strategy)?;
        Ok(strategy)
    }

    fn extend(&self, strategy: &mut Strategy, text: &str) -> Result<()> {
        for part in split(text, '|') {
            let (name, given) = call(part)?;
            match preset(name) {
                Some(preset) if given.is_empty() => self.extend(strategy, preset.passes)?,
                Some(preset) => {
                    return Err(InputError::new(format!(
                        "\"{name}\" names a whole strategy and takes no parameters"
                    ))
                    .hint(format!("write out its passes: {}", preset.passes)));
                }
                None => self.push(strategy, name, &given)?,
            }
        }
        Ok(())
    }

    fn push(&self, strategy: &mut Strategy, name: &str, given: &[(String, String)]) -> Result<()> {
        let position = self.kinds.iter().position(|kind| kind.name == name);
        let Some(position) = position else { return Err(self.unknown(name)) };
        let kind = &self.kinds[position];
        let in_pass = |error: InputError| {
            let hints = error.hints().to_vec();
            hints.into_iter().fold(
                InputError::new(format!("pass \"{name}\": {}", error.message())),
                InputError::hint,
            )
        };
        let values = Values::read(kind.parameters, given).map_err(in_pass)?;
        let pass = (kind.build)(&values).map_err(in_pass)?;
        strategy.passes.push((position, pass));
        Ok(())
    }

    /// Puts the passes in the order of their stages, those of one stage as they were written.
    ///
    /// # Errors
    /// If a pass is there twice, or two passes exclude each other.
    fn arrange(&self, strategy: &mut Strategy) -> Result<()> {
        strategy.passes.sort_by_key(|(position, _)| self.kinds[*position].stage);
        let kinds: Vec<&PassKind> =
            strategy.passes.iter().map(|(position, _)| &self.kinds[*position]).collect();
        for (i, kind) in kinds.iter().enumerate() {
            if kinds[..i].iter().any(|before| before.name == kind.name) {
                return Err(InputError::new(format!("\"{}\" is there twice", kind.name))
                    .hint("leave one of them out; to change a pass of a named strategy, write out its passes"));
            }
        }
        for (stage, two, why) in EXCLUSIVE {
            let mut of_stage = kinds.iter().filter(|kind| kind.stage == stage);
            if let (Some(one), Some(other)) = (of_stage.next(), of_stage.next()) {
                let names = format!("\"{}\" and \"{}\" are {two}", one.name, other.name);
                return Err(InputError::new(names).hint(format!("{why}: leave one of them out")));
            }
        }
        Ok(())
    }

    /// The error for a name that is none.
    pub fn unknown(&self, name: &str) -> InputError {
        let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name).collect();
        let presets = PRESETS.iter().map(|preset| preset.name);
        let error = InputError::new(format!("no pass or strategy \"{name}\""));
        match suggest::nearest(name, names.iter().copied().chain(presets)) {
            Some(near) => error.hint(format!("did you mean \"{near}\"?")),
            None => error.hint("`foretrain strategies` lists them"),
        }
    }
}

fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// Splits at a character outside parentheses; parts are trimmed.
fn split(text: &str, at: char) -> Vec<&str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0i32, 0);
    for (i, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            c if c == at && depth == 0 => {
                parts.push(text[from..i].trim());
                from = i + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// `NAME` or `NAME(VALUE, NAME=VALUE)`.
fn call(text: &str) -> Result<(&str, Vec<(String, String)>)> {
    let wrong = || {
        InputError::new(format!("cannot read {text:?} as a pass"))
            .hint("write PASS or PASS(VALUE, NAME=VALUE), passes separated by |")
    };
    let Some((name, rest)) = text.split_once('(') else {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
        return if !text.is_empty() && text.chars().all(is_name) {
            Ok((text, Vec::new()))
        } else {
            Err(wrong())
        };
    };
    let inner = rest.strip_suffix(')').ok_or_else(wrong)?;
    let mut given = Vec::new();
    for part in split(inner, ',').into_iter().filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some((name, value)) => given.push((name.trim().to_owned(), value.trim().to_owned())),
            None if given.iter().all(|(name, _): &(String, String)| name.is_empty()) => {
                given.push((String::new(), part.to_owned()));
            }
            None => return Err(wrong()),
        }
    }
    Ok((name.trim(), given))
}
