//! Measured points in a table with commas.

use foretrain_core::{InputError, Result, suggest};
use foretrain_cost::Synchronisation;

use super::value::{Unit, count, number};
use crate::scaling::input::{Known, Point, ScalingInput, Series};

const COLUMNS: [&str; 13] = [
    "gpus",
    "nodes",
    "value",
    "unit",
    "step_time",
    "throughput",
    "throughput_per_gpu",
    "time_for_data",
    "batch_per_gpu",
    "accumulation",
    "strategy",
    "forward",
    "backward",
];

/// One point per row. Rows with the same `series` (and `machine`) belong together.
pub(super) fn parse(text: &str, known: &Known) -> Result<ScalingInput> {
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let heads = reader.headers().map_err(|error| unreadable(&error))?.clone();
    let heads: Vec<String> = heads.iter().map(str::to_ascii_lowercase).collect();
    for (i, head) in heads.iter().enumerate() {
        if heads[..i].contains(head) {
            let error = InputError::new(format!("two columns are called \"{head}\""));
            return Err(error.at("line 1").hint("leave one of them out"));
        }
        let known = COLUMNS.iter().chain(&["series", "machine"]).copied();
        if !known.clone().any(|column| column == head) {
            let error = InputError::new(format!("unknown column {head:?}")).at("line 1");
            if head.contains([';', '\t']) {
                return Err(error.hint("separate columns by commas"));
            }
            return Err(match suggest::nearest(head, known) {
                Some(near) => error.hint(format!("did you mean \"{near}\"?")),
                None => error.hint(format!("columns: {}, series, machine", COLUMNS.join(", "))),
            });
        }
    }
    let mut series: Vec<Series> = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| unreadable(&error))?;
        let line = row.position().map_or(0, csv::Position::line);
        let place = format!("line {line}");
        let cell = |name: &str| {
            let at = heads.iter().position(|head| head == name)?;
            row.get(at).filter(|text| !text.is_empty())
        };
        let point = point(&cell, &place).map_err(|error| error.at(place.clone()))?;
        let (name, machine) = (cell("series").unwrap_or_default(), cell("machine"));
        let same = |one: &&mut Series| one.name == name && one.machine.as_deref() == machine;
        match series.iter_mut().find(same) {
            Some(one) => one.points.push(point),
            None => series.push(Series {
                name: name.to_owned(),
                machine: machine.map(str::to_owned),
                known: known.clone(),
                points: vec![point],
                ..Series::default()
            }),
        }
    }
    Ok(ScalingInput { series, ..ScalingInput::default() })
}

fn unreadable(error: &csv::Error) -> InputError {
    let error_line = error.position().map(|position| format!("line {}", position.line()));
    let wrong = InputError::new(format!("not a table of comma-separated values: {error}"));
    match error_line {
        Some(line) => wrong.at(line),
        None => wrong,
    }
}

fn point<'a>(cell: &dyn Fn(&str) -> Option<&'a str>, place: &str) -> Result<Point> {
    let named = cell("unit").map(str::parse::<Unit>).transpose()?;
    let rate = match &named {
        Some(Unit::Throughput(unit) | Unit::PerGpu(unit)) => unit.clone(),
        _ => "samples/s".into(),
    };
    let given = [
        ("value", named.clone()),
        ("step_time", Some(Unit::Step(1.0))),
        ("throughput", Some(Unit::Throughput(rate.clone()))),
        ("throughput_per_gpu", Some(Unit::PerGpu(rate))),
        ("time_for_data", Some(Unit::SameData(1.0))),
    ];
    let mut given =
        given.into_iter().filter_map(|(column, unit)| cell(column).map(|text| (text, unit)));
    let measure = match (given.next(), given.next()) {
        (Some((text, Some(unit))), None) => unit.measure(text)?,
        (Some((_, None)), None) => {
            return Err(InputError::new("a value without a unit")
                .hint("add a column \"unit\", as in img/s or s/step"));
        }
        _ => {
            return Err(InputError::new(
                "a row needs exactly one of value, step_time, throughput, throughput_per_gpu or time_for_data",
            ));
        }
    };
    let gpus = cell("gpus")
        .ok_or_else(|| InputError::new("no number of GPUs").hint("add a column \"gpus\""))?;
    Ok(Point {
        gpus: count(gpus)?,
        nodes: cell("nodes").map(count).transpose()?,
        measure,
        batch_per_gpu: cell("batch_per_gpu").map(number).transpose()?,
        accumulation: cell("accumulation").map(count).transpose()?,
        strategy: cell("strategy").map(Synchronisation::parse).transpose()?,
        forward: cell("forward").map(str::parse).transpose()?,
        backward: cell("backward").map(str::parse).transpose()?,
        place: place.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scaling::input::Measure;

    #[test]
    fn rows_gather_into_series() {
        let text = "\u{feff}series,gpus,throughput_per_gpu,nodes\na,1,122,1\nb,8,110,\na,16,80,2\n";
        let input = parse(text, &Known::default()).unwrap();
        let sizes: Vec<Vec<u32>> =
            input.series.iter().map(|s| s.points.iter().map(|p| p.gpus).collect()).collect();
        assert_eq!(sizes, [vec![1, 16], vec![8]]);
        assert_eq!(input.series[1].points[0].measure, Measure::PerGpu(110.0, "samples/s".into()));
    }

    #[test]
    fn wrong_tables_are_refused_with_their_line() {
        let of = |text: &str| parse(text, &Known::default()).unwrap_err();
        assert!(of("gpu,step_time\n1,2s\n").hints()[0].contains("gpus"));
        assert_eq!(of("gpus,step_time\n1,2s\n2,fast\n").place(), Some("line 3"));
        assert_eq!(of("gpus,step_time\n1,2s\n2\n").place(), Some("line 3"));
        assert!(of("gpus;step_time\n1;2s\n").hints()[0].contains("commas"));
        assert!(of("gpus,nodes,gpus\n1,1,2\n").message().contains("two columns"));
        of("gpus,value\n1,2\n");
        of("nodes,step_time\n1,2\n");
    }
}
