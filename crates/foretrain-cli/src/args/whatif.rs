//! The arguments of `whatif`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use foretrain::core::{Bytes, Nanos};
use foretrain::cost::own::OwnCosts;
use foretrain::predict::roles::GivenRole;
use foretrain::predict::whatif::{Axis, Scenario};

use super::read::Traces;
use super::values;
use crate::commands::interference::Choice;
use crate::commands::whatif;

#[derive(Debug, Args)]
#[command(after_help = CHANGES)]
pub(super) struct WhatIf {
    #[command(flatten)]
    traces: Traces,
    /// A change, or several as in 'A + B'. Given several times, all are made together, and what each
    /// is worth is shown. Without any, a standard list is answered.
    #[arg(long, value_name = "CHANGE", value_parser = values::hinted::<Scenario>)]
    change: Vec<Scenario>,
    /// Alternatives, as in 'gpus=8,16,32', 'bandwidth x1,x2' or 'A; B; A + B'; several make a grid.
    #[arg(long, value_name = "CHANGES", value_parser = values::hinted::<Axis>)]
    sweep: Vec<Axis>,
    /// TOML file of named scenarios and sweeps; may be given several times.
    #[arg(long, value_name = "FILE")]
    scenarios: Vec<PathBuf>,
    /// Cluster or node type of the job (see `foretrain hardware list`), or a catalogue file that
    /// defines it [default: that of the recording].
    #[arg(long, value_name = "CLUSTER")]
    on: Option<String>,
    /// Job size in GPUs [default: as recorded].
    #[arg(long, value_name = "N", value_parser = values::gpus)]
    gpus: Option<u32>,
    /// Cluster, node type or file of the recording [default: deduced from its device name].
    #[arg(long, value_name = "CLUSTER")]
    recorded_on: Option<String>,
    /// Step time of the recorded job without the profiler, as in 47.1ms: what profiling cost on the
    /// host is taken out.
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    step_time: Option<Nanos>,
    /// Samples (or tokens) that one model replica processes per step; gives throughput in them.
    #[arg(long, value_name = "N", value_parser = values::positive)]
    replica_batch: Option<f64>,
    /// Gradient bytes of one rank, where the trace does not show them, as in 1.5GiB.
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    gradient_bytes: Option<Bytes>,
    /// What groups are for, as in 'dp_*=dp': dp, tp, pp or ep; may be given several times [default:
    /// deduced from names and use].
    #[arg(long = "role", value_name = "GROUPS=ROLE", value_parser = values::role)]
    roles: Vec<GivenRole>,
    /// How computation and communication on one device slow each other down, as predict takes it; what
    /// is taken out of the recording comes back where they still overlap.
    #[arg(long, value_name = "MODEL", default_value = "pretrained", value_parser = values::interference)]
    interference: Choice,
    /// A cost function that this program installed (see docs/python.md).
    #[arg(long, value_name = "NAME", hide = true, value_parser = values::own_costs)]
    costs: Option<Arc<dyn OwnCosts>>,
    /// What summing, copying and encoding cost, as `foretrain calibrate primitives -o` writes it
    /// [default: assumed].
    #[arg(long, value_name = "FILE")]
    primitives: Option<PathBuf>,
    /// Catalogue file with further devices, nodes and clusters; may be given several times.
    #[arg(long, value_name = "FILE")]
    hardware: Vec<PathBuf>,
}

const CHANGES: &str = "\
Changes:
  kernel(\"*gemm*\") x0.5        work of the nodes that a query selects, times a factor
  kernel(\"*softmax*\") = 20us   work of each of them
  remove kernel(\"*dropout*\")   none
  bandwidth x2, nic x4         all links; the NICs only
  latency x0.5                 launch and hops of communication
  cluster=NAME, device=NAME    another machine; another device in the same nodes
  gpus=64, batch x2            job size; samples per replica and step
  buckets=50MiB                gradient buckets of DDP
  strategy=fsdp                how replicas are synchronised (see foretrain strategies)
  precision=bf16               computation and messages that run in a wider type
  input x0, loader-workers=8   waiting for input; workers that fetch it (2->8: recorded with 2)
  no communication             none at all
  perfect overlap              nothing waits for communication of its own step
  no launch overhead           host work between launches takes no time, as in CUDA graphs
  faster host x2               all host work
  no sync(*Synchronize*)       waits of the host; no sync(event-wait): of streams for each other
  fuse                         elementwise kernels in a row become one
  slow rank 3 x1.3             kernels and copies of one rank
  fastest rank everywhere      ranks that do the same work do it as fast as the fastest
Queries select by kind and name, module:, phase:, queue:, group:, work>10us and more.

Examples:
  foretrain whatif traces/
  foretrain whatif traces/ --change 'bandwidth x2' --change 'kernel(\"*gemm*\") x0.8'
  foretrain whatif traces/ --on dgx-h100 --sweep gpus=8,16,32 --sweep 'nic x1,x2,x4'
  foretrain whatif step.parquet --on dgx-a100 --scenarios ours.toml --json";

impl From<WhatIf> for whatif::Options {
    fn from(args: WhatIf) -> Self {
        Self {
            source: args.traces.into(),
            changes: args.change,
            sweeps: args.sweep,
            files: args.scenarios,
            on: args.on,
            gpus: args.gpus,
            recorded_on: args.recorded_on,
            unprofiled_step: args.step_time,
            replica_batch: args.replica_batch,
            gradient_bytes: args.gradient_bytes,
            roles: args.roles,
            interference: args.interference,
            costs: args.costs,
            primitives: args.primitives,
            hardware: args.hardware,
        }
    }
}
