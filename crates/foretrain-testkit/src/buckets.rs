//! PyTorch's gradient buckets.

use serde::{Deserialize, Serialize};

use crate::spec::DdpSpec;

/// A gradient bucket, reduced by one all-reduce per step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// Parameter tensors in it.
    pub tensors: u32,
    /// Gradient elements (32-bit floats).
    pub elements: u64,
    /// Bytes on the wire.
    pub bytes: u64,
}

/// Cuts gradients, given by their element counts in the order in which they become ready, into
/// buckets. A bucket closes with the tensor that takes it to its limit or beyond, so it may exceed
/// the limit; the first has a limit of its own (`torch.distributed._compute_bucket_assignment_by_size`
/// on the rebuilt order that every step after the first uses).
pub fn assign(ready_order: &[u64], spec: &DdpSpec) -> Vec<Bucket> {
    let mut buckets = Vec::new();
    let mut open = Bucket { tensors: 0, elements: 0, bytes: 0 };
    for &elements in ready_order {
        open.tensors += 1;
        open.elements += elements;
        open.bytes += 4 * elements;
        let limit =
            if buckets.is_empty() { spec.first_bucket_bytes } else { spec.bucket_cap_bytes };
        if open.bytes >= limit {
            buckets
                .push(std::mem::replace(&mut open, Bucket { tensors: 0, elements: 0, bytes: 0 }));
        }
    }
    if open.tensors > 0 {
        buckets.push(open);
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::JobSpec;

    #[test]
    fn buckets_match_hand_computed_ones() {
        let ddp = JobSpec::tiny_ddp().ddp;
        const MI: u64 = 1 << 20;
        // 4 KB of bias, then 8 MB of weight: closes the first bucket. Then 3 x 8 MiB + 4 MiB
        // crosses 25 MiB, and the rest stays open to the end.
        let ready = [1_000, 2_048_000, 2 * MI, 2 * MI, 2 * MI, MI, 10, 20];
        let got: Vec<_> =
            assign(&ready, &ddp).iter().map(|bucket| (bucket.tensors, bucket.elements)).collect();
        assert_eq!(got, [(2, 2_049_000), (4, 7 * MI), (2, 30)]);
    }

    #[test]
    fn no_gradients_no_buckets() {
        assert!(assign(&[], &JobSpec::tiny_ddp().ddp).is_empty());
    }
}
