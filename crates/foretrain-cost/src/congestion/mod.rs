//! Collectives that run at once over shared links, flow by flow.
//!
//! The closed form ([`collective_time`](crate::collective_time)) times one collective whose ranks
//! are numbered along the topology and have the links to themselves. Here a collective becomes the
//! flows of its algorithm between the devices that its ranks are on, routed over an explicit
//! [`Network`](foretrain_hardware::topology::Network); several run at once and share links by
//! max-min fairness. So placement, other collectives, and slow or dead links show.
//!
//! ```
//! use foretrain_core::{Bytes, Nanos};
//! use foretrain_cost::CollectiveCall;
//! use foretrain_cost::congestion::{Concurrent, Conditions, congestion};
//! use foretrain_graph::CollectiveKind;
//! use foretrain_hardware::Catalogue;
//!
//! # fn main() -> foretrain_core::Result<()> {
//! let cluster = Catalogue::builtin().cluster("dgx-a100")?;
//! let call = CollectiveCall::new(CollectiveKind::AllReduce, Bytes::from_mib(256));
//! let group = |devices: &[u32]| Concurrent { devices: devices.to_vec(), call, start: Nanos::ZERO };
//!
//! // One device on each of four nodes, twice: device 0 of each, and device 0 and 1 in turn.
//! let groups = [group(&[0, 8, 16, 24]), group(&[1, 8 + 1, 16 + 1, 24 + 1])];
//! let healthy = congestion(&cluster, &groups, &Conditions::default())?;
//! assert_eq!(healthy[0].time, healthy[0].alone, "each has a NIC of its own");
//!
//! // NIC 0 of node 2 at half its rate slows the first group only.
//! let slow = Conditions { degradations: vec!["node=2,nic=0,rate=0.5".parse()?], ..Conditions::default() };
//! let slowed = congestion(&cluster, &groups, &slow)?;
//! assert!(slowed[0].time > healthy[0].time.scale(1.8));
//! assert_eq!(slowed[0].bottleneck.as_deref(), Some("node2.nic0 up"));
//! assert_eq!(slowed[1].time, healthy[1].time);
//!
//! // Dead, its traffic takes the NIC of the other group.
//! let down = Conditions { degradations: vec!["node=2,nic=0,down".parse()?], ..Conditions::default() };
//! let down = congestion(&cluster, &groups, &down)?;
//! assert!(down[1].time > down[1].alone.scale(1.8));
//! # Ok(())
//! # }
//! ```
//!
//! # What is modelled
//!
//! - The algorithm is the one that the closed form picks for a group of as many ranks on as many
//!   nodes. Rings, double binary trees, pairwise exchange and the rest become their flows; within
//!   nodes over the devices' links, between nodes over rails (NICs that every node of the group has).
//! - What large messages reach of a link is what a link carries: bytes are scaled so that a large
//!   collective alone on ample links takes the closed form's transfer time. A protocol that is
//!   slower for small messages leaves links free.
//! - Launch, hops and exposed reduction are those of the closed form and need no bandwidth.
//! - With rails and NVLink an all-to-all crosses to the NIC of its destination's rail within the
//!   sender's node (what NCCL calls PXN).
//! - A job starts with what is dead already dead: rings use the NICs that all nodes have left.

mod calibrate;
mod evaluate;
mod group;
mod transfers;

pub use evaluate::{Concurrent, Conditions, CongestedTime, congestion};
