//! Profiles in TOML or JSON; `docs/varuna.md` explains the keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::{Bandwidth, Bytes, InputError, Nanos, Result};
use foretrain_hardware::parse_toml;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::quantity::Quantity;
use super::{Costs, CutPoint, Line, MOST_CUT_POINTS, Network, Profile, Reach};

/// The form that is read.
pub const VERSION: u32 = 1;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    varuna_profile: u32,
    model: Option<String>,
    gpu: Option<String>,
    #[serde(default = "one")]
    tensor_parallel: u32,
    element_bytes: Option<u32>,
    #[serde(default)]
    cut_point: Vec<CutPointSpec>,
    #[serde(default)]
    message: Vec<MessageSpec>,
    #[serde(default)]
    all_reduce: Vec<AllReduceSpec>,
    #[serde(default)]
    network: NetworkSpec,
}

const fn one() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CutPointSpec {
    name: String,
    #[serde(default = "one")]
    repeat: u32,
    update: Option<Quantity<Nanos>>,
    at: Vec<CostsSpec>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CostsSpec {
    micro_batch: u32,
    forward: Quantity<Nanos>,
    backward: Quantity<Nanos>,
    copy: Option<Quantity<Nanos>>,
    max_memory: Option<Quantity<Bytes>>,
    activation: Option<Quantity<Bytes>>,
    saved: Option<Quantity<Bytes>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageSpec {
    bytes: Option<Quantity<Bytes>>,
    elements: Option<u64>,
    send: Option<Quantity<Nanos>>,
    long_send: Option<Quantity<Nanos>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AllReduceSpec {
    stages: u32,
    ring: u32,
    time: Quantity<Nanos>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkSpec {
    send: Option<LineSpec>,
    long_send: Option<LineSpec>,
    all_reduce: Option<LineSpec>,
    gradients: Option<Quantity<Bytes>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineSpec {
    latency: Quantity<Nanos>,
    bandwidth: Quantity<Bandwidth>,
}

/// Reads the text of a profile: JSON if it begins with a brace, else TOML.
///
/// # Errors
/// If it is neither, of another version, or an entry is missing, not known, doubled or impossible; the
/// error names it.
pub fn parse(text: &str) -> Result<Profile> {
    let text = text.trim_start_matches('\u{feff}');
    let is_json = text.trim_start().starts_with('{');
    let file: File = if is_json { parse_json(text)? } else { parse_toml(text)? };
    if file.varuna_profile != VERSION {
        let message = format!("version {} of the form is not known", file.varuna_profile);
        return Err(InputError::new(message)
            .at("varuna_profile")
            .hint(format!("write varuna_profile = {VERSION}")));
    }
    if file.tensor_parallel == 0 {
        return Err(zero("tensor_parallel"));
    }
    let network = Network {
        messages: [file.network.send, file.network.long_send].map(|line| line.map(Into::into)),
        ring: file.network.all_reduce.map(Into::into),
        gradients: file.network.gradients.map(|bytes| bytes.0),
    };
    Ok(Profile {
        model: file.model,
        gpu: file.gpu,
        tensor_parallel: file.tensor_parallel,
        cut_points: cut_points(file.cut_point)?,
        messages: messages(&file.message, file.element_bytes)?,
        all_reduce: all_reduces(&file.all_reduce)?,
        network,
    })
}

fn parse_json<T: DeserializeOwned>(text: &str) -> Result<T> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        InputError::new(error.into_inner().to_string()).at(path)
    })?;
    deserializer.end().map_err(|error| InputError::new(error.to_string()).at("the end"))?;
    Ok(read)
}

fn zero(place: impl Into<String>) -> InputError {
    InputError::new("0, expected 1 or more").at(place)
}

impl From<LineSpec> for Line {
    fn from(spec: LineSpec) -> Self {
        Self { latency: spec.latency.0, bandwidth: spec.bandwidth.0 }
    }
}

fn cut_points(specs: Vec<CutPointSpec>) -> Result<Vec<Arc<CutPoint>>> {
    let mut all: Vec<Arc<CutPoint>> = Vec::new();
    for (index, spec) in specs.into_iter().enumerate() {
        let place = format!("cut_point.{index}");
        let repeat = spec.repeat as usize;
        if repeat == 0 {
            return Err(zero(format!("{place}.repeat")));
        }
        if all.len() + repeat > MOST_CUT_POINTS {
            let message = format!("more than {MOST_CUT_POINTS} cut-points");
            return Err(InputError::new(message).at(place));
        }
        let mut costs = BTreeMap::new();
        for (at, entry) in spec.at.iter().enumerate() {
            let place = format!("{place}.at.{at}.micro_batch");
            if entry.micro_batch == 0 {
                return Err(zero(place));
            }
            if costs.insert(entry.micro_batch, entry.costs(&place)?).is_some() {
                let message = format!("micro-batch {} stands there twice", entry.micro_batch);
                return Err(InputError::new(message).at(place));
            }
        }
        let one =
            |name| CutPoint { name, costs: costs.clone(), update: spec.update.map(|time| time.0) };
        if repeat == 1 {
            all.push(Arc::new(one(spec.name)));
        } else {
            all.extend((0..repeat).map(|n| Arc::new(one(format!("{}.{n}", spec.name)))));
        }
    }
    Ok(all)
}

impl CostsSpec {
    fn costs(&self, place: &str) -> Result<Costs> {
        let costs = Costs {
            forward: self.forward.0,
            backward: self.backward.0,
            copy: self.copy.map(|time| time.0),
            max_memory: self.max_memory.map(|bytes| bytes.0),
            activation: self.activation.map(|bytes| bytes.0),
            saved: self.saved.map(|bytes| bytes.0),
        };
        match (costs.max_memory, costs.activation) {
            (Some(most), Some(own)) if own > most => {
                Err(InputError::new(format!("an activation of {own} in at most {most} of memory"))
                    .at(place)
                    .hint("max_memory holds the activation too"))
            }
            _ => Ok(costs),
        }
    }
}

fn messages(
    specs: &[MessageSpec],
    element_bytes: Option<u32>,
) -> Result<[BTreeMap<Bytes, Nanos>; 2]> {
    let mut all = [BTreeMap::new(), BTreeMap::new()];
    for (index, spec) in specs.iter().enumerate() {
        let fail = |text: String| Err(InputError::new(text).at(format!("message.{index}")));
        let bytes = match (&spec.bytes, spec.elements, element_bytes) {
            (Some(bytes), None, _) => bytes.0,
            (None, Some(elements), Some(size)) if elements > 0 && size > 0 => {
                Bytes::new(elements.saturating_mul(size.into()))
            }
            (None, Some(_), Some(_)) => return fail("0 elements or 0 bytes each".into()),
            (None, Some(_), None) => {
                return fail("elements of unknown size; give element_bytes at the head".into());
            }
            _ => return fail("expected either bytes or elements".into()),
        };
        if spec.send.is_none() && spec.long_send.is_none() {
            return fail("neither send nor long_send".into());
        }
        for (reach, time) in [(Reach::Near, spec.send), (Reach::Far, spec.long_send)] {
            let Some(time) = time else { continue };
            if all[reach as usize].insert(bytes, time.0).is_some() {
                return fail(format!("{} of {bytes} stands there twice", reach.as_str()));
            }
        }
    }
    Ok(all)
}

fn all_reduces(specs: &[AllReduceSpec]) -> Result<BTreeMap<u32, BTreeMap<u32, Nanos>>> {
    let mut all: BTreeMap<u32, BTreeMap<u32, Nanos>> = BTreeMap::new();
    for (index, spec) in specs.iter().enumerate() {
        let place = format!("all_reduce.{index}");
        if spec.stages == 0 {
            return Err(zero(format!("{place}.stages")));
        }
        if spec.ring < 2 {
            return Err(InputError::new(format!("a ring of {}, expected 2 or more", spec.ring))
                .at(format!("{place}.ring")));
        }
        if all.entry(spec.stages).or_default().insert(spec.ring, spec.time.0).is_some() {
            return Err(InputError::new(format!(
                "{} stages in rings of {} stand there twice",
                spec.stages, spec.ring
            ))
            .at(place));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str = r#"
varuna_profile = 1
model = "tiny"
element_bytes = 2

[[cut_point]]
name = "block"
repeat = 2
at = [{ micro_batch = 1, forward = "10ms", backward = "20ms", activation = "1MiB" }]

[[message]]
elements = 524288
send = "1ms"
long_send = "5ms"

[[all_reduce]]
stages = 2
ring = 4
time = "50ms"

[network]
send = { latency = "10us", bandwidth = "10GB/s" }
"#;

    #[test]
    fn toml_and_json_give_the_same() {
        let toml = parse(TOML).unwrap();
        let names: Vec<&str> = toml.cut_points.iter().map(|cut| cut.name.as_str()).collect();
        assert_eq!(names, ["block.0", "block.1"]);
        assert_eq!(toml.messages[1][&Bytes::from_mib(1)], Nanos::from_millis(5));
        assert_eq!(toml.all_reduce[&2][&4], Nanos::from_millis(50));
        let value: toml::Value = toml::from_str(TOML).unwrap();
        let json = serde_json::to_string_pretty(&value).unwrap();
        assert_eq!(parse(&json).unwrap(), toml);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let said = |from: &str, to: &str| {
            assert!(TOML.contains(from), "{from}");
            let error = parse(&TOML.replace(from, to)).unwrap_err();
            format!("{error} {}", error.hints().join(" "))
        };
        for (from, to, expected) in [
            ("varuna_profile = 1", "varuna_profile = 2", "version 2"),
            ("\"10ms\"", "10", "a time with its unit"),
            ("\"10ms\"", "\"-10ms\"", "a time with its unit"),
            ("\"10ms\"", "\"99999999s\"", "more than a day"),
            ("forward =", "forwrd =", "forward"),
            ("repeat = 2", "repeat = 0", "cut_point.0.repeat"),
            ("repeat = 2", "repeat = 4000000000", "more than 10000"),
            ("micro_batch = 1", "micro_batch = 0", "micro_batch"),
            ("element_bytes = 2", "", "element_bytes"),
            ("ring = 4", "ring = 1", "ring of 1"),
            ("activation =", "max_memory = 7, activation =", "at most 7 B"),
        ] {
            let found = said(from, to);
            assert!(found.contains(expected), "{to}: {found}");
        }
        let twice = format!("{TOML}\n[[all_reduce]]\nstages = 2\nring = 4\ntime = \"1ms\"\n");
        assert!(parse(&twice).is_err(), "entries after a table of another kind");
        for text in ["", "{", "{}", "[", "\u{feff}", "{\"varuna_profile\": 1} x"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
