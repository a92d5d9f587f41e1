//! Names of communication operations and what they say.

use foretrain_graph::CollectiveKind;

/// The layers through which PyTorch issues one operation, outermost first. Nested records of
/// rising level belong to the same operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// `_c10d_functional::all_reduce`, `_c10d_functional::wait_tensor`.
    Functional,
    /// `c10d::allreduce_`.
    Dispatcher,
    /// `record_param_comms`, which carries the arguments.
    Parameters,
    /// `nccl:all_reduce`, `gloo:broadcast`.
    Backend,
    /// `ncclDevKernel_AllReduce_...` on a stream.
    Kernel,
}

const BACKENDS: [&str; 8] =
    ["nccl:", "gloo:", "mpi:", "ucc:", "xccl:", "hccl:", "rccl:", "oneccl:"];

/// The layer of a host record, `None` if it is not about communication.
pub(crate) fn host_level(name: &str) -> Option<Level> {
    if name.starts_with("_c10d_functional::") || name.starts_with("c10d_functional::") {
        Some(Level::Functional)
    } else if name.starts_with("c10d::") {
        kind_of(name).map(|_| Level::Dispatcher)
    } else if name == "record_param_comms" {
        Some(Level::Parameters)
    } else if BACKENDS.iter().any(|backend| name.starts_with(backend)) {
        Some(Level::Backend)
    } else {
        None
    }
}

/// Whether the operation of this backend record runs on the host, so that the record's duration
/// is that of the operation and not only of its launch.
pub(crate) fn runs_on_host(name: &str) -> bool {
    name.starts_with("gloo:") || name.starts_with("mpi:")
}

/// Whether a device kernel is one of a collective library.
pub(crate) fn is_communication_kernel(name: &str) -> bool {
    ["ncclKernel", "ncclDevKernel", "rcclKernel", "rcclDevKernel", "ncclSymkDevKernel"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// Whether a `record_param_comms` collective name only waits for an earlier operation.
pub(crate) fn is_wait(name: &str) -> bool {
    matches!(name, "wait" | "wait_tensor") || name.ends_with("::wait_tensor")
}

/// The operation a name speaks of, in any spelling ("all_to_allv", "c10d::allreduce_",
/// "ncclKernel_AllReduce_RING_LL_Sum_float").
pub(crate) fn kind_of(name: &str) -> Option<CollectiveKind> {
    use CollectiveKind as K;
    const WORDS: [(&str, CollectiveKind); 13] = [
        ("allreduce", K::AllReduce),
        ("reducescatter", K::ReduceScatter),
        ("allgather", K::AllGather),
        ("alltoall", K::AllToAll),
        ("broadcast", K::Broadcast),
        ("bcast", K::Broadcast),
        ("barrier", K::Barrier),
        ("sendrecv", K::SendRecv),
        ("send", K::Send),
        ("recv", K::Recv),
        ("reduce", K::Reduce),
        ("scatter", K::Scatter),
        ("gather", K::Gather),
    ];
    // Kernel names go on with algorithm, protocol and operation ("_RING_LL_Sum"): those words are
    // none of the above, so the whole name may be searched.
    let letters: String = name
        .split(['(', '<'])
        .next()
        .unwrap_or_default()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    WORDS.iter().find(|(word, _)| letters.contains(word)).map(|&(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_known() {
        use CollectiveKind as K;
        for (name, want) in [
            ("c10d::allreduce_", K::AllReduce),
            ("all_to_allv", K::AllToAll),
            ("c10d::alltoall_base_", K::AllToAll),
            ("nccl:_reduce_scatter_base", K::ReduceScatter),
            ("c10d::_allgather_base_", K::AllGather),
            ("_c10d_functional::all_gather_into_tensor", K::AllGather),
            ("gloo:recvAnySource", K::Recv),
            ("c10d::broadcast_(0)", K::Broadcast),
            ("nccl:reduce", K::Reduce),
            ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", K::SendRecv),
            ("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*)", K::Broadcast),
            ("COMM_COLL_NODE_fc1000_ALLREDUCE", K::AllReduce),
        ] {
            assert_eq!(kind_of(name), Some(want), "{name}");
        }
        assert_eq!(kind_of("wait"), None);
        assert_eq!(host_level("c10d::monitored_thing"), None);
    }

    #[test]
    fn levels_rise_inwards() {
        let levels =
            ["_c10d_functional::all_reduce", "c10d::allreduce_", "record_param_comms", "nccl:x"]
                .map(|name| host_level(name).unwrap());
        assert!(levels.is_sorted());
        assert_eq!(host_level("aten::mm"), None);
    }
}
