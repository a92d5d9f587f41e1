//! What holds for every reader of graphs, whatever it is given.

mod traces;

use foretrain_core::{Ledger, Result};
use foretrain_ingest::{FileKind, ReadGraph, chakra, execution_trace, sniff};
use foretrain_testkit::chakra::{Content, Node, attribute, file, node, sample};
use foretrain_testkit::execution_trace::{FIVE, new_style, old_style};
use proptest::prelude::*;
use proptest::sample::Index;
use traces::check;

type Reader = fn(&[u8], &str, &mut Ledger) -> Result<ReadGraph>;

const READERS: [Reader; 2] = [execution_trace::read, chakra::read];

/// A whole file of each layout.
fn layouts() -> [Vec<u8>; 3] {
    [
        old_style("1.0.1", &FIVE).into_bytes(),
        new_style("1.1.1-chakra.0.0.4", &FIVE, "").into_bytes(),
        file("1.1.1-chakra.0.0.4", &sample()),
    ]
}

/// Every reader gives a sound graph or an error.
fn survives(bytes: &[u8]) {
    let _ = sniff(bytes, "x");
    for read in READERS {
        let mut ledger = Ledger::new();
        if let Ok(read) = read(bytes, "x", &mut ledger) {
            check(&read.graph, &ledger, "any bytes");
        }
    }
}

#[test]
fn layouts_are_told_by_their_content() {
    use FileKind::{Chakra, ExecutionTrace};
    let kinds = layouts().map(|bytes| sniff(&bytes, "x"));
    assert_eq!(kinds, [ExecutionTrace, ExecutionTrace, Chakra]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        survives(&bytes);
    }

    #[test]
    fn mutated_files_do_no_harm(
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..8),
        cut in any::<Index>(),
    ) {
        for mut bytes in layouts() {
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            bytes.truncate(cut.index(bytes.len() * 2).min(bytes.len()));
            survives(&bytes);
        }
    }

    #[test]
    fn any_dependencies_give_an_acyclic_graph(
        deps in prop::collection::vec((0u64..12, 0u64..12, 0u64..12, any::<Option<bool>>()), 1..12),
    ) {
        let records: Vec<String> = deps.iter().enumerate().map(|(id, (parent, sync, data, _))| format!(
            r#"{{"id": {id}, "name": "op", "parent": {parent}, "tid": {}, "sync_dep": [{sync}], "data_deps": [{data}]}}"#, id % 3
        )).collect();
        let json = format!(r#"{{"schema": "1.0.1", "nodes": [{}]}}"#, records.join(","));
        let nodes: Vec<Node> = deps.iter().enumerate().map(|(id, (control, _, data, on_cpu))| {
            let mut node = node(id as u64, "op", 4, &[*data]);
            node.control = vec![*control];
            node.attributes = on_cpu.map(|truth| attribute("is_cpu_op", Content::Bool(truth))).into_iter().collect();
            node
        }).collect();
        for (read, bytes) in READERS.iter().zip([json.into_bytes(), file("1.0.1", &nodes)]) {
            let mut ledger = Ledger::new();
            check(&read(&bytes, "x", &mut ledger).unwrap().graph, &ledger, "any dependencies");
        }
    }
}
