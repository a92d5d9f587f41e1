//! What the names of kernels, annotations and operators say. All vocabulary stands in the
//! tables of this file.

use foretrain_core::DType;
use foretrain_graph::CollectiveKind;
use serde::{Deserialize, Serialize};

use super::words::{Words, stem};

/// Who moves the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Library {
    /// NCCL, or RCCL where its kernels carry NCCL's names.
    Nccl,
    /// RCCL.
    Rccl,
    /// MSCCL and MSCCL++.
    Msccl,
    /// Huawei's HCCL.
    Hccl,
    /// Intel's oneCCL and PyTorch's XCCL.
    OneCcl,
    /// Gloo, on host threads.
    Gloo,
    /// MPI, on host threads.
    Mpi,
    /// UCC, on host threads.
    Ucc,
    /// DeepEP's dispatch and combine kernels.
    DeepEp,
    /// Peer-to-peer all-reduce kernels of inference engines.
    CustomAllReduce,
    /// PyTorch's symmetric memory kernels.
    SymmetricMemory,
    /// Transformer Engine's user buffers.
    UserBuffers,
    /// NVSHMEM.
    Nvshmem,
    /// Another vendor's library, or unknown.
    Other,
}

/// How a collective library moves the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Neighbour to neighbour around a ring.
    Ring,
    /// Double binary tree.
    Tree,
    /// In-switch reduction over NVLink.
    Nvls,
    /// In-switch reduction within nodes, tree between them.
    NvlsTree,
    /// In-network reduction, each rank sends directly.
    CollnetDirect,
    /// In-network reduction over chains.
    CollnetChain,
    /// Parallel aggregated trees.
    Pat,
    /// Every rank reads all peers and reduces for itself.
    OneShot,
    /// Reduce-scatter then all-gather by direct peer access.
    TwoShot,
}

/// NCCL's wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// 4 bytes of data with a 4-byte flag.
    Ll,
    /// 120 bytes of data with an 8-byte flag.
    Ll128,
    /// Plain data with separate flags.
    Simple,
}

// Longer phrases first: "allreduce" contains "reduce".
const KINDS: &[(&str, CollectiveKind)] = &[
    ("allreduce", CollectiveKind::AllReduce),
    ("reducescatter", CollectiveKind::ReduceScatter),
    ("allgather", CollectiveKind::AllGather),
    ("alltoall", CollectiveKind::AllToAll),
    ("alltoallv", CollectiveKind::AllToAll),
    ("alltoallvc", CollectiveKind::AllToAll),
    ("allgatherv", CollectiveKind::AllGather),
    ("sendrecv", CollectiveKind::SendRecv),
    ("batchsendrecv", CollectiveKind::SendRecv),
    ("broadcast", CollectiveKind::Broadcast),
    ("bcast", CollectiveKind::Broadcast),
    ("barrier", CollectiveKind::Barrier),
    ("gather", CollectiveKind::Gather),
    ("scatter", CollectiveKind::Scatter),
    ("reduce", CollectiveKind::Reduce),
    ("send", CollectiveKind::Send),
    ("recv", CollectiveKind::Recv),
    ("receive", CollectiveKind::Recv),
];

const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("nvlstree", Algorithm::NvlsTree),
    ("nvls", Algorithm::Nvls),
    ("collnetdirect", Algorithm::CollnetDirect),
    ("collnetchain", Algorithm::CollnetChain),
    ("collnet", Algorithm::CollnetDirect),
    ("ring", Algorithm::Ring),
    ("tree", Algorithm::Tree),
    ("pat", Algorithm::Pat),
    ("oneshot", Algorithm::OneShot),
    ("1stage", Algorithm::OneShot),
    ("twoshot", Algorithm::TwoShot),
    ("2stage", Algorithm::TwoShot),
];

const PROTOCOLS: &[(&str, Protocol)] =
    &[("ll128", Protocol::Ll128), ("ll", Protocol::Ll), ("simple", Protocol::Simple)];

const DTYPES: &[(&str, DType)] = &[
    ("float8e4m3", DType::F8E4m3),
    ("float8e5m2", DType::F8E5m2),
    ("f8e4m3", DType::F8E4m3),
    ("fp8e4m3", DType::F8E4m3),
    ("f8e5m2", DType::F8E5m2),
    ("fp8e5m2", DType::F8E5m2),
    ("bf16", DType::Bf16),
    ("bfloat16", DType::Bf16),
    ("nvbfloat16", DType::Bf16),
    ("f16", DType::F16),
    ("half", DType::F16),
    ("f32", DType::F32),
    ("float", DType::F32),
    ("f64", DType::F64),
    ("double", DType::F64),
    ("uint8t", DType::U8),
    ("u8", DType::U8),
    ("uint32t", DType::U32),
    ("u32", DType::U32),
    ("uint64t", DType::U64),
    ("u64", DType::U64),
    ("int8t", DType::I8),
    ("i8", DType::I8),
    ("int32t", DType::I32),
    ("i32", DType::I32),
    ("int64t", DType::I64),
    ("i64", DType::I64),
];

