//! Single lines.

use foretrain_core::{Bandwidth, Bytes};
use foretrain_cost::nccl_tuner::{Algorithm, PathType, Protocol};

use super::super::kind::kind_of;
use super::super::number::{Printed, integer};
use super::{ChannelGraph, Channels, Choice, Communicator, Pattern};

/// Who says something (`host:process`), and what.
pub(in super::super) fn message(line: &str) -> Option<(&str, &str)> {
    let at = line.find(" NCCL INFO ")?;
    let who = line[..at].split_whitespace().rev().nth(1).unwrap_or_default();
    // Threads of one process speak of the same communicator.
    let process = who.rsplit_once(':').map_or(who, |(process, _)| process);
    Some((process, &line[at + " NCCL INFO ".len()..]))
}

/// `comm 0x.. rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0`, and
/// `comm 0x.. rank 3 nranks 16 cudaDev 3 ...` of every version.
pub(in super::super) fn communicator(text: &str) -> Option<Communicator> {
    let rest = text.split_once("comm 0x")?.1;
    let value = |name: &str| number_after(rest, name);
    Some(Communicator {
        ranks: value("nranks").or_else(|| value("nRanks")).filter(|ranks| *ranks > 0)?,
        nodes: value("nNodes"),
        local_ranks: value("localRanks"),
        multi_node_nvlink: value("MNNVL").map(|mode| mode != 0),
    })
}

/// The number after a word.
fn number_after(text: &str, name: &str) -> Option<u32> {
    let mut words = text.split([' ', ',']).filter(|word| !word.is_empty());
    words.find(|word| *word == name)?;
    integer(words.next()?)?.try_into().ok()
}

/// `24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per
/// peer`; older versions leave some out.
pub(super) fn channels(text: &str) -> Option<Channels> {
    let mut channels = Channels::default();
    let (mut has_collective, mut has_per_peer) = (false, false);
    for part in text.split(", ") {
        let (number, what) = part.trim().split_once(' ')?;
        let number = integer(number)?.try_into().ok()?;
        match what {
            "coll channels" => (channels.collective, has_collective) = (number, true),
            "nvls channels" => channels.nvls = Some(number),
            "p2p channels" => channels.point_to_point = number,
            "p2p channels per peer" => (channels.per_peer, has_per_peer) = (number, true),
            "collnet channels" => {}
            _ => return None,
        }
    }
    (has_collective && has_per_peer).then_some(channels)
}

/// `Pattern 4, crossNic 0, nChannels 12, bw 20.0/20.0, type NVL/PIX, sameChannels 1`; `speed` in
/// place of `bw`, and numbers or nothing in place of types, in old versions.
pub(super) fn graph(text: &str) -> Option<ChannelGraph> {
    let mut graph = ChannelGraph {
        pattern: Pattern::numbered(number_after(text.get(..16.min(text.len()))?, "Pattern")?),
        cross_nic: number_after(text, "crossNic")?,
        channels: number_after(text, "nChannels")?,
        intra: Bandwidth::ZERO,
        inter: Bandwidth::ZERO,
        intra_path: None,
        inter_path: None,
        same_channels: number_after(text, "sameChannels").is_none_or(|same| same != 0),
    };
    let value = |name: &str| text.split(", ").find_map(|part| part.trim().strip_prefix(name));
    let rates = value("bw ").or_else(|| value("speed "))?;
    let (intra, inter) = rates.split_once('/').unwrap_or((rates, rates));
    let rate = |text: &str| Printed::parse(text.trim())?.sane().map(Bandwidth::from_gb_per_sec);
    (graph.intra, graph.inter) = (rate(intra)?, rate(inter)?);
    if let Some((intra, inter)) = value("type ").and_then(|types| types.split_once('/')) {
        (graph.intra_path, graph.inter_path) = (path(intra), path(inter.trim()));
    }
    Some(graph)
}

fn path(name: &str) -> Option<PathType> {
    PathType::ALL.into_iter().find(|path| path.as_str() == name)
}

