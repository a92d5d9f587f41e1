//! Small tables of many sources; of them the collectives of GPUs.

use foretrain_core::Result;

use super::fields::Fields;
use super::{NO_RANKS, NO_SIZE, NO_TIME, Parsed, Point, by_prefix, filled};

const CLUSTERS: [(&str, &str); 2] =
    [("1x 8xB300 SXM6 node", "dgx-b300"), ("4x RTX PRO 6000", "pcie-4x-rtx-pro-6000")];

pub(super) fn row(fields: &Fields<'_>) -> Result<Parsed> {
    let gpu = fields.text("accelerator")?;
    if gpu == "NeuronCore" {
        return Ok(Parsed::LeftOut("no GPU"));
    }
    let Some(kind) = fields.kind("collective")? else {
        return Ok(Parsed::LeftOut("no collective: copies and kernels of expert parallelism"));
    };
    let Some(ranks) = fields.count("n_ranks")? else { return Ok(Parsed::LeftOut(NO_RANKS)) };
    let Some(bytes) = fields.positive("size_bytes")? else {
        return Ok(Parsed::LeftOut(NO_SIZE));
    };
    let Some(micros) = fields.positive("time_us")? else { return Ok(Parsed::LeftOut(NO_TIME)) };
    let nodes = fields.count("n_nodes")?.unwrap_or(1).max(1);
    let system = fields.text("system")?;
    let point = Point { kind, ranks, nodes, bytes: bytes as u64 };
    let mut row = point.on(system, gpu, by_prefix(system, &CLUSTERS), micros);
    let variant = fields.text("variant")?;
    row.library = filled(fields.text("tool")?);
    if variant.contains("forced") {
        row = row.flagged(variant);
    } else if variant.contains("tuner plugin") {
        row = row.flagged("a plugin stood in for the tuner");
    }
    Ok(Parsed::Row(row))
}
