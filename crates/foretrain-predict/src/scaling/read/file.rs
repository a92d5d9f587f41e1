//! Measured points in TOML.

use foretrain_core::{InputError, Result, suggest};
use foretrain_cost::Synchronisation;
use serde::Deserialize;
use toml::Spanned;

use super::job::{JobSpec, Written};
use super::value::{Unit, count, number};
use crate::scaling::input::{Known, Measure, Point, RankKind, ScalingInput, Series};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    machine: Option<String>,
    unit: Option<String>,
    #[serde(default)]
    ask: Vec<u32>,
    #[serde(default)]
    ask_accumulation: Vec<u32>,
    #[serde(default)]
    job: JobSpec,
    #[serde(default)]
    point: Vec<Spanned<PointSpec>>,
    #[serde(default)]
    series: Vec<SeriesSpec>,
    #[serde(default)]
    ranks: Vec<RankSpec>,
    global_batch: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeriesSpec {
    name: String,
    machine: Option<String>,
    unit: Option<String>,
    ask: Option<Vec<u32>>,
    ask_accumulation: Option<Vec<u32>>,
    #[serde(default)]
    job: JobSpec,
    point: Vec<Spanned<PointSpec>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PointSpec {
    gpus: u32,
    nodes: Option<u32>,
    value: Option<Written>,
    step_time: Option<Written>,
    throughput: Option<Written>,
    throughput_per_gpu: Option<Written>,
    time_for_data: Option<Written>,
    batch_per_gpu: Option<Written>,
    accumulation: Option<u32>,
    strategy: Option<String>,
    forward: Option<String>,
    backward: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RankSpec {
    name: String,
    #[serde(default = "one")]
    count: u32,
    rate: f64,
    batch: Option<f64>,
    most_batch: Option<f64>,
}

const fn one() -> u32 {
    1
}

pub(super) fn parse(text: &str, known: &Known) -> Result<ScalingInput> {
    let file: File = toml::from_str(text).map_err(|error| explain(text, &error))?;
    let unit = unit(file.unit.as_deref())?;
    let job = file.job.resolve(known)?;
    let mut series = Vec::new();
    if !file.point.is_empty() {
        series.push(Series {
            name: file.name.unwrap_or_default(),
            machine: file.machine.clone(),
            known: job.clone(),
            points: points(text, &file.point, &unit)?,
            ask: file.ask.clone(),
            ask_accumulation: file.ask_accumulation.clone(),
        });
    }
    for one in file.series {
        let own = match &one.unit {
            Some(text) => Some(text.parse()?),
            None => unit.clone(),
        };
        series.push(Series {
            known: one.job.resolve(&job)?,
            points: points(text, &one.point, &own)?,
            machine: one.machine.or_else(|| file.machine.clone()),
            ask: one.ask.unwrap_or_else(|| file.ask.clone()),
            ask_accumulation: one.ask_accumulation.unwrap_or_else(|| file.ask_accumulation.clone()),
            name: one.name,
        });
    }
    let ranks = file.ranks.into_iter().map(|rank| RankKind {
        name: rank.name,
        count: rank.count,
        rate: rank.rate,
        batch: rank.batch,
        most_batch: rank.most_batch,
    });
    Ok(ScalingInput { series, ranks: ranks.collect(), global_batch: file.global_batch })
}

fn unit(written: Option<&str>) -> Result<Option<Unit>> {
    written.map(|text| text.parse().map_err(|error: InputError| error.at("unit"))).transpose()
}

fn points(text: &str, specs: &[Spanned<PointSpec>], unit: &Option<Unit>) -> Result<Vec<Point>> {
    let each = specs.iter().map(|spec| {
        let place = format!("line {}", line_at(text, spec.span().start));
        spec.get_ref().point(unit, &place).map_err(|error| match error.place() {
            Some(_) => error,
            None => error.at(place.clone()),
        })
    });
    each.collect()
}

impl PointSpec {
    fn point(&self, unit: &Option<Unit>, place: &str) -> Result<Point> {
        let time = |written: &Option<String>| written.as_deref().map(str::parse).transpose();
        let strategy = self.strategy.as_deref().map(Synchronisation::parse).transpose()?;
        let batch = self.batch_per_gpu.as_ref().map(|written| number(&written.0)).transpose()?;
        Ok(Point {
            gpus: self.gpus,
            nodes: self.nodes,
            measure: self.measure(unit)?,
            batch_per_gpu: batch,
            accumulation: self.accumulation.map(|n| count(&n.to_string())).transpose()?,
            strategy,
            forward: time(&self.forward)?,
            backward: time(&self.backward)?,
            place: place.to_owned(),
        })
    }

    fn measure(&self, unit: &Option<Unit>) -> Result<Measure> {
        let named = |per_gpu| match (unit, per_gpu) {
            (Some(Unit::Throughput(unit) | Unit::PerGpu(unit)), false) => {
                Unit::Throughput(unit.clone())
            }
            (Some(Unit::Throughput(unit) | Unit::PerGpu(unit)), true) => Unit::PerGpu(unit.clone()),
            (_, true) => Unit::PerGpu("samples/s".into()),
            (_, false) => Unit::Throughput("samples/s".into()),
        };
        let given = [
            (&self.value, unit.clone()),
            (&self.step_time, Some(Unit::Step(1.0))),
            (&self.throughput, Some(named(false))),
            (&self.throughput_per_gpu, Some(named(true))),
            (&self.time_for_data, Some(Unit::SameData(1.0))),
        ];
        let mut given =
            given.into_iter().filter_map(|(text, unit)| text.as_ref().map(|t| (t, unit)));
        const KEYS: &str =
            "value (with a unit), step_time, throughput, throughput_per_gpu or time_for_data";
        match (given.next(), given.next()) {
            (Some((text, Some(unit))), None) => unit.measure(&text.0),
            (Some((_, None)), None) => Err(InputError::new("a value without a unit")
                .hint("name it at the head of the file, as in unit = \"img/s\"")),
            _ => Err(InputError::new(format!("a point needs exactly one of {KEYS}"))),
        }
    }
}

/// Turns serde's message into one for people.
fn explain(text: &str, error: &toml::de::Error) -> InputError {
    let message = error.message().trim();
    let place = error.span().map_or_else(
        || "the file".to_owned(),
        |span| format!("line {}", line_at(text, span.start)),
    );
    if let Some(rest) = message.strip_prefix("unknown field `")
        && let Some((wrong, valid)) = rest.split_once("`, expected ")
    {
        let valid: Vec<&str> = valid.split('`').skip(1).step_by(2).collect();
        let hint = match suggest::nearest(wrong, valid.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("expected one of: {}", valid.join(", ")),
        };
        return InputError::new(format!("unknown key \"{wrong}\"")).at(place).hint(hint);
    }
    InputError::new(message.to_owned()).at(place)
}

/// The line, from 1, that holds byte `offset`.
fn line_at(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_inherit_what_the_head_says() {
        let text = "unit = \"img/s\"\nmachine = \"p3\"\nask = [64]\n[job]\ngpus_per_node = 8\n\
            gradient_bytes = \"102 MB\"\n[[series]]\nname = \"a\"\njob = { nic = \"25 Gbit/s\" }\n\
            point = [{ gpus = 8, value = 2697 }, { gpus = 16, value = 2633.5 }]\n";
        let input = parse(text, &Known::default()).unwrap();
        let series = &input.series[0];
        assert_eq!((series.machine.as_deref(), &series.ask[..]), (Some("p3"), &[64][..]));
        assert_eq!(series.known.gradient_bytes.unwrap().get(), 102_000_000);
        assert_eq!(series.known.nic.unwrap().gb_per_sec(), 3.125);
        assert_eq!(series.points[1].measure, Measure::Throughput(2633.5, "img/s".into()));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let of = |text: &str| parse(text, &Known::default()).unwrap_err();
        let error = of("unit = \"img/s\"\n[[point]]\ngpus = 8\nvalu = 3\n");
        assert!(error.hints()[0].contains("value"), "{error:?}");
        assert_eq!(error.place(), Some("line 4"));
        let error = of("[[point]]\ngpus = 8\nvalue = 3\n");
        assert!(error.hints()[0].contains("unit"), "{error:?}");
        let error = of("[[point]]\ngpus = 8\n");
        assert!(error.message().contains("exactly one"), "{error:?}");
        let error = of("[job]\ntrainable_parameters = 5\nparameters = 4\n");
        assert!(error.message().contains("5 trainable"), "{error:?}");
        of("[job]\nnic = \"25\"\n");
        of("= 4");
    }
}
