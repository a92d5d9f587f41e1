//! What a node costs: collective time by algorithm and protocol, kernel time across devices.

pub mod nccl_tuner;
