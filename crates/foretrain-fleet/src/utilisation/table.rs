//! Measured jobs as a table.

use foretrain_core::{Bytes, InputError, Result};
use foretrain_workload::Model;
use serde::Deserialize;

use super::MeasuredJob;
use super::features::Features;
use super::predictor::MOST_MIB;

/// Finds the model that a table names.
pub type Load<'a> = &'a dyn Fn(&str) -> Result<Model>;

/// Most jobs that are read.
const MOST: usize = 1_000_000;

/// `model,batch,utilisation[,memory_mib][,family]`
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    model: String,
    batch: u64,
    utilisation: f64,
    #[serde(default)]
    memory_mib: Option<f64>,
    #[serde(default)]
    family: Option<String>,
}

const COLUMNS: &str =
    "columns are model, batch, utilisation (percent) and, if known, memory_mib and family";

/// Reads measured jobs from CSV. `model` is anything that names or describes a model; jobs without a
/// `family` are of their model's.
///
/// # Errors
/// If it is no such table, a model is not known, or a figure is impossible; with the line. If all
/// utilisations look like parts of 1.
pub fn read_table(text: &str, load: Load<'_>) -> Result<Vec<MeasuredJob>> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let mut jobs: Vec<MeasuredJob> = Vec::new();
    for row in reader.deserialize::<Row>() {
        let place = format!("row {}", jobs.len() + 2);
        let row = row.map_err(|error| {
            let message = format!("a row that cannot be read: {error}");
            InputError::new(message).at(&place).hint(COLUMNS)
        })?;
        if jobs.len() >= MOST {
            return Err(InputError::new(format!("more than {MOST} rows")));
        }
        jobs.push(row.job(load).map_err(|error| error.at(&place))?);
    }
    if jobs.is_empty() {
        return Err(InputError::new("a table of jobs without rows").hint(COLUMNS));
    }
    if jobs.len() > 1
        && jobs.iter().all(|job| job.utilisation <= 1.0)
        && jobs.iter().any(|job| job.utilisation > 0.0)
    {
        let most = jobs.iter().map(|job| job.utilisation).fold(0.0, f64::max);
        let message = format!("no utilisation above {most} percent: are they parts of 1?");
        return Err(InputError::new(message).at("utilisation").hint("multiply them by 100"));
    }
    Ok(jobs)
}

impl Row {
    fn job(self, load: Load<'_>) -> Result<MeasuredJob> {
        if !(0.0..=100.0).contains(&self.utilisation) {
            let message = format!("a utilisation of {} percent", self.utilisation);
            return Err(InputError::new(message).hint("expected a number from 0 to 100"));
        }
        let memory = match self.memory_mib {
            Some(mib) if (1.0..=MOST_MIB).contains(&mib) => {
                Some(Bytes::from_f64(mib * 1_048_576.0))
            }
            Some(mib) => {
                let error = InputError::new(format!("a memory of {mib} MiB"));
                return Err(error.hint(format!("expected 1 to {MOST_MIB} MiB")));
            }
            None => None,
        };
        let model = load(&self.model)?;
        let family = self.family.filter(|family| !family.is_empty());
        Ok(MeasuredJob {
            family: family.unwrap_or_else(|| model.family.clone()),
            features: Features::of(&model, self.batch)?,
            utilisation: self.utilisation,
            memory,
        })
    }
}
