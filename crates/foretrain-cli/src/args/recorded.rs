//! Arguments of plans that only recordings take.

use std::path::PathBuf;

use clap::Args;
use foretrain::core::{Bytes, Nanos};
use foretrain::predict::roles::GivenRole;

use super::read::Reading;
use super::values;
use crate::commands::plan::Recorded;

/// What is known of a recording.
#[derive(Debug, Args)]
pub(super) struct RecordedArgs {
    /// A strategy to try, as in 'zero-1' or 'copies | fuse(50MiB)' (see `foretrain strategies`); may
    /// be given several times [default: all that train synchronously].
    #[arg(long = "strategy", value_name = "PASSES", help_heading = "Recordings", value_parser = values::strategy_text)]
    strategies: Vec<String>,
    /// Cluster, node type or file of the recording [default: deduced from its device name].
    #[arg(long, value_name = "CLUSTER", help_heading = "Recordings")]
    recorded_on: Option<String>,
    /// Step time of the recorded job without the profiler, as in 47.1ms.
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = "Recordings")]
    step_time: Option<Nanos>,
    /// Samples (or tokens) that one model replica processes per step.
    #[arg(long, value_name = "N", value_parser = values::positive, help_heading = "Recordings")]
    replica_batch: Option<f64>,
    /// Gradient bytes of one rank, where the trace does not show them, as in 1.5GiB.
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "Recordings")]
    gradient_bytes: Option<Bytes>,
    /// What groups are for, as in 'dp_*=dp': dp, tp, pp or ep; may be given several times.
    #[arg(long = "role", value_name = "GROUPS=ROLE", value_parser = values::role, help_heading = "Recordings")]
    roles: Vec<GivenRole>,
    #[command(flatten)]
    reading: Reading,
}

impl RecordedArgs {
    /// What these recordings are asked.
    pub(super) fn of(self, recordings: &[String]) -> Recorded {
        Recorded {
            source: self.reading.of(recordings.iter().map(PathBuf::from).collect()),
            strategies: self.strategies,
            recorded_on: self.recorded_on,
            unprofiled_step: self.step_time,
            replica_batch: self.replica_batch,
            gradient_bytes: self.gradient_bytes,
            roles: self.roles,
        }
    }
}
