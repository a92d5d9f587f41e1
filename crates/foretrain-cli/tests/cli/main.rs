//! The built command, from its arguments to what it prints.

mod answers;
mod calibrate;
mod capture;
mod capture_comm;
mod cases;
mod collectives;
mod errors;
mod fleet;
mod graphs;
mod help;
mod interference;
mod json;
mod kernels;
mod library;
mod models;
mod nccl_log;
mod network;
mod planning;
mod primitives;
mod readme;
mod scaling;
mod streaming;
mod support;
mod varuna;
mod whatif;
