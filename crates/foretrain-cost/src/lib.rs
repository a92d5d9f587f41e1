//! What a node costs: collective time by algorithm and protocol, kernel time across devices.
//!
//! ```
//! use foretrain_core::Bytes;
//! use foretrain_cost::{CollectiveCall, Fabric, GroupPlacement, collective_time};
//! use foretrain_graph::CollectiveKind;
//! use foretrain_hardware::Catalogue;
//!
//! # fn main() -> foretrain_core::Result<()> {
//! let cluster = Catalogue::builtin().cluster("dgx-a100")?;
//! let fabric = Fabric::for_group(&cluster, &GroupPlacement::contiguous(64))?;
//! let call = CollectiveCall::new(CollectiveKind::AllReduce, Bytes::from_mib(100));
//! let answer = collective_time(&call, &fabric);
//! assert!(answer.time.low < answer.time.value && answer.time.value < answer.time.high);
//! println!("{} by {}", answer.time.value, answer.algorithm.as_str());
//! # Ok(())
//! # }
//! ```
//!
//! *Architecture invariant:* this crate performs no IO, reads no clock and keeps no state.

pub mod boost;
pub mod calibrate;
pub mod collective;
pub mod congestion;
pub mod interference;
pub mod kernel;
pub mod kernels;
pub mod nccl_tuner;
pub mod own;
pub mod primitives;

pub use calibrate::{Observation, calibrate};
pub use collective::{
    CollectiveCall, CollectiveTime, Fabric, GroupPlacement, InterLink, IntraLink, LateLinks,
    Library, Limit, Method, Rescaled, Servers, SwitchLevel, Synchronisation, SynchronisedStep,
    Terms, Volume, bus_factor, collective_time, host_time, lower_bound, push_pull_time, rescale,
};
pub use kernel::{KernelClass, KernelRatio, kernel_ratio};
pub use primitives::{LinearCost, Primitives};
