//! Forecast distributed deep-learning training: the library other Rust programs depend on.
//!
//! Foretrain reads what people have (profiler traces that PyTorch wrote), and answers how long a
//! training step takes on another cluster at another size, and who owns each millisecond of it.
//! This crate only gathers the others under one name:
//!
//! | module | holds |
//! |---|---|
//! | [`core`] | units, estimates with intervals and evidence, errors for people, the ledger |
//! | [`graph`] | the attributed step graph: nodes, edges, attributes, queries, one-file format |
//! | [`hardware`] | devices, nodes, clusters, with the source of every figure; networks and routes |
//! | [`flow`] | max-min fair rates and ends of flows over shared links |
//! | [`trace`] | columnar traces: steps, collectives, clock alignment, graphs from traces |
//! | [`ingest`] | readers of profiler traces, execution traces and Chakra |
//! | [`cost`] | times of collectives and kernels |
//! | [`measure`] | what synchronisation primitives cost on this machine |
//! | [`sim`] | the discrete-event engine: step graphs to timelines |
//! | [`rewrite`] | passes over graphs: gradient buckets, other sizes |
//! | [`workload`] | models by architecture: parameters, layers, step graphs without a trace |
//! | [`plan`] | what a parallel layout of a described model costs, and which one to run |
//! | [`fleet`] | whole clusters: tables of jobs, characterisation, scheduling, shared layers |
//! | [`predict`] | the answers from recordings |
//! | [`report`] | answers as tables and JSON |
//!
//! # Example
//!
//! From the traces of a job to its step time on eight nodes of another machine:
//!
//! ```
//! use foretrain::core::Nanos;
//! use foretrain::hardware::Catalogue;
//! use foretrain::ingest::{ReadOptions, read_ranks};
//! use foretrain::predict::{PredictOptions, Recording, predict};
//! use foretrain::report::{TextStyle, json, text};
//!
//! # fn main() -> foretrain::core::Result<()> {
//! // One file per rank; directories and patterns work too. The ledger holds what had to be
//! // mended, inferred or left out.
//! let (traces, ledger) =
//!     read_ranks(&["../../examples/ddp-tiny".into()], &ReadOptions::default(), &|_| {})?;
//! assert_eq!(traces.len(), 2);
//!
//! // Steps, collectives and a graph of each step.
//! let recordings: Vec<Recording> =
//!     traces.into_iter().map(|trace| Recording::analyse(trace, None)).collect();
//! assert_eq!(recordings[0].steps.steps.len(), 3);
//!
//! // The same job on 2 and on 64 GPUs.
//! let catalogue = Catalogue::builtin();
//! let options = PredictOptions {
//!     gpus: vec![2, 64],
//!     replica_batch: Some(32.0),
//!     ..PredictOptions::default() // the machine is deduced from the device's name
//! };
//! let prediction = predict(&recordings, &catalogue.cluster("dgx-a100")?, catalogue, &options)?;
//!
//! let [two, sixty_four] = &prediction.sizes[..] else { unreachable!("two sizes were asked for") };
//! assert_eq!(sixty_four.nodes, 8);
//! // Every number has an interval, and every millisecond one owner.
//! assert!(sixty_four.step_time.covers(sixty_four.step_time.value));
//! let off = sixty_four.breakdown.total() - sixty_four.step_time.value;
//! assert!(off.nanos().abs() <= Nanos::from_micros(1).nanos());
//! // More ranks wait longer for each other.
//! assert!(sixty_four.step_time.value >= two.step_time.value);
//!
//! // For people, and for programs.
//! let page = text::predict(&prediction, &ledger, Default::default(), TextStyle::default());
//! assert!(page.contains("Where the step goes"));
//! let document = json::to_text(&json::PredictReport::new(&prediction, &ledger));
//! assert!(document.contains("foretrain/predict/1"));
//! # Ok(())
//! # }
//! ```

pub use foretrain_core as core;
pub use foretrain_cost as cost;
pub use foretrain_fleet as fleet;
pub use foretrain_flow as flow;
pub use foretrain_graph as graph;
pub use foretrain_hardware as hardware;
pub use foretrain_ingest as ingest;
pub use foretrain_measure as measure;
pub use foretrain_plan as plan;
pub use foretrain_predict as predict;
pub use foretrain_report as report;
pub use foretrain_rewrite as rewrite;
pub use foretrain_sim as sim;
pub use foretrain_trace as trace;
pub use foretrain_workload as workload;
