//! Sweeps of matrix products: a table with titles, or one JSON object per line.
//!
//! Sizes are `m`, `n`, `k` and, if there are several products at once, `batch`. A time's unit
//! stands in its title (`time_us`, `latency_ms`, `duration_s`); without a time the rate does
//! (`tflops`, `gflops`). Types are spelt as anywhere else in Foretrain.

use std::collections::BTreeMap;

use foretrain_core::{DType, InputError, Nanos, Result};
use foretrain_cost::kernels::{Gemm, KernelSample, Operation};
use serde_json::Value;

use super::{KernelSamples, no_products};

/// Titles of the type's column.
const TYPES: [&str; 5] = ["dtype", "gemm_dtype", "type", "precision", "data_type"];
/// Titles of columns that tell the device or its kind.
const DEVICES: [&str; 4] = ["device", "gpu", "system", "accelerator"];
/// What a time's title begins with.
const TIMES: [&str; 4] = ["time", "latency", "duration", "elapsed"];
/// Units as titles end, and how many nanoseconds each is.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
/// Longer sides are slips.
const LONGEST: f64 = 1e9;

/// One row, titles in lower case.
type Cells = BTreeMap<String, String>;

/// The products of a sweep. `only` takes the rows whose device, GPU or system is called so; a
/// sweep of several devices needs it.
///
/// # Errors
/// If the text is neither form, has no usable row, or is of several devices.
pub fn read_sweep(text: &str, only: Option<&str>) -> Result<KernelSamples> {
    let text = text.trim_start_matches('\u{feff}');
    let rows = if text.trim_start().starts_with('{') { json(text)? } else { table(text)? };
    let mut found = KernelSamples::default();
    let mut devices: BTreeMap<String, usize> = BTreeMap::new();
    for (line, cells) in &rows {
        let names: Vec<&String> = DEVICES.iter().filter_map(|title| cells.get(*title)).collect();
        let is_wanted = |wanted: &str| names.iter().any(|name| name.eq_ignore_ascii_case(wanted));
        if only.is_some_and(|wanted| !is_wanted(wanted)) {
            found.leave_out("another device", || format!("line {line}"));
            continue;
        }
        match product(cells) {
            Ok((gemm, time)) => {
                let place = format!("line {line}");
                let operation = Operation::Gemm(gemm);
                found.samples.push(KernelSample { operation, time, place });
                if let Some(name) = names.first() {
                    *devices.entry((*name).clone()).or_default() += 1;
                }
            }
            Err(why) => found.leave_out(why, || format!("line {line}")),
        }
    }
    if devices.len() > 1 {
        let names: Vec<&str> = devices.keys().map(String::as_str).take(12).collect();
        return Err(InputError::new("the sweep is of several devices")
            .hint(format!("take one with --only: {}", names.join(", "))));
    }
    found.device = devices.into_keys().next();
    if found.samples.is_empty() {
        let error = no_products("the sweep")
            .hint("expected columns m, n, k, dtype and time_us (or latency_ms, or tflops)");
        return Err(found.left_out.iter().fold(error, |error, (why, met)| {
            error.hint(format!("{}, {} rows in all: {why}", met.first, met.count))
        }));
    }
    Ok(found)
}

/// What a row says, or why it says nothing.
fn product(cells: &Cells) -> std::result::Result<(Gemm, Nanos), &'static str> {
    let size = |title: &str| {
        let value: f64 = cells.get(title)?.parse().ok()?;
        let is_size = (1.0..=LONGEST).contains(&value) && value.fract() == 0.0;
        is_size.then_some(value as u64)
    };
    let (Some(m), Some(n), Some(k)) = (size("m"), size("n"), size("k")) else {
        return Err("m, n or k is missing or no size");
    };
    let batch =
        if cells.contains_key("batch") { size("batch").ok_or("batch is no size")? } else { 1 };
    let dtype = TYPES.iter().find_map(|title| cells.get(*title)).ok_or("no column of types")?;
    let dtype = parse_type(dtype).ok_or("the type is not known")?;
    let output = if dtype.bits() < 16 { DType::Bf16 } else { dtype };
    let gemm = Gemm { batch, output, ..Gemm::new(m, n, k, dtype) };
    let time = time(cells, &gemm).ok_or("no time that is above zero")?;
    Ok((gemm, time))
}

