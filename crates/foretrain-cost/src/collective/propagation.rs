//! All-reduce time from first principles: data propagates hop by hop and is reduced on the way.
//!
//! A ring of `n` ranks sends the buffer in loops. Each loop moves one chunk per rank and channel
//! through `n-1` steps that reduce and `n-1` that copy. With `alpha` the latency of a hop, `B_l` the
//! link's, `B_r` the reduction's and `B_c` the copy's rate per channel, a loop with chunk `c` takes
//!
//! ```text
//! serial     (n-1)(alpha + c/B_l + c/B_r)      + (n-1)(alpha + c/B_l + c/B_c)
//! pipelined  (n-1)(alpha + max(c/B_l, c/B_r))  + (n-1)(alpha + max(c/B_l, c/B_c))
//! ```
//!
//! The structure is that of NCCL's primitives (`src/device/all_reduce.h`): chunks of at most 2 MiB
//! for Simple, two slices per chunk that overlap transfer with arithmetic.

use foretrain_core::{Bandwidth, Bytes, Nanos};

/// The ring's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pipeline {
    /// Ranks.
    pub ranks: u32,
    /// Channels, each with its own share of the buffer.
    pub channels: u32,
    /// Largest chunk.
    pub chunk: Bytes,
    /// Chunks are rounded up to a multiple of this; 1 for none.
    pub grain: Bytes,
    /// From the call to the first byte.
    pub launch: Nanos,
    /// Latency of a hop.
    pub hop: Nanos,
    /// Link rate of a channel.
    pub link: Bandwidth,
    /// Receive-reduce-send rate of a channel.
    pub reduce: Bandwidth,
    /// Receive-copy-send rate of a channel.
    pub copy: Bandwidth,
}

/// Whether transfer and arithmetic of one hop overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Store and forward.
    Serial,
    /// The shorter of the two is hidden.
    Pipelined,
}

impl Pipeline {
    /// Time of a ring all-reduce of `bytes`; zero for one rank.
    ///
    /// A rate of zero gives [`Nanos::MAX`].
    pub fn ring(&self, bytes: Bytes, overlap: Overlap) -> Nanos {
        if self.ranks <= 1 {
            return Nanos::ZERO;
        }
        let per_loop = f64::from(self.channels.max(1)) * f64::from(self.ranks);
        let share = bytes.as_f64() / per_loop;
        let largest = self.chunk.as_f64().max(1.0);
        // All loops but the last are full, so they need not be walked.
        let full = (share / largest).floor();
        let rest = share - full * largest;
        let steps = f64::from(self.ranks - 1);
        let mut total = if full > 0.0 { full * self.hop_pair(largest, overlap) } else { 0.0 };
        if rest > 0.0 || full == 0.0 {
            total += self.hop_pair(self.round_up(rest).min(largest), overlap);
        }
        self.launch + saturating(steps * total)
    }

    /// Time of a double binary tree all-reduce over `nodes` nodes of equally many ranks.
    pub fn tree(&self, bytes: Bytes, nodes: u32, network_hop: Nanos) -> Nanos {
        if self.ranks <= 1 {
            return Nanos::ZERO;
        }
        let nodes = nodes.max(1);
        let chain = f64::from((self.ranks / nodes).max(1) - 1);
        let depth = f64::from(nodes).log2();
        let hops = 2.0 * (chain * self.hop.nanos() as f64 + depth * network_hop.nanos() as f64);
        let rate = self.link.min(self.reduce) * f64::from(self.channels.max(1));
        self.launch + saturating(hops + 2.0 * nanos(bytes.as_f64(), rate))
    }

    /// One reducing and one copying hop, ns.
    fn hop_pair(&self, chunk: f64, overlap: Overlap) -> f64 {
        let hop = self.hop.nanos() as f64;
        let link = nanos(chunk, self.link);
        let one = |rate| match overlap {
            Overlap::Serial => hop + link + nanos(chunk, rate),
            Overlap::Pipelined => hop + link.max(nanos(chunk, rate)),
        };
        one(self.reduce) + one(self.copy)
    }

    fn round_up(&self, chunk: f64) -> f64 {
        let grain = self.grain.as_f64();
        if grain > 1.0 { (chunk / grain).ceil() * grain } else { chunk }
    }
}

fn nanos(bytes: f64, rate: Bandwidth) -> f64 {
    match rate.get() {
        _ if bytes <= 0.0 => 0.0,
        rate if rate > 0.0 => bytes / rate * 1e9,
        _ => f64::INFINITY,
    }
}

fn saturating(nanos: f64) -> Nanos {
    if nanos.is_finite() { Nanos::from_nanos_f64(nanos) } else { Nanos::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline(ranks: u32, channels: u32) -> Pipeline {
        Pipeline {
            ranks,
            channels,
            chunk: Bytes::from_mib(2),
            grain: Bytes::new(1),
            launch: Nanos::from_micros(5),
            hop: Nanos::from_micros(2),
            link: Bandwidth::from_gb_per_sec(10.0),
            reduce: Bandwidth::from_gb_per_sec(25.0),
            copy: Bandwidth::from_gb_per_sec(50.0),
        }
    }

    #[test]
    fn published_ring_times() {
        for (ranks, channels, mib, serial, pipelined) in [
            (2, 1, 1, "145.31", "113.86"),
            (4, 2, 8, "834.89", "646.15"),
            (8, 24, 1, "42.94", "40.65"),
            (8, 24, 64, "669.14", "522.34"),
            (8, 24, 1024, "10267.18", "7918.37"),
        ] {
            let ring = |overlap| {
                let time = pipeline(ranks, channels).ring(Bytes::from_mib(mib), overlap);
                format!("{:.2}", time.micros_f64())
            };
            assert_eq!(ring(Overlap::Serial), serial, "n={ranks} {mib} MiB");
            assert_eq!(ring(Overlap::Pipelined), pipelined, "n={ranks} {mib} MiB");
        }
    }

    #[test]
    fn tree_pays_the_chain_and_the_depth() {
        let time = pipeline(32, 10).tree(Bytes::from_mib(1), 4, Nanos::from_micros(10));
        // 5 + 2 (7 * 2 + 2 * 10) + 2 * 1.048576 MB / 100 GB/s.
        assert_eq!(format!("{:.2}", time.micros_f64()), "93.97");
    }

    #[test]
    fn chunks_fill_their_grain_and_bad_rates_saturate() {
        let grained = Pipeline { grain: Bytes::from_kib(64), ..pipeline(2, 1) };
        let time = |p: &Pipeline, b| p.ring(Bytes::new(b), Overlap::Pipelined);
        assert_eq!(time(&grained, 2), time(&grained, 128 << 10));
        assert!(time(&grained, 2) > time(&pipeline(2, 1), 2));
        let dead = Pipeline { link: Bandwidth::ZERO, ..pipeline(2, 1) };
        assert_eq!(time(&dead, 1), Nanos::MAX);
        assert_eq!(time(&dead, 0), Nanos::from_micros(9));
        assert_eq!(time(&pipeline(1, 1), 1 << 40), Nanos::ZERO);
        assert!(time(&pipeline(1_000_000, 24), 1 << 50) < Nanos::MAX);
    }
}
