//! Measured values and points as people write them.

use foretrain_core::{InputError, Nanos, Result};
use foretrain_cost::Synchronisation;

use crate::scaling::input::{Measure, Point, RankKind};

/// What numbers without a unit of their own mean.
#[derive(Clone, Debug, PartialEq)]
pub enum Unit {
    /// Seconds per step, times this factor.
    Step(f64),
    /// Seconds for the same data, times this factor.
    SameData(f64),
    /// A rate of all GPUs together, in this unit.
    Throughput(String),
    /// A rate of each GPU, in this unit.
    PerGpu(String),
}

impl std::str::FromStr for Unit {
    type Err = InputError;

    /// `s/step`, `ms/iter`, `s/epoch` (the same data), `img/s`, `TFLOP/s/GPU`.
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let (first, rest) = text.split_once('/').unwrap_or((text, ""));
        let seconds = match first {
            "ns" => Some(1e-9),
            "us" => Some(1e-6),
            "ms" => Some(1e-3),
            "s" | "sec" => Some(1.0),
            "min" => Some(60.0),
            "h" => Some(3600.0),
            _ => None,
        };
        match (seconds, rest) {
            (Some(factor), "" | "step" | "iter" | "iteration" | "it" | "batch") => {
                return Ok(Self::Step(factor));
            }
            (Some(factor), "data" | "epoch" | "run") => return Ok(Self::SameData(factor)),
            _ => {}
        }
        let lower = text.to_ascii_lowercase();
        for end in ["/gpu", "/device", " per gpu"] {
            if lower.ends_with(end) && text.len() > end.len() {
                return Ok(Self::PerGpu(text[..text.len() - end.len()].trim().to_owned()));
            }
        }
        if lower.ends_with("/s") || lower.ends_with("/sec") {
            return Ok(Self::Throughput(text.to_owned()));
        }
        Err(InputError::new(format!("unknown unit \"{text}\"")).hint(
            "write s/step, s/epoch (time for the same data), img/s (all GPUs together) or img/s/GPU",
        ))
    }
}

impl Unit {
    /// A value: a number in this unit, a time with its own (`2.46s`) or as a clock shows it
    /// (`1:45:49`).
    ///
    /// # Errors
    /// If it is none of these.
    pub fn measure(&self, text: &str) -> Result<Measure> {
        let text = text.trim();
        let time = |time: Nanos| match self {
            Self::SameData(_) => Ok(Measure::SameData(time)),
            Self::Step(_) => Ok(Measure::Step(time)),
            Self::Throughput(unit) | Self::PerGpu(unit) => {
                Err(InputError::new(format!("\"{text}\" is a time, but values are in {unit}")))
            }
        };
        if text.contains(':') {
            return time(clock(text)?);
        }
        if text.ends_with(|c: char| c.is_alphabetic()) {
            return time(text.parse()?);
        }
        let number = number(text)?;
        Ok(match self {
            Self::Step(factor) => Measure::Step(Nanos::from_secs_f64(number * factor)),
            Self::SameData(factor) => Measure::SameData(Nanos::from_secs_f64(number * factor)),
            Self::Throughput(unit) => Measure::Throughput(number, unit.clone()),
            Self::PerGpu(unit) => Measure::PerGpu(number, unit.clone()),
        })
    }
}

/// A finite number.
pub(super) fn number(text: &str) -> Result<f64> {
    let number = text.trim().replace('_', "").parse::<f64>().ok();
    number
        .filter(|number| number.is_finite())
        .ok_or_else(|| InputError::new(format!("expected a number, found \"{text}\"")))
}

/// A whole number, also as 1.5e9.
pub(super) fn whole(text: &str) -> Result<u64> {
    let number = number(text)?;
    if number >= 0.0 && number.fract() == 0.0 && number < 1e18 {
        return Ok(number as u64);
    }
    Err(InputError::new(format!("expected a whole number, found \"{text}\"")))
}

pub(super) fn count(text: &str) -> Result<u32> {
    let wrong = || InputError::new(format!("expected a smaller number than {text}"));
    u32::try_from(whole(text)?).map_err(|_| wrong())
}

/// `36:33`, `1:45:49`.
fn clock(text: &str) -> Result<Nanos> {
    let wrong =
        || InputError::new(format!("expected a time as 1:45:49 or 36:33, found \"{text}\""));
    let parts: Vec<f64> =
        text.split(':').map(number).collect::<Result<_>>().map_err(|_| wrong())?;
    let below_60 = parts.iter().skip(1).all(|part| (0.0..60.0).contains(part));
    if !(2..=3).contains(&parts.len()) || !below_60 || parts[0] < 0.0 {
        return Err(wrong());
    }
    Ok(Nanos::from_secs_f64(parts.iter().fold(0.0, |sum, part| sum * 60.0 + part)))
}

