//! One author's machines, with nccl-tests and a script that prints bandwidths.

use foretrain_core::Result;

use super::fields::Fields;
use super::{NO_RANKS, NO_SIZE, NO_TIME, Parsed, Point, by_prefix, filled};

/// By device; the machine of the largest sweep names its own NICs.
const CLUSTERS: [(&str, &str); 4] = [
    ("A100 SXM", "dgx-a100"),
    ("H200 SXM", "dgx-h200"),
    ("B200 SXM", "aws-p6-b200"),
    ("MI300X", "mi300x-8"),
];

pub(super) fn row(fields: &Fields<'_>) -> Result<Parsed> {
    let (Some(kind), Some(ranks)) = (fields.kind("collective")?, fields.count("n_ranks")?) else {
        return Ok(Parsed::LeftOut(NO_RANKS));
    };
    let Some(bytes) = fields.positive("size_bytes")? else {
        return Ok(Parsed::LeftOut(NO_SIZE));
    };
    let Some(micros) = fields.positive("time_us")? else { return Ok(Parsed::LeftOut(NO_TIME)) };
    let nodes = fields.count("n_nodes")?.unwrap_or(1).max(1);
    let gpu = fields.text("gpu")?;
    let point = Point { kind, ranks, nodes, bytes: bytes as u64 };
    let mut row = point.on(fields.text("system")?, gpu, by_prefix(gpu, &CLUSTERS), micros);
    let algorithm = fields.text("nccl_algo")?;
    let tool = fields.text("tool")?;
    row.library =
        if algorithm.is_empty() { filled(tool) } else { Some(format!("{tool}; {algorithm}")) };
    if algorithm.contains("NCCL_NVLS_ENABLE=0") {
        row = row.flagged("NVLS switched off on purpose");
    }
    Ok(Parsed::Row(row))
}
