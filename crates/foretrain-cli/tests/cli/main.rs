//! The built command, from its arguments to what it prints.

mod answers;
mod cases;
mod collectives;
mod errors;
mod graphs;
mod help;
mod json;
mod network;
mod readme;
mod streaming;
mod support;
