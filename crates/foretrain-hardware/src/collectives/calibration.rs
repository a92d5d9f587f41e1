//! What a user has measured on a cluster.

use std::collections::BTreeMap;

use foretrain_core::Bytes;
use serde::{Deserialize, Serialize};

use super::constants::Constant;
use super::processors::ProcessorSweep;
use crate::quantity::shown;
use crate::read::{Fault, one_of};

/// How a device library picks algorithm and protocol on several nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// As NCCL's own cost model tells it, right or wrong.
    #[default]
    Tuner,
    /// Whatever is fastest.
    Fastest,
}

/// Constants of the collective model fitted to a cluster's logs, and how far the logs lie from
/// the fitted model.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The logs, for people.
    pub logs: Vec<String>,
    /// How the library picks.
    pub choice: Choice,
    /// The NCCL version whose cost model picks as was measured, major and minor.
    pub nccl: Option<(u32, u32)>,
    /// Relative scatter of the measurements about the calibrated model.
    pub noise: f64,
    /// Fitted constants.
    pub constants: BTreeMap<Constant, f64>,
    /// Standard deviation of each fitted constant's logarithm.
    pub spreads: BTreeMap<Constant, f64>,
    /// Measured over modelled time.
    pub measured: Vec<Sweep>,
    /// Processor time of calls, where it was measured.
    pub processors: Vec<ProcessorSweep>,
}

/// Measured over modelled time of one collective on one number of ranks, by size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The collective's name, "all-reduce".
    pub collective: String,
    /// Ranks.
    pub ranks: u32,
    /// Nodes.
    pub nodes: u32,
    /// Off what other numbers of nodes agree on: it holds on these very ranks and says nothing of
    /// others.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub odd: bool,
    /// The larger of a rank's input and output buffer, growing.
    pub sizes: Vec<Bytes>,
    /// Measured over modelled time at each size.
    pub ratios: Vec<f64>,
    /// What the model takes at each size, "ring Simple"; a deviation is carried to other numbers
    /// of ranks only where they take the same. Empty if it always is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<String>,
}

/// `[clusters.NAME.collectives]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct CalibrationSpec {
    logs: Vec<String>,
    choice: Choice,
    nccl: Option<String>,
    noise: Option<f64>,
    constants: BTreeMap<String, f64>,
    spreads: BTreeMap<String, f64>,
    measured: Vec<Sweep>,
    processors: Vec<ProcessorSweep>,
}

/// Scatter of repeated nccl-tests runs where a file does not state its own.
const NOISE: f64 = 0.03;
/// A sweep has some 30 sizes; more than this is no sweep.
const MOST_SIZES: usize = 256;
/// More sweeps than any calibration has.
const MOST_SWEEPS: usize = 256;

impl CalibrationSpec {
    /// Checks every figure. `path` leads to the table.
    pub(crate) fn build(&self, path: &[&str]) -> Result<Calibration, Fault> {
        let noise = self.noise.unwrap_or(NOISE);
        if !(0.0..=1.0).contains(&noise) {
            let message = format!("noise {noise} is not between 0 and 1");
            return Err(Fault::new(&[path, &["noise"]].concat(), message));
        }
        let nccl = self.nccl.as_deref().map(version).transpose();
        let nccl = nccl.map_err(|why| Fault::new(&[path, &["nccl"]].concat(), why))?;
        let constants = named(&self.constants, &[path, &["constants"]].concat(), Constant::bounds)?;
        let spreads = named(&self.spreads, &[path, &["spreads"]].concat(), |_| (0.0, 3.0))?;
        check_all("measured", &self.measured, Sweep::check, path)?;
        check_all("processors", &self.processors, ProcessorSweep::check, path)?;
        Ok(Calibration {
            logs: self.logs.clone(),
            choice: self.choice,
            nccl,
            noise,
            constants,
            spreads,
            measured: self.measured.clone(),
            processors: self.processors.clone(),
        })
    }
}

