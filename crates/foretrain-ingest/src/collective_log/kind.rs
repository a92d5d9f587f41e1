//! The operation of a benchmark, from the names people give to programs and files.

use foretrain_graph::CollectiveKind;

/// Names without separators, as nccl-tests, rccl-tests and nccom-test have them.
const NAMES: [(&str, CollectiveKind); 18] = [
    ("allreduce", CollectiveKind::AllReduce),
    ("allreducebias", CollectiveKind::AllReduce),
    ("allgather", CollectiveKind::AllGather),
    ("allgatherv", CollectiveKind::AllGather),
    ("reducescatter", CollectiveKind::ReduceScatter),
    ("alltoall", CollectiveKind::AllToAll),
    ("alltoallv", CollectiveKind::AllToAll),
    ("broadcast", CollectiveKind::Broadcast),
    ("bcast", CollectiveKind::Broadcast),
    ("reduce", CollectiveKind::Reduce),
    ("gather", CollectiveKind::Gather),
    ("scatter", CollectiveKind::Scatter),
    ("sendrecv", CollectiveKind::SendRecv),
    ("permute", CollectiveKind::SendRecv),
    ("send", CollectiveKind::Send),
    ("allr", CollectiveKind::AllReduce),
    ("allg", CollectiveKind::AllGather),
    ("redsct", CollectiveKind::ReduceScatter),
];

/// The operation that a text names, if it names exactly one: `all_reduce_perf`, `AllReduce`,
/// `p5_2node_allgather.log`.
pub fn kind_of(text: &str) -> Option<CollectiveKind> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let mut found = None;
    let mut at = 0;
    while at < words.len() {
        // The longest name first: "reduce_scatter" is neither "reduce" nor "scatter".
        let longest = (1..=3.min(words.len() - at)).rev();
        let named = longest.filter_map(|n| Some((n, named(&words[at..at + n].concat())?))).next();
        let Some((length, kind)) = named else {
            at += 1;
            continue;
        };
        if found.is_some_and(|other| other != kind) {
            return None;
        }
        found = Some(kind);
        at += length;
    }
    found
}

fn named(word: &str) -> Option<CollectiveKind> {
    NAMES.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_use_give_their_kind() {
        use CollectiveKind as K;
        for (text, want) in [
            ("all_reduce_perf", Some(K::AllReduce)),
            ("./build/reduce_scatter_perf", Some(K::ReduceScatter)),
            ("AllReduce", Some(K::AllReduce)),
            ("aws_p5_2node_allgather.log.gz", Some(K::AllGather)),
            ("reduce_perf", Some(K::Reduce)),
            ("alltoallv_perf", Some(K::AllToAll)),
            ("sendrecv.txt", Some(K::SendRecv)),
            ("send_recv", Some(K::SendRecv)),
            ("send", Some(K::Send)),
            ("all_reduce_and_all_gather.log", None),
            ("smallreduce.log", None),
            ("nccl.log", None),
            ("", None),
        ] {
            assert_eq!(kind_of(text), want, "{text}");
        }
    }
}
