//! Which devices the ranks of each group are on.

use foretrain_core::{InputError, Result};
use foretrain_hardware::Cluster;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use super::super::setting::Layout;

/// No network of more devices can be built.
const MOST_DEVICES: u64 = 1 << 23;

/// Equal groups, each on every `stride`-th device from one of its own on.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    ranks: u32,
    stride: u32,
    groups: u32,
    /// Devices of a node.
    each: u32,
    /// The node that stands in for each.
    order: Vec<u32>,
}

impl Placed {
    /// One group, or with a stride all that lie beside it.
    ///
    /// # Errors
    /// If they would take more devices than any network has.
    pub(super) fn new(cluster: &Cluster, ranks: u32, layout: Layout) -> Result<Self> {
        let each = cluster.devices_per_node().max(1);
        let (stride, groups) = match layout {
            Layout::Packed => (1, 1),
            Layout::PerNode(ranks) => ((each / ranks.max(1)).max(1), 1),
            Layout::Strided(stride) => (stride.max(1), stride.max(1)),
        };
        let last = u64::from(ranks.saturating_sub(1)) * u64::from(stride) + u64::from(groups - 1);
        if last >= MOST_DEVICES {
            return Err(InputError::new(format!(
                "{ranks} ranks on every device number {stride} need over {MOST_DEVICES} devices"
            ))
            .hint("ask what-ifs of the network for fewer ranks"));
        }
        let nodes = (last / u64::from(each)) as u32 + 1;
        Ok(Self { ranks, stride, groups, each, order: (0..nodes).collect() })
    }

    /// Nodes that they are on.
    pub(super) fn nodes(&self) -> u32 {
        self.order.len() as u32
    }

    /// On the same nodes in random order.
    pub(super) fn scattered(mut self, seed: u64) -> Self {
        self.order.shuffle(&mut Pcg64Mcg::seed_from_u64(seed));
        self
    }

    /// `groups` groups side by side, as many as there is room for.
    pub(super) fn beside(mut self, groups: u32) -> Self {
        self.groups = groups.clamp(1, self.stride);
        self
    }

    /// Devices of each group's ranks.
    pub(super) fn groups(&self) -> impl Iterator<Item = Vec<u32>> + '_ {
        (0..self.groups).map(|group| {
            let device = |rank: u32| {
                let at = rank * self.stride + group;
                self.order[(at / self.each) as usize] * self.each + at % self.each
            };
            (0..self.ranks).map(device).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use foretrain_hardware::Catalogue;

    use super::*;

    fn placed(ranks: u32, layout: Layout) -> Placed {
        Placed::new(&Catalogue::builtin().cluster("dgx-a100").unwrap(), ranks, layout).unwrap()
    }

    #[test]
    fn groups_beside_each_other_share_nodes_and_no_device() {
        let one = placed(8, Layout::PerNode(4));
        assert_eq!(one.groups().collect::<Vec<_>>(), [[0, 2, 4, 6, 8, 10, 12, 14]]);
        let two = one.beside(2);
        assert_eq!(two.groups().nth(1).unwrap(), [1, 3, 5, 7, 9, 11, 13, 15]);
        let strided: Vec<_> = placed(4, Layout::Strided(3)).groups().collect();
        assert_eq!(strided, [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]);
    }

    #[test]
    fn scattering_moves_whole_nodes_and_depends_on_the_seed_alone() {
        let packed = placed(128, Layout::Packed);
        let ranks = |placed: Placed| placed.groups().next().unwrap();
        let scattered = ranks(packed.clone().scattered(1));
        assert_eq!(scattered, ranks(packed.clone().scattered(1)));
        assert_ne!(scattered, ranks(packed.clone().scattered(2)));
        for node in scattered.chunks(8) {
            assert!(node[0].is_multiple_of(8) && node.windows(2).all(|two| two[1] == two[0] + 1));
        }
        let mut sorted = scattered;
        sorted.sort_unstable();
        assert_eq!(sorted, ranks(packed));
    }
}
