//! Shared by the tests of the graph readers: made-up and real files, and what must hold for any
//! graph.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::allow_attributes, reason = "an expectation would fail where all is used")]

use std::io::Read;
use std::path::{Path, PathBuf};

use foretrain_core::{Ledger, Nanos};
use foretrain_graph::{NodeId, NodeKind, StepGraph};

/// The folder of real data, if this machine has it.
#[expect(clippy::print_stderr, reason = "whoever runs the tests must see what was skipped")]
pub(crate) fn data() -> Option<PathBuf> {
    let root = std::env::var_os("FORETRAIN_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    if root.is_dir() {
        return Some(root);
    }
    eprintln!("skipped: no real traces at {} (set FORETRAIN_DATA)", root.display());
    None
}

/// All files below a folder, in a stable order.
pub(crate) fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// The decompressed content.
pub(crate) fn load(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).expect("a readable file");
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return bytes;
    }
    let mut content = Vec::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut content).expect("whole gzip");
    content
}

/// Panics unless the graph can be replayed: edges in range, acyclic, queues and groups known,
/// sequences without holes, and every record accounted for.
pub(crate) fn check(graph: &StepGraph, ledger: &Ledger, name: &str) {
    let count = graph.node_count();
    let mut waiting = vec![0u32; count];
    for edge in graph.edges() {
        assert!(edge.src.index() < count && edge.dst.index() < count, "{name}: edge out of range");
        waiting[edge.dst.index()] += 1;
    }
    let outgoing = graph.outgoing();
    let mut ready: Vec<usize> = (0..count).filter(|&node| waiting[node] == 0).collect();
    let mut done = 0;
    while let Some(node) = ready.pop() {
        done += 1;
        for &edge in outgoing.row(node) {
            let target = graph.edges()[edge as usize].dst.index();
            waiting[target] -= 1;
            if waiting[target] == 0 {
                ready.push(target);
            }
        }
    }
    assert_eq!(done, count, "{name}: the graph has a cycle");
    let mut last = std::collections::BTreeMap::new();
    for id in graph.node_ids() {
        let node = graph.node(id);
        assert!(node.work >= Nanos::ZERO, "{name}: negative work");
        assert!(node.queue.index() < graph.queues.len(), "{name}: unknown queue");
        let communicates = matches!(node.kind, NodeKind::Collective | NodeKind::PointToPoint);
        assert_eq!(communicates, node.collective.is_some(), "{name}: {}", graph.name(id));
        if communicates {
            let next = last.entry((node.group, node.collective)).or_insert(0);
            assert_eq!(node.sequence, *next, "{name}: hole in a sequence");
            *next += 1;
        }
    }
    for what in ["records accounted for", "communication operations"] {
        let coverage = ledger.coverage(what).expect(what);
        assert_eq!(coverage.used, coverage.total, "{name}: {what}");
    }
}

/// One line per file for people.
pub(crate) fn summary(graph: &StepGraph, ledger: &Ledger) -> String {
    let kinds = |kind| graph.node_ids().filter(|&id| graph.kind(id) == kind).count();
    let cover = |what| ledger.coverage(what).map_or_else(|| "-".into(), |c| c.to_string());
    format!(
        "{} nodes ({} host, {} kernel, {} copy, {} collective, {} p2p), {} edges, {} queues, {} groups; times {}; comm sizes {}; dangling {}, cyclic {}",
        graph.node_count(),
        kinds(NodeKind::HostSegment),
        kinds(NodeKind::Kernel),
        kinds(NodeKind::Copy),
        kinds(NodeKind::Collective),
        kinds(NodeKind::PointToPoint),
        graph.edges().len(),
        graph.queues.len(),
        graph.groups.len(),
        cover("times in the file"),
        cover("sizes of communication operations"),
        ledger.count("dangling-dependency"),
        ledger.count("cyclic-dependency"),
    )
}

/// Everything that makes two graphs equal for a user, as text.
pub(crate) fn fingerprint(graph: &StepGraph) -> String {
    let mut text = String::new();
    for id in graph.node_ids() {
        text += &format!("{} {:?}\n", graph.name(id), graph.node(id));
    }
    for edge in graph.edges() {
        text += &format!("{edge:?}\n");
    }
    text += &format!("{:?}\n{:?}\n{:?}", graph.queues, graph.groups, graph.node_attributes);
    text
}

/// Nodes of one kind.
pub(crate) fn of_kind(graph: &StepGraph, kind: NodeKind) -> Vec<NodeId> {
    graph.node_ids().filter(|&id| graph.kind(id) == kind).collect()
}