/// `AllReduce: 4096 Bytes -> Algo Tree proto LL channel{Lo..Hi}={0..1}`, and
/// `4096 Bytes -> Algo 0 proto 0 time 23.5` of old versions.
pub(super) fn choice(text: &str) -> Option<Choice> {
    let (before, after) = text.split_once(" Bytes -> Algo ")?;
    let (kind, size) = match before.rsplit_once(':') {
        Some((kind, size)) => (kind_of(kind), size),
        None => (None, before),
    };
    let (algo, rest) = after.split_once(" proto ")?;
    let (proto, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let time_us = rest.strip_prefix("time ").and_then(Printed::parse).and_then(Printed::sane);
    Some(Choice {
        kind,
        size: Bytes::new(integer(size.trim())?),
        algorithm: algorithm(algo)?,
        protocol: protocol(proto)?,
        time_us,
        channels: rest.strip_prefix("channel{Lo..Hi}={").and_then(range),
    })
}

/// `0..23}`.
fn range(text: &str) -> Option<(u32, u32)> {
    let (low, high) = text.split_once('}')?.0.split_once("..")?;
    Some((low.parse().ok()?, high.parse().ok()?))
}

/// An algorithm by its name in any case, or by its number.
pub(super) fn algorithm(text: &str) -> Option<Algorithm> {
    let numbered = |number: usize| Algorithm::ALL.get(number).copied();
    let named = || Algorithm::ALL.into_iter().find(|a| a.as_str().eq_ignore_ascii_case(text));
    text.parse().ok().map_or_else(named, numbered)
}

/// A protocol by its name in any case, or by its number.
pub(super) fn protocol(text: &str) -> Option<Protocol> {
    let numbered = |number: usize| Protocol::ALL.get(number).copied();
    let named = || Protocol::ALL.into_iter().find(|p| p.as_str().eq_ignore_ascii_case(text));
    text.parse().ok().map_or_else(named, numbered)
}

/// `[0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>`, and `[0]eth0:10.0.0.1<0>`.
pub(super) fn nics(text: &str) -> Vec<String> {
    let listed = text.split(';').next().unwrap_or_default();
    let mut nics = Vec::new();
    for word in listed.split_whitespace().take(MOST_NICS) {
        let Some((number, name)) = word.strip_prefix('[').and_then(|w| w.split_once(']')) else {
            break;
        };
        if integer(number).is_none() || name.is_empty() {
            break;
        }
        // Addresses of sockets are of no interest.
        nics.push(
            name.split_once(':').filter(|_| name.contains('<')).map_or(name, |n| n.0).to_owned(),
        );
    }
    nics
}

/// No node has as many.
const MOST_NICS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use foretrain_graph::CollectiveKind;

    #[test]
    fn speakers_and_communicators_are_told() {
        let line = "[1,0]<stdout>:node-1:38:412 [3] NCCL INFO comm 0x55 rank 9 nRanks 16 nNodes 2 localRanks 8 localRank 1 MNNVL 0";
        let (who, text) = message(line).unwrap();
        assert!(who.ends_with("node-1:38"), "{who}");
        let want = Communicator {
            ranks: 16,
            nodes: Some(2),
            local_ranks: Some(8),
            multi_node_nvlink: Some(false),
        };
        assert_eq!(communicator(text), Some(want));
        let old = "comm 0x7f8c rank 3 nranks 4 cudaDev 3 busId 1d0 - Init COMPLETE";
        assert_eq!(communicator(old).map(|c| (c.ranks, c.nodes)), Some((4, None)));
        let new = "ncclCommInitRank comm 0x5 rank 0 nranks 64 cudaDev 0 - Init START";
        assert_eq!(communicator(new).map(|c| c.ranks), Some(64));
        assert_eq!(communicator("comm 0x5 rank 0 nranks 0"), None);
        assert_eq!(message("NCCL INFO at the start"), None);
    }

    #[test]
    fn channels_of_all_versions_are_read() {
        let all = "24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 2 p2p channels per peer";
        let want = Channels { collective: 24, nvls: Some(16), point_to_point: 32, per_peer: 2 };
        assert_eq!(channels(all), Some(want));
        let old = channels("8 coll channels, 8 p2p channels, 1 p2p channels per peer").unwrap();
        assert_eq!((old.collective, old.nvls, old.per_peer), (8, None, 1));
        assert_eq!(channels("8 coll channels, 8 p2p cha"), None);
    }

    #[test]
    fn graphs_of_all_versions_are_read() {
        let new =
            "Pattern 4, crossNic 0, nChannels 12, bw 20.000000/22.5, type NVL/PIX, sameChannels 1";
        let graph_of = |text| graph(text).unwrap();
        let ring = graph_of(new);
        assert_eq!((ring.pattern, ring.channels, ring.same_channels), (Pattern::Ring, 12, true));
        assert_eq!((ring.intra.gb_per_sec(), ring.inter.gb_per_sec()), (20.0, 22.5));
        assert_eq!((ring.intra_path, ring.inter_path), (Some(PathType::Nvl), Some(PathType::Pix)));
        let old =
            graph_of("Pattern 9, crossNic 1, nChannels 2, speed 21/12, type 2/4, sameChannels 0");
        assert_eq!(
            (old.pattern, old.intra_path, old.same_channels),
            (Pattern::Other(9), None, false)
        );
        let oldest = graph_of("Pattern 1, crossNic 0, nChannels 2, speed 21, nvlink 1");
        assert_eq!(oldest.inter.gb_per_sec(), 21.0);
        assert_eq!(graph("Pattern 4, crossNic 0, nChannels 12, bw nan/1"), None);
    }

    #[test]
    fn choices_by_name_and_by_number_are_read() {
        let named =
            choice("AllReduce: 4096 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..23}")
                .unwrap();
        assert_eq!((named.kind, named.size.get()), (Some(CollectiveKind::AllReduce), 4096));
        assert_eq!((named.algorithm, named.protocol), (Algorithm::Ring, Protocol::Simple));
        assert_eq!((named.channels, named.time_us), (Some((0, 23)), None));
        let numbered = choice("37756928 Bytes -> Algo 1 proto 2 time 2860.25").unwrap();
        assert_eq!((numbered.kind, numbered.algorithm), (None, Algorithm::Ring));
        assert_eq!(numbered.time_us, Some(2860.25));
        assert_eq!(choice("8 Bytes -> Algo 9 proto 0 time 1"), None);
    }

    #[test]
    fn nics_are_listed_without_addresses() {
        assert_eq!(
            nics("[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"),
            ["mlx5_0:1/IB", "mlx5_1:1/RoCE"]
        );
        assert_eq!(nics("[0]eth0:10.0.0.1<0>"), ["eth0"]);
        assert!(nics("none").is_empty());
    }
}
