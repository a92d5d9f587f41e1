//! A device and its models in TOML.

use std::collections::BTreeMap;

use foretrain_core::{Bytes, InputError, Nanos, Result};
use serde::Deserialize;

use super::{Edge, EdgeModel, Run, Shared, short};

/// As written. Sizes are gigabytes of 10^9 bytes, times milliseconds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    #[serde(default = "usual_runtime")]
    runtime_gb: f64,
    #[serde(default = "usual_rate")]
    frames_per_second: f64,
    #[serde(default = "usual_deadline")]
    deadline_ms: f64,
    #[serde(default = "usual_frames")]
    frames: u32,
    model: Vec<ModelSpec>,
    #[serde(default)]
    shared: Vec<SharedSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelSpec {
    name: String,
    load_ms: f64,
    load_gb: f64,
    run: Vec<RunSpec>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunSpec {
    batch: u32,
    ms: f64,
    gb: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SharedSpec {
    model: String,
    beside: String,
    load_ms: f64,
    load_gb: f64,
}

const fn usual_runtime() -> f64 {
    0.8
}
const fn usual_rate() -> f64 {
    30.0
}
const fn usual_deadline() -> f64 {
    100.0
}
const fn usual_frames() -> u32 {
    3000
}

/// The device of a file's text.
///
/// # Errors
/// If it is no TOML, holds unknown keys, or cannot be simulated; the error names the place.
pub fn parse(text: &str) -> Result<Edge> {
    let described: Description = foretrain_hardware::parse_toml(text)?;
    let models: Vec<EdgeModel> =
        described.model.iter().map(ModelSpec::model).collect::<Result<_>>()?;
    let numbers: BTreeMap<&str, usize> =
        models.iter().enumerate().map(|(number, model)| (model.name.as_str(), number)).collect();
    let shared = described.shared.iter().map(|pair| {
        let number = |name: &str| {
            numbers.get(name).copied().ok_or_else(|| {
                InputError::new(format!("no [[model]] is called {name:?}")).at("shared")
            })
        };
        let place = format!("shared {:?} beside {:?}", pair.model, pair.beside);
        Ok(Shared {
            model: number(&pair.model)?,
            beside: number(&pair.beside)?,
            load: time("load_ms", pair.load_ms).map_err(|error| error.at(&place))?,
            resident: size("load_gb", pair.load_gb).map_err(|error| error.at(&place))?,
        })
    });
    let edge = Edge {
        shared: shared.collect::<Result<_>>()?,
        runtime: size("runtime_gb", described.runtime_gb)?,
        rate: described.frames_per_second,
        deadline: time("deadline_ms", described.deadline_ms)?,
        frames: described.frames,
        models,
    };
    edge.check()?;
    Ok(edge)
}

impl ModelSpec {
    fn model(&self) -> Result<EdgeModel> {
        let place = |error: InputError| error.at(format!("model {:?}", self.name));
        let runs = self.run.iter().map(|run| {
            Ok(Run { batch: run.batch, time: time("ms", run.ms)?, memory: size("gb", run.gb)? })
        });
        Ok(EdgeModel {
            name: self.name.clone(),
            load: time("load_ms", self.load_ms).map_err(place)?,
            resident: size("load_gb", self.load_gb).map_err(place)?,
            runs: runs.collect::<Result<_>>().map_err(place)?,
        })
    }
}

/// A year is longer than any load.
const LONGEST: f64 = 3.2e10;
/// A petabyte is larger than any memory.
const LARGEST: f64 = 1e6;

fn time(key: &str, millis: f64) -> Result<Nanos> {
    let millis = between(key, millis, LONGEST)?;
    Ok(Nanos::from_nanos_f64(millis * 1e6))
}

fn size(key: &str, gigabytes: f64) -> Result<Bytes> {
    let gigabytes = between(key, gigabytes, LARGEST)?;
    Ok(Bytes::from_f64(gigabytes * 1e9))
}

fn between(key: &str, value: f64, most: f64) -> Result<f64> {
    if (0.0..=most).contains(&value) {
        return Ok(value);
    }
    let (value, most) = (short(value), short(most));
    Err(InputError::new(format!("{key} is {value}; expected a number from 0 to {most}")))
}