/// First words of an identifier that only a communication library uses.
const LIBRARY_WORDS: &[(&str, Library)] = &[
    ("nccl", Library::Nccl),
    ("rccl", Library::Rccl),
    ("msccl", Library::Msccl),
    ("mscclpp", Library::Msccl),
    ("hccl", Library::Hccl),
    ("hcom", Library::Hccl),
    ("oneccl", Library::OneCcl),
    ("xccl", Library::OneCcl),
    ("nvshmem", Library::Nvshmem),
    ("nvshmemi", Library::Nvshmem),
    ("nvshmemx", Library::Nvshmem),
    ("kuserbuffers", Library::UserBuffers),
    ("userbuffers", Library::UserBuffers),
    ("deepep", Library::DeepEp),
    ("cncl", Library::Other),
    ("bkcl", Library::Other),
];

/// Phrases in the last part of a kernel's path that name a known kernel outside the libraries.
const KERNEL_PHRASES: &[(&str, Library, CollectiveKind)] = &[
    ("crossdevicereduce", Library::CustomAllReduce, CollectiveKind::AllReduce),
    ("multimemallreduce", Library::SymmetricMemory, CollectiveKind::AllReduce),
    ("multimemoneshotallreduce", Library::SymmetricMemory, CollectiveKind::AllReduce),
    ("multimemallgather", Library::SymmetricMemory, CollectiveKind::AllGather),
    ("multimemreducescatter", Library::SymmetricMemory, CollectiveKind::ReduceScatter),
    ("multimemoneshotreduce", Library::SymmetricMemory, CollectiveKind::Reduce),
    ("oneshotallreduce", Library::SymmetricMemory, CollectiveKind::AllReduce),
    ("twoshotallreduce", Library::SymmetricMemory, CollectiveKind::AllReduce),
    ("allreducefusionkernel", Library::CustomAllReduce, CollectiveKind::AllReduce),
    ("allreduceprototype", Library::CustomAllReduce, CollectiveKind::AllReduce),
    ("kuserbuffers", Library::UserBuffers, CollectiveKind::Unknown),
];

/// Kernels of DeepEP, found by their namespace.
const DEEP_EP: &[(&str, Option<CollectiveKind>)] = &[
    ("getdispatchlayout", None),
    ("cachednotify", Some(CollectiveKind::Barrier)),
    ("barrier", Some(CollectiveKind::Barrier)),
    ("dispatch", Some(CollectiveKind::AllToAll)),
    ("combine", Some(CollectiveKind::AllToAll)),
];

/// What makes an unknown kernel look like communication.
const SUSPICIOUS: &[&str] = &[
    "allreduce",
    "allgather",
    "reducescatter",
    "alltoall",
    "sendrecv",
    "nccl",
    "rccl",
    "hccl",
    "nvshmem",
    "multimem",
];

/// Reductions inside one device carry the same words behind one of these.
const WITHIN_DEVICE: &[&str] =
    &["warp", "block", "thread", "cta", "cluster", "wave", "lane", "tile"];

/// Compilers name a fused kernel after the operators it replaces.
const COMPILED_PREFIXES: &[&str] = &["triton_", "cpp_fused", "Memcpy", "Memset"];

/// Backends whose annotations carry the communication itself on a host thread.
const HOST_BACKENDS: &[(&str, Library)] =
    &[("gloo", Library::Gloo), ("mpi", Library::Mpi), ("ucc", Library::Ucc)];

/// Backends whose annotations mark the issue of device communication.
const DEVICE_BACKENDS: &[&str] = &["nccl", "rccl", "hccl", "xccl", "oneccl", "ccl", "cncl"];

/// What a device row's name says about communication.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum KernelName {
    /// Not communication.
    Compute,
    /// Communication of a known library.
    Communication(NameFacts),
    /// Looks like communication, but no rule knows it.
    LooksLike(NameFacts),
}

/// Fields read from a kernel's name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NameFacts {
    pub(crate) library: Library,
    pub(crate) kind: CollectiveKind,
    pub(crate) algorithm: Option<Algorithm>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) dtype: Option<DType>,
}

fn look_up<T: Copy>(words: &Words, table: &[(&str, T)]) -> Option<T> {
    table.iter().find(|(phrase, _)| words.has(phrase)).map(|(_, value)| *value)
}

