//! Utilisation and memory of measured jobs, a family left out.

use std::sync::Arc;

use foretrain_core::stats::mean;
use foretrain_core::{Bytes, InputError, Result};
use foretrain_fleet::utilisation::{Features, HeldOut, MeasuredJob, held_out, scores};
use foretrain_workload::Model;
use foretrain_workload::model::{
    Block, Elementwise, Layer, Op, OpKind, Role, Sample, Split, Tokens,
};
use serde::Deserialize;

use crate::validate::ValidationSet;
use crate::validate::corpus::Corpus;
use crate::validate::report::{Row, SetOutcome};

const STEPS: [&str; 2] = [
    "fleet/itu-rad__GPUMemNet/Datasets/MLP/mlp_data_step1.csv.gz",
    "fleet/itu-rad__GPUMemNet/Datasets/MLP/mlp_data_step2.csv.gz",
];

/// Perceptrons of many forms on one GPU.
pub(super) struct GpuMemNet;

impl ValidationSet for GpuMemNet {
    fn name(&self) -> &'static str {
        "utilisation-gpumemnet"
    }

    fn about(&self) -> &'static str {
        "The GPU utilisation of 6,000 perceptrons in training, from their graphs alone, as GPUMemNet \
         measured it for a minute each on one kind of GPU. A family is the form by which widths \
         follow each other (pyramid, uniform, bottleneck, gradual); each is predicted by trees that \
         were fitted to the other three. Features and the size of the trees were settled once, \
         with a look at these errors; larger trees do a little better here (0.135) than those that \
         are used. The reference is the mean of the other families. Other splits and the memory are \
         in the notes; the split by random tenths is easy, as each job then has near twins among those \
         learnt from."
    }

    fn unit(&self) -> &'static str {
        "%"
    }

    fn score(&self, corpus: &Corpus<'_>) -> SetOutcome {
        SetOutcome::of(STEPS[0], jobs(corpus), |jobs| score(&jobs))
    }
}

#[derive(Debug, Deserialize)]
struct Measured {
    #[serde(rename = "Filename")]
    name: String,
    #[serde(rename = "Activations-Params")]
    layers: String,
    #[serde(rename = "Activation Function")]
    activation: String,
    #[serde(rename = "Batch Size")]
    batch: u64,
    #[serde(rename = "Max GPU Memory (MiB)")]
    memory_mib: f64,
    #[serde(rename = "Avg GPUTL")]
    utilisation: f64,
}

/// A job and what splits are made by.
struct Job {
    measured: MeasuredJob,
    name: String,
    activation: String,
    /// Which of the two tables it is from, 1 or 2.
    step: usize,
}

fn jobs(corpus: &Corpus<'_>) -> Result<Option<Vec<Job>>> {
    let mut jobs = Vec::new();
    for (at, file) in STEPS.into_iter().enumerate() {
        let Some(text) = corpus.root().text(file)? else { return Ok(None) };
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        for (number, row) in reader.deserialize::<Measured>().enumerate() {
            let place = format!("row {}", number + 2);
            let wrong = |message: String| InputError::new(message).at(&place).in_file(file);
            let row = row.map_err(|error| wrong(error.to_string()))?;
            let job =
                row.job(at + 1).ok_or_else(|| wrong(format!("no perceptron: {}", row.name)))?;
            jobs.push(job);
        }
    }
    Ok(Some(jobs))
}

impl Measured {
    fn job(&self, step: usize) -> Option<Job> {
        let said = |key: &str| {
            let (_, rest) = self.name.split_once(key)?;
            rest.split(['_', '.']).next()
        };
        let inputs: u64 = said("input:")?.parse().ok()?;
        let model = perceptron(inputs, &self.layers)?;
        let measured = MeasuredJob {
            family: said("arch:")?.to_owned(),
            features: Features::of(&model, self.batch).ok()?,
            utilisation: self.utilisation,
            memory: Some(Bytes::from_f64(self.memory_mib * 1_048_576.0)),
        };
        Some(Job { measured, name: self.name.clone(), activation: self.activation.clone(), step })
    }
}

/// The model of a list such as `[('linear', 629, 792540), ('ReLU', 629, 0)]`: kind, width of the
/// result, parameters.
fn perceptron(inputs: u64, layers: &str) -> Option<Model> {
    let (mut ops, mut width) = (Vec::new(), inputs);
    for entry in layers.split("('").skip(1) {
        let (kind, figures) = entry.split_once('\'')?;
        let mut figures =
            figures.split([',', ')']).filter_map(|text| text.trim().parse::<u64>().ok());
        let outputs = figures.next()?;
        let each = |what| OpKind::Elementwise { what, width: outputs };
        let op = |kind| Op::new("op", kind, Split::Whole);
        ops.push(match kind {
            "linear" => op(OpKind::Linear { inputs: width, outputs })
                .with("weight", width * outputs, false)
                .with("bias", outputs, false),
            "batch_normalization" => op(OpKind::BatchNorm { channels: outputs, places: 1 })
                .with("weight", outputs, false)
                .with("bias", outputs, false),
            "dropout" => op(each(Elementwise::Dropout)),
            "ReLU" => op(each(Elementwise::Relu)),
            "Identity" => continue,
            _ => op(each(Elementwise::Activation)),
        });
        width = outputs;
    }
    let layer = Layer {
        name: "perceptron".into(),
        role: Role::Body,
        tokens: Tokens::Fixed(1),
        output_width: width,
        ops,
    };
    let block = Block { layer: Arc::new(layer), repeat: 1 };
    Model::new("perceptron", "perceptron", Sample::Fixed, vec![block]).ok()
}

