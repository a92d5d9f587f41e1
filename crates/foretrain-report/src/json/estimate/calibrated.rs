//! Measured steps that estimates rest on.

use foretrain_plan::calibrate::{Calibrated, MeasuredRow};
use foretrain_plan::times::Factors;
use schemars::JsonSchema;
use serde::Serialize;

use crate::json::common::finite;

/// Measured steps, and the factors on a machine's times that were fitted to them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CalibratedReport {
    /// The file.
    pub source: String,
    /// The cluster they were measured on.
    pub cluster: String,
    /// On matrix products, attention and convolutions.
    pub products: f64,
    /// On memory-bound kernels.
    pub memory: f64,
    /// On collectives and transfers.
    pub communication: f64,
    /// On the host's pace.
    pub host: f64,
    /// The steps.
    pub steps: Vec<MeasuredStepReport>,
}

/// A measured step beside its estimate.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MeasuredStepReport {
    /// The model.
    pub model: String,
    /// The layout, as `--parallel` takes it.
    pub layout: String,
    /// Devices.
    pub devices: u64,
    /// Samples of the step.
    pub global_batch: u64,
    /// Its measured time.
    pub measured_ns: i64,
    /// Estimated over measured time less one, without the factors.
    pub error_before: f64,
    /// The same with them.
    pub error_after: f64,
}

impl From<&Calibrated> for CalibratedReport {
    fn from(calibrated: &Calibrated) -> Self {
        let Factors { products, memory, communication, host } = calibrated.factors;
        Self {
            source: calibrated.source.clone(),
            cluster: calibrated.cluster.clone(),
            products: finite(products),
            memory: finite(memory),
            communication: finite(communication),
            host: finite(host),
            steps: calibrated.rows.iter().map(Into::into).collect(),
        }
    }
}

impl From<&MeasuredRow> for MeasuredStepReport {
    fn from(row: &MeasuredRow) -> Self {
        Self {
            model: row.model.clone(),
            layout: row.layout.clone(),
            devices: row.devices,
            global_batch: row.global_batch,
            measured_ns: row.measured.nanos(),
            error_before: finite(row.before),
            error_after: finite(row.after),
        }
    }
}
