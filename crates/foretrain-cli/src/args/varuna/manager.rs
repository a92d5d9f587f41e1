//! How a job on preemptible machines is kept running.

use clap::Args;
use foretrain::core::Nanos;
use foretrain::plan::varuna::morph::Prices;

use crate::args::values;
use crate::commands::varuna::Manager;

#[derive(Debug, Args)]
#[command(next_help_heading = "Rules")]
pub(super) struct ManagerArgs {
    /// Training time between checkpoints; the default is assumed.
    #[arg(long, value_name = "TIME", default_value = "600s", value_parser = values::time)]
    checkpoint_every: Nanos,
    /// How long training stands still for a checkpoint; the default is assumed.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = values::time)]
    checkpoint: Nanos,
    /// Starting processes and loading a checkpoint; the default is assumed.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time)]
    restart: Nanos,
    /// From a loss until the job is planned anew; the default is Varuna's.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = values::time)]
    preempted_wait: Nanos,
    /// The same where as many GPUs are there again by then; the default is Varuna's.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time)]
    transient_wait: Nanos,
    /// How long before it a loss is known; the default is Varuna's.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::time)]
    notice: Nanos,
    /// How long after a change further GPUs are left aside; the default is Varuna's.
    #[arg(long, value_name = "TIME", default_value = "100s", value_parser = values::time)]
    quiet: Nanos,
    /// By how much of its stage's median a machine may be slower; the default is Varuna's.
    #[arg(long, value_name = "PERCENT", default_value = "15%", value_parser = values::percent)]
    slow: f64,
    /// Price of a preemptible GPU for an hour.
    #[arg(long, value_name = "PRICE", value_parser = values::positive)]
    price: Option<f64>,
    /// Price of a GPU for an hour that is always there.
    #[arg(long, value_name = "PRICE", value_parser = values::positive)]
    dedicated_price: Option<f64>,
    /// GPUs that are always there, to compare with [default: the most of the trace].
    #[arg(long, value_name = "N", value_parser = values::gpus)]
    dedicated_gpus: Option<u32>,
}

impl From<ManagerArgs> for Manager {
    fn from(args: ManagerArgs) -> Self {
        Self {
            checkpoint_every: args.checkpoint_every,
            checkpoint: args.checkpoint,
            restart: args.restart,
            preempted_wait: args.preempted_wait,
            transient_wait: args.transient_wait,
            notice: args.notice,
            quiet: args.quiet,
            slow: args.slow,
            prices: Prices { preemptible: args.price, dedicated: args.dedicated_price },
            dedicated_gpus: args.dedicated_gpus,
        }
    }
}
