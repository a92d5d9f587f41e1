//! Finding GPUs that others use already.

use std::collections::BTreeMap;

use foretrain_core::Bytes;
use smallvec::SmallVec;

use super::super::board::Board;
use super::super::job::{Job, JobId, Share};
use super::super::occupancy::Gpu;
use super::super::placement::Placement;

/// What it costs to put a job on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackingCost {
    /// Memory, how far utilisations are from filling the GPU (more than that counts 1.6 times), and
    /// how many jobs there are (Horus, Yeung et al., TPDS 2022).
    Horus,
    /// Memory, utilisation and how many jobs there are (Gandiva's packing as Horus compares with it).
    Gandiva,
}

/// The rules of packing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packer {
    /// Most jobs on one GPU.
    pub most_jobs: usize,
    /// Memory that stays free on each GPU.
    pub spare: Bytes,
    /// What is least.
    pub cost: PackingCost,
}

/// What GPUs of a node cost, with their numbers, the cheapest first.
type Costs = SmallVec<[(f64, u32); 8]>;

/// Weight of memory against utilisation.
const MEMORY_WEIGHT: f64 = 1.3;
/// How much more a job that does not fit beside the others costs than one that leaves room.
const OVER_WEIGHT: f64 = 1.6;

impl Packer {
    /// Three jobs per GPU, half a gigabyte free: as the published scheduler sets them.
    pub fn new(cost: PackingCost) -> Self {
        Self { most_jobs: 3, spare: Bytes::new(500_000_000), cost }
    }

    /// The cheapest GPUs for a job, on the fewest nodes; `None` if there are not enough that it may
    /// use.
    pub fn find(&self, board: &Board<'_>, id: JobId) -> Option<Placement> {
        let job = board.job(id);
        if job.share != Share::Whole || job.gpus == 0 {
            return None;
        }
        let kinds = 0..board.cluster().kinds().len() as u32;
        let fitting = kinds.filter(|kind| board.cluster().suits(job.kind, *kind));
        let found = fitting.filter_map(|kind| self.find_in(board, job, kind));
        found.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, at)| at)
    }

    /// The cheapest GPUs of one kind, and what they cost together.
    fn find_in(&self, board: &Board<'_>, job: &Job, kind: u32) -> Option<(f64, Placement)> {
        let cluster = board.cluster();
        let wanted = job.gpus as usize;
        let memory = cluster.kinds()[kind as usize].memory;
        let on_one = job.gpus <= cluster.node_size(kind).0;
        let least = if on_one { wanted } else { 1 };
        let mut nodes: Vec<(u32, Costs)> = Vec::new();
        let mut best: Option<(f64, Placement)> = None;
        for (number, node) in cluster.nodes().iter().enumerate() {
            let number = number as u32;
            if node.kind != kind || !board.occupancy().is_up(number) {
                continue;
            }
            let cost = |gpu: u32| Some((self.cost(board.occupancy().gpu(gpu), memory, job)?, gpu));
            let mut fit: Costs = cluster.gpus_of(number).filter_map(cost).collect();
            if fit.len() < least {
                continue;
            }
            fit.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            if !on_one {
                nodes.push((number, fit));
                continue;
            }
            let sum: f64 = fit[..wanted].iter().map(|(cost, _)| cost).sum();
            if best.as_ref().is_none_or(|(least, _)| sum < *least) {
                best = Some((sum, Placement::of(fit[..wanted].iter().map(|(_, gpu)| *gpu))));
            }
        }
        if on_one { best } else { fewest_nodes(board, nodes, wanted) }
    }

    /// What a GPU costs a job; `None` if it may not go there.
    fn cost(&self, gpu: &Gpu, memory: Option<Bytes>, job: &Job) -> Option<f64> {
        let there = gpu.tenants.len();
        if there >= self.most_jobs || gpu.promised > 0 || gpu.slices != 0 {
            return None;
        }
        let wanted = gpu.memory.get().saturating_add(job.memory.get());
        let held = match memory {
            Some(memory) if there > 0 && wanted + self.spare.get() > memory.get() => return None,
            Some(memory) if wanted > memory.get() => return None,
            Some(memory) => wanted as f64 / memory.as_f64().max(1.0),
            None => 0.0,
        };
        let utilisation = gpu.utilisation.min(1.0);
        let used = match self.cost {
            PackingCost::Gandiva => utilisation,
            PackingCost::Horus => {
                let over = utilisation + job.peak.clamp(0.0, 1.0) - 1.0;
                if over > 0.0 { OVER_WEIGHT * over } else { -over }
            }
        };
        Some(MEMORY_WEIGHT * held + used + there as f64)
    }
}

