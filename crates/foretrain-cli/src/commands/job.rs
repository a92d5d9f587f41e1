//! What is trained, by what, and where, from what was written on the command line.

use foretrain::core::{Bytes, DType, InputError, Nanos};
use foretrain::cost::kernels::AttentionKernel;
use foretrain::hardware::{Catalogue, Cluster};
use foretrain::plan::training::Lora;
use foretrain::plan::{Optimiser, Precision, Software, Training};
use foretrain::workload::model::{Model, Sample};

use super::models;
use crate::failure::Result;

/// A job as it was asked for.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) model: String,
    pub(crate) batch: Option<u64>,
    pub(crate) sequence: Option<u64>,
    pub(crate) target: Option<u64>,
    pub(crate) precision: Precision,
    pub(crate) optimiser: Optimiser,
    pub(crate) lora: Option<Lora>,
    pub(crate) expert_imbalance: f64,
    pub(crate) software: String,
    pub(crate) overrides: Overrides,
}

/// What runs attention; nothing where scores are written out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttentionForm(pub(crate) Option<AttentionKernel>);

/// What users know better of their software than its name says.
#[derive(Debug)]
pub(crate) struct Overrides {
    pub(crate) overlap_tensor: bool,
    pub(crate) no_overlap_gradients: bool,
    pub(crate) attention: Option<AttentionForm>,
    pub(crate) unbalanced_context: bool,
    pub(crate) cuda_graphs: bool,
    pub(crate) bucket: Option<Bytes>,
    pub(crate) reduce_in: Option<DType>,
}

impl Job {
    /// The model, what is trained of it and by what.
    pub(crate) fn resolve(&self) -> Result<(Model, Training, Software)> {
        let model = models::load(&self.model)?;
        let (training, software) = (self.training(&model)?, self.software()?);
        Ok((model, training, software))
    }

    fn training(&self, model: &Model) -> Result<Training> {
        let Some(global_batch) = self.batch else {
            return Err(InputError::new("no batch to plan for")
                .hint("give --batch, the samples of one step over all replicas")
                .into());
        };
        Ok(self.sized(model, global_batch, self.sequence, self.target)?)
    }

    /// What is trained, with samples of these lengths [default: the model's usual ones].
    pub(crate) fn sized(
        &self,
        model: &Model,
        global_batch: u64,
        sequence: Option<u64>,
        target: Option<u64>,
    ) -> foretrain::core::Result<Training> {
        let refuse = |option: &str| {
            Err(InputError::new(format!("{option} is of no use to \"{}\"", model.name))
                .hint("leave it out"))
        };
        let (sequence, target) = match model.sample {
            Sample::Tokens { .. } if target.is_some() => refuse("--target-sequence")?,
            Sample::Tokens { default, .. } => (sequence.unwrap_or(default), 0),
            Sample::Pair { source, target: usual } => {
                (sequence.unwrap_or(source), target.unwrap_or(usual))
            }
            Sample::Fixed if sequence.is_some() => refuse("--sequence")?,
            Sample::Fixed if target.is_some() => refuse("--target-sequence")?,
            Sample::Fixed => (0, 0),
        };
        Ok(Training {
            global_batch,
            sequence,
            target,
            precision: self.precision,
            optimiser: self.optimiser,
            lora: self.lora,
            expert_imbalance: self.expert_imbalance,
        })
    }

    fn software(&self) -> Result<Software> {
        let mut software = Software::named(&self.software)?;
        let overrides = &self.overrides;
        software.overlap_tensor |= overrides.overlap_tensor;
        software.overlap_gradients &= !overrides.no_overlap_gradients;
        if let Some(AttentionForm(kernel)) = overrides.attention {
            software.attention = kernel;
        }
        software.balanced_context &= !overrides.unbalanced_context;
        if overrides.cuda_graphs {
            software.host_forward = Nanos::ZERO;
            software.host_backward = Nanos::ZERO;
            software.host_per_pass = Nanos::ZERO;
            software.host_per_checkpoint = Nanos::ZERO;
        }
        if let Some(bucket) = overrides.bucket {
            software.bucket = bucket;
        }
        if let Some(dtype) = overrides.reduce_in {
            software.reduce_in_activations = self.reduces_in_activations(dtype)?;
        }
        Ok(software)
    }

    fn reduces_in_activations(&self, dtype: DType) -> Result<bool> {
        let (activations, gradients) = (self.precision.activations, self.precision.gradients);
        if dtype == gradients || dtype == activations {
            return Ok(dtype != gradients);
        }
        let (activations, gradients) = (activations.as_str(), gradients.as_str());
        Err(InputError::new(format!("gradients cannot be reduced in {}", dtype.as_str()))
            .hint(format!("they are accumulated in {gradients}; activations are {activations}"))
            .into())
    }
}

/// The cluster of this name, at another price per device and hour if one is given.
pub(crate) fn priced(catalogue: &mut Catalogue, name: &str, price: Option<f64>) -> Result<Cluster> {
    let mut cluster = catalogue.cluster_or_file(name)?;
    cluster.node.price_per_device_hour = price;
    Ok(cluster)
}
