//! What synchronisation primitives cost on this machine: sending and receiving between two
//! processes, summing, copying, and encoding and decoding gradients.
//!
//! [`measure()`] gives times by operation and size, which
//! [`Measured::fit`](foretrain_cost::primitives::Measured::fit) turns into lines. The other end of the
//! transfers is a second process, started from the program that the caller names, which has
//! nothing to do but call [`serve`].
//!
//! What a process *pays* is the processor time of its thread, so that other load on the machine
//! and waiting for the other side do not count; only the one-way time of a transfer is by the wall clock.
//! Buffers come from memory and not from a cache, because gradients do.
//!
//! [`measure_ring`] times whole collectives of several such processes, also of several machines.
//!
//! *Architecture invariant:* of all crates only this one measures time, opens sockets and starts
//! processes.

pub mod codec;

mod clock;
mod link;
mod local;
mod machine;
mod pool;
mod ring;
mod run;
mod sample;

pub use link::{PeerProgram, serve};
pub use machine::describe_machine;
pub use ring::{RingOperation, RingOptions, RingPoint, help_ring, join_ring, measure_ring};
pub use run::{LARGEST, MeasureOptions, measure};
