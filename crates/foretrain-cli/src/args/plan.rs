//! The arguments of `plan`.

use std::path::PathBuf;

use clap::Args;
use foretrain::plan::scenario::Shard;
use foretrain::plan::{Schedule, Wish};

use super::job::JobArgs;
use super::measured::MeasuredArgs;
use super::recorded::RecordedArgs;
use super::{planning, values};
use crate::commands::plan::{Action, MemoryLimit, Options, Price, Search};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain plan llama-3-8b --on dgx-h100 --gpus 64 --batch 256
  foretrain plan llama-3-70b --on dgx-h100 --on dgx-a100 --gpus 256,512 --batch 1024 \\
      --tokens 2T --by 60d --price dgx-h100=2.5 --price dgx-a100=1.3
  foretrain plan traces/ --on dgx-a100 --gpus 16,64 --replica-batch 32 --explain zero-1
  foretrain plan gpt-3-1.3b --on dgx-a100 --gpus 8 --batch 256 --pin pp=1 --explain pp=8,mbs=1
  foretrain plan llama-3-8b --on dgx-h100 --gpus 8..512 --batch 512 --write-scenarios study.jsonl
  foretrain plan --scenarios study.jsonl --shard 3/8 --out rows-3.jsonl
  foretrain plan --scenarios study.jsonl --merge rows-*.jsonl --out rows.parquet

`foretrain estimate --help` says how layouts are written; docs/plan.md explains the ranking, the
files and how to spread scenarios over machines. Ctrl-C ends a search with the best so far. Exit
code 1 says that nothing fits, or nothing in time.")]
pub(super) struct Plan {
    /// A model by name (llama-3-8b), or a file that describes one: a config.json of Hugging Face,
    /// TOML, ONNX, a PyTorch execution trace; or recordings of a job, as predict takes them.
    #[arg(value_name = "MODEL", required_unless_present = "scenarios")]
    subject: Vec<String>,
    /// Cluster or node type (see `foretrain hardware list`), or a catalogue file that defines it; may
    /// be given several times.
    #[arg(long, value_name = "CLUSTER", required_unless_present = "scenarios")]
    on: Vec<String>,
    /// Numbers of GPUs, as in 64,128 or, by doubling, 64..1024.
    #[arg(long, value_name = "COUNTS", required_unless_present = "scenarios", value_delimiter = ',', value_parser = values::gpu_range)]
    gpus: Vec<Vec<u32>>,
    #[command(flatten)]
    job: JobArgs,
    /// Choices that are made, as in tp=8,sp; the rest is searched.
    #[arg(long, value_name = "LAYOUT", default_value = "", hide_default_value = true, value_parser = planning::text_of::<Wish>)]
    pin: String,
    /// Memory that a device may be filled with, as in 90% or 70GiB [default: all of it].
    #[arg(long, value_name = "SIZE", value_parser = planning::memory)]
    memory: Option<MemoryLimit>,
    /// Schedules to try, as in 1f1b,zb-h1, or all [default: 1f1b, interleaved too].
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = planning::schedules)]
    schedules: Vec<Vec<Schedule>>,
    /// Layouts to list.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Put this layout beside the winner, also one that does not fit; of a recording, this strategy.
    #[arg(long, value_name = "LAYOUT")]
    explain: Option<String>,
    /// Tokens (or samples) to finish, as in 2T: the cheapest way over all clusters and sizes.
    #[arg(long, value_name = "N", value_parser = planning::amount)]
    tokens: Option<f64>,
    /// Time to finish them in, as in 30d.
    #[arg(long, value_name = "TIME", value_parser = planning::long_time, requires = "tokens")]
    by: Option<f64>,
    /// US dollars per GPU and hour, of one cluster (NAME=USD) or of all; may be given several times
    /// [default: the catalogue's list price].
    #[arg(long, value_name = "NAME=USD", value_parser = planning::price)]
    price: Vec<Price>,
    #[command(flatten)]
    measured: MeasuredArgs,
    #[command(flatten)]
    recorded: RecordedArgs,
    /// Write what was asked as scenarios, one for each cluster and size, instead of planning.
    #[arg(long, value_name = "FILE", help_heading = "Many plans", conflicts_with = "scenarios")]
    write_scenarios: Option<PathBuf>,
    /// Plan for each scenario of a file; rows go to --out, as .jsonl or .parquet.
    #[arg(long, value_name = "FILE", help_heading = "Many plans", conflicts_with = "subject")]
    scenarios: Option<PathBuf>,
    /// Take only this part of them, as in 3/8.
    #[arg(long, value_name = "I/N", help_heading = "Many plans", requires = "scenarios", value_parser = values::hinted::<Shard>)]
    shard: Option<Shard>,
    /// Put the rows of all parts together: none may be missing, twice or of another file.
    #[arg(long, value_name = "ROWS", num_args = 1.., help_heading = "Many plans", requires = "scenarios", conflicts_with = "shard")]
    merge: Vec<PathBuf>,
    /// Catalogue file with further devices, nodes and clusters; may be given several times.
    #[arg(long, value_name = "FILE")]
    hardware: Vec<PathBuf>,
    /// Long names of the options that were given; defaults do not count.
    #[arg(skip)]
    pub(super) given: Vec<String>,
}

impl From<Plan> for Options {
    fn from(args: Plan) -> Self {
        let action = match args.scenarios {
            Some(file) if args.merge.is_empty() => Action::Scenarios {
                file,
                shard: args.shard.unwrap_or(Shard::WHOLE),
                measured: args.measured.into(),
            },
            Some(file) => Action::Merge { file, rows: args.merge },
            None => Action::Search(Box::new(Search {
                job: args.job.of(args.subject.first().cloned().unwrap_or_default()),
                recorded: args.recorded.of(&args.subject),
                subject: args.subject,
                measured: args.measured.into(),
                on: args.on,
                gpus: super::once(args.gpus),
                pin: args.pin,
                memory: args.memory,
                schedules: super::once(args.schedules),
                top: args.top.max(1),
                explain: args.explain,
                tokens: args.tokens,
                by: args.by,
                price: args.price,
                write_scenarios: args.write_scenarios,
            })),
        };
        Self { action, hardware: args.hardware, given: args.given }
    }
}
