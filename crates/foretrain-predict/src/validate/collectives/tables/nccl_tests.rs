//! Rows of public logs of nccl-tests and rccl-tests. Sizes are as those tools count them.

use foretrain_core::{DType, Result};

use super::fields::Fields;
use super::{NO_TIME, ONE_RANK, Parsed, Point, by_prefix, filled};

/// Names of logs tell the machine; the longer of two prefixes comes first.
const CLUSTERS: [(&str, &str); 29] = [
    ("echo_azure_a100_40g", "azure-ndv4"),
    ("azure_aks_a100", "azure-ndm-a100-v4"),
    ("azure_gb300", "gb300-nvl72"),
    ("aws_g4dn8x", "aws-g4dn-8xlarge"),
    ("aws_p3dn", "aws-p3dn"),
    ("aws_p4de", "aws-p4de"),
    ("aws_p4d", "aws-p4d"),
    ("aws_p5en", "aws-p5en"),
    ("aws_p5", "aws-p5"),
    ("coreweave_a100", "dgx-a100"),
    ("coreweave_h100", "dgx-h100"),
    ("coreweave_gb200", "gb200-nvl72"),
    ("gke_a3high", "gcp-a3-highgpu-8g"),
    ("gke_a3mega", "gcp-a3-megagpu-8g"),
    ("gcp_a3mega", "gcp-a3-megagpu-8g"),
    ("gke_a3ultra", "gcp-a3-ultragpu-8g"),
    ("mlperf_google_a3ultra", "gcp-a3-ultragpu-8g"),
    ("mlperf_oracle_h100", "dgx-h100"),
    ("mlperf_smc_h100", "dgx-h100"),
    ("nvidia_dgxh100", "dgx-h100"),
    ("simumax_h100", "dgx-h100"),
    ("superbench_a100_40g", "dgx-a100-40gb"),
    ("a100_nvlink_8gpu", "dgx-a100"),
    ("amd_aac8_mi300x", "mi300x-8"),
    ("amd_aac10_mi300x", "mi300x-8-roce"),
    ("amd_aac11_mi325x", "mi325x-8"),
    ("amd_aac14_mi355x", "mi355x-8"),
    ("autodl_2080ti_pcie", "pcie-8x-rtx2080ti"),
    ("kalavai_rtx4090_pcie", "pcie-4x-rtx4090"),
];

/// GPUs of a rack that is one NVLink domain.
const RACK: u32 = 72;

/// The better of both placements.
pub(super) fn row(fields: &Fields<'_>) -> Result<Parsed> {
    let log = fields.text("log_id")?;
    let (Some(kind), Some(ranks)) = (fields.kind("collective")?, fields.count("n_ranks")?) else {
        return Ok(Parsed::LeftOut(super::NO_RANKS));
    };
    if ranks < 2 {
        return Ok(Parsed::LeftOut(ONE_RANK));
    }
    let Some(micros) = fields.least(["oop_time_us", "ip_time_us"])? else {
        return Ok(Parsed::LeftOut(NO_TIME));
    };
    let Some(bytes) = fields.positive("size_bytes")? else {
        return Ok(Parsed::LeftOut("nothing is moved: a call of no bytes"));
    };
    let cluster = by_prefix(log, &CLUSTERS);
    let is_rack = cluster.is_some_and(|cluster| cluster.ends_with("nvl72"));
    let hosts = fields.count("n_nodes")?.unwrap_or(1).max(1);
    let nodes = if is_rack { ranks.div_ceil(RACK) } else { hosts };
    let point = Point { kind, ranks, nodes, bytes: bytes as u64 };
    let mut row = point.on(log, fields.text("gpu")?, cluster, micros);
    row.dtype = DType::parse(fields.text("dtype")?);
    row.flag = filled(fields.text("flag")?);
    let wrong = |column: &str| -> Result<bool> {
        Ok(fields.text(column)?.parse().is_ok_and(|count: f64| count >= 1.0))
    };
    if wrong("oop_wrong")? || wrong("ip_wrong")? {
        row = row.flagged("the tool found wrong results");
    }
    Ok(Parsed::Row(row))
}
