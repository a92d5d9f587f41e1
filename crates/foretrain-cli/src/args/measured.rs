//! Arguments that name measurements of a machine.

use std::path::PathBuf;

use clap::Args;

use crate::commands::calibration::Files;

/// What was measured on the machine.
#[derive(Debug, Args)]
pub(super) struct MeasuredArgs {
    /// Kernel times of the device, as `foretrain calibrate kernels -o` writes them.
    #[arg(long, value_name = "FILE", help_heading = "Your measurements")]
    kernels: Option<PathBuf>,
    /// Steps that were timed on the cluster, as TOML or .csv (see docs/estimate.md): times are
    /// multiplied by what explains them.
    #[arg(long, value_name = "FILE", help_heading = "Your measurements")]
    measured: Option<PathBuf>,
}

impl From<MeasuredArgs> for Files {
    fn from(args: MeasuredArgs) -> Self {
        Self { kernels: args.kernels, measured: args.measured }
    }
}
