//! The primitives of one machine.

use std::collections::BTreeMap;

use foretrain_core::{InputError, Result};
use serde::{Deserialize, Serialize};

use super::codec::Scheme;
use super::exchange::ExchangeCosts;
use super::linear::LinearCost;

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Handing a buffer to a peer: what the sending process pays.
    Send,
    /// Taking a buffer that has arrived: what the receiving process pays.
    Receive,
    /// From the beginning of a send until the peer has the buffer.
    OneWay,
    /// Adding one buffer to another.
    Aggregate,
    /// Copying a buffer.
    Copy,
    /// Encoding a float32 gradient; sizes are of the raw buffer.
    Encode(Scheme),
    /// Decoding it; sizes are of the raw buffer.
    Decode(Scheme),
}

impl Operation {
    /// Every operation.
    pub fn all() -> impl Iterator<Item = Self> {
        let plain = [Self::Send, Self::Receive, Self::OneWay, Self::Aggregate, Self::Copy];
        let coded = Scheme::ALL.into_iter().flat_map(|s| [Self::Encode(s), Self::Decode(s)]);
        plain.into_iter().chain(coded)
    }

    /// The word for tables: "send", "encode half".
    pub fn describe(self) -> String {
        match self {
            Self::Send => "send".into(),
            Self::Receive => "receive".into(),
            Self::OneWay => "one-way".into(),
            Self::Aggregate => "aggregate".into(),
            Self::Copy => "copy".into(),
            Self::Encode(scheme) => format!("encode {}", scheme.as_str()),
            Self::Decode(scheme) => format!("decode {}", scheme.as_str()),
        }
    }

    /// The operation of such a word.
    ///
    /// # Errors
    /// If there is none.
    pub fn parse(word: &str) -> Result<Self> {
        let mut words = word.split([' ', ':', '/']).filter(|word| !word.is_empty());
        let (first, scheme) = (words.next().unwrap_or_default(), words.next());
        let first = first.to_ascii_lowercase();
        let scheme = if words.next().is_none() { scheme } else { Some(word) };
        match (first.as_str(), scheme) {
            ("send", None) => Ok(Self::Send),
            ("receive" | "recv", None) => Ok(Self::Receive),
            ("one-way" | "one_way" | "oneway", None) => Ok(Self::OneWay),
            ("aggregate" | "sum" | "reduce", None) => Ok(Self::Aggregate),
            ("copy", None) => Ok(Self::Copy),
            ("encode", Some(scheme)) => Ok(Self::Encode(Scheme::parse(scheme)?)),
            ("decode", Some(scheme)) => Ok(Self::Decode(Scheme::parse(scheme)?)),
            _ => Err(InputError::new(format!("no primitive \"{word}\"")).hint(
                "primitives: send, receive, one-way, aggregate, copy, encode SCHEME, decode SCHEME",
            )),
        }
    }
}

/// What shrinking costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodecCost {
    /// By the size of the raw buffer.
    pub encode: LinearCost,
    /// By the size of the raw buffer.
    pub decode: LinearCost,
}

/// The primitives of one machine, each with its line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Primitives {
    /// Where they come from.
    pub source: String,
    /// Handing a buffer to a peer; on loopback this is the processor's share, not the network's.
    pub send: LinearCost,
    /// Taking a buffer that has arrived.
    pub receive: LinearCost,
    /// From the beginning of a send until the peer has the buffer, between two processes of the
    /// machine; `None` if nobody measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<LinearCost>,
    /// Adding one buffer to another, by the size of one.
    pub aggregate: LinearCost,
    /// Copying a buffer.
    pub copy: LinearCost,
    /// Encoding and decoding by scheme.
    #[serde(default)]
    pub codec: BTreeMap<Scheme, CodecCost>,
}

impl Primitives {
    /// What is assumed of a machine that nobody measured.
    ///
    /// Encoding and decoding: HiPress's published lines for a compressor on a V100 (14.1 and
    /// 6.2 ns per 1,000 float32 elements after 59 and 140 us); the other figures are round
    /// ones for a server: 20 GB/s of summing, 100 GB/s of copying on a device.
    pub fn assumed() -> Self {
        let encode =
            LinearCost { floor_ns: 54_080.0, ..LinearCost::new(58_938.0, 1.4133e-2 / 4.0) };
        let decode =
            LinearCost { floor_ns: 72_870.0, ..LinearCost::new(139_560.0, 6.2041e-3 / 4.0) };
        let cast = LinearCost::new(10_000.0, 1.5e-3);
        let codec = Scheme::ALL.into_iter().map(|scheme| {
            let cost = match scheme {
                Scheme::Half => CodecCost { encode: cast, decode: cast },
                _ => CodecCost { encode, decode },
            };
            (scheme, cost)
        });
        Self {
            source: "assumed: HiPress's published lines for encoding on a V100, round figures for the rest".into(),
            send: LinearCost::new(10_000.0, 0.1),
            receive: LinearCost::new(10_000.0, 0.1),
            one_way: None,
            aggregate: LinearCost::new(5_000.0, 0.05),
            copy: LinearCost::new(5_000.0, 0.01),
            codec: codec.collect(),
        }
    }

    /// The cost of a codec.
    ///
    /// # Errors
    /// If its scheme was not measured.
    pub fn codec(&self, scheme: Scheme) -> Result<CodecCost> {
        self.codec.get(&scheme).copied().ok_or_else(|| {
            InputError::new(format!(
                "the primitives hold no cost of {} compression",
                scheme.as_str()
            ))
            .hint("measure it with `foretrain calibrate primitives`")
        })
    }

    /// The costs of exchanging gradients among `machines`, one step of the ring costing
    /// `ring_send`: a gather takes one buffer after the other from the others, a broadcast sends as
    /// many.
    ///
    /// # Errors
    /// If the scheme was not measured.
    pub fn exchange(
        &self,
        machines: u32,
        scheme: Scheme,
        ratio: f64,
        ring_send: LinearCost,
    ) -> Result<ExchangeCosts> {
        let others = f64::from(machines.max(1) - 1);
        let all = LinearCost { ns_per_byte: ring_send.ns_per_byte * others, ..ring_send };
        let cost = self.codec(scheme)?;
        // Exchanges count what is decoded by its encoded size.
        let per_wire = if ratio > 0.0 { cost.decode.ns_per_byte / ratio } else { 0.0 };
        Ok(ExchangeCosts {
            machines: machines.max(1),
            encode: cost.encode,
            decode: LinearCost { ns_per_byte: per_wire, ..cost.decode },
            aggregate: self.aggregate,
            ring_send,
            gather: all,
            broadcast: all,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_round_trip() {
        for one in Operation::all() {
            assert_eq!(Operation::parse(&one.describe()).unwrap(), one);
        }
        assert!(Operation::parse("encode").is_err() && Operation::parse("push").is_err());
        assert!(Operation::parse("copy that").is_err());
        assert!(Operation::parse("encode half twice").is_err());
    }

    #[test]
    fn exchanges_follow_from_the_primitives() {
        let primitives = Primitives::assumed();
        let ring = LinearCost::new(1_000.0, 1.0);
        let costs = primitives.exchange(5, Scheme::OneBit, 1.0 / 32.0, ring).unwrap();
        assert_eq!(costs.gather.ns(100.0), 1_400.0);
        let decode = primitives.codec(Scheme::OneBit).unwrap().decode;
        assert!((costs.decode.ns(1e6 / 32.0) - decode.ns(1e6)).abs() < 1e-6);
    }
}
