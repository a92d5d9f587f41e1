//! How each change is made.

mod batch;
mod communication;
mod fuse;
mod host;
mod loader;
mod nodes;
mod order;
mod overlap;
mod precision;
mod ranks;

use foretrain_core::Result;

use super::language::Change;
use super::sketch::Sketch;

/// Makes a change. Those of the setting have been made with the ground.
pub(super) fn apply(sketch: &mut Sketch<'_>, change: &Change) -> Result<()> {
    match change {
        Change::Scale(query, factor) => nodes::scale(sketch, query, *factor),
        Change::Set(query, work) => nodes::set(sketch, query, *work),
        Change::Remove(query) => nodes::remove(sketch, query),
        Change::Batch(factor) => batch::scale(sketch, *factor),
        Change::Precision(dtype) => precision::narrow(sketch, *dtype),
        Change::LoaderWorkers(from, to) => loader::workers(sketch, *from, *to),
        Change::Input(factor) => loader::scale(sketch, *factor),
        Change::SlowRank(rank, factor) => ranks::slow(sketch, *rank, *factor),
        Change::FastestRank => ranks::all_like_the_fastest(sketch),
        Change::NoSync(glob) => host::no_sync(sketch, glob),
        Change::NoLaunchOverhead => host::no_launch_overhead(sketch),
        Change::FasterHost(factor) => host::faster(sketch, *factor),
        Change::Fuse => fuse::fuse(sketch),
        Change::PerfectOverlap => overlap::perfect(sketch),
        Change::NoCommunication => communication::none(sketch),
        Change::Buckets(_) | Change::Strategy(_) => communication::check_synchronised(sketch),
        Change::Bandwidth(_) | Change::Nic(_) | Change::Latency(_) => {
            communication::check_there_is_some(sketch)
        }
        Change::Cluster(_) | Change::Device(_) | Change::Gpus(_) => Ok(()),
    }
}
