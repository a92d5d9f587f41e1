//! Measurements of a machine that estimates and plans are to rest on.

use std::path::{Path, PathBuf};

use foretrain::core::InputError;
use foretrain::cost::kernels::{KernelCalibration, KernelModel};
use foretrain::hardware::{Cluster, read_text};
use foretrain::plan::calibrate::{Calibrated, MeasuredStep, MeasuredSteps, Run, read_steps};
use foretrain::plan::{Precision, Software, Training};
use foretrain::workload::model::Model;

use super::job::Job;
use super::models;
use crate::failure::Result;

/// Files of measurements as they were asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    pub(crate) kernels: Option<PathBuf>,
    pub(crate) measured: Option<PathBuf>,
}

/// What they hold.
#[derive(Debug, Default)]
pub(crate) struct Measurements {
    kernels: Option<(PathBuf, KernelCalibration)>,
    steps: Option<(PathBuf, MeasuredSteps)>,
}

impl Files {
    pub(crate) fn read(&self) -> Result<Measurements> {
        let kernels = |path: &PathBuf| -> foretrain::core::Result<_> {
            let text = read_text(path)?;
            let read = KernelCalibration::read(&text).map_err(|error| error.in_file(path))?;
            Ok((path.clone(), read))
        };
        let steps = |path: &PathBuf| Ok::<_, InputError>((path.clone(), read_steps(path)?));
        Ok(Measurements {
            kernels: self.kernels.as_ref().map(kernels).transpose()?,
            steps: self.measured.as_ref().map(steps).transpose()?,
        })
    }
}

impl Measurements {
    /// Refuses measurements that are of none of the clusters.
    pub(crate) fn check(&self, clusters: &[Cluster]) -> Result<()> {
        if let Some((path, kernels)) = &self.kernels
            && !clusters.iter().any(|cluster| cluster.node.device.name == kernels.device)
            && let Some(cluster) = clusters.first()
        {
            self.kernels_of(cluster).map_err(|error| error.in_file(path))?;
        }
        if let Some((path, steps)) = &self.steps {
            let found = clusters.iter().any(|cluster| is_of(steps, cluster, clusters));
            if !found {
                let names: Vec<&str> = clusters.iter().map(|one| one.name.as_str()).collect();
                let (names, theirs) = (names.join(", "), steps.cluster.as_deref());
                return Err(match theirs {
                    Some(theirs) => InputError::new(format!(
                        "the steps were measured on {theirs}, not on {names}"
                    ))
                    .hint(format!("leave them out, or measure steps on {names}")),
                    None => InputError::new(format!(
                        "the file does not say on which of {names} its steps were measured"
                    ))
                    .hint("write cluster = \"NAME\" into it (a column cluster in a .csv)"),
                }
                .in_file(path)
                .into());
            }
        }
        Ok(())
    }

    /// Kernel times of a cluster's devices: corrected, or refused if they are another device's.
    fn kernels_of(&self, cluster: &Cluster) -> foretrain::core::Result<KernelModel> {
        let shipped = KernelModel::for_device(&cluster.node.device);
        match &self.kernels {
            Some((_, calibration)) => shipped.calibrated_by(calibration),
            None => Ok(shipped),
        }
    }

    /// Kernel times of a cluster's devices, corrected if they are the measured ones.
    pub(crate) fn kernels(&self, cluster: &Cluster) -> KernelModel {
        let shipped = || KernelModel::for_device(&cluster.node.device);
        self.kernels_of(cluster).unwrap_or_else(|_| shipped())
    }

    /// What its measured steps tell of a cluster, one of `all`, if they are of it. What a step does
    /// not say is as in the job that is asked about.
    pub(crate) fn steps(
        &self,
        cluster: &Cluster,
        all: &[Cluster],
        kernels: &KernelModel,
        asked: &Asked<'_>,
    ) -> Result<Option<Calibrated>> {
        let Some((path, steps)) = &self.steps else { return Ok(None) };
        if !is_of(steps, cluster, all) {
            return Ok(None);
        }
        let mut known: Vec<(String, Model)> = Vec::new();
        for name in steps.steps.iter().filter_map(|step| step.model.as_ref()) {
            if !known.iter().any(|(known, _)| known == name) {
                known.push((name.clone(), models::load(name)?));
            }
        }
        let named = |name: &String| known.iter().find(|(known, _)| known == name);
        let mut runs = Vec::with_capacity(steps.steps.len());
        for step in &steps.steps {
            let other = step.model.as_ref().and_then(named).map(|(_, model)| model);
            let run = asked.run(step, other);
            runs.push(run.map_err(|error| error.at(&step.place).in_file(path))?);
        }
        Ok(Some(Calibrated::by(&runs, cluster, kernels, path)?))
    }

    /// What of the measurements is of no use to a cluster.
    pub(crate) fn note(&self, cluster: &Cluster, all: &[Cluster]) -> Option<String> {
        let name = |path: &Path| path.display().to_string();
        let kernels = self.kernels.as_ref().filter(|(_, of)| of.device != cluster.node.device.name);
        if let Some((path, of)) = kernels {
            let (path, device) = (name(path), &of.device);
            return Some(format!("{path} was measured on {device}: not used for {}", cluster.name));
        }
        let steps = self.steps.as_ref().filter(|(_, of)| !is_of(of, cluster, all));
        let (path, _) = steps?;
        Some(format!(
            "{} was measured on another cluster: not used for {}",
            name(path),
            cluster.name
        ))
    }
}

/// Steps that name no cluster are of the only one that is asked about.
fn is_of(steps: &MeasuredSteps, cluster: &Cluster, all: &[Cluster]) -> bool {
    steps.cluster.as_ref().map_or(all.len() == 1, |name| *name == cluster.name)
}

/// The job that is asked about.
pub(crate) struct Asked<'a> {
    pub(crate) job: &'a Job,
    pub(crate) model: &'a Model,
    pub(crate) training: &'a Training,
    pub(crate) software: &'a Software,
}

impl<'a> Asked<'a> {
    fn run(
        &self,
        step: &MeasuredStep,
        other: Option<&'a Model>,
    ) -> foretrain::core::Result<Run<'a>> {
        let mut training = match other {
            // Another model's samples have their own usual length.
            Some(model) => self.job.sized(model, step.batch, step.sequence, None)?,
            None => Training { global_batch: step.batch, ..self.training.clone() },
        };
        if let Some(sequence) = step.sequence {
            training.sequence = sequence;
        }
        if let Some(precision) = &step.precision {
            training.precision = Precision::parse(precision)?;
        }
        let software = match &step.software {
            Some(name) => Software::named(name)?,
            None => self.software.clone(),
        };
        Ok(Run {
            model: other.unwrap_or(self.model),
            training,
            software,
            layout: step.layout.clone(),
            time: step.step_time,
            place: step.place.clone(),
        })
    }
}
