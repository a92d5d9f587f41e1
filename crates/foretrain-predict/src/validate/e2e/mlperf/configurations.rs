//! The parallel configurations that NVIDIA submits with its results.

use foretrain_core::Result;

use super::super::runs::left_out;
use crate::validate::columns::{Line, Table, table};
use crate::validate::roots::Root;

/// All configurations of the table.
pub(super) struct Configurations(Table);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Configuration {
    pub(super) tensor: u32,
    pub(super) pipeline: u32,
    pub(super) chunks: u32,
    pub(super) context: u32,
    pub(super) micro_batch: u64,
    /// Samples of one replica per step.
    pub(super) of_replica: u64,
    /// Launched as graphs: the host is out of the way.
    pub(super) graphs: bool,
    pub(super) fp4: bool,
    pub(super) overlap_tensor: bool,
}

impl Configurations {
    pub(super) fn read(root: &Root) -> Result<Option<Self>> {
        Ok(table(root, "measured/mlperf_nvidia_parallel_configs.csv")?.map(Self))
    }

    /// The configuration for a result: same round and benchmark, as many nodes of the same
    /// accelerator. `samples` tells configurations of equal size apart.
    pub(super) fn for_result(&self, result: Line<'_>, samples: u64) -> Result<Configuration> {
        let (round, benchmark) = (result.text("round"), result.text("benchmark"));
        let devices = result.degree("n_accel").ok_or_else(|| left_out("no devices are given"))?;
        let nodes = result.degree("n_nodes").ok_or_else(|| left_out("no nodes are given"))?;
        let system = system(result.text("accelerator"))
            .ok_or_else(|| left_out("NVIDIA's configurations are for other accelerators"))?;
        let of_round =
            |line: &Line<'_>| line.text("round") == round && line.text("benchmark") == benchmark;
        let of_size = |line: &Line<'_>| {
            line.degree("dgxnnodes") == Some(nodes) && line.text("config").contains(system)
        };
        // What a round's configurations leave open.
        let common = self.0.lines().filter(of_round).find(|line| line.text("config") == COMMON);
        let mut why = "NVIDIA submitted no configuration of this size in this round";
        for line in self.0.lines().filter(of_round).filter(of_size) {
            let configuration = Configuration::of(line, common);
            if configuration.samples(devices) == Some(samples) {
                return Ok(configuration);
            }
            why = "the batch is not that of NVIDIA's configuration of this size";
        }
        Err(left_out(why))
    }
}

const COMMON: &str = "config_common.sh";

/// Chunks per stage where a configuration with a pipeline names none, as round 3.0 states for all.
const CHUNKS: u32 = 12;

impl Configuration {
    fn of(line: Line<'_>, common: Option<Line<'_>>) -> Self {
        let first = |columns: &[&str]| {
            let own = columns.iter().find_map(|column| line.degree(column));
            own.or_else(|| {
                common.and_then(|line| columns.iter().find_map(|column| line.degree(column)))
            })
        };
        let config = line.text("config");
        let pipeline = first(&["pipeline_model_parallel", "pp"]).unwrap_or(1);
        let micro_batch = first(&["micro_batch_size", "mbs"]).unwrap_or(1);
        let chunks =
            if pipeline > 1 { first(&["interleaved_pipeline"]).unwrap_or(CHUNKS) } else { 1 };
        Self {
            tensor: first(&["tensor_model_parallel", "tp"]).unwrap_or(1),
            pipeline,
            chunks,
            context: first(&["context_parallel", "cp"]).unwrap_or(1),
            micro_batch: u64::from(micro_batch),
            of_replica: u64::from(first(&["minibs"]).unwrap_or(1)),
            graphs: config.contains("_cg"),
            fp4: config.contains("_fp4"),
            overlap_tensor: line.text("tp_comm_overlap") != "False",
        }
    }

    /// The global batch that it gives on so many devices.
    fn samples(&self, devices: u32) -> Option<u64> {
        let model = self.tensor * self.pipeline * self.context;
        devices.is_multiple_of(model).then(|| u64::from(devices / model) * self.of_replica)
    }
}

/// The system in the names of configurations.
fn system(accelerator: &str) -> Option<&'static str> {
    let has = |word: &str| accelerator.to_ascii_uppercase().contains(word);
    [
        ("GB300", "GB300"),
        ("GB200", "GB200"),
        ("B200", "DGXB200"),
        ("H200", "DGXH200"),
        ("H100", "DGXH100"),
        ("L40S", "L40S"),
    ]
    .into_iter()
    .find_map(|(product, system)| has(product).then_some(system))
    .filter(|_| !has("PCIE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accelerators_are_told_from_each_other() {
        assert_eq!(system("NVIDIA H100-SXM5-80GB"), Some("DGXH100"));
        assert_eq!(system("NVIDIA Blackwell GPU (B200-SXM-180GB)"), Some("DGXB200"));
        assert_eq!(system("NVIDIA GB200"), Some("GB200"));
        assert_eq!(system("NVIDIA H100-PCIe-80GB"), None);
        assert_eq!(system("TPU-v5p"), None);
    }

    #[test]
    fn a_configuration_gives_its_batch() {
        let text = "round,benchmark,config,dgxnnodes,tensor_model_parallel,pipeline_model_parallel,\
                    interleaved_pipeline,micro_batch_size,minibs,tp_comm_overlap\n\
                    v4.1,gpt3,config_DGXH100_32x8x256x4x8_mbs2.sh,32,4,8,6,2,256,True\n";
        let table = Table::parse(text).unwrap();
        let line = table.lines().next().unwrap();
        let configuration = Configuration::of(line, None);
        assert_eq!((configuration.chunks, configuration.micro_batch), (6, 2));
        assert_eq!(configuration.samples(256), Some(2048));
        assert_eq!(configuration.samples(100), None);
        assert!(!configuration.graphs && configuration.overlap_tensor);
    }
}
