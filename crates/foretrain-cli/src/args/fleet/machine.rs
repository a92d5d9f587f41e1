//! The machine that steps are timed on, and how.

use clap::Args;
use foretrain::core::{Bandwidth, Bytes, FlopRate};
use foretrain::fleet::jobs::TrafficCounts;
use foretrain::fleet::pai::characterise::Method;
use foretrain::fleet::pai::{Efficiency, Hardware, Overlap, Resource};

use crate::args::values;

/// The machine; each figure on its own, over the preset pai-2019 (recalled).
#[derive(Debug, Args)]
#[command(next_help_heading = "Machine (over pai-2019, recalled)")]
pub(super) struct Machine {
    /// Ethernet per replica, as in 100Gbit/s [default: 25Gbit/s].
    #[arg(long, value_name = "RATE", value_parser = values::hinted::<Bandwidth>)]
    ethernet: Option<Bandwidth>,
    /// PCIe, as in 16GB/s [default: 10GB/s].
    #[arg(long, value_name = "RATE", value_parser = values::hinted::<Bandwidth>)]
    pcie: Option<Bandwidth>,
    /// NVLink, as in 150GB/s [default: 50GB/s].
    #[arg(long, value_name = "RATE", value_parser = values::hinted::<Bandwidth>)]
    nvlink: Option<Bandwidth>,
    /// Peak TFLOPS of a GPU [default: 11].
    #[arg(long, value_name = "TFLOPS", value_parser = values::positive)]
    tflops: Option<f64>,
    /// Bandwidth of a GPU's memory, as in 2000GB/s [default: 1000GB/s].
    #[arg(long, value_name = "RATE", value_parser = values::hinted::<Bandwidth>)]
    memory_bandwidth: Option<Bandwidth>,
    /// Memory of a GPU, which weights have to fit [default: 16GB, assumed].
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    gpu_memory: Option<Bytes>,
    /// GPUs of a server [default: 8].
    #[arg(long, value_name = "N", value_parser = values::gpus)]
    gpus_per_server: Option<u32>,
    /// Replicas behind one PCIe root, which share it for their input, in classes of one server
    /// [default: 1; of project: all of the server].
    #[arg(long, value_name = "N", value_parser = replicas)]
    pcie_sharing: Option<u32>,
    /// Part of every peak that is reached, or of one: 0.8, memory=0.03; may be given several times
    /// [default: 0.7].
    #[arg(long = "efficiency", value_name = "PART", value_parser = efficiency)]
    efficiencies: Vec<(Option<Resource>, f64)>,
    /// What a count of weight traffic holds where a table does not say: sent or sent+received
    /// [default: sent+received].
    #[arg(long, value_name = "DIRECTIONS", value_parser = values::hinted::<TrafficCounts>)]
    traffic_counts: Option<TrafficCounts>,
}

/// A resource, as in memory, flops or ethernet.
pub(super) fn resource(name: &str) -> Result<Resource, String> {
    let known = Resource::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(name));
    known.ok_or_else(|| {
        format!("no resource {name:?}; there are {}", Resource::ALL.map(Resource::name).join(", "))
    })
}

fn replicas(text: &str) -> Result<u32, String> {
    values::count(text, "replicas")
}

fn efficiency(text: &str) -> Result<(Option<Resource>, f64), String> {
    let (of, part) = match text.split_once('=') {
        Some((name, part)) => (Some(resource(name.trim())?), part),
        None => (None, text),
    };
    let part = values::positive(part)?;
    Efficiency::USUAL.with(of.unwrap_or(Resource::Flops), part).map_err(values::advised)?;
    Ok((of, part))
}

impl Machine {
    /// With so many replicas behind a PCIe root unless it was said.
    pub(super) fn method(self, usual_sharing: Option<u32>) -> Method {
        let base = Hardware::pai_2019();
        let gpus_per_server = self.gpus_per_server.unwrap_or(base.gpus_per_server);
        let mut efficiency = base.efficiency;
        for (of, part) in self.efficiencies {
            match of {
                Some(resource) => efficiency.0[resource.index()] = part,
                None => efficiency = Efficiency([part; 5]),
            }
        }
        let hardware = Hardware {
            ethernet: self.ethernet.unwrap_or(base.ethernet),
            pcie: self.pcie.unwrap_or(base.pcie),
            nvlink: self.nvlink.unwrap_or(base.nvlink),
            flops: self.tflops.map_or(base.flops, FlopRate::from_tflops),
            memory: self.memory_bandwidth.unwrap_or(base.memory),
            efficiency,
            gpus_per_server,
            gpu_memory: self.gpu_memory.unwrap_or(base.gpu_memory),
            pcie_sharing: self.pcie_sharing.or(usual_sharing).unwrap_or(base.pcie_sharing),
        };
        let traffic = self.traffic_counts.unwrap_or(TrafficCounts::SentAndReceived);
        Method { hardware, traffic }
    }
}

/// Whether parts of a step hide each other.
#[derive(Debug, Args)]
pub(super) struct Hiding {
    /// Let input, computation and traffic hide each other wholly: a step takes as long as the longest
    /// of them [default: one after the other].
    #[arg(long)]
    overlap: bool,
}

impl From<Hiding> for Overlap {
    fn from(args: Hiding) -> Self {
        if args.overlap { Self::Ideal } else { Self::None }
    }
}
