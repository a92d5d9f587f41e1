//! How many channels and threads NCCL gives a message (`src/enqueue.cc`).

use foretrain_core::Bytes;

use super::constants::{Algorithm, Protocol};

/// The launch geometry of one collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Channels, one thread block each.
    pub channels: u32,
    /// Threads of a block.
    pub threads: u32,
}

/// Threads of a channel before the message's size is looked at. `bus_bandwidth` is the per-channel
/// rate times the channels, GB/s.
pub fn max_threads(algorithm: Algorithm, protocol: Protocol, bus_bandwidth: f64) -> u32 {
    match (algorithm, protocol) {
        (Algorithm::Ring | Algorithm::Tree, Protocol::Ll) => 512,
        (Algorithm::Ring, Protocol::Simple) if bus_bandwidth <= 12.0 => 256,
        (Algorithm::Ring | Algorithm::Tree, Protocol::Simple) => 512,
        _ => 640,
    }
}

/// The geometry for a message of `bytes`: channels are given up first, then threads, until each
/// thread has enough to move.
pub fn launch_shape(
    algorithm: Algorithm,
    protocol: Protocol,
    ranks: u32,
    channels: u32,
    max_threads: u32,
    bytes: Bytes,
) -> Launch {
    let bytes = u128::from(bytes.get());
    let threshold = u128::from(thread_threshold(algorithm, protocol, ranks));
    let nvls = matches!(algorithm, Algorithm::Nvls | Algorithm::NvlsTree);
    let per_channel = u128::from(max_threads) * threshold;
    let mut shape = Launch { channels: channels.max(1), threads: max_threads };
    if !nvls && per_channel > 0 && bytes < u128::from(shape.channels) * per_channel {
        let enough = u32::try_from(bytes / per_channel).unwrap_or(u32::MAX);
        shape.channels = shape.channels.min(enough.max(1));
    }
    if !nvls && algorithm != Algorithm::CollNetDirect {
        while bytes < u128::from(shape.channels) * u128::from(shape.threads) * threshold
            && shape.threads > 0
            && shape.threads.is_multiple_of(128)
        {
            shape.threads /= 2;
        }
    }
    shape.threads = final_threads(algorithm, protocol, shape.threads);
    shape
}

fn thread_threshold(algorithm: Algorithm, protocol: Protocol, ranks: u32) -> u64 {
    match (algorithm, protocol) {
        (Algorithm::CollNetDirect | Algorithm::CollNetChain, _) => 512,
        (Algorithm::Ring, Protocol::Ll) => 8 * u64::from(ranks),
        (_, Protocol::Ll | Protocol::Ll128) => 8,
        (_, Protocol::Simple) => 64,
    }
}

fn final_threads(algorithm: Algorithm, protocol: Protocol, threads: u32) -> u32 {
    let extra = match (algorithm, protocol) {
        (Algorithm::Ring, Protocol::Simple) => 32,
        (Algorithm::Tree, Protocol::Simple) => 128,
        _ => 0,
    };
    match algorithm {
        Algorithm::Tree | Algorithm::Pat => 640,
        _ => (threads + extra).max(96),
    }
}
