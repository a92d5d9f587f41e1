//! Gradient synchronisation through servers: parameter servers and BytePS.

use foretrain_core::{Bandwidth, Bytes, Nanos};
use serde::Serialize;

use super::candidate::transfer_ns;

/// Where gradients are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Servers {
    /// One shard on each worker.
    Colocated,
    /// Evenly on so many machines of their own.
    Own(u32),
    /// BytePS: on so many spare CPU machines and on the workers, split so that all finish
    /// together (OSDI '20). None is a ring's time, as many as workers one copy each way.
    Spare(u32),
}

/// The time for `workers` machines to push `bytes` of gradients each to the servers and pull the
/// sum, over NICs of `bandwidth` in one direction; pushing and pulling overlap.
///
/// With `k` servers of their own a worker moves `M` each way and a server `nM/k`
/// (BytePS's rationale); co-located, a NIC carries `2(n-1)M/n`; BytePS's optimum is
/// `2n(n-1)M / ((n^2 + kn - 2k) B)`. [`Nanos::MAX`] without a server or bandwidth.
pub fn push_pull_time(bytes: Bytes, workers: u32, servers: Servers, bandwidth: Bandwidth) -> Nanos {
    let (n, size) = (f64::from(workers), bytes.as_f64());
    let alone = workers <= 1;
    let moved = match servers {
        Servers::Own(0) if workers > 0 && size > 0.0 => f64::INFINITY,
        Servers::Own(0) => 0.0,
        Servers::Own(k) => size.max(n * size / f64::from(k)),
        Servers::Colocated | Servers::Spare(_) if alone => 0.0,
        Servers::Colocated => 2.0 * (n - 1.0) / n * size,
        Servers::Spare(k) => {
            // More servers than workers do not help: a worker's own NIC is the limit.
            let k = f64::from(k.min(workers));
            2.0 * n * (n - 1.0) / (n * n + k * n - 2.0 * k) * size
        }
    };
    let ns = transfer_ns(moved, bandwidth.get());
    if ns.is_finite() { Nanos::from_nanos_f64(ns) } else { Nanos::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(workers: u32, servers: Servers) -> f64 {
        let rate = Bandwidth::from_gbit_per_sec(200.0);
        push_pull_time(Bytes::new(64_000_000), workers, servers, rate).micros_f64() / 1e3
    }

    #[test]
    fn published_forms() {
        // A ring of many: 2 M / B.
        assert!((ms(1_000_000, Servers::Colocated) - 5.12).abs() < 1e-4);
        assert!((ms(2, Servers::Colocated) - 2.56).abs() < 1e-9);
        assert!((ms(8, Servers::Own(8)) - 2.56).abs() < 1e-9);
        assert!((ms(8, Servers::Own(2)) - 10.24).abs() < 1e-9);
        // Servers of their own lose to a ring when there are at most half as many as workers.
        let ring = ms(64, Servers::Colocated);
        assert!(ms(64, Servers::Own(32)) > ring && ms(64, Servers::Own(33)) < ring);
    }

    #[test]
    fn byteps_lies_between_ring_and_one_copy() {
        assert!((ms(8, Servers::Spare(0)) - ms(8, Servers::Colocated)).abs() < 1e-9);
        assert!((ms(8, Servers::Spare(8)) - 2.56).abs() < 1e-9);
        assert_eq!(ms(8, Servers::Spare(80)), ms(8, Servers::Spare(8)));
        // 2 * 8 * 7 / (64 + 32 - 8) * 2.56 ms.
        assert!((ms(8, Servers::Spare(4)) - 112.0 / 88.0 * 2.56).abs() < 1e-5);
        let times: Vec<f64> = (0..=8).map(|k| ms(8, Servers::Spare(k))).collect();
        assert!(times.windows(2).all(|pair| pair[1] < pair[0]), "{times:?}");
    }

    #[test]
    fn degenerate_jobs() {
        assert_eq!(ms(1, Servers::Colocated), 0.0);
        assert_eq!(ms(1, Servers::Spare(3)), 0.0);
        let none = Bandwidth::ZERO;
        assert_eq!(push_pull_time(Bytes::new(1), 2, Servers::Colocated, none), Nanos::MAX);
        let rate = Bandwidth::from_gb_per_sec(1.0);
        assert_eq!(push_pull_time(Bytes::new(1), 2, Servers::Own(0), rate), Nanos::MAX);
        assert_eq!(push_pull_time(Bytes::ZERO, 2, Servers::Own(0), rate), Nanos::ZERO);
    }
}