/// Spellings of libraries beside the usual ones.
fn parse_type(text: &str) -> Option<DType> {
    match text.trim().to_ascii_lowercase().as_str() {
        "fp8" | "float8" | "fp8_e4m3" | "fp8_block" => Some(DType::F8E4m3),
        "fp4" | "nvfp4" | "mxfp4" => Some(DType::F4),
        _ => DType::parse(text),
    }
}

fn time(cells: &Cells, gemm: &Gemm) -> Option<Nanos> {
    let nanos = cells.iter().find_map(|(title, value)| {
        let scale = nanos_of(title)?;
        Some(value.parse::<f64>().ok()? * scale)
    });
    let rate = || {
        let rated = |(title, value): (&String, &String)| {
            let value: f64 = value.parse().ok()?;
            let title = title.trim_end_matches("_derived").replace("/s", "s");
            match title.as_str() {
                "tflops" => Some(value * 1e3),
                "gflops" => Some(value),
                _ => None,
            }
        };
        cells.iter().find_map(rated).map(|per_nano| gemm.flops().get() / per_nano)
    };
    let nanos = nanos.or_else(rate)?;
    (1.0..1e15).contains(&nanos).then(|| Nanos::from_nanos_f64(nanos))
}

/// How many nanoseconds the unit in a title of times is.
fn nanos_of(title: &str) -> Option<f64> {
    let flat: String = title.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    let flat = flat.trim_end_matches('_');
    let (name, unit) = match flat.rsplit_once('_') {
        Some((name, unit)) => (name, unit),
        None => ("time", flat),
    };
    let is_time = TIMES.iter().any(|word| name.contains(word));
    let scale = UNITS.iter().find(|(known, _)| *known == unit)?.1;
    // A bare `s` may be anything, a bare `us` only a time.
    (is_time && (flat.contains('_') || unit.len() == 2)).then_some(scale)
}

/// Rows of a table with their lines.
fn table(text: &str) -> Result<Vec<(u64, Cells)>> {
    let first = text.lines().next().unwrap_or_default();
    let delimiter = if first.contains('\t') {
        b'\t'
    } else if first.contains(';') {
        b';'
    } else {
        b','
    };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .trim(csv::Trim::All)
        .flexible(true)
        .from_reader(text.as_bytes());
    let wrong = |error: &csv::Error| InputError::new(format!("no table of products: {error}"));
    let titles: Vec<String> = reader
        .headers()
        .map_err(|error| wrong(&error))?
        .iter()
        .map(|title| title.trim().to_lowercase())
        .collect();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| wrong(&error))?;
        let line = record.position().map_or(0, csv::Position::line);
        let cells = titles.iter().cloned().zip(record.iter().map(str::to_owned));
        rows.push((line, cells.filter(|(_, cell)| !cell.is_empty()).collect()));
    }
    Ok(rows)
}

/// Objects, one per line, with their lines.
fn json(text: &str) -> Result<Vec<(u64, Cells)>> {
    let mut rows = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let number = at as u64 + 1;
        if line.trim().is_empty() {
            continue;
        }
        let object: BTreeMap<String, Value> = serde_json::from_str(line).map_err(|error| {
            InputError::new(format!("no JSON object: {error}")).at(format!("line {number}")).hint(
                "expected one object per line, as in {\"m\": 4096, \"n\": 4096, \"k\": 4096, \
                       \"dtype\": \"bf16\", \"time_us\": 205}",
            )
        })?;
        let cells = object.into_iter().map(|(key, value)| {
            let text = match value {
                Value::String(text) => text,
                other => other.to_string(),
            };
            (key.to_lowercase(), text)
        });
        rows.push((number, cells.collect()));
    }
    Ok(rows)
}
