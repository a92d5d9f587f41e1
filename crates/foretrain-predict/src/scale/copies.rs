//! What copying gradients into and out of DDP's buckets costs.

use foretrain_core::{Bandwidth, Bytes, Evidence, EvidenceKind, Nanos};
use foretrain_hardware::Cluster;

/// How fast DDP copies gradients into its buckets and back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum BucketCopies {
    /// As fast as the device's memory allows: in and out each read and write every byte.
    #[default]
    Memory,
    /// Gradient bytes over the time of both copies, as measured: the step of one rank under DDP
    /// less the step without it.
    At(Bandwidth),
    /// Gradients lie in the buckets (`gradient_as_bucket_view=True`): nothing is copied.
    None,
}

/// Reads and writes of a byte that is copied in and out.
const MEMORY_ACCESSES: f64 = 4.0;

impl BucketCopies {
    /// Gradient bytes over the time of both copies; `None` if nothing is copied or the device's
    /// memory is not known.
    pub(super) fn rate(self, cluster: &Cluster) -> Option<Bandwidth> {
        let rate = match self {
            Self::Memory => cluster.node.device.memory_bandwidth / MEMORY_ACCESSES,
            Self::At(rate) => rate,
            Self::None => return None,
        };
        (rate.get() > 0.0).then_some(rate)
    }

    /// What to tell of it, and `how` it is known.
    pub(super) fn evidence(self, cluster: &Cluster, how: &str) -> Evidence {
        const WHAT: &str = "copies into gradient buckets and back";
        match (self, self.rate(cluster)) {
            (Self::None, _) => {
                Evidence::new(EvidenceKind::Measured, WHAT, format!("none, {how}"), 0.0)
            }
            (Self::At(rate), _) => {
                Evidence::new(EvidenceKind::Measured, WHAT, format!("{rate} {how}"), 0.1)
            }
            (Self::Memory, Some(rate)) => Evidence::new(
                EvidenceKind::Inferred,
                WHAT,
                format!(
                    "{rate}, a quarter of the memory bandwidth of {}",
                    cluster.node.device.name
                ),
                0.3,
            ),
            (Self::Memory, None) => {
                let why = "not included: the device's memory bandwidth is not known";
                Evidence::new(EvidenceKind::Assumed, WHAT, why, 0.1)
            }
        }
    }
}

/// Time of one of the two copies of so many bytes.
pub(super) fn one_way(bytes: Bytes, rate: Bandwidth) -> Nanos {
    (bytes / rate).scale(0.5)
}

#[cfg(test)]
mod tests {
    use foretrain_hardware::Catalogue;

    use super::*;

    #[test]
    fn memory_moves_each_byte_four_times() {
        let cluster = Catalogue::builtin().cluster("dgx-a100").expect("known");
        let rate = BucketCopies::Memory.rate(&cluster).expect("known memory");
        let memory = cluster.node.device.memory_bandwidth;
        assert!((rate.get() * 4.0 / memory.get() - 1.0).abs() < 1e-12);
        let given = Bandwidth::from_gb_per_sec(2.0);
        assert_eq!(one_way(Bytes::new(8_000_000), given), Nanos::from_millis(2));
        assert_eq!(BucketCopies::None.rate(&cluster), None);
    }
}
