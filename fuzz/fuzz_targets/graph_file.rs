//! Any bytes give a valid graph or an error, never a panic; what loads saves to the same bytes.
#![no_main]

use foretrain_graph::StepGraph;
use foretrain_graph::file::Limits;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(graph) = StepGraph::from_file_bytes(bytes.to_vec(), &Limits::default()) else { return };
    graph.validate().expect("a loaded graph is valid");
    let saved = graph.to_file_bytes().expect("a loaded graph can be saved");
    let again = StepGraph::from_file_bytes(saved, &Limits::default()).expect("and loaded again");
    assert!(graph == again);
});
