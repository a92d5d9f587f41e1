//! Sweeps of one node by NVIDIA's configurator. Sizes count the whole buffer, as nccl-tests do;
//! those of oneCCL's gatherings count one rank's part, which their bandwidths show: multiplied by
//! the ranks they are those of the other operations.

use foretrain_core::{DType, Result};
use foretrain_graph::CollectiveKind;

use super::fields::Fields;
use super::{NO_RANKS, NO_SIZE, NO_TIME, Parsed, Point, by_prefix, filled};

const CLUSTERS: [(&str, &str); 9] = [
    ("a100_sxm", "dgx-a100"),
    ("h100_sxm", "dgx-h100"),
    ("h200_sxm", "dgx-h200"),
    ("b200_sxm", "dgx-b200"),
    ("b300_sxm", "dgx-b300"),
    ("gb200", "gb200-nvl72"),
    ("gb300", "gb300-nvl72"),
    ("l40s", "pcie-8x-l40s"),
    ("rtx_pro_6000_server", "pcie-8x-rtx-pro-6000"),
];

pub(super) fn row(fields: &Fields<'_>) -> Result<Parsed> {
    let system = fields.text("system")?;
    let library = fields.text("library")?;
    let (Some(kind), Some(ranks)) = (fields.kind("collective")?, fields.count("n_ranks")?) else {
        return Ok(Parsed::LeftOut(NO_RANKS));
    };
    let Some(printed) = fields.positive("size_bytes")? else {
        return Ok(Parsed::LeftOut(NO_SIZE));
    };
    let Some(micros) = fields.positive("time_us")? else { return Ok(Parsed::LeftOut(NO_TIME)) };
    let counts_part = kind == CollectiveKind::AllGather && library.starts_with("oneccl");
    let bytes = printed as u64 * u64::from(if counts_part { ranks } else { 1 });
    let point = Point { kind, ranks, nodes: 1, bytes };
    let mut row = point.on(system, fields.text("gpu")?, by_prefix(system, &CLUSTERS), micros);
    row.dtype = DType::parse(fields.text("dtype")?);
    row.library = filled(library);
    if system == "l40s" {
        row = row.flagged("anomalous: staged through the host");
    }
    Ok(Parsed::Row(row))
}