/// A point of the command line: `16=2633`, `4=8.68s,nodes=2,forward=1.6s,backward=2.51s`.
///
/// # Errors
/// If it is not of this form.
pub fn point(text: &str, unit: &Unit) -> Result<Point> {
    let mut parts = text.split(',');
    let first = parts.next().unwrap_or_default();
    let (gpus, value) = first.split_once('=').ok_or_else(|| {
        InputError::new(format!("expected GPUS=VALUE in \"{text}\""))
            .hint("as in --point 16=2633 or --point 4=8.68s,nodes=2,accumulation=8")
    })?;
    let mut point = Point {
        gpus: count(gpus)?,
        nodes: None,
        measure: unit.measure(value)?,
        batch_per_gpu: None,
        accumulation: None,
        strategy: None,
        forward: None,
        backward: None,
        place: format!("point {first}"),
    };
    for (key, value) in pairs(parts)? {
        match key {
            "nodes" => point.nodes = Some(count(value)?),
            "batch" => point.batch_per_gpu = Some(number(value)?),
            "accumulation" => point.accumulation = Some(count(value)?),
            "strategy" => point.strategy = Some(Synchronisation::parse(value)?),
            "forward" => point.forward = Some(value.parse()?),
            "backward" => point.backward = Some(value.parse()?),
            _ => {
                return Err(unknown(
                    key,
                    "nodes, batch, accumulation, strategy, forward, backward",
                ));
            }
        }
    }
    Ok(point)
}

/// Ranks of one speed: `2080ti:count=2,rate=500,batch=200,most=200`.
///
/// # Errors
/// If it is not of this form.
pub fn rank(text: &str) -> Result<RankKind> {
    let (name, rest) = text.split_once(':').ok_or_else(|| {
        InputError::new(format!("expected NAME:rate=N in \"{text}\""))
            .hint("as in --ranks 2080ti:count=2,rate=500,batch=200,most=200")
    })?;
    let mut kind = RankKind {
        name: name.trim().to_owned(),
        count: 1,
        rate: 0.0,
        batch: None,
        most_batch: None,
    };
    for (key, value) in pairs(rest.split(','))? {
        match key {
            "count" => kind.count = count(value)?,
            "rate" => kind.rate = number(value)?,
            "batch" => kind.batch = Some(number(value)?),
            "most" => kind.most_batch = Some(number(value)?),
            _ => return Err(unknown(key, "count, rate, batch, most")),
        }
    }
    Ok(kind)
}

/// `NAME=VALUE` of each part, no name twice.
fn pairs<'a>(parts: impl Iterator<Item = &'a str>) -> Result<Vec<(&'a str, &'a str)>> {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for part in parts {
        let Some((key, value)) = part.split_once('=') else {
            return Err(InputError::new(format!("expected NAME=VALUE, found \"{part}\"")));
        };
        let key = key.trim();
        if pairs.iter().any(|before| before.0 == key) {
            return Err(InputError::new(format!("\"{key}\" is given twice")));
        }
        pairs.push((key, value.trim()));
    }
    Ok(pairs)
}

fn unknown(key: &str, known: &str) -> InputError {
    InputError::new(format!("unknown \"{key}\"")).hint(format!("there are {known}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(text: &str) -> Unit {
        text.parse().unwrap()
    }

    #[test]
    fn units() {
        assert_eq!(unit("img/s"), Unit::Throughput("img/s".into()));
        assert_eq!(unit("TFLOP/s/GPU"), Unit::PerGpu("TFLOP/s".into()));
        assert_eq!(unit("ms/step"), Unit::Step(1e-3));
        assert_eq!(unit("s/epoch"), Unit::SameData(1.0));
        assert!("furlongs".parse::<Unit>().is_err());
    }

    #[test]
    fn values() {
        let clock = unit("s/epoch").measure("1:45:49").unwrap();
        assert_eq!(clock, Measure::SameData(Nanos::from_secs_f64(6349.0)));
        let step = unit("s/step").measure("250ms").unwrap();
        assert_eq!(step, Measure::Step(Nanos::from_millis(250)));
        assert!(unit("img/s").measure("2s").is_err(), "a time is no rate");
        for wrong in ["", "abc", "1:2:3:4", "1:75", "inf", "NaN", "1e400"] {
            assert!(unit("s/step").measure(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn points() {
        let point = point("4=8.68s,nodes=2,forward=1.6s,strategy=zero-3", &unit("s")).unwrap();
        assert_eq!((point.gpus, point.nodes), (4, Some(2)));
        assert_eq!(point.forward, Some(Nanos::from_millis(1600)));
        assert!(super::point("4", &unit("s")).is_err());
        let error = super::point("4=2,node=2", &unit("s")).unwrap_err();
        assert!(error.hints()[0].contains("nodes"), "{error:?}");
        for twice in ["4=2,nodes=1,nodes=2", "4=2,batch=1, batch=1"] {
            let error = super::point(twice, &unit("s")).unwrap_err();
            assert!(error.message().contains("given twice"), "{error:?}");
        }
        assert!(rank("fast:rate=750,rate=7").is_err());
        assert!(rank("fast:rate=750,batch=300").is_ok() && rank("fast").is_err());
    }
}