/// The kind named by a collective's, an annotation's or an operator's name
/// ("_allgather_base", "nccl:all_reduce", "c10d::broadcast_"); `None` if it names none, as
/// "wait" and "coalesced" do.
pub(crate) fn kind_of(name: &str) -> Option<CollectiveKind> {
    look_up(&Words::split(name), KINDS)
}

/// Reads a kernel's name.
pub(crate) fn classify_kernel(name: &str) -> KernelName {
    if COMPILED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return KernelName::Compute;
    }
    let path = stem(name);
    let last = path.rsplit("::").next().unwrap_or_default();
    let words = Words::split(last);
    if let Some(kernel) = deep_ep(&path, &words) {
        return kernel;
    }
    let by_library = path.split("::").find_map(|part| {
        let words = Words::split(part);
        LIBRARY_WORDS.iter().find(|(word, _)| words.find(word) == Some(0)).map(|(_, lib)| *lib)
    });
    if let Some(library) = by_library {
        let kind = look_up(&words, KINDS).unwrap_or(CollectiveKind::Unknown);
        return KernelName::Communication(facts(library, kind, &words));
    }
    if let Some((_, library, kind)) = KERNEL_PHRASES.iter().find(|(phrase, ..)| words.has(phrase)) {
        return KernelName::Communication(facts(*library, *kind, &words));
    }
    if SUSPICIOUS.iter().any(|phrase| suspicious(&words, phrase)) {
        return KernelName::LooksLike(facts(Library::Other, CollectiveKind::Unknown, &words));
    }
    KernelName::Compute
}

fn suspicious(words: &Words, phrase: &str) -> bool {
    words.find(phrase).is_some_and(|at| {
        let before = at.checked_sub(1).and_then(|i| words.get(i)).unwrap_or_default();
        !WITHIN_DEVICE.contains(&before)
    })
}

fn deep_ep(path: &str, words: &Words) -> Option<KernelName> {
    let mut parts = path.split("::");
    let ours = parts.clone().any(|part| part == "deep_ep")
        || (parts.clone().any(|part| part == "ep")
            && parts.any(|part| part.starts_with("internode") || part.starts_with("intranode")));
    let layout = path.contains("::ep::") && words.has("getdispatchlayout");
    if !ours && !layout {
        return None;
    }
    Some(match look_up(words, DEEP_EP) {
        Some(None) => KernelName::Compute,
        Some(Some(kind)) => KernelName::Communication(facts(Library::DeepEp, kind, words)),
        None => KernelName::Communication(facts(Library::DeepEp, CollectiveKind::Unknown, words)),
    })
}

fn facts(library: Library, kind: CollectiveKind, words: &Words) -> NameFacts {
    // NCCL moves everything that is not reduced as bytes, whatever its type.
    let reduces = matches!(
        kind,
        CollectiveKind::AllReduce | CollectiveKind::ReduceScatter | CollectiveKind::Reduce
    );
    NameFacts {
        library,
        kind,
        algorithm: look_up(words, ALGORITHMS),
        protocol: look_up(words, PROTOCOLS),
        dtype: if reduces { look_up(words, DTYPES) } else { None },
    }
}

/// The host library whose annotation this is, if the row itself is the communication.
pub(crate) fn host_backend(name: &str) -> Option<Library> {
    let (backend, _) = name.split_once(':')?;
    HOST_BACKENDS.iter().find(|(word, _)| *word == backend).map(|(_, library)| *library)
}

/// Host rows that describe the issue of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IssueName {
    /// `record_param_comms`.
    ParamComms,
    /// "nccl:all_reduce" and the like.
    Annotation,
    /// "c10d::allreduce_" and the like.
    Operator,
}

/// Whether a host row's name marks the issue of a collective.
pub(crate) fn classify_issue(name: &str) -> Option<IssueName> {
    if name == "record_param_comms" {
        return Some(IssueName::ParamComms);
    }
    if let Some(operator) = name.strip_prefix("c10d::") {
        return kind_of(operator).map(|_| IssueName::Operator);
    }
    let (backend, rest) = name.split_once(':')?;
    let ours = DEVICE_BACKENDS.contains(&backend) && !rest.starts_with(':');
    ours.then_some(IssueName::Annotation)
}

