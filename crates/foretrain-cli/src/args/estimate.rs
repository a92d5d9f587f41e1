//! The arguments of `estimate`.

use std::path::PathBuf;

use clap::Args;
use foretrain::plan::Wish;

use super::job::JobArgs;
use super::measured::MeasuredArgs;
use super::{planning, values};
use crate::commands::estimate::Options;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain estimate llama-3-8b --on dgx-h100 --gpus 64 --parallel tp=2,zero=1,sp --batch 128
  foretrain estimate gpt-3-175b --on dgx-a100 --gpus 1024 --parallel tp=8,pp=16,vpp=6,sp,zero=1 \\
      --batch 1536 --tokens 300B --price 2
  foretrain estimate config.json --on our.toml --gpus 8 --parallel fsdp,recompute=full,mbs=4 \\
      --batch 64 --software fsdp --explain --timeline step.json

A layout names degrees tp, pp, dp, cp, ep, etp and vpp, mbs (samples per pass), schedule (gpipe,
1f1b, zb-h1, zb-h2, zb-v, dualpipe, varuna), sp, zero=0..3 or fsdp, hsdp=N, recompute (none,
selective, full or a number of layers per stage), offload (optimiser, activations), stages=7/9/9/7,
cp-method (ring, all-gather, ulysses) and order=tp-cp-dp-pp. Replicas take what is left.

docs/estimate.md explains the figures. Exit code 1 says that the layout does not fit into memory.")]
pub(super) struct Estimate {
    /// A model by name (llama-3-8b), or a file that describes one: a config.json of Hugging Face,
    /// TOML, ONNX or a PyTorch execution trace.
    #[arg(value_name = "MODEL")]
    model: String,
    /// Cluster or node type (see `foretrain hardware list`), or a catalogue file that defines it.
    #[arg(long, value_name = "CLUSTER")]
    on: String,
    /// GPUs of the job.
    #[arg(long, value_name = "N", value_parser = values::gpus)]
    gpus: u32,
    /// How the job is laid out over them, as in tp=8,pp=4,zero=1,sp [default: replicas only].
    #[arg(long, value_name = "LAYOUT", default_value = "", hide_default_value = true, value_parser = values::hinted::<Wish>)]
    parallel: Wish,
    #[command(flatten)]
    job: JobArgs,
    #[command(flatten)]
    measured: MeasuredArgs,
    /// US dollars per GPU and hour [default: the catalogue's list price].
    #[arg(long, value_name = "USD", value_parser = values::positive)]
    price: Option<f64>,
    /// Tokens (or samples) to finish, as in 300B: how long it takes and what it costs.
    #[arg(long, value_name = "N", value_parser = planning::amount)]
    tokens: Option<f64>,
    /// Say what the figures, the parts of the step and the items of memory mean.
    #[arg(long)]
    explain: bool,
    /// Write the simulated step of every stage, for ui.perfetto.dev.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    timeline: Option<PathBuf>,
    /// Write the step graph of every stage as a Parquet file (stages are numbered before the ending).
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    graph: Option<PathBuf>,
    /// Catalogue file with further devices, nodes and clusters; may be given several times.
    #[arg(long, value_name = "FILE")]
    hardware: Vec<PathBuf>,
}

impl From<Estimate> for Options {
    fn from(args: Estimate) -> Self {
        Self {
            job: args.job.of(args.model),
            on: args.on,
            gpus: args.gpus,
            parallel: args.parallel,
            price: args.price,
            tokens: args.tokens,
            explain: args.explain,
            timeline: args.timeline,
            graph: args.graph,
            measured: args.measured.into(),
            hardware: args.hardware,
        }
    }
}
