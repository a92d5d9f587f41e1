//! The arguments of `collectives`.

use std::path::PathBuf;

use clap::Args;
use foretrain::core::{Bytes, Nanos};
use foretrain::cost::Method;
use foretrain::graph::CollectiveKind;
use foretrain::hardware::topology::{Degradation, Shape};
use foretrain::predict::collectives::{CollectivesOptions, Layout, NetworkWhatIfs};

use super::values;
use crate::commands::collectives::Options;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  foretrain collectives --on dgx-h100 --gpus 8,16,64 --sizes 1M..8G --explain
  foretrain collectives --on dgx-h100 --gpus 16..4096 --collective all --plot busbw.svg
  foretrain collectives --on azure-ndv4 --compare logs/ --plot busbw.svg
  foretrain collectives --on dgx-a100 --gpus 32 --latency 0,20us,300us --window 4MiB
  foretrain collectives --on dgx-h100 --gpus 64 --sizes 1M..1G --degrade node=3,nic=1,rate=0.5
  foretrain collectives --on dgx-a100 --gpus 64 --topology dragonfly --scatter 1 --concurrent 4")]
pub(super) struct Collectives {
    /// Cluster or node type (see `foretrain hardware list`), or a catalogue file that defines it.
    #[arg(long, value_name = "CLUSTER")]
    on: String,
    /// Numbers of GPUs, one rank each, as in 8,24 or, by doubling, 16..4096.
    #[arg(long, value_name = "COUNTS", required_unless_present = "compare", value_delimiter = ',', value_parser = values::gpu_range)]
    gpus: Vec<Vec<u32>>,
    /// Sizes of the larger of a rank's buffers, as in 64MiB,100MB or, by doubling, 1K..8G. K, M and
    /// G count in 1024s as in nccl-tests, KB, MB and GB in 1000s.
    #[arg(long, value_name = "SIZES", default_value = "1K..8G", value_delimiter = ',', value_parser = values::size_range)]
    sizes: Vec<Vec<Bytes>>,
    /// Operations, as in all-reduce,all-gather, or all.
    #[arg(long, value_name = "KINDS", default_value = "all-reduce", value_delimiter = ',', value_parser = values::collectives)]
    collective: Vec<Vec<CollectiveKind>>,
    /// Put so many ranks on each node instead of one on each of its GPUs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks_per_node: Option<u32>,
    /// Put ranks on every Nth GPU, as data-parallel groups beside tensor-parallel ones of N, which
    /// all communicate at the same time.
    #[arg(long, value_name = "N", conflicts_with = "ranks_per_node", value_parser = clap::value_parser!(u32).range(1..))]
    stride: Option<u32>,
    /// Put logs of nccl-tests or rccl-tests beside the model: files, directories or patterns.
    #[arg(long, value_name = "LOG", num_args = 1..)]
    compare: Vec<PathBuf>,
    /// What if each hop between nodes took so much longer, one way; several, as in 0,20us,300us,
    /// stand beside each other.
    #[arg(long, value_name = "TIMES", default_value = "0", value_delimiter = ',', value_parser = values::time, help_heading = "What-if")]
    latency: Vec<Nanos>,
    /// Add --latency to so many of a ring's links between nodes only.
    #[arg(long, value_name = "N", requires = "latency", help_heading = "What-if")]
    late_links: Option<u32>,
    /// What if a connection (one per NIC) had at most this in flight per round trip, as in 4MiB.
    #[arg(long, value_name = "SIZE", value_parser = values::size, help_heading = "What-if")]
    window: Option<Bytes>,
    /// What if the library were told to take this algorithm (NCCL_ALGO): ring, tree, nvls, nvlstree,
    /// collnet or pat; operations that lack it keep theirs.
    #[arg(long, value_name = "NAME", value_parser = values::algorithm, help_heading = "What-if")]
    algorithm: Option<Method>,
    /// What if something were slow or down, nodes counted from the job's first: node=3,down,
    /// node=3,nic=1,rate=0.5, node=0,device=2,rate=0.5, link=leaf0-spine1,down or switch=spine0,down.
    /// May be given several times.
    #[arg(long, value_name = "PART", value_parser = values::hinted::<Degradation>, help_heading = "What-if")]
    degrade: Vec<Degradation>,
    /// What if N equal groups ran the operation at once, interleaved over the same nodes.
    #[arg(long, value_name = "N", conflicts_with = "stride", value_parser = clap::value_parser!(u32).range(1..), help_heading = "What-if")]
    concurrent: Option<u32>,
    /// What if the job's nodes came in random order, as from a scheduler that ignores the topology;
    /// equal seeds give equal orders.
    #[arg(long, value_name = "SEED", help_heading = "What-if")]
    scatter: Option<u64>,
    /// What if the nodes were connected otherwise: single-switch, fat-tree[,leaf=16],
    /// rail-optimised[,leaf=32], dragonfly[,nodes=8,switches=8] or torus[,dimensions=4x4x8]; trees and
    /// dragonflies also take oversubscription=2.
    #[arg(long, value_name = "SHAPE", value_parser = values::hinted::<Shape>, help_heading = "What-if")]
    topology: Option<Shape>,
    /// Show which term dominates, which algorithm is chosen, and from which size on latency costs
    /// less than 10 %.
    #[arg(long)]
    explain: bool,
    /// Draw bus bandwidth against size into this SVG file.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    plot: Option<PathBuf>,
    /// Catalogue file with further devices, nodes and clusters; may be given several times.
    #[arg(long, value_name = "FILE")]
    hardware: Vec<PathBuf>,
}

impl From<Collectives> for Options {
    fn from(args: Collectives) -> Self {
        let layout = match (args.ranks_per_node, args.stride) {
            (Some(ranks), _) => Layout::PerNode(ranks),
            (None, Some(stride)) => Layout::Strided(stride),
            (None, None) => Layout::Packed,
        };
        Self {
            on: args.on,
            asked: CollectivesOptions {
                kinds: once(args.collective, false),
                ranks: once(args.gpus, true),
                sizes: once(args.sizes, true),
                layout,
                extra_latencies: once(vec![args.latency], true),
                late_links: args.late_links,
                window: args.window,
                algorithm: args.algorithm,
                network: NetworkWhatIfs {
                    topology: args.topology,
                    scatter: args.scatter,
                    concurrent: args.concurrent,
                    degradations: args.degrade,
                },
            },
            logs: args.compare,
            explain: args.explain,
            plot: args.plot,
            hardware: args.hardware,
        }
    }
}

/// Every value once, in order of size if they have one.
fn once<T: PartialEq + Ord + Copy>(values: Vec<Vec<T>>, sorted: bool) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for value in values.into_iter().flatten() {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    if sorted {
        found.sort_unstable();
    }
    found
}
