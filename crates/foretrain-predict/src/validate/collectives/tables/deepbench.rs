//! All-reduces of 2017. Boxes held up to eight GPUs; how more of them were connected is not told.

use foretrain_core::{DType, Result};

use super::fields::Fields;
use super::{NO_RANKS, NO_SIZE, NO_TIME, Parsed, Point, filled};

/// GPUs in one box.
const BOX: u32 = 8;

pub(super) fn row(fields: &Fields<'_>) -> Result<Parsed> {
    let device = fields.text("device")?;
    if !device.starts_with("NV_") {
        return Ok(Parsed::LeftOut("no GPU"));
    }
    let (Some(kind), Some(ranks)) = (fields.kind("collective")?, fields.count("n_ranks")?) else {
        return Ok(Parsed::LeftOut(NO_RANKS));
    };
    let Some(bytes) = fields.positive("size_bytes")? else {
        return Ok(Parsed::LeftOut(NO_SIZE));
    };
    let Some(millis) = fields.positive("time_ms")? else { return Ok(Parsed::LeftOut(NO_TIME)) };
    let point = Point { kind, ranks, nodes: ranks.div_ceil(BOX), bytes: bytes as u64 };
    let gpu = device.trim_start_matches("NV_");
    let mut row = point.on(device, gpu, None, millis * 1e3);
    row.dtype = DType::parse(fields.text("precision")?);
    row.library = filled(fields.text("algorithm")?);
    if ranks > BOX {
        row = row.flagged("more GPUs than a box held: how they are connected is not told");
    }
    Ok(Parsed::Row(row))
}