/// Checks each sweep of a list.
fn check_all<T>(
    list: &str,
    sweeps: &[T],
    check: impl Fn(&T) -> Result<(), String>,
    path: &[&str],
) -> Result<(), Fault> {
    if sweeps.len() > MOST_SWEEPS {
        let message = format!("{} sweeps; at most {MOST_SWEEPS}", sweeps.len());
        return Err(Fault::new(&[path, &[list]].concat(), message));
    }
    for (index, sweep) in sweeps.iter().enumerate() {
        let at = index.to_string();
        check(sweep).map_err(|why| Fault::new(&[path, &[list, &at]].concat(), why))?;
    }
    Ok(())
}

/// Digits of a figure that a file keeps: measurements repeat no better.
const DIGITS: usize = 3;

/// The number with four significant digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.DIGITS$e}").parse().unwrap_or(value)
}

impl Calibration {
    /// With the digits that a file keeps, so that what is written is what is read.
    #[must_use]
    pub fn rounded(mut self) -> Self {
        let maps = [&mut self.constants, &mut self.spreads];
        let figures = maps.into_iter().flat_map(BTreeMap::values_mut);
        let ratios = self.measured.iter_mut().flat_map(|sweep| &mut sweep.ratios);
        let times = self.processors.iter_mut().flat_map(|sweep| &mut sweep.times_us);
        for figure in figures.chain(ratios).chain(times).chain([&mut self.noise]) {
            *figure = rounded(*figure);
        }
        self
    }
}

/// "2.19" as (2, 19).
fn version(text: &str) -> Result<(u32, u32), String> {
    let parts = text.split_once('.').and_then(|(major, minor)| {
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    });
    parts.ok_or_else(|| format!("{} is no version such as \"2.19\"", shown(text)))
}

/// Checks what every sweep has: growing sizes with as many figures (called `what`), and ranks that
/// are on as many nodes at most.
///
/// # Errors
/// What is wrong.
pub(super) fn check_shape(
    (ranks, nodes): (u32, u32),
    sizes: &[Bytes],
    figures: usize,
    what: &str,
) -> Result<(), String> {
    let count = sizes.len();
    if count != figures || count == 0 || count > MOST_SIZES {
        return Err(format!(
            "expected 1 to {MOST_SIZES} sizes and as many {what}, found {count} and {figures}"
        ));
    }
    if ranks < 2 || nodes < 1 || nodes > ranks {
        return Err(format!("{ranks} ranks on {nodes} nodes"));
    }
    if sizes.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err("sizes do not grow".to_owned());
    }
    Ok(())
}

impl Sweep {
    fn check(&self) -> Result<(), String> {
        check_shape((self.ranks, self.nodes), &self.sizes, self.ratios.len(), "ratios")?;
        let sizes = self.sizes.len();
        if !self.ways.is_empty() && self.ways.len() != sizes {
            return Err(format!("expected {sizes} ways or none, found {}", self.ways.len()));
        }
        match self.ratios.iter().find(|ratio| !(1e-3..=1e3).contains(*ratio)) {
            Some(ratio) => Err(format!("ratio {ratio} is not between 0.001 and 1000")),
            None => Ok(()),
        }
    }
}

fn named(
    values: &BTreeMap<String, f64>,
    path: &[&str],
    bounds: impl Fn(Constant) -> (f64, f64),
) -> Result<BTreeMap<Constant, f64>, Fault> {
    let mut known = BTreeMap::new();
    for (name, &value) in values {
        let path = [path, &[name.as_str()]].concat();
        let Some(constant) = Constant::named(name) else {
            let names = Constant::ALL.map(Constant::name);
            let message = format!("unknown constant {}", shown(name));
            return Err(Fault::new(&path, message).hint(one_of(name, &names)));
        };
        let (low, high) = bounds(constant);
        if !(low..=high).contains(&value) {
            let message = format!("{value} is not between {low} and {high}");
            return Err(Fault::new(&path, message));
        }
        known.insert(constant, value);
    }
    Ok(known)
}
