//! What plans, simulated pipelines and jobs on preemptible machines have in common.

use clap::Args;
use foretrain::core::{Bytes, Nanos};
use foretrain::plan::varuna::layout::{Machines, Placement};
use foretrain::plan::varuna::plan::MicroBatches;
use foretrain::plan::varuna::profile::{Gaps, LayerChoice};
use foretrain::plan::varuna::schedule::Schedule;

use crate::args::values;
use crate::commands::varuna::{Job, Variation};

#[derive(Debug, Args)]
pub(super) struct ProfileArgs {
    /// Table of layers: the model whose rows to take.
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Tables of layers (.csv)",
        requires = "profile"
    )]
    model: Option<String>,
    /// Table of layers: the kind of GPU whose rows to take.
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Tables of layers (.csv)",
        requires = "profile"
    )]
    gpu: Option<String>,
    /// Table of layers: the degree of tensor parallelism whose rows to take.
    #[arg(long, value_name = "N", value_parser = values::gpus, help_heading = "Tables of layers (.csv)", requires = "profile")]
    tp: Option<u32>,
    /// Table of layers: what a layer hands on per sample, as in 10MB.
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "Tables of layers (.csv)", requires = "profile")]
    activation: Option<Bytes>,
}

impl From<ProfileArgs> for LayerChoice {
    fn from(args: ProfileArgs) -> Self {
        let ProfileArgs { model, gpu, tp, activation } = args;
        Self { model, gpu, tensor_parallel: tp, activation }
    }
}

#[derive(Debug, Args)]
pub(super) struct MachineArgs {
    /// GPUs of one machine.
    #[arg(long, value_name = "N", default_value_t = Machines::VARUNA_GPUS, value_parser = values::gpus)]
    gpus_per_vm: u32,
    /// The replicas of a stage fill one machine after the other, not the stages of a pipeline.
    #[arg(long)]
    scattered: bool,
}

impl From<MachineArgs> for Machines {
    fn from(args: MachineArgs) -> Self {
        let placement = if args.scattered { Placement::Scattered } else { Placement::Packed };
        Self { gpus_each: args.gpus_per_vm, placement }
    }
}

#[derive(Debug, Args)]
pub(super) struct JobArgs {
    /// Memory of one GPU, as in 16GB [default: no check].
    #[arg(long, value_name = "SIZE", value_parser = values::size, requires = "profile")]
    gpu_memory: Option<Bytes>,
    #[command(flatten)]
    machines: MachineArgs,
    /// Schedules to try: varuna, gpipe, 1f1b, 1f1b-recompute.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "varuna", value_parser = values::hinted::<Schedule>)]
    schedule: Vec<Schedule>,
    /// Samples per micro-batch: sizes, all that were measured, or the largest that fits.
    #[arg(long, value_name = "SIZES", default_value = "largest", value_parser = micro_batches, requires = "profile")]
    micro_batch: MicroBatches,
    /// Numbers of stages to try [default: all].
    #[arg(long, value_name = "COUNTS", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..))]
    stages: Vec<u32>,
    /// Deal cut-points to stages by cost too, so that any number of stages is possible.
    #[arg(long, requires = "profile")]
    uneven: bool,
    /// Leave samples out that do not divide by the replicas, as Varuna does.
    #[arg(long, requires = "profile")]
    drop_remainder: bool,
    /// What the profile lacks: refuse, interpolate between measured sizes, or fill all-reduces as
    /// varuna does.
    #[arg(long, value_name = "HOW", default_value = "refuse", value_parser = values::hinted::<Gaps>, requires = "profile")]
    gaps: Gaps,
    #[command(flatten)]
    variation: VariationArgs,
}

#[derive(Debug, Args)]
pub(super) struct VariationArgs {
    /// Draw jitter so many times and show percentiles; the median counts.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Jitter")]
    draws: Option<u32>,
    /// Standard deviation of a task's offset before truncation; the default is Varuna's.
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = values::time, help_heading = "Jitter", requires = "draws")]
    compute_sigma: Nanos,
    /// Standard deviation of a message's offset before truncation; the default is Varuna's.
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = values::time, help_heading = "Jitter", requires = "draws")]
    network_sigma: Nanos,
    /// Seed of all draws.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        help_heading = "Jitter",
        requires = "draws"
    )]
    seed: u64,
}

impl From<VariationArgs> for Variation {
    fn from(args: VariationArgs) -> Self {
        let VariationArgs { draws, compute_sigma, network_sigma, seed } = args;
        Self { draws, compute: compute_sigma, network: network_sigma, seed }
    }
}

impl JobArgs {
    pub(super) fn job(self, gpus: u32, batch: u64) -> Job {
        Job {
            gpus,
            batch,
            gpu_memory: self.gpu_memory,
            drop_remainder: self.drop_remainder,
            machines: self.machines.into(),
            schedules: self.schedule,
            micro_batches: self.micro_batch,
            stages: self.stages,
            uneven: self.uneven,
            gaps: self.gaps,
            variation: self.variation.into(),
        }
    }
}

/// `largest`, `all`, or sizes as in `1,2,4`.
fn micro_batches(text: &str) -> Result<MicroBatches, String> {
    match text.trim() {
        "largest" => Ok(MicroBatches::Largest),
        "all" => Ok(MicroBatches::All),
        sizes => {
            let size = |text: &str| text.trim().parse().ok().filter(|size| *size > 0);
            let sizes: Option<Vec<u32>> = sizes.split(',').map(size).collect();
            sizes
                .map(MicroBatches::Only)
                .ok_or_else(|| "expected largest, all, or sizes as in 1,2,4".into())
        }
    }
}
