//! `foretrain calibrate kernels`.

use std::path::{Path, PathBuf};

use foretrain::core::{InputError, Ledger};
use foretrain::hardware::{Catalogue, Device};
use foretrain::ingest::{Loaded, ReadOptions, load};
use foretrain::predict::Recording;
use foretrain::predict::interference::pairs::read_text;
use foretrain::predict::kernels::{KernelSamples, calibrate_kernels, of_recording, read_sweep};
use foretrain::report::json::{self, CalibrateKernelsReport};
use foretrain::report::text;

use super::Answer;
use super::calibrate::check_free;
use super::hardware::catalogue;
use crate::failure::Result;
use crate::output::{Output, write_file};
use crate::progress::Reading;

/// What to calibrate from, and where to keep it.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) file: PathBuf,
    pub(crate) device: Option<String>,
    pub(crate) only: Option<String>,
    pub(crate) keep: Option<PathBuf>,
    pub(crate) force: bool,
    pub(crate) hardware: Vec<PathBuf>,
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    if let Some(path) = &options.keep {
        check_free(path, "-o", options.force)?;
    }
    let catalogue = catalogue(&options.hardware)?;
    let (samples, ledger) = read(options, output)?;
    let device = device(options, &samples, &catalogue)?;
    let name = file_name(&options.file);
    let answer =
        calibrate_kernels(device, &samples, &name).map_err(|e| e.in_file(&options.file))?;
    if let Some(path) = &options.keep {
        let comment = format!("Written by foretrain calibrate kernels {name}");
        write_file(path, answer.fitted.calibration.text(&[comment]).as_bytes())?;
    }
    let kept_in = options.keep.as_ref().map(|path| path.display().to_string());
    output.give(
        || json::to_text(&CalibrateKernelsReport::new(&answer, kept_in.as_deref(), &ledger)),
        |style| text::calibrate_kernels(&answer, kept_in.as_deref(), &ledger, style),
    )?;
    Ok(Answer::Yes)
}

/// A sweep by its ending or its first letter that is no trace's, else a recording.
fn read(options: &Options, output: &Output<'_>) -> Result<(KernelSamples, Ledger)> {
    let file = &options.file;
    let name = file_name(file).to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    if [".csv", ".tsv", ".txt", ".jsonl", ".ndjson"].iter().any(|ending| name.ends_with(ending)) {
        let samples = read_sweep(&read_text(file)?, options.only.as_deref());
        return Ok((samples.map_err(|error| error.in_file(file))?, Ledger::new()));
    }
    let reading = Reading::new(output.progress());
    let read = ReadOptions::default();
    let (loaded, ledger) = load(std::slice::from_ref(file), &read, &|at| reading.at(at))?;
    let Loaded::Traces(traces) = loaded else {
        return Err(InputError::new("a graph without a timeline has no kernel times")
            .in_file(file)
            .hint("give a profiler trace with shapes, or a sweep as .csv or .jsonl")
            .into());
    };
    reading.analysing();
    let mut found = KernelSamples::default();
    for trace in traces {
        let own = of_recording(&Recording::analyse(trace, None));
        found.samples.extend(own.samples);
        found.device = found.device.or(own.device);
        for (why, met) in own.left_out {
            found.left_out.entry(why).and_modify(|all| all.count += met.count).or_insert(met);
        }
    }
    Ok((found, ledger))
}

fn device<'a>(
    options: &Options,
    samples: &KernelSamples,
    catalogue: &'a Catalogue,
) -> Result<&'a Device> {
    if let Some(name) = &options.device {
        return Ok(catalogue.device(name)?);
    }
    let hint = "name it with --device (see foretrain hardware list)";
    let Some(name) = &samples.device else {
        return Err(InputError::new("the file does not tell which device was measured")
            .in_file(&options.file)
            .hint(hint)
            .into());
    };
    let known = catalogue.device_by_product_name(name).or_else(|| catalogue.device(name).ok());
    known.ok_or_else(|| {
        InputError::new(format!("the catalogue has no device \"{name}\""))
            .in_file(&options.file)
            .hint(hint)
            .into()
    })
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
