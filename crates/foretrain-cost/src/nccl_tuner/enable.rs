//! Which algorithm and protocol NCCL allows for a collective on a communicator.

use foretrain_graph::CollectiveKind;

use super::constants::{Algorithm, Protocol};
use super::model::{PathType, Tuner};

/// NCCL's limit on ranks per node for in-network reduction.
const COLLNET_MOST_LOCAL_RANKS: u32 = 8;

impl Tuner {
    /// Whether NCCL would consider the pair by default (no `NCCL_ALGO` or `NCCL_PROTO` set).
    pub fn enabled(&self, kind: CollectiveKind, algorithm: Algorithm, protocol: Protocol) -> bool {
        self.ranks > 1
            && serves(algorithm, kind)
            && self.fits(algorithm)
            && match algorithm {
                Algorithm::Ring | Algorithm::Tree => true,
                _ => protocol == Protocol::Simple,
            }
            && (protocol != Protocol::Ll128 || self.ll128(kind, algorithm))
    }

    /// Whether the communicator's shape suits the algorithm.
    fn fits(&self, algorithm: Algorithm) -> bool {
        let local = self.ranks_per_node();
        match algorithm {
            Algorithm::Ring | Algorithm::Tree => true,
            Algorithm::CollNetDirect => {
                self.collnet && self.nvswitch && local <= COLLNET_MOST_LOCAL_RANKS
            }
            Algorithm::CollNetChain => self.collnet && local <= COLLNET_MOST_LOCAL_RANKS,
            Algorithm::Nvls => {
                self.nvls.is_some_and(|g| g.channels >= 2) && (self.nodes == 1 || self.collnet)
            }
            Algorithm::NvlsTree => self.nvls.is_some_and(|g| g.channels >= 2) && self.nodes > 1,
            Algorithm::Pat => self.ranks == self.nodes,
        }
    }

    /// LL128 needs 128-byte stores to arrive whole, which NCCL trusts only on some paths.
    fn ll128(&self, kind: CollectiveKind, algorithm: Algorithm) -> bool {
        let (lowest, highest) = self.compute_capability;
        let graph = self.graph(algorithm);
        let inter_limit = if lowest >= 90 { PathType::Pxn } else { PathType::Pxb };
        let broken = self.cuda == Some((11, 8))
            && lowest == 90
            && kind == CollectiveKind::AllReduce
            && algorithm == Algorithm::Ring
            && self.ranks == 2;
        graph.is_some_and(|g| g.inter_path <= inter_limit && g.intra_path <= PathType::Nvb)
            && (lowest == highest || lowest >= 90)
            && lowest >= 70
            && !broken
    }
}

/// Whether the algorithm implements the collective.
fn serves(algorithm: Algorithm, kind: CollectiveKind) -> bool {
    use CollectiveKind as K;
    match kind {
        K::AllReduce => algorithm != Algorithm::Pat,
        K::AllGather | K::ReduceScatter => {
            !matches!(algorithm, Algorithm::Tree | Algorithm::CollNetChain | Algorithm::NvlsTree)
        }
        K::Broadcast | K::Reduce => algorithm == Algorithm::Ring,
        _ => false,
    }
}
