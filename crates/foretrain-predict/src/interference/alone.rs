//! Step times of jobs that have their device to themselves: a table `gpu,model,batch,step_ms`, or
//! Gavel's JSON of throughputs.

use std::collections::BTreeMap;

use foretrain_core::{InputError, Nanos, Result};
use foretrain_cost::interference::colocation::{JobLoad, loads_of_family};

use super::pairs::{Job, bad_table, missing, number};

/// Step times alone, by device and job.
#[derive(Clone, Debug, Default)]
pub struct Alone {
    steps: BTreeMap<String, BTreeMap<Job, Nanos>>,
}

impl Alone {
    /// Reads step times, from a table or from Gavel's throughputs.
    ///
    /// # Errors
    /// If the text is neither, with the place.
    pub fn read(text: &str) -> Result<Self> {
        if text.trim_start().starts_with('{') { Self::gavel(text) } else { Self::table(text) }
    }

    /// Adds a step time; of several of one job the last counts.
    pub fn insert(&mut self, gpu: &str, job: Job, step: Nanos) {
        self.steps.entry(gpu.to_lowercase()).or_default().insert(job, step);
    }

    fn table(text: &str) -> Result<Self> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let titles = reader.headers().map_err(|error| bad_table(&error))?.clone();
        let column = |name: &str| {
            titles.iter().position(|title| title.trim() == name).ok_or_else(|| missing(name))
        };
        let (gpu, model) = (column("gpu")?, column("model")?);
        let (batch, step) = (column("batch")?, column("step_ms")?);
        let mut alone = Self::default();
        for row in reader.records() {
            let row = row.map_err(|error| bad_table(&error))?;
            let line = row.position().map_or(0, csv::Position::line);
            let get = |at: usize| row.get(at).unwrap_or_default().trim();
            let Some(millis) = number(get(step), line)?.filter(|millis| *millis > 0.0) else {
                continue;
            };
            let job = Job::new(get(model), number(get(batch), line)?);
            alone.insert(get(gpu), job, Nanos::from_nanos_f64(millis * 1e6));
        }
        Ok(alone)
    }

    /// `{gpu: {"('ResNet-18 (batch size 16)', 1)": {"null": steps per second, ...}}}`; only jobs on
    /// one device count.
    fn gavel(text: &str) -> Result<Self> {
        type Throughputs = BTreeMap<String, BTreeMap<String, BTreeMap<String, serde_json::Value>>>;
        let parsed: Throughputs = serde_json::from_str(text).map_err(|error| {
            InputError::new(format!("no JSON of throughputs by device and job: {error}"))
        })?;
        let mut alone = Self::default();
        for (gpu, jobs) in &parsed {
            for (name, beside) in jobs {
                let rate = beside.get("null").and_then(serde_json::Value::as_f64);
                let (Some(job), Some(rate)) = (gavel_job(name), rate) else { continue };
                if rate > 0.0 {
                    alone.insert(gpu, job, Nanos::from_secs_f64(1.0 / rate));
                }
            }
        }
        Ok(alone)
    }

    /// The loads of all jobs of one device, their utilisation estimated from how each model's step
    /// grows with its batch.
    pub fn loads(&self, gpu: &str) -> BTreeMap<Job, JobLoad> {
        let mut families: BTreeMap<&str, Vec<(&Job, Nanos)>> = BTreeMap::new();
        for (job, &step) in self.steps.get(&gpu.to_lowercase()).into_iter().flatten() {
            families.entry(&job.model).or_default().push((job, step));
        }
        let mut loads = BTreeMap::new();
        for family in families.values() {
            let steps: Vec<(f64, Nanos)> =
                family.iter().map(|(job, step)| (job.batch(), *step)).collect();
            let each = family.iter().zip(loads_of_family(&steps));
            loads.extend(each.map(|((job, _), load)| ((*job).clone(), load)));
        }
        loads
    }
}

/// "('ResNet-18 (batch size 16)', 1)" is ResNet-18 with batch 16 on one device.
fn gavel_job(name: &str) -> Option<Job> {
    let name = name.strip_prefix("('")?.strip_suffix("', 1)")?;
    match name.split_once(" (batch size ") {
        Some((model, batch)) => Some(Job::new(model, Some(batch.strip_suffix(')')?.parse().ok()?))),
        None => Some(Job::new(name, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_times_come_from_both_kinds_of_files() {
        let gavel = "{\"v100\": {\"('LM (batch size 5)', 1)\": {\"null\": 50.0, \"x\": [1, 2]},
            \"('LM (batch size 5)', 2)\": {\"null\": 1.0}, \"('A3C', 1)\": {\"null\": 0}}}";
        let table = "gpu,model,batch,step_ms\nV100,LM,5,20\n";
        for text in [gavel, table] {
            let loads = Alone::read(text).expect("step times").loads("V100");
            assert_eq!(loads.len(), 1, "{text}");
            assert_eq!(loads[&Job::new("LM", Some(5.0))].step, Nanos::from_millis(20));
        }
    }

    #[test]
    fn other_files_are_refused() {
        assert!(Alone::read("{\"v100\": 3}").is_err());
        assert!(Alone::read("gpu,model\nV100,LM\n").is_err());
        let error = Alone::read("gpu,model,batch,step_ms\nV100,LM,5,soon\n").expect_err("a word");
        assert_eq!(error.place(), Some("line 2"));
    }
}