/// GPUs of the nodes with the most that would do, in one rack if one has enough.
fn fewest_nodes(
    board: &Board<'_>,
    mut nodes: Vec<(u32, Costs)>,
    wanted: usize,
) -> Option<(f64, Placement)> {
    let rack = |node: u32| board.cluster().nodes()[node as usize].rack;
    nodes.sort_by(|(a, fit_a), (b, fit_b)| {
        let mean = |fit: &Costs| fit.iter().map(|f| f.0).sum::<f64>() / fit.len() as f64;
        let most_first = fit_b.len().cmp(&fit_a.len());
        most_first.then(mean(fit_a).total_cmp(&mean(fit_b))).then(a.cmp(b))
    });
    let mut in_rack: BTreeMap<u32, usize> = BTreeMap::new();
    for (node, fit) in &nodes {
        *in_rack.entry(rack(*node)).or_default() += fit.len();
    }
    let enough = in_rack.into_iter().filter(|(_, count)| *count >= wanted);
    let best = enough.min_by_key(|(number, count)| (*count, *number));
    let near = |node: u32| best.is_none_or(|(number, _)| rack(node) == number);
    let all = nodes.iter().filter(|(node, _)| near(*node)).flat_map(|(_, fit)| fit);
    let chosen: Costs = all.take(wanted).copied().collect();
    let sum = chosen.iter().map(|(cost, _)| cost).sum();
    let at = || Placement::of(chosen.iter().map(|(_, gpu)| *gpu));
    (chosen.len() == wanted).then(|| (sum, at()))
}

#[cfg(test)]
mod tests {
    use foretrain_core::Nanos;
    use foretrain_cost::interference::colocation::JobLoad;

    use super::*;

    #[test]
    fn the_cost_of_a_busy_gpu_is_that_of_the_paper() {
        // 32,000 MB with one job of 8,000 MB at 50 %; the new one takes 10,000 MB and up to 80 %.
        let megabytes = |size: u64| Bytes::new(size * 1_000_000);
        let gpu = Gpu {
            tenants: SmallVec::from_slice(&[0]),
            memory: megabytes(8_000),
            utilisation: 0.5,
            ..Gpu::default()
        };
        let second = Nanos::from_millis(1_000);
        let job = Job {
            memory: megabytes(10_000),
            peak: 0.8,
            load: Some(JobLoad { step: second, busy: 0.6, launch: second }),
            ..Job::new("new", Nanos::ZERO, 1, second)
        };
        let cost = Packer::new(PackingCost::Horus).cost(&gpu, Some(megabytes(32_000)), &job);
        assert!((cost.expect("fits") - 2.21125).abs() < 1e-9, "{cost:?}");
        let gandiva = Packer::new(PackingCost::Gandiva).cost(&gpu, Some(megabytes(32_000)), &job);
        assert!((gandiva.expect("fits") - (0.73125 + 0.5 + 1.0)).abs() < 1e-9, "{gandiva:?}");
        // An idle GPU costs less than any busy one.
        let idle = Packer::new(PackingCost::Horus).cost(&Gpu::default(), None, &job);
        assert!((idle.expect("fits") - 0.2).abs() < 1e-9, "{idle:?}");
    }

    #[test]
    fn full_gpus_are_left_alone() {
        let packer = Packer::new(PackingCost::Horus);
        let job = Job::new("new", Nanos::ZERO, 1, Nanos::ZERO);
        let gpu = Gpu { tenants: SmallVec::from_slice(&[0, 1, 2]), ..Gpu::default() };
        assert_eq!(packer.cost(&gpu, None, &job), None);
        let job = Job { memory: Bytes::new(8_000_000_000), ..job };
        let gpu = Gpu {
            tenants: SmallVec::from_slice(&[0]),
            memory: Bytes::new(8_000_000_000),
            ..Gpu::default()
        };
        assert_eq!(packer.cost(&gpu, Some(Bytes::new(16_400_000_000)), &job), None);
        assert!(packer.cost(&gpu, Some(Bytes::new(16_500_000_000)), &job).is_some());
    }
}
