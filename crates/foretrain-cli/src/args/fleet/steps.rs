//! The arguments of verbs that look at steps: characterise, project, sweep, synthesize.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use foretrain::core::Bandwidth;
use foretrain::fleet::jobs::Class;
use foretrain::fleet::pai::Resource;

use super::machine::{Hiding, Machine, resource};
use super::table::Said;
use crate::args::values;
use crate::commands::fleet::sweep::{Asked, Setting, To};
use crate::commands::fleet::{Jobs, Source, characterise, project, sweep, synthesize};

/// Whose steps.
#[derive(Debug, Args)]
struct Whose {
    /// Table of jobs: CSV, JSON, JSON lines (also .gz or .zst), Parquet.
    #[arg(value_name = "TABLE", required_unless_present = "preset", conflicts_with = "preset")]
    table: Option<PathBuf>,
    /// In place of a table, models of a study as recalled.
    #[arg(long, value_name = "NAME")]
    preset: Option<Preset>,
    #[command(flatten)]
    said: Said,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Preset {
    /// Six models of the study of Alibaba's PAI.
    #[value(name = "pai-2019")]
    Pai2019,
}

impl From<Whose> for Jobs {
    fn from(args: Whose) -> Self {
        match args.table {
            Some(table) => Self::Table(Source { files: vec![table], said: args.said.into() }),
            None => Self::Pai2019,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain fleet characterise --preset pai-2019
  foretrain fleet characterise examples/fleet/features.csv --efficiency memory=0.5
  foretrain fleet characterise cluster_log.csv")]
pub(super) struct CharacteriseArgs {
    #[command(flatten)]
    whose: Whose,
    #[command(flatten)]
    machine: Machine,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain fleet project examples/fleet/features.csv --to AllReduce-Local
  foretrain fleet project --preset pai-2019 --gpu-memory 40GB --pcie-sharing 2")]
pub(super) struct ProjectArgs {
    #[command(flatten)]
    whose: Whose,
    /// Classes to move jobs to [default: AllReduce-Local, AllReduce-Cluster and PEARL].
    #[arg(long, value_name = "CLASSES", value_delimiter = ',', value_parser = values::hinted::<Class>)]
    to: Vec<Class>,
    #[command(flatten)]
    hiding: Hiding,
    #[command(flatten)]
    machine: Machine,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain fleet sweep examples/fleet/features.csv
  foretrain fleet sweep --preset pai-2019 --change ethernet=100Gbit/s+pcie=50GB/s
  foretrain fleet sweep examples/fleet/features.csv --software matmul=2.8 --software element-wise=2")]
pub(super) struct SweepArgs {
    #[command(flatten)]
    whose: Whose,
    /// One resource at another rate, or two at once: ethernet=100Gbit/s, flops=64, memory=2000GB/s,
    /// ethernet=100Gbit/s+pcie=50GB/s; may be given several times [default: the grid of pai-2019,
    /// recalled].
    #[arg(long = "change", value_name = "RESOURCE=RATE", value_parser = hardware)]
    changes: Vec<Asked>,
    /// What software would make faster: matmul=2.8 (mixed precision: compute-bound operations),
    /// element-wise=2 (fusion: memory-bound operations), or both with +; may be given several times.
    #[arg(long, value_name = "PART=TIMES", value_parser = software)]
    software: Vec<Asked>,
    #[command(flatten)]
    hiding: Hiding,
    #[command(flatten)]
    machine: Machine,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain fleet synthesize --jobs 100000 --seed 1 --out jobs.csv")]
pub(super) struct SynthesizeArgs {
    /// Jobs to draw.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    jobs: u64,
    /// Equal seeds give equal tables.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl From<CharacteriseArgs> for characterise::Options {
    fn from(args: CharacteriseArgs) -> Self {
        Self { jobs: args.whose.into(), method: args.machine.method(None) }
    }
}

impl From<ProjectArgs> for project::Options {
    fn from(args: ProjectArgs) -> Self {
        let usual = vec![Class::AllReduceLocal, Class::AllReduceCluster, Class::Pearl];
        let to = if args.to.is_empty() { usual } else { args.to };
        // Replicas that come to one server share what is there.
        let method = args.machine.method(Some(u32::MAX));
        Self { jobs: args.whose.into(), method, overlap: args.hiding.into(), to }
    }
}

impl From<SweepArgs> for sweep::Options {
    fn from(args: SweepArgs) -> Self {
        Self {
            jobs: args.whose.into(),
            method: args.machine.method(None),
            overlap: args.hiding.into(),
            changes: [args.changes, args.software].concat(),
        }
    }
}

impl From<SynthesizeArgs> for synthesize::Options {
    fn from(args: SynthesizeArgs) -> Self {
        Self { jobs: args.jobs, seed: args.seed }
    }
}

/// Settings that are joined by `+`.
fn together(
    text: &str,
    one: impl Fn(&str, &str) -> Result<Setting, String>,
) -> Result<Asked, String> {
    let settings = text.split('+').map(|part| {
        let (name, value) = part.split_once('=').ok_or_else(|| {
            format!("{part:?} changes nothing; write NAME=VALUE, as in ethernet=100Gbit/s")
        })?;
        one(name.trim(), value.trim())
    });
    settings.collect::<Result<_, _>>().map(Asked)
}

fn hardware(text: &str) -> Result<Asked, String> {
    together(text, |name, rate| {
        let resource = resource(name)?;
        let (rate, said) = match resource {
            Resource::Flops => (values::positive(rate)? * 1e12, format!("{rate} TFLOPS")),
            _ => (values::hinted::<Bandwidth>(rate)?.get(), rate.to_owned()),
        };
        Ok(Setting { name: format!("{} {said}", resource.name()), resource, to: To::Rate(rate) })
    })
}

fn software(text: &str) -> Result<Asked, String> {
    together(text, |name, times| {
        let resource = match name {
            "matmul" => Resource::Flops,
            "element-wise" => Resource::Memory,
            _ => return Err(format!("no software change {name:?}; write matmul or element-wise")),
        };
        let to = To::Times(values::positive(times)?);
        Ok(Setting { name: format!("{name} x{times}"), resource, to })
    })
}
