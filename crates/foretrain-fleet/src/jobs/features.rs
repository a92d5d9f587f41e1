//! What one training step of a job computes and moves: the feature record of the
//! characterisation, per step and replica.

use std::str::FromStr;

use foretrain_core::suggest::nearest;
use foretrain_core::{Bytes, Flops, InputError, Result};

/// How a job is spread and how its replicas exchange weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// One worker on one GPU: nothing is exchanged.
    OneWorkerOneGpu,
    /// One worker on several GPUs of a server; parameters in host memory.
    OneWorkerManyGpus,
    /// Workers on several servers; parameters on parameter servers.
    PsWorker,
    /// All-reduce within one server.
    AllReduceLocal,
    /// All-reduce over servers.
    AllReduceCluster,
    /// Embeddings partitioned over the GPUs of a server, dense weights replicated.
    Pearl,
}

/// A resource that one part of a step waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Medium {
    /// Between servers.
    Ethernet,
    /// Between host and devices.
    Pcie,
    /// Between devices of a server.
    NvLink,
}

impl Class {
    /// All classes, in the order of tables.
    pub const ALL: [Class; 6] = [
        Self::OneWorkerOneGpu,
        Self::OneWorkerManyGpus,
        Self::PsWorker,
        Self::AllReduceLocal,
        Self::AllReduceCluster,
        Self::Pearl,
    ];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneWorkerOneGpu => "1w1g",
            Self::OneWorkerManyGpus => "1wng",
            Self::PsWorker => "PS/Worker",
            Self::AllReduceLocal => "AllReduce-Local",
            Self::AllReduceCluster => "AllReduce-Cluster",
            Self::Pearl => "PEARL",
        }
    }

    /// The position in [`Class::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The media that weight traffic crosses, one after the other.
    pub const fn media(self) -> &'static [Medium] {
        match self {
            Self::OneWorkerOneGpu => &[],
            Self::OneWorkerManyGpus => &[Medium::Pcie],
            Self::PsWorker => &[Medium::Ethernet, Medium::Pcie],
            Self::AllReduceLocal | Self::Pearl => &[Medium::NvLink],
            Self::AllReduceCluster => &[Medium::Ethernet, Medium::NvLink],
        }
    }

    /// Whether all replicas are on one server.
    pub const fn within_a_server(self) -> bool {
        !matches!(self, Self::PsWorker | Self::AllReduceCluster)
    }

    /// The fewest replicas a job of this class has.
    pub const fn fewest(self) -> u32 {
        match self {
            Self::OneWorkerOneGpu | Self::PsWorker => 1,
            _ => 2,
        }
    }
}

impl FromStr for Class {
    type Err = InputError;

    /// Case and punctuation do not matter: `ps/worker`, `PS-Worker`, `allreduce_local`.
    fn from_str(text: &str) -> Result<Self> {
        // Tables of millions of rows write the name as it is.
        if let Some(class) = Self::ALL.into_iter().find(|class| class.name() == text) {
            return Ok(class);
        }
        let plain = letters(text);
        let found = Self::ALL.into_iter().find(|class| {
            let name = letters(class.name());
            plain == name || plain == name.replace("allreduce", "ar")
        });
        let by_short_name = match plain.as_str() {
            "ps" => Some(Self::PsWorker),
            _ => None,
        };
        found.or(by_short_name).ok_or_else(|| {
            let error = InputError::new(format!("no architecture class {text:?}"));
            match nearest(text, Self::ALL.map(Self::name)) {
                Some(name) => error.hint(format!("did you mean {name:?}?")),
                None => error.hint(format!("classes are {}", Self::ALL.map(Self::name).join(", "))),
            }
        })
    }
}

impl Medium {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "Ethernet",
            Self::Pcie => "PCIe",
            Self::NvLink => "NVLink",
        }
    }

    /// The medium that is written so.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match letters(text).as_str() {
            "ethernet" | "eth" | "network" | "rdma" => Some(Self::Ethernet),
            "pcie" => Some(Self::Pcie),
            "nvlink" => Some(Self::NvLink),
            _ => None,
        }
    }
}

fn letters(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Which directions a count of weight traffic holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficCounts {
    /// Bytes that one replica sends.
    Sent,
    /// Bytes that one replica sends and bytes that it receives, added up.
    SentAndReceived,
}

impl TrafficCounts {
    /// As it stands in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::SentAndReceived => "sent+received",
        }
    }

    /// Sent and received bytes, of a count that holds these directions. What a replica sends in an
    /// exchange of weights it also receives.
    pub fn both_ways(self, bytes: Bytes) -> Bytes {
        match self {
            Self::Sent => bytes + bytes,
            Self::SentAndReceived => bytes,
        }
    }
}

impl FromStr for TrafficCounts {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self> {
        if let Some(counts) =
            [Self::Sent, Self::SentAndReceived].into_iter().find(|c| c.name() == text)
        {
            return Ok(counts);
        }
        match letters(text).as_str() {
            "sent" | "oneway" | "send" => Ok(Self::Sent),
            "sentreceived" | "sentandreceived" | "bothways" | "both" => Ok(Self::SentAndReceived),
            _ => Err(InputError::new(format!("no directions of traffic {text:?}"))
                .hint("write sent or sent+received")),
        }
    }
}

/// What one step of one replica computes and moves, as far as a table says it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Features {
    /// How the job is spread.
    pub class: Option<Class>,
    /// The medium that the table names for weight traffic.
    pub medium: Option<Medium>,
    /// Replicas, one GPU each.
    pub cnodes: Option<u32>,
    /// Floating-point work of compute-bound operations.
    pub flops: Option<Flops>,
    /// Bytes that memory-bound operations move.
    pub memory_access: Option<Bytes>,
    /// Input copied to the device.
    pub input: Option<Bytes>,
    /// Weights and gradients exchanged.
    pub traffic: Option<Bytes>,
    /// The directions that `traffic` counts.
    pub traffic_counts: Option<TrafficCounts>,
    /// Dense weights with optimiser state.
    pub dense_weights: Option<Bytes>,
    /// Embedding weights with optimiser state.
    pub embedding_weights: Option<Bytes>,
    /// Embedding rows that one step touches.
    pub embedding_touched: Option<Bytes>,
    /// Gradients of dense weights.
    pub gradients: Option<Bytes>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_any_punctuation() {
        for class in Class::ALL {
            assert_eq!(class.name().parse(), Ok(class));
            assert_eq!(class.name().to_lowercase().replace(['/', '-'], "_").parse(), Ok(class));
        }
        assert_eq!("AR-Local".parse(), Ok(Class::AllReduceLocal));
        assert_eq!("ps".parse(), Ok(Class::PsWorker));
        assert!("ring".parse::<Class>().is_err());
        assert_eq!("sent+received".parse(), Ok(TrafficCounts::SentAndReceived));
    }
}
