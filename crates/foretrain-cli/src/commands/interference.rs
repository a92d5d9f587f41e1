//! `foretrain calibrate interference`, and the models that `predict` takes.

use std::path::PathBuf;

use foretrain::core::{InputError, Ledger};
use foretrain::cost::interference::{Analytic, Fixed, ModelFile, OverlapModel};
use foretrain::ingest::{Loaded, ReadOptions, load};
use foretrain::predict::Recording;
use foretrain::predict::interference::alone::Alone;
use foretrain::predict::interference::calibrate::{
    Calibration, calibrate_colocation, calibrate_overlap,
};
use foretrain::predict::interference::pairs::{Pairs, read_text};
use foretrain::predict::interference::{Samples, samples, table};
use foretrain::predict::own;
use foretrain::report::json::{self, CalibrateInterferenceReport};
use foretrain::report::text;

use super::Answer;
use super::calibrate::check_free;
use super::hardware::catalogue;
use crate::failure::Result;
use crate::output::{Output, write_file};
use crate::progress::Reading;

/// What `predict` uses unless told otherwise: models have been held against too few recordings yet
/// (see `docs/interference.md`).
pub(crate) const USUAL: &str = "none";

/// A model as named on the command line.
#[derive(Clone, Debug)]
pub(crate) enum Choice {
    None,
    Fixed(Fixed),
    Analytic,
    Pretrained,
    /// One that this program brought along.
    Installed(String),
    File(PathBuf),
}

impl Choice {
    pub(crate) fn model(&self) -> Result<Option<OverlapModel>> {
        Ok(match self {
            Self::None => None,
            Self::Fixed(fixed) => Some(OverlapModel::Fixed(*fixed)),
            Self::Analytic => Some(OverlapModel::Analytic(Analytic::default())),
            Self::Pretrained => Some(ModelFile::pretrained()?.overlap_model()?),
            Self::Installed(name) => own::interference(name),
            Self::File(path) => {
                let text = read_text(path).map_err(|error| {
                    error.hint("or name a model: none, analytic, fixed:1.3,1.1 or pretrained")
                })?;
                let model = ModelFile::read(&text).and_then(ModelFile::overlap_model);
                Some(model.map_err(|error| error.in_file(path))?)
            }
        })
    }
}

/// What to fit to, and where to keep it.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) from: From,
    pub(crate) licence: String,
    pub(crate) keep: Option<PathBuf>,
    pub(crate) force: bool,
    pub(crate) hardware: Vec<PathBuf>,
}

/// What to fit to.
#[derive(Debug)]
pub(crate) enum From {
    Traces(Vec<PathBuf>),
    Pairs { pairs: PathBuf, alone: PathBuf, source: String },
}

pub(crate) fn calibrate(options: &Options, output: &Output<'_>) -> Result<Answer> {
    if let Some(path) = &options.keep {
        check_free(path, "-o", options.force)?;
    }
    let (calibration, ledger) = match &options.from {
        From::Traces(inputs) => of_traces(inputs, options, output)?,
        From::Pairs { pairs, alone, source } => {
            let table = Pairs::read(&read_text(pairs)?, source).map_err(|e| e.in_file(pairs))?;
            let steps = Alone::read(&read_text(alone)?).map_err(|error| error.in_file(alone))?;
            let name = file_name(pairs);
            let fitted = calibrate_colocation(&table, &steps, &name, &options.licence);
            (fitted.map_err(|error| error.in_file(pairs))?, Ledger::new())
        }
    };
    if let Some(path) = &options.keep {
        write_file(path, calibration.file.text().as_bytes())?;
    }
    let kept_in = options.keep.as_ref().map(|path| path.display().to_string());
    output.give(
        || {
            let report =
                CalibrateInterferenceReport::new(&calibration, kept_in.as_deref(), &ledger);
            json::to_text(&report)
        },
        |style| text::calibrate_interference(&calibration, kept_in.as_deref(), &ledger, style),
    )?;
    Ok(Answer::Yes)
}

/// One recording after the other: they need not be of one job.
fn of_traces(
    inputs: &[PathBuf],
    options: &Options,
    output: &Output<'_>,
) -> Result<(Calibration, Ledger)> {
    let catalogue = catalogue(&options.hardware)?;
    let reading = Reading::new(output.progress());
    let (mut found, mut ledger): (Vec<Samples>, Ledger) = (Vec::new(), Ledger::new());
    for input in inputs {
        if let Some(text) = table_text(input) {
            let own = table::read_samples(&text, &file_name(input), &catalogue);
            found.push(own.map_err(|error| error.in_file(input))?);
            continue;
        }
        let read = ReadOptions::default();
        let (loaded, met) =
            load(std::slice::from_ref(input), &read, &|progress| reading.at(progress))?;
        ledger.merge(&met, (inputs.len() > 1).then_some(file_name(input).as_str()));
        let Loaded::Traces(traces) = loaded else {
            return Err(InputError::new("a graph without a timeline tells nothing of overlap")
                .in_file(input)
                .hint("give the profiler trace of the run")
                .into());
        };
        reading.analysing();
        for trace in traces {
            let mut own = samples(&Recording::analyse(trace, None), &catalogue);
            own.source = file_name(own.source.as_ref());
            found.push(own);
        }
    }
    Ok((calibrate_overlap(&found, &options.licence)?, ledger))
}

/// The text of a table of kernels beside collectives; `None` for traces.
fn table_text(path: &std::path::Path) -> Option<String> {
    let name = file_name(path);
    let may_be = name.ends_with(".csv") || name.ends_with(".csv.gz");
    may_be.then(|| read_text(path).ok()).flatten().filter(|text| table::is_table(text))
}

/// A model may be given away; where its recordings lay is nobody's concern.
fn file_name(path: &std::path::Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
