//! GPUs to whom they help most (Optimus-like).

use std::collections::BTreeMap;

use foretrain_core::Nanos;

use super::super::board::Board;
use super::super::fragments::Fragments;
use super::super::job::JobId;
use super::elastic::resize;
use super::queue::fragments;
use super::{Placer, Policy, Rhythm};

/// Every job gets one GPU (or what it asks for, if it cannot change); each further GPU goes to the job
/// whose remaining time it shortens most. Source: Optimus, Peng et al., EuroSys 2018.
#[derive(Clone, Debug)]
pub struct MarginalGain {
    interval: Nanos,
    fragments: Option<Fragments>,
}

impl MarginalGain {
    /// A policy that chooses at every multiple of an interval.
    pub fn new(interval: Nanos) -> Self {
        Self { interval, fragments: None }
    }
}

impl Policy for MarginalGain {
    fn name(&self) -> String {
        "optimus".into()
    }

    fn rhythm(&self) -> Rhythm {
        Rhythm::Every(self.interval)
    }

    fn decide(&mut self, board: &mut Board<'_>) {
        let jobs = board.active();
        let mut free = board.gpus_up();
        let mut sizes: BTreeMap<JobId, u32> = BTreeMap::new();
        for &id in &jobs {
            let (least, _) = board.job(id).sizes();
            let size = if least <= free { least } else { 0 };
            free -= size;
            sizes.insert(id, size);
        }
        let gain = |id: JobId, size: u32| -> f64 {
            let Some(scaling) = &board.job(id).scaling else { return 0.0 };
            if size == 0 || size >= scaling.most_gpus() {
                return 0.0;
            }
            let node = board.cluster().largest_node().max(1);
            let done = board.progress(id).done_at(board.now());
            let left = (board.job(id).work - done).max(0.0);
            let time = |gpus: u32| left / scaling.speed(gpus, gpus.div_ceil(node), done);
            let gain = time(size) - time(size + 1);
            if gain.is_nan() { 0.0 } else { gain }
        };
        let mut gains: BTreeMap<JobId, f64> =
            sizes.iter().map(|(id, size)| (*id, gain(*id, *size))).collect();
        while free > 0 {
            // The first of equals.
            let best = gains.iter().rev().max_by(|a, b| a.1.total_cmp(b.1));
            let Some((&id, _)) = best.filter(|(_, gain)| **gain > 0.0) else { break };
            let size = sizes.entry(id).or_default();
            *size += 1;
            free -= 1;
            gains.insert(id, gain(id, *size));
        }
        let fragments = fragments(&mut self.fragments, board);
        resize(board, &sizes, Placer::Anywhere, fragments);
    }
}
