//! Many plans: files of scenarios, shards of them, rows put together.

use std::path::{Path, PathBuf};

use foretrain::core::InputError;
use foretrain::cost::kernels::KernelModel;
use foretrain::hardware::{Catalogue, Cluster, read_text};
use foretrain::plan::scenario::{
    self, Resolver, ResultRow, Scenario, Shard, Study, cluster_hash, model_hash, read_rows,
    to_json_lines, to_parquet,
};
use foretrain::report::text::units::counted;
use foretrain::workload::model::Model;

use super::{Search, search};
use crate::commands::Answer;
use crate::commands::calibration::{Files, Measurements};
use crate::commands::hardware::catalogue;
use crate::commands::models;
use crate::failure::Result;
use crate::output::{Output, write_file};
use crate::progress::Stages;

/// Names stand for models of the library, entries of the catalogue, and files.
struct Named {
    catalogue: Catalogue,
    measured: Measurements,
}

impl Resolver for Named {
    fn model(&mut self, name: &str) -> foretrain::core::Result<Model> {
        models::load(name)
    }
    fn cluster(&mut self, name: &str) -> foretrain::core::Result<Cluster> {
        self.catalogue.cluster_or_file(name)
    }
    fn kernels(&mut self, cluster: &Cluster) -> foretrain::core::Result<KernelModel> {
        Ok(self.measured.kernels(cluster))
    }
}

/// Writes a scenario for each cluster and size.
pub(super) fn write(
    asked: &Search,
    file: &Path,
    hardware: &[PathBuf],
    output: &Output<'_>,
) -> Result<Answer> {
    let mut catalogue = catalogue(hardware)?;
    let (model, training, software) = asked.job.resolve()?;
    // Refuses prices of unknown clusters.
    search::clusters(asked, hardware)?;
    let mut scenarios = Vec::new();
    for name in &asked.on {
        let cluster = catalogue.cluster_or_file(name)?;
        scenarios.extend(asked.gpus.iter().map(|&devices| Scenario {
            model: asked.job.model.clone(),
            model_hash: Some(model_hash(&model)),
            cluster: name.clone(),
            cluster_hash: Some(cluster_hash(&cluster)),
            devices,
            training: training.clone(),
            software: software.clone(),
            pins: asked.pin.clone(),
            schedules: asked.schedules.clone(),
            memory: asked.memory.map(|limit| limit.on(&cluster)),
            price: search::price(asked, name),
        }));
    }
    write_file(file, Study::to_json_lines(&scenarios).as_bytes())?;
    output.note(&format!("wrote {}: {}", file.display(), counted(scenarios.len(), "scenario")));
    Ok(Answer::Yes)
}

/// Makes the plans of a shard. Answers "no" if it was stopped: part of a shard is of no use.
pub(super) fn run(
    file: &Path,
    shard: Shard,
    measured: &Files,
    hardware: &[PathBuf],
    output: &Output<'_>,
) -> Result<Answer> {
    let study = study(file)?;
    let mut named = Named { catalogue: catalogue(hardware)?, measured: measured.read()? };
    let stages = Stages::new(output.progress());
    let rows = scenario::run(&study, shard, &mut named, output.stop(), &|done, all| {
        stages.at(&format!("scenarios of {shard}"), done, all);
    })
    .map_err(|error| error.in_file(file));
    stages.finish();
    match rows? {
        Some(rows) => {
            put(&rows, output)?;
            Ok(Answer::Yes)
        }
        None => {
            output.note("stopped: no rows are written, since part of a shard cannot be merged");
            Ok(Answer::No)
        }
    }
}

/// Puts the rows of all shards together.
pub(super) fn merge(file: &Path, rows: &[PathBuf], output: &Output<'_>) -> Result<Answer> {
    let study = study(file)?;
    let mut files = Vec::new();
    for path in rows {
        files.push((path.clone(), read_rows(path)?));
    }
    let merged = scenario::merge(&study, &files)?;
    put(&merged, output)?;
    Ok(Answer::Yes)
}

fn study(file: &Path) -> Result<Study> {
    let text = read_text(file)?;
    Ok(Study::parse(&text).map_err(|error| error.in_file(file))?)
}

/// Writes rows as the ending of --out says; JSON lines to standard output.
fn put(rows: &[ResultRow], output: &Output<'_>) -> Result<()> {
    let ending = |path: &Path| path.extension().map(|ending| ending.to_string_lossy().into_owned());
    match output.file().map(|path| (path, ending(path))) {
        Some((path, Some(ending))) if ending == "parquet" => write_file(path, &to_parquet(rows)?),
        Some((path, Some(ending))) if !["jsonl", "json", "ndjson"].contains(&ending.as_str()) => {
            Err(InputError::new(format!("rows are written as .jsonl or .parquet, not .{ending}"))
                .in_file(path)
                .into())
        }
        _ => output.answer(&to_json_lines(rows)),
    }
}
