//! What it costs to exchange one gradient among n machines, raw or compressed, in k partitions.
//!
//! The forms and the assumption that only one partition's latency shows (the others are pipelined
//! behind it) are those of HiPress's SeCoPa.

use foretrain_core::Nanos;
use serde::Serialize;

use super::linear::LinearCost;

/// Over what a gradient is exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExchangeKind {
    /// Servers gather and broadcast.
    ParameterServer,
    /// A ring all-reduce.
    Ring,
}

/// The primitives of an exchange among a given number of machines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeCosts {
    /// Machines.
    pub machines: u32,
    /// Encoding a raw buffer.
    pub encode: LinearCost,
    /// Decoding, by the size of the encoded buffer.
    pub decode: LinearCost,
    /// Adding one buffer to another.
    pub aggregate: LinearCost,
    /// One step of the ring.
    pub ring_send: LinearCost,
    /// From all machines to one.
    pub gather: LinearCost,
    /// From one machine to all.
    pub broadcast: LinearCost,
}

/// A way to exchange a gradient and its time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Priced {
    /// In how many partitions.
    pub partitions: u32,
    /// How long.
    pub time: Nanos,
}

/// Raw against compressed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Choice {
    /// Best without compression.
    pub raw: Priced,
    /// Best with it.
    pub compressed: Priced,
}

impl Choice {
    /// Whether compression pays.
    pub fn compress(&self) -> bool {
        self.raw.time > self.compressed.time
    }
    /// The quicker of the two.
    pub fn best(&self) -> Priced {
        if self.compress() { self.compressed } else { self.raw }
    }
}

impl ExchangeCosts {
    /// The time in ns of one gradient of `bytes` in `partitions`, raw (`ratio` `None`) or
    /// compressed to `ratio` of its size.
    pub fn ns(&self, kind: ExchangeKind, bytes: f64, partitions: u32, ratio: Option<f64>) -> f64 {
        let n = f64::from(self.machines);
        let k = f64::from(partitions.max(1));
        let part = bytes / k;
        let wire = part * ratio.unwrap_or(1.0);
        let moved = match kind {
            ExchangeKind::ParameterServer => self.gather.ns(wire) + self.broadcast.ns(wire),
            ExchangeKind::Ring => 2.0 * (n - 1.0) * self.ring_send.ns(wire),
        };
        let coded = match (kind, ratio) {
            (_, None) => 0.0,
            (ExchangeKind::ParameterServer, Some(_)) => {
                let encodes = (k + 1.0).min(n);
                let decodes = (n - 1.0 + k).min(2.0 * (n - 1.0));
                encodes * self.encode.ns(part) + decodes * self.decode.ns(wire)
            }
            (ExchangeKind::Ring, Some(_)) => n * self.encode.ns(part) + n * self.decode.ns(wire),
        };
        moved + coded + (n - 1.0) * self.aggregate.ns(part)
    }

    /// The best number of partitions, of as many as there are machines at most.
    pub fn cheapest(&self, kind: ExchangeKind, bytes: f64, ratio: Option<f64>) -> Priced {
        let (mut best, mut partitions) = (f64::INFINITY, 1);
        for k in 1..=self.machines.max(1) {
            let ns = self.ns(kind, bytes, k, ratio);
            if ns < best {
                (best, partitions) = (ns, k);
            }
        }
        Priced { partitions, time: Nanos::from_nanos_f64(best) }
    }

    /// Whether to compress a gradient of `bytes` to `ratio` of its size.
    pub fn choose(&self, kind: ExchangeKind, bytes: f64, ratio: f64) -> Choice {
        Choice {
            raw: self.cheapest(kind, bytes, None),
            compressed: self.cheapest(kind, bytes, Some(ratio)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SeCoPa's figures are in ms per float32 element.
    fn ms(per_element: f64, bias: f64, overhead: f64) -> LinearCost {
        LinearCost {
            floor_ns: overhead * 1e6,
            offset_ns: bias * 1e6,
            ns_per_byte: per_element * 1e6 / 4.0,
            relative_spread: 0.0,
        }
    }

    fn published(machines: u32) -> ExchangeCosts {
        let (gather, broadcast) = match machines {
            4 => (ms(2.7156e-6, 0.41930, 0.15573), ms(2.7157e-6, 0.22156, 0.14820)),
            8 => (ms(6.1167e-6, 0.80768, 0.28778), ms(6.1172e-6, 0.27285, 0.29666)),
            _ => (ms(1.2937e-5, 1.4406, 0.59503), ms(1.2915e-5, 0.45538, 0.58353)),
        };
        ExchangeCosts {
            machines,
            encode: ms(1.4133e-8, 5.8938e-2, 0.05408),
            decode: ms(6.2041e-9, 1.3956e-1, 0.07287),
            aggregate: LinearCost::FREE,
            ring_send: ms(8.5005e-7, 2.0337e-1, 0.09766),
            gather,
            broadcast,
        }
    }

    #[test]
    fn published_choices_come_out_exactly() {
        use ExchangeKind::{ParameterServer, Ring};
        // machines, floats, kind, raw ms @ partitions, compressed ms @ partitions.
        let rows = [
            (4, 1e5, ParameterServer, 0.7766, 4, 1.3539, 1),
            (4, 1e5, Ring, 1.3477, 4, 2.0236, 4),
            (4, 1e6, ParameterServer, 1.9987, 4, 1.6862, 1),
            (4, 1e6, Ring, 2.4953, 4, 2.1084, 4),
            (4, 1e8, ParameterServer, 136.4234, 4, 11.6718, 4),
            (4, 1e8, Ring, 128.7277, 4, 11.4355, 4),
            (8, 1e6, ParameterServer, 2.6098, 8, 2.9186, 2),
            (8, 1e6, Ring, 4.3348, 8, 4.5427, 8),
            (8, 1e7, ParameterServer, 16.3729, 8, 4.6098, 8),
            (8, 1e7, Ring, 17.7231, 8, 5.5101, 8),
            (16, 1e6, ParameterServer, 3.5117, 16, 5.2036, 3),
            (16, 1e6, Ring, 7.6949, 16, 9.3912, 16),
            (16, 1e7, ParameterServer, 18.0535, 16, 7.7975, 9),
            (16, 1e7, Ring, 22.0395, 16, 10.4184, 16),
            (16, 1e8, ParameterServer, 163.4710, 16, 18.6102, 16),
            (16, 1e8, Ring, 165.4855, 16, 20.6907, 16),
        ];
        for (machines, floats, kind, raw, raw_k, compressed, compressed_k) in rows {
            let choice = published(machines).choose(kind, floats * 4.0, 1.0 / 16.0);
            let got = |priced: Priced| (priced.time.micros_f64() / 1e3, priced.partitions);
            let ((r, rk), (c, ck)) = (got(choice.raw), got(choice.compressed));
            let what = format!("{machines} machines, {floats} floats, {kind:?}: {choice:?}");
            // Published figures have four decimals.
            assert!((r - raw).abs() < 2e-4 && rk == raw_k, "{what}");
            assert!((c - compressed).abs() < 2e-4 && ck == compressed_k, "{what}");
            assert_eq!(choice.compress(), raw > compressed, "{what}");
        }
    }

    #[test]
    fn aggregation_counts() {
        let mut costs = published(4);
        costs.aggregate = LinearCost::new(1_000.0, 0.0);
        let with = costs.ns(ExchangeKind::Ring, 4e6, 2, None);
        let without = published(4).ns(ExchangeKind::Ring, 4e6, 2, None);
        assert!((with - without - 3_000.0).abs() < 1e-6);
    }
}
