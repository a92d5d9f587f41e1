//! The arguments of `fleet`.

mod edge;
mod share;
mod utilisation;

use clap::{Args, Subcommand};

use crate::commands::fleet::Options;

#[derive(Debug, Args)]
pub(super) struct Fleet {
    #[command(subcommand)]
    action: FleetAction,
}

#[derive(Debug, Subcommand)]
enum FleetAction {
    /// Show which layers models could hold in common, what that saves, and what retraining would
    /// keep.
    Share(share::Share),
    /// Play a small device that serves models by turns, with and without shared layers.
    Edge(edge::Edge),
    /// Predict how busy a training job keeps its GPU from measured jobs.
    Utilisation(utilisation::Utilisation),
}

impl From<Fleet> for Options {
    fn from(args: Fleet) -> Self {
        match args.action {
            FleetAction::Share(args) => Self::Share(args.into()),
            FleetAction::Edge(args) => Self::Edge(args.into()),
            FleetAction::Utilisation(args) => Self::Utilisation(args.into()),
        }
    }
}
