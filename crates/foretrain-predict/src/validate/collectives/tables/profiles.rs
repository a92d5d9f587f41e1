//! Profiles that authors of simulators took of their own machines.

use foretrain_core::{DType, Result};
use foretrain_graph::CollectiveKind;

use super::fields::Fields;
use super::{NO_RANKS, NO_SIZE, NO_TIME, Parsed, Point, filled};

/// Vidur: medians of CUDA graphs of 16-bit tensors. What connects its nodes is not told, so rows
/// of several nodes have no machine; nor is there one in the catalogue for boxes whose GPUs are
/// bridged in pairs.
pub(super) fn vidur(fields: &Fields<'_>) -> Result<Parsed> {
    let system = fields.text("system")?;
    let (ranks, per_node) = (fields.count("num_workers")?, fields.count("devices_per_node")?);
    let (Some(ranks), Some(per_node)) = (ranks, per_node) else {
        return Ok(Parsed::LeftOut(NO_RANKS));
    };
    let kind = match fields.kind("collective")? {
        // One sends and the other receives.
        Some(CollectiveKind::SendRecv) => CollectiveKind::Send,
        Some(kind) => kind,
        None => return Ok(Parsed::LeftOut("operation not known")),
    };
    let Some(bytes) = fields.positive("size_bytes")? else {
        return Ok(Parsed::LeftOut(NO_SIZE));
    };
    let Some(millis) = fields.positive("median_ms")? else { return Ok(Parsed::LeftOut(NO_TIME)) };
    let nodes = ranks.div_ceil(per_node.max(1));
    let (gpu, cluster) = match system {
        "a100_dgx" => ("A100", Some("dgx-a100")),
        "h100_dgx" => ("H100", Some("dgx-h100")),
        _ => (system.split('_').next().unwrap_or(system), None),
    };
    let point = Point { kind, ranks, nodes, bytes: bytes as u64 };
    let mut row = point.on(system, gpu, cluster.filter(|_| nodes == 1), millis * 1e3);
    row.dtype = Some(DType::F16);
    row.flag = filled(fields.text("flag")?);
    Ok(Parsed::Row(row))
}

/// vTrain: all-reduces of one node, one run per size.
pub(super) fn vtrain(fields: &Fields<'_>) -> Result<Parsed> {
    let (Some(kind), Some(ranks)) = (fields.kind("collective")?, fields.count("n_ranks")?) else {
        return Ok(Parsed::LeftOut(NO_RANKS));
    };
    let Some(bytes) = fields.positive("size_bytes")? else {
        return Ok(Parsed::LeftOut(NO_SIZE));
    };
    let Some(micros) = fields.least(["oop_time_us", "ip_time_us"])? else {
        return Ok(Parsed::LeftOut(NO_TIME));
    };
    let gpu = fields.text("gpu")?;
    let cluster = match gpu {
        "A100" => Some("dgx-a100"),
        "V100" => Some("dgx-1-v100"),
        _ => None,
    };
    let point = Point { kind, ranks, nodes: 1, bytes: bytes as u64 };
    let mut row = point.on(fields.text("system")?, gpu, cluster, micros);
    row.dtype = DType::parse(fields.text("dtype")?);
    row.library = Some("nccl-tests".into());
    Ok(Parsed::Row(row))
}

/// Perlmutter and Vista. The tensor of a gathering is one rank's part: only so do its bandwidths
/// match those of the all-reduces between the same nodes.
pub(super) fn perlmutter_vista(fields: &Fields<'_>) -> Result<Parsed> {
    let (Some(ranks), Some(nodes)) = (fields.count("n_ranks")?, fields.count("n_nodes")?) else {
        return Ok(Parsed::LeftOut(NO_RANKS));
    };
    let kind = match fields.kind("collective")? {
        Some(CollectiveKind::SendRecv) => CollectiveKind::Send,
        Some(kind) => kind,
        None => return Ok(Parsed::LeftOut("operation not known")),
    };
    let Some(tensor) = fields.positive("bytes_of_tensor_arg")? else {
        return Ok(Parsed::LeftOut(NO_SIZE));
    };
    let Some(micros) = fields.positive("time_us")? else { return Ok(Parsed::LeftOut(NO_TIME)) };
    let parts = if kind == CollectiveKind::AllGather { ranks } else { 1 };
    let system = fields.text("system")?;
    let is_perlmutter = system.starts_with("Perlmutter");
    let cluster = if is_perlmutter { "perlmutter" } else { "vista-gh200" };
    let point = Point { kind, ranks, nodes, bytes: tensor as u64 * u64::from(parts) };
    let mut row = point.on(system, fields.text("gpu")?, Some(cluster), micros);
    row.dtype = DType::parse(fields.text("dtype")?);
    if is_perlmutter && nodes > 1 {
        row = row.flagged("between nodes over TCP, not Slingshot RDMA");
    }
    Ok(Parsed::Row(row))
}
