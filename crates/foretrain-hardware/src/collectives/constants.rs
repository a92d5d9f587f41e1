//! The constants of the collective model, by name.

use std::ops::{Index, IndexMut};

macro_rules! constants {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)*) => {
        /// One constant of the collective model. Its name in files ends in its unit; a `_share` is
        /// a part of a link's payload rate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Constant {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl Constant {
            /// All, in the order of the files.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The key in catalogue and calibration files.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What it is, with its unit.
            pub const fn describe(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+).trim_ascii(),)*
                }
            }
        }
    };
}

constants! {
    /// From the call to the first byte, us.
    Launch = "launch_us",
    /// What LL128 adds to the launch, us.
    Ll128Base = "ll128_base_us",
    /// What Simple adds to the launch, us.
    SimpleBase = "simple_base_us",
    /// A hop of a ring within a node, LL, us.
    LlHop = "ll_hop_us",
    /// A hop of a ring within a node, LL128, us.
    Ll128Hop = "ll128_hop_us",
    /// A hop of a ring within a node, Simple, us.
    SimpleHop = "simple_hop_us",
    /// A hop of the chain that a tree has within a node, LL, us.
    LlChain = "ll_chain_us",
    /// A hop of the chain, LL128, us.
    Ll128Chain = "ll128_chain_us",
    /// A hop of the chain, Simple, us.
    SimpleChain = "simple_chain_us",
    /// What LL reaches of a device's link.
    LlShare = "ll_share",
    /// What LL128 reaches of a device's link.
    Ll128Share = "ll128_share",
    /// What Simple reaches of a device's link.
    SimpleShare = "simple_share",
    /// Handling a rank's own shard, in transfer steps: an all-gather copies it.
    OwnStep = "own_step",
    /// NVLink SHARP's fixed cost, us.
    NvlsBase = "nvls_base_us",
    /// What NVLink SHARP reaches of a device's link.
    NvlsShare = "nvls_share",
    /// What it reaches while its few channels are the limit.
    NvlsSmallShare = "nvls_small_share",
    /// What it takes to fill more channels, us.
    NvlsRamp = "nvls_ramp_us",
    /// Starting a small exchange with peers, us.
    PairHop = "pair_hop_us",
    /// Each further peer of an exchange within a node, us.
    PairPeer = "pair_peer_us",
    /// A small exchange with one peer, GB/s.
    PairLl = "pair_ll_gbs",
    /// Starting a large exchange with peers, us.
    PairBase = "pair_base_us",
    /// What an exchange with all peers reaches of a device's link.
    PairShare = "pair_share",
    /// A hop between nodes, LL, us.
    LlNet = "ll_net_us",
    /// A hop between nodes, LL128, us.
    Ll128Net = "ll128_net_us",
    /// A hop between nodes, Simple, us.
    SimpleNet = "simple_net_us",
    /// What LL adds to the launch between nodes, us.
    LlNetBase = "ll_net_base_us",
    /// What LL128 adds to the launch between nodes, us.
    Ll128NetBase = "ll128_net_base_us",
    /// What Simple adds to the launch between nodes, us.
    SimpleNetBase = "simple_net_base_us",
    /// A ring's hop between nodes over a tree's.
    RingNet = "ring_net_ratio",
    /// What LL reaches of a node's NICs.
    LlNetShare = "ll_net_share",
    /// What LL128 reaches of a node's NICs.
    Ll128NetShare = "ll128_net_share",
    /// What Simple reaches of a node's NICs.
    SimpleNetShare = "simple_net_share",
    /// A tree's rate between nodes over a ring's.
    TreeNet = "tree_net_ratio",
    /// Each further peer of an exchange between nodes, us.
    PairNet = "pair_net_us",
    /// What an exchange with all peers reaches of a node's NICs.
    PairNetShare = "pair_net_share",
    /// From the call to the first byte, CPU libraries, us.
    HostLaunch = "host_launch_us",
    /// A message between two ranks, CPU libraries, us.
    HostMessage = "host_message_us",
    /// What one rank's thread moves, CPU libraries, GB/s.
    HostStream = "host_stream_gbs",
    /// What CPU libraries reach of a link.
    HostShare = "host_share",
    /// What one rank's thread sums, CPU libraries, GB/s.
    HostReduce = "host_reduce_gbs",
}

impl Constant {
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// The constant that a file calls `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|constant| constant.name() == name)
    }

    /// The values that make sense; a file's figure outside is a slip.
    pub fn bounds(self) -> (f64, f64) {
        match self.name() {
            name if name.ends_with("_share") => (1e-6, 1.0),
            name if name.ends_with("_us") => (1e-3, 1e5),
            name if name.ends_with("_gbs") => (1e-4, 1e4),
            _ => (1e-3, 1e2),
        }
    }
}

/// A value per constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Constants([f64; Constant::COUNT]);

impl Constants {
    /// The same value for all.
    pub const fn all(value: f64) -> Self {
        Self([value; Constant::COUNT])
    }

    /// Constants and values.
    pub fn iter(&self) -> impl Iterator<Item = (Constant, f64)> + '_ {
        Constant::ALL.into_iter().zip(self.0)
    }
}

impl Index<Constant> for Constants {
    type Output = f64;
    fn index(&self, constant: Constant) -> &f64 {
        &self.0[constant as usize]
    }
}

impl IndexMut<Constant> for Constants {
    fn index_mut(&mut self, constant: Constant) -> &mut f64 {
        &mut self.0[constant as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lead_back() {
        for constant in Constant::ALL {
            assert_eq!(Constant::named(constant.name()), Some(constant));
            assert_eq!(Constant::ALL[constant as usize], constant);
        }
        assert_eq!(Constant::named("launch"), None);
    }
}
