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
///
/// Where one more GPU makes a job slower, as the first that crosses a slow link may, it is offered as
/// many more as shorten its time most per GPU.
#[derive(Clone, Debug)]
pub struct MarginalGain {
    interval: Nanos,
    fragments: Option<Fragments>,
}

/// The next size of a job.
#[derive(Clone, Copy, Debug)]
struct Gain {
    to: u32,
    /// Seconds that it saves per further GPU; above zero.
    per_gpu: f64,
}

/// One GPU more if that helps, else as many more as help most, of those that are free.
fn next_size(board: &Board<'_>, id: JobId, size: u32, free: u32) -> Option<Gain> {
    let job = board.job(id);
    let scaling = job.scaling.as_ref()?;
    let most = scaling.most_gpus().min(size.saturating_add(free));
    if size == 0 || size >= most {
        return None;
    }
    let node = board.cluster().largest_node().max(1);
    let done = board.progress(id).done_at(board.now());
    let left = (job.work - done).max(0.0);
    let time = |gpus: u32| left / scaling.speed(gpus, gpus.div_ceil(node), done);
    let now = time(size);
    let gain = |to: u32| {
        let per_gpu = (now - time(to)) / f64::from(to - size);
        (per_gpu > 0.0).then_some(Gain { to, per_gpu })
    };
    gain(size + 1).or_else(|| {
        // Every size of two nodes more, then whole nodes, and what it asked for.
        let inside = size + 2..=most.min(size.saturating_add(2 * node));
        let nodes = (1..=most / node).map(|nodes| nodes * node).filter(|to| *to > size + 1);
        let asked = Some(job.gpus).filter(|to| (size + 2..=most).contains(to));
        let gains = inside.chain(nodes).chain(asked).filter_map(gain);
        // The smallest of equals.
        gains.reduce(|best, next| if next.per_gpu > best.per_gpu { next } else { best })
    })
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
        let gain = |id: JobId, size: u32, free: u32| next_size(board, id, size, free);
        let mut gains: BTreeMap<JobId, Gain> =
            sizes.iter().filter_map(|(id, size)| Some((*id, gain(*id, *size, free)?))).collect();
        while free > 0 {
            // The first of equals.
            let best = gains.iter().rev().max_by(|a, b| a.1.per_gpu.total_cmp(&b.1.per_gpu));
            let Some((id, to)) = best.map(|(id, gain)| (*id, gain.to)) else { break };
            let size = sizes.entry(id).or_default();
            // Others may have taken what it would have needed.
            if to - *size <= free {
                free -= to - *size;
                *size = to;
            }
            match gain(id, *size, free) {
                Some(next) => gains.insert(id, next),
                None => gains.remove(&id),
            };
        }
        let fragments = fragments(&mut self.fragments, board);
        resize(board, &sizes, Placer::Anywhere, fragments);
    }
}
