//! Forecast distributed deep-learning training: the library other Rust programs depend on.
pub use foretrain_core as core;
pub use foretrain_cost as cost;
pub use foretrain_graph as graph;
pub use foretrain_hardware as hardware;
pub use foretrain_ingest as ingest;
pub use foretrain_predict as predict;
pub use foretrain_report as report;
pub use foretrain_rewrite as rewrite;
pub use foretrain_sim as sim;
pub use foretrain_trace as trace;
