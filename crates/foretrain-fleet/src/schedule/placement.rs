//! Where a job runs.

use smallvec::SmallVec;

use super::cluster::Cluster;
use super::slices::Slot;

/// GPUs of one job, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Their numbers.
    pub gpus: SmallVec<[u32; 8]>,
    /// Which part of its one GPU, for a job that asked for a slice.
    pub slot: Option<Slot>,
}

impl Placement {
    /// Whole GPUs.
    pub fn of(gpus: impl IntoIterator<Item = u32>) -> Self {
        let mut gpus: SmallVec<[u32; 8]> = gpus.into_iter().collect();
        gpus.sort_unstable();
        Self { gpus, slot: None }
    }

    /// GPUs on each node, in the order of nodes.
    pub fn per_node(&self, cluster: &Cluster) -> SmallVec<[u32; 8]> {
        let mut counts: SmallVec<[u32; 8]> = SmallVec::new();
        let mut last = None;
        for &gpu in &self.gpus {
            let node = Some(cluster.node_of(gpu));
            match counts.last_mut().filter(|_| node == last) {
                Some(count) => *count += 1,
                None => counts.push(1),
            }
            last = node;
        }
        counts
    }

    /// Racks it is in.
    pub fn racks(&self, cluster: &Cluster) -> u32 {
        let rack = |gpu: &u32| cluster.nodes()[cluster.node_of(*gpu) as usize].rack;
        let mut racks: SmallVec<[u32; 8]> = self.gpus.iter().map(rack).collect();
        racks.sort_unstable();
        racks.dedup();
        racks.len() as u32
    }
}
