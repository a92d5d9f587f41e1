//! The arguments of `fleet utilisation`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::commands::fleet::utilisation::Options;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain fleet utilisation train examples/fleet/measured.csv --write ours.json
  foretrain fleet utilisation predict resnet-50 --batch 32 --with ours.json
  foretrain fleet utilisation evaluate new-jobs.csv --with ours.json")]
pub(super) struct Utilisation {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Learn from measured jobs; shows how far off predictions are for families that were left out.
    Train {
        /// Measured jobs in CSV: model, batch, utilisation and, if known, memory_mib and family (see
        /// docs/utilisation.md).
        #[arg(value_name = "TABLE")]
        table: PathBuf,
        /// Write the predictor to this file.
        #[arg(long, value_name = "FILE")]
        write: PathBuf,
        /// Replace the file if there is one.
        #[arg(long)]
        force: bool,
        /// What was measured and on which GPU, kept in the file and shown with its predictions.
        #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
        about: String,
        /// Licence of the measured jobs, kept in the file.
        #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
        licence: String,
    },
    /// Say what to expect of a model.
    Predict {
        /// A model's name, or a file that describes one.
        #[arg(value_name = "MODEL")]
        model: String,
        /// Samples of a step on one GPU.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
        batch: u64,
        /// The predictor, as train wrote it.
        #[arg(long = "with", value_name = "FILE")]
        predictor: PathBuf,
    },
    /// Show how far off predictions are, of a predictor for jobs that it has not seen, or else with
    /// families left out.
    Evaluate {
        /// Measured jobs, as for train.
        #[arg(value_name = "TABLE")]
        table: PathBuf,
        /// The predictor [default: one for each family, learnt from the others].
        #[arg(long = "with", value_name = "FILE")]
        predictor: Option<PathBuf>,
    },
}

impl From<Utilisation> for Options {
    fn from(args: Utilisation) -> Self {
        match args.action {
            Action::Train { table, write, force, about, licence } => {
                Self::Train { table, write, force, about, licence }
            }
            Action::Predict { model, batch, predictor } => {
                Self::Predict { model, batch, predictor }
            }
            Action::Evaluate { table, predictor } => Self::Evaluate { table, predictor },
        }
    }
}
