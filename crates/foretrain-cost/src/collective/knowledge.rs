//! What is known of a fabric's constants: its kind's priors, under what was measured on it.

use std::sync::Arc;

use foretrain_core::{InputError, Result};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::collectives::{Calibration, Choice, Constants, Prior, Stack, prior};

use super::fabric::{Fabric, Library};
use super::field::Field;
use super::processors::Processors;
use crate::nccl_tuner::Version;

/// Constants fitted to a cluster's own logs, and how far the logs lie from the fitted model.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibrated {
    pub(super) values: Constants,
    pub(super) spreads: Constants,
    pub(super) pick: Pick,
    pub(super) noise: f64,
    pub(super) field: Field,
    pub(super) processors: Processors,
    pub(super) source: String,
}

impl Calibrated {
    /// The calibration of a cluster over the prior of its kind.
    ///
    /// # Errors
    /// If it names a collective that there is none of.
    pub(super) fn new(prior: &Prior, calibration: &Calibration) -> Result<Self> {
        let (mut values, mut spreads) = (prior.values.clone(), prior.spreads.clone());
        for (&constant, &value) in &calibration.constants {
            values[constant] = value;
        }
        for (&constant, &spread) in &calibration.spreads {
            spreads[constant] = spread;
        }
        let kind = |name: &str| {
            CollectiveKind::parse(name).ok_or_else(|| {
                InputError::new(format!("no collective is called \"{name}\""))
                    .at("collectives.measured of the cluster's calibration")
            })
        };
        let sweeps = calibration.measured.iter();
        let sweeps = sweeps.map(|sweep| Ok((kind(&sweep.collective)?, sweep)));
        let processors = calibration.processors.iter();
        let processors = processors.map(|sweep| Ok((kind(&sweep.collective)?, sweep)));
        Ok(Self {
            values,
            spreads,
            pick: Pick {
                choice: calibration.choice,
                nccl: calibration.nccl.map(|(major, minor)| Version(major, minor)),
            },
            noise: calibration.noise,
            field: Field::new(sweeps.collect::<Result<Vec<_>>>()?),
            processors: Processors::new(processors.collect::<Result<Vec<_>>>()?),
            source: format!("calibrated from {}", calibration.logs.join(", ")),
        })
    }
}

/// How algorithm and protocol are picked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) choice: Choice,
    /// Whose constants, if not those of the fabric's library.
    pub(crate) nccl: Option<Version>,
}

/// What candidates are made of: constants, and who picks.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) values: &'a Constants,
    pub(crate) pick: Pick,
}

impl Fabric {
    /// Its own constants where they were measured, else those of its kind.
    pub(super) fn known(&self) -> Known<'_> {
        match self.calibrated.as_deref() {
            Some(own) => Known { values: &own.values, pick: own.pick },
            None => Known { values: &self.prior().values, pick: Pick::default() },
        }
    }

    /// The constants of its kind before anything is measured.
    pub fn prior(&self) -> &'static Prior {
        self.prior_with(None)
    }

    /// With another version of NCCL, where the library is NCCL.
    pub(crate) fn prior_with(&self, nccl: Option<Version>) -> &'static Prior {
        let stack = match self.library {
            Library::Nccl(own) => {
                let Version(major, minor) = nccl.unwrap_or(own);
                Stack::Device(Some((major, minor)))
            }
            Library::Rccl | Library::Vendor => Stack::Device(None),
            Library::Gloo => Stack::Gloo,
            Library::Mpi => Stack::Mpi,
        };
        prior(self.intra.kind, self.intra.generation, self.inter.kind, stack)
    }

    /// The same fabric with what was measured on its cluster.
    ///
    /// # Errors
    /// If the calibration names a collective that there is none of.
    pub fn calibrated_by(mut self, calibration: &Calibration) -> Result<Self> {
        let nccl = calibration.nccl.map(|(major, minor)| Version(major, minor));
        self.calibrated = Some(Arc::new(Calibrated::new(self.prior_with(nccl), calibration)?));
        Ok(self)
    }
}
