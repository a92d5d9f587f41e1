//! The arguments of `fleet`.

mod edge;
mod features;
mod machine;
mod open;
mod schedule;
mod share;
mod steps;
mod table;
mod utilisation;

use clap::{Args, Subcommand};

use self::steps::{CharacteriseArgs, ProjectArgs, SweepArgs, SynthesizeArgs};
use self::table::Tables;
use crate::commands::fleet::{Options, audit};

#[derive(Debug, Args)]
#[command(after_help = "docs/fleet.md explains the tables, the rules and the answers.")]
pub(super) struct Fleet {
    #[command(subcommand)]
    action: FleetAction,
}

#[derive(Debug, Subcommand)]
enum FleetAction {
    /// Show what tables of jobs, machines and GPU samples hold, leave open and contradict each other
    /// in.
    Audit(AuditArgs),
    /// Show what jobs spend their steps on, by class, and how long they run and wait.
    Characterise(CharacteriseArgs),
    /// Move jobs to another class of distribution: may they run there, and how much faster?
    Project(ProjectArgs),
    /// Show what other hardware, or faster software, would buy each class.
    Sweep(SweepArgs),
    /// Draw a made-up table of jobs with the published shares of a fleet.
    Synthesize(SynthesizeArgs),
    /// Make rows of the feature table of jobs at hand: recordings, graphs, models.
    Features(Box<features::FeaturesArgs>),
    /// Make a step of a row that predict, whatif and inspect read.
    Open(Box<open::OpenArgs>),
    /// Play the jobs on a cluster under several schedulers, and compare what comes of it.
    Schedule(Box<schedule::ScheduleArgs>),
    /// Show which layers models could hold in common, what that saves, and what retraining would
    /// keep.
    Share(share::Share),
    /// Play a small device that serves models by turns, with and without shared layers.
    Edge(edge::Edge),
    /// Predict how busy a training job keeps its GPU from measured jobs.
    Utilisation(utilisation::Utilisation),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain fleet audit jobs.csv
  foretrain fleet audit jobs.csv --column submit=queued_at:ms
  foretrain fleet audit cluster_job_log cluster_machine_list cluster_gpu_util")]
struct AuditArgs {
    #[command(flatten)]
    tables: Tables,
}

impl Fleet {
    /// Whether --out names something else than where the answer goes.
    pub(super) const fn keeps_a_file(&self) -> bool {
        matches!(self.action, FleetAction::Open(_))
    }
}

impl From<Fleet> for Options {
    fn from(args: Fleet) -> Self {
        match args.action {
            FleetAction::Audit(args) => Self::Audit(audit::Options { tables: args.tables.into() }),
            FleetAction::Characterise(args) => Self::Characterise(args.into()),
            FleetAction::Project(args) => Self::Project(args.into()),
            FleetAction::Sweep(args) => Self::Sweep(args.into()),
            FleetAction::Synthesize(args) => Self::Synthesize(args.into()),
            FleetAction::Features(args) => Self::Features(Box::new((*args).into())),
            FleetAction::Open(args) => Self::Open(Box::new((*args).into())),
            FleetAction::Schedule(args) => Self::Schedule(Box::new((*args).into())),
            FleetAction::Share(args) => Self::Share(args.into()),
            FleetAction::Edge(args) => Self::Edge(args.into()),
            FleetAction::Utilisation(args) => Self::Utilisation(args.into()),
        }
    }
}
