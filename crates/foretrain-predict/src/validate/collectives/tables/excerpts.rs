//! Rows quoted in threads about problems: many were posted because something was slow.

use foretrain_core::Result;
use foretrain_cost::bus_factor;

use super::fields::Fields;
use super::{NO_RANKS, NO_SIZE, NO_TIME, Parsed, Point, by_prefix, filled};

const CLUSTERS: [(&str, &str); 6] = [
    ("AWS p4d.24xlarge", "aws-p4d"),
    ("8x RTX 4090 PCIe", "pcie-8x-rtx4090"),
    ("MI250X node, 16 GCDs", "mi250x-8"),
    ("8x MI300X node", "mi300x-8"),
    ("32 nodes x 8 H100, 8x NDR", "dgx-h100"),
    ("8x H100 node", "dgx-h100"),
];

/// The better of both placements, or what the bus bandwidth says where no time is quoted.
pub(super) fn row(fields: &Fields<'_>) -> Result<Parsed> {
    let (Some(kind), Some(ranks)) = (fields.kind("collective")?, fields.count("n_ranks")?) else {
        return Ok(Parsed::LeftOut(NO_RANKS));
    };
    let Some(bytes) = fields.positive("size_bytes")? else {
        return Ok(Parsed::LeftOut(NO_SIZE));
    };
    let from_bandwidth = |rate: f64| bytes * bus_factor(kind, ranks) / rate / 1e3;
    let derived = fields.positive("oop_busbw_GBps")?.map(from_bandwidth);
    let printed = fields.least(["oop_time_us", "ip_time_us"])?;
    let Some(micros) = printed.or(derived) else {
        return Ok(Parsed::LeftOut(NO_TIME));
    };
    let system = fields.text("system")?;
    let nodes = fields.count("n_nodes")?.unwrap_or(1).max(1);
    let point = Point { kind, ranks, nodes, bytes: bytes as u64 };
    let mut row = point.on(system, fields.text("gpu")?, by_prefix(system, &CLUSTERS), micros);
    row.library = filled(fields.text("variant")?);
    row.flag = filled(fields.text("flag")?);
    let notes = fields.text("notes")?;
    if row.flag.is_none() && notes.contains("slow") {
        row = row.flagged(notes);
    }
    Ok(Parsed::Row(row))
}