fn score(jobs: &[Job]) -> SetOutcome {
    let measured: Vec<MeasuredJob> = jobs.iter().map(|job| job.measured.clone()).collect();
    let by = |group: &dyn Fn(usize, &Job) -> String| -> Vec<Option<HeldOut>> {
        let groups: Vec<String> = jobs.iter().enumerate().map(|(at, job)| group(at, job)).collect();
        held_out(&measured, &groups.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let family = by(&|_, job| job.measured.family.clone());
    let mut outcome = SetOutcome {
        reference: Some("mean of the other families".into()),
        ..SetOutcome::default()
    };
    for (job, told) in jobs.iter().zip(&family) {
        let Some(told) = told else { continue };
        outcome.rows.push(Row {
            group: format!("{} held out", job.measured.family),
            what: job.name.clone(),
            predicted: told.utilisation,
            measured: job.measured.utilisation,
            reference: Some(told.mean),
            ..Row::default()
        });
    }
    outcome.rows.sort_by(|a, b| a.group.cmp(&b.group));
    let depth = |job: &Job| (job.measured.features.linear as u64 / 3).min(3);
    let size = |job: &Job| job.measured.features.parameters.log10().floor().clamp(4.0, 7.0);
    let splits = [
        ("form held out", family),
        (
            "form of one table held out",
            by(&|_, job| format!("{} {}", job.measured.family, job.step)),
        ),
        ("activation held out (ReLU is half of all)", by(&|_, job| job.activation.clone())),
        ("range of depth held out (up to 2, 3-5, 6-8, more)", by(&|_, job| depth(job).to_string())),
        ("power of ten of the parameters held out", by(&|_, job| size(job).to_string())),
        (
            "table held out (one has norms, dropout and ten more activations)",
            by(&|_, job| job.step.to_string()),
        ),
        // Neighbours in the tables have nothing in common: each was drawn at random.
        ("random tenth held out", by(&|at, _| (at % 10).to_string())),
    ];
    outcome.notes.extend(splits.iter().filter_map(|(what, told)| note(&measured, what, told)));
    outcome
}

fn note(jobs: &[MeasuredJob], what: &str, told: &[Option<HeldOut>]) -> Option<String> {
    let scores = scores(jobs, told)?;
    // A few jobs on which the GPU did next to nothing decide the root of the mean square.
    let errors: Vec<f64> = jobs
        .iter()
        .zip(told)
        .filter(|(job, _)| job.utilisation >= 10.0)
        .filter_map(|(job, told)| {
            Some((told.as_ref()?.utilisation.ln_1p() - job.utilisation.ln_1p()).powi(2))
        })
        .collect();
    let busy = mean(&errors)
        .map_or(String::new(), |square| format!(", {:.3} of jobs above 10 %", square.sqrt()));
    let memory =
        scores.memory_mape.map_or(String::new(), |mape| format!("; memory MAPE {mape:.1} %"));
    Some(format!(
        "{what}: RMSLE {:.3}{busy} (mean alone {:.3}), mean absolute error {:.2} points ({:.2}){memory}",
        scores.rmsle, scores.mean_rmsle, scores.mae, scores.mean_mae
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERS: &str = "[('linear', 50, 5050), ('batch_normalization', 50, 100), ('GELU', 50, 0), \
        ('dropout', 50, 0), ('linear', 10, 510), ('Softmax', 10, 0)]";

    #[test]
    fn perceptrons_are_read() {
        let row = Measured {
            name: "input:100_output:10_depth:1_arch:pyramid_batch:64.out".into(),
            layers: LAYERS.into(),
            activation: "GELU".into(),
            batch: 64,
            memory_mib: 1500.0,
            utilisation: 30.0,
        };
        let job = row.job(2).unwrap();
        assert_eq!(job.measured.family, "pyramid");
        let features = job.measured.features;
        assert_eq!((features.parameters, features.linear), (5660.0, 2.0));
        assert_eq!((features.inputs, features.widest, features.outputs), (100.0, 50.0, 10.0));
        assert_eq!(
            (features.normalisation, features.dropout, features.activation),
            (1.0, 1.0, 2.0)
        );
        assert!(Measured { layers: "[('linear', x)]".into(), ..row }.job(1).is_none());
    }
}
