//! The clusters that runs took place on.

use std::sync::Arc;

use foretrain_core::{Bandwidth, InputError, Result};
use foretrain_hardware::{Catalogue, Cluster};

/// A cluster of the catalogue.
pub(super) fn named(name: &str) -> Result<Arc<Cluster>> {
    Ok(Arc::new(Catalogue::builtin().cluster(name)?))
}

/// NVIDIA's own machines by the name of their accelerator or system.
pub(super) fn nvidia(product: &str) -> Result<Arc<Cluster>> {
    let product = product.to_ascii_uppercase();
    let has = |word: &str| product.contains(word);
    if has("GB300") {
        rack("gb300-nvl72")
    } else if has("GB200") {
        rack("gb200-nvl72")
    } else if has("B300") {
        named("dgx-b300")
    } else if has("B200") || has("BLACKWELL") {
        named("dgx-b200")
    } else if has("H200") {
        named("dgx-h200")
    } else if has("H100") {
        named("dgx-h100")
    } else if has("A100") && has("40GB") {
        named("dgx-a100-40gb")
    } else if has("A100") {
        named("dgx-a100")
    } else {
        Err(InputError::new(format!("no machine here holds a {product}")))
    }
}

/// Racks of 72, of which jobs on powers of two take 64.
fn rack(name: &str) -> Result<Arc<Cluster>> {
    let mut cluster = Catalogue::builtin().cluster(name)?;
    let node = &mut cluster.node;
    (node.devices, node.nics, node.hosts) = (64, 64, 16);
    Ok(Arc::new(cluster))
}

/// The cluster with other NICs, Gbit/s each.
pub(super) fn with_nics(name: &str, nics: u32, gbit_per_second: f64) -> Result<Arc<Cluster>> {
    let mut cluster = Catalogue::builtin().cluster(name)?;
    cluster.node.nics = nics;
    cluster.node.nic_bandwidth = Bandwidth::from_gbit_per_sec(gbit_per_second);
    Ok(Arc::new(cluster))
}
