//! Devices, nodes, links and clusters: a catalogue of figures with sources, and user files in the
//! same form.
//!
//! A [`Device`] is one accelerator. A [`Node`] is a scale-up domain: devices that reach each other
//! without a NIC. A [`Cluster`] is nodes of one type and the [`Fabric`] between them. Every node
//! type is itself usable as a cluster of as many nodes as asked.
//!
//! Conventions that all figures follow:
//!
//! - a bandwidth is the wire rate in **one direction**; the share that payload reaches is the
//!   efficiency beside it;
//! - a peak is **dense**; rates with structured sparsity are kept apart in [`Device::peak_sparse`];
//! - a figure has a [`Source`], by its key; what is quoted from memory or assumed says so.
//!
//! # Example
//!
//! ```
//! use foretrain_core::DType;
//! use foretrain_hardware::Catalogue;
//!
//! # fn main() -> foretrain_core::Result<()> {
//! // A node type as a cluster: how many nodes do 1,024 devices fill, what leaves each?
//! let cluster = Catalogue::builtin().cluster("dgx-a100")?;
//! assert_eq!(cluster.nodes_for(1024)?, 128);
//! assert_eq!(cluster.node_bandwidth().to_string(), "200.0 GB/s");
//! assert_eq!(cluster.node.device.peak(DType::Bf16).unwrap().tflops(), 312.0);
//!
//! // The device that wrote a trace, by the name its driver gives it.
//! let device = Catalogue::builtin().device_by_product_name("Tesla V100-SXM2-32GB").unwrap();
//! assert_eq!(device.name, "v100-sxm2-32gb");
//!
//! // A user's file: a node that differs in one figure, and a cluster of it.
//! let mut catalogue = Catalogue::builtin().clone();
//! catalogue.load_str(
//!     r#"
//!     [nodes.our-node]
//!     based_on = "dgx-a100"
//!     nics = 4
//!
//!     [clusters.our-cluster]
//!     node = "our-node"
//!     nodes = 16
//!     "#,
//!     "our.toml",
//! )?;
//! let ours = catalogue.cluster("our-cluster")?;
//! assert_eq!(ours.devices(), Some(128));
//! assert_eq!(ours.node_bandwidth().gb_per_sec(), 100.0);
//! assert_eq!(ours.source("nics").unwrap().id, "user");
//!
//! // Slips are refused with their place and a way on.
//! let error = catalogue
//!     .load_str("[nodes.x]\nbased_on = \"dgx-a100\"\nnic_bandwidth = \"200 Gbps\"", "x.toml")
//!     .unwrap_err();
//! assert!(error.to_string().contains("write \"Gbit/s\" for bits or \"GB/s\" for bytes"));
//! assert!(error.to_string().ends_with("(nodes.x.nic_bandwidth, line 3 of x.toml)"));
//! # Ok(())
//! # }
//! ```
//!
//! *Architecture invariant:* besides reading the file it is told to, this crate performs no IO;
//! look-ups and listings depend on the order of entries in their files, never on hashing.

pub mod catalogue;
pub mod cluster;
pub mod collectives;
pub mod device;
pub mod node;
pub mod source;
pub mod topology;

mod book;
mod build;
mod choose;
mod fabrics;
mod physics;
mod product;
mod quantity;
mod read;
mod spec;

pub use catalogue::{Catalogue, read_text};
pub use cluster::{Cluster, Fabric, Level};
pub use collectives::Calibration;
pub use device::{Device, DeviceKind};
pub use node::{CpuVendor, Interconnect, LinkKind, NicKind, Node};
pub use read::parse_toml;
pub use source::Source;
pub use topology::Topology;