/// The peer in an annotation such as "nccl:send 0->1" or "nccl:recv 0<-1".
pub(crate) fn peer_of(annotation: &str) -> Option<u32> {
    let arrow = annotation.find("->").or_else(|| annotation.find("<-"))?;
    annotation.get(arrow + 2..)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use CollectiveKind as K;

    fn read(name: &str) -> NameFacts {
        match classify_kernel(name) {
            KernelName::Communication(facts) => facts,
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn every_generation_of_kernel_names() {
        use {Algorithm as A, DType as D, Protocol as P};
        for (name, kind, algorithm, protocol, dtype) in [
            (
                "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
                K::AllReduce,
                Some(A::Ring),
                Some(P::Ll),
                Some(D::F32),
            ),
            (
                "ncclAllReduceRingLLKernel_sum_f32",
                K::AllReduce,
                Some(A::Ring),
                Some(P::Ll),
                Some(D::F32),
            ),
            (
                "ncclDevKernel_AllReduce_Sum_f16_TREE_LL128(ncclDevComm*, unsigned long)",
                K::AllReduce,
                Some(A::Tree),
                Some(P::Ll128),
                Some(D::F16),
            ),
            (
                "ncclDevKernel_ReduceScatter_Sum_bf16_NVLS_TREE_SIMPLE(x)",
                K::ReduceScatter,
                Some(A::NvlsTree),
                Some(P::Simple),
                Some(D::Bf16),
            ),
            (
                "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                K::SendRecv,
                None,
                None,
                None,
            ),
            (
                "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
                K::SendRecv,
                Some(A::Ring),
                Some(P::Simple),
                None,
            ),
            (
                "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
                K::Unknown,
                None,
                None,
                None,
            ),
            ("ncclDevKernel_Generic_4(x)", K::Unknown, None, None, None),
            (
                "ncclKernel_AllGather_RING_LL_Sum_int8_t(x)",
                K::AllGather,
                Some(A::Ring),
                Some(P::Ll),
                None,
            ),
            ("hcom_allReduce__481_0_1", K::AllReduce, None, None, None),
            ("mscclKernel_Sum_float_Simple", K::Unknown, None, Some(P::Simple), None),
            (
                "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
                K::AllReduce,
                Some(A::OneShot),
                None,
                None,
            ),
            (
                "void c10d::symmetric_memory::two_shot_all_reduce_kernel<float, 4>(x)",
                K::AllReduce,
                Some(A::TwoShot),
                None,
                None,
            ),
            ("void dpsk::ep::internode::combine<false, 8>(int4*)", K::AllToAll, None, None, None),
            ("void deep_ep::intranode::notify_dispatch<8>(int*)", K::AllToAll, None, None, None),
            ("nvshmemi_barrier_kernel(int)", K::Barrier, None, None, None),
        ] {
            let got = read(name);
            assert_eq!(
                (got.kind, got.algorithm, got.protocol, got.dtype),
                (kind, algorithm, protocol, dtype),
                "{name}"
            );
        }
    }

    #[test]
    fn compute_is_not_communication() {
        for name in [
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(x)",
            "void at::native::vectorized_gather_kernel<16, long>(char*, char*)",
            "void cublasLt::splitKreduce_kernel<32, 16, int>(x)",
            "void dpsk::ep::cuda::get_dispatch_layout<256, 32, 8>(long const*)",
            "triton_poi_fused_all_gather_into_tensor_0",
            "reduce_segments",
            "SmallReduceKernel",
            "blockAllReduceKernel",
            "_combined_routing_compute",
            "cross_entropy_forward",
            "void f<ncclComm>(int)",
            "",
        ] {
            assert_eq!(classify_kernel(name), KernelName::Compute, "{name}");
        }
    }

    #[test]
    fn unknown_names_that_look_like_communication_are_told_apart() {
        assert!(matches!(classify_kernel("fooComm_AllReduce"), KernelName::LooksLike(_)));
        assert!(matches!(classify_kernel("my_all_to_all_kernel(int)"), KernelName::LooksLike(_)));
    }

    #[test]
    fn issue_rows() {
        assert_eq!(classify_issue("record_param_comms"), Some(IssueName::ParamComms));
        assert_eq!(classify_issue("c10d::_allgather_base_"), Some(IssueName::Operator));
        assert_eq!(classify_issue("nccl:coalesced"), Some(IssueName::Annotation));
        assert_eq!(classify_issue("c10d::wait_tensor"), None);
        assert_eq!(classify_issue("aten::gather"), None);
        assert_eq!(kind_of("_reduce_scatter_base"), Some(K::ReduceScatter));
        assert_eq!(kind_of("ALLTOALL_BASE"), Some(K::AllToAll));
        assert_eq!(kind_of("all_to_allv"), Some(K::AllToAll));
        assert_eq!(kind_of("wait"), None);
        assert_eq!(peer_of("nccl:send 0->1"), Some(1));
        assert_eq!(host_backend("gloo:all_reduce"), Some(Library::Gloo));
        assert_eq!(host_backend("gloo"), None);
    }
}
