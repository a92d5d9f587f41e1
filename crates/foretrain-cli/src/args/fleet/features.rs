//! The arguments of `fleet features`.

use std::path::PathBuf;

use clap::Args;
use foretrain::fleet::jobs::Class;
use foretrain::plan::{Optimiser, Precision};

use crate::args::read::Reading;
use crate::args::{planning, values};
use crate::commands::fleet::features::{Destination, Known, Options};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain fleet features traces/ --batch 64 --append jobs.csv
  foretrain fleet features resnet-50 bert-base --batch 32 --cnodes 8 >> jobs.csv
  foretrain fleet features config.json --batch 8 --on dgx-a100 --explain")]
pub(super) struct FeaturesArgs {
    /// Jobs: profiler traces, Chakra files or saved graphs of a job (a file, a directory or a
    /// pattern), or what it trains: a model's name, a config.json of Hugging Face, TOML, ONNX or a
    /// PyTorch execution trace. Each is one job.
    #[arg(value_name = "SUBJECT", required = true)]
    subjects: Vec<String>,
    /// How jobs are spread, as in AllReduce-Local [default: one GPU, else all-reduce within a server
    /// or among servers].
    #[arg(long, value_name = "CLASS", value_parser = values::hinted::<Class>)]
    class: Option<Class>,
    /// GPUs that hold a replica [default: the recorded ranks; of a model 1, or as many as a server
    /// has].
    #[arg(long, value_name = "N", value_parser = values::gpus)]
    cnodes: Option<u32>,
    /// GPUs of a server.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = values::gpus)]
    gpus_per_server: u32,
    /// Samples of a replica's step; models need it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1_000_000_000))]
    batch: Option<u64>,
    /// Tokens of a sample; of a pair, the source's [default: the model's usual length].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1_000_000_000))]
    sequence: Option<u64>,
    /// Tokens of a pair's target [default: the model's usual length].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..1_000_000_000))]
    target_sequence: Option<u64>,
    /// What updates the parameters: adam, momentum or sgd. Weights hold its state.
    #[arg(long, value_name = "NAME", default_value = "adam", value_parser = planning::optimiser)]
    optimizer: Optimiser,
    /// Number formats of models: fp32, tf32, fp16, bf16, fp8 or fp4 for matrix products, with what is
    /// usual beside them [default: bf16].
    #[arg(long, value_name = "TYPE", value_parser = planning::precision)]
    precision: Option<Precision>,
    /// Steps that the job runs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    total_steps: Option<u64>,
    /// What identifies the job [default: the model's or the file's name].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The model that a recorded job trains.
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Cluster or node type on whose GPU step time, utilisation and memory of models are estimated.
    #[arg(long, value_name = "CLUSTER")]
    on: Option<String>,
    /// Show every figure with what it rests on, in place of the rows.
    #[arg(long, conflicts_with = "append")]
    explain: bool,
    /// Put the rows behind those of this table, which is made if it is not there.
    #[arg(long, value_name = "TABLE.csv", help_heading = "Output", conflicts_with_all = ["json", "out"])]
    append: Option<PathBuf>,
    /// Catalogue file with further devices, nodes and clusters; may be given several times.
    #[arg(long, value_name = "FILE")]
    hardware: Vec<PathBuf>,
    #[command(flatten)]
    reading: Reading,
}

impl From<FeaturesArgs> for Options {
    fn from(args: FeaturesArgs) -> Self {
        Self {
            subjects: args.subjects,
            known: Known {
                class: args.class,
                cnodes: args.cnodes,
                gpus_per_server: args.gpus_per_server,
                batch: args.batch,
                sequence: args.sequence,
                target: args.target_sequence,
                optimiser: args.optimizer,
                precision: args.precision,
                steps: args.total_steps,
                name: args.name,
                model: args.model,
            },
            on: args.on,
            hardware: args.hardware,
            to: match args.append {
                Some(table) => Destination::Table(table),
                None if args.explain => Destination::Page,
                None => Destination::Rows,
            },
            reading: args.reading.of(Vec::new()),
        }
    }
}
