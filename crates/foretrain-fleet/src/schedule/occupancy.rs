//! Who is on which GPU, and an index of what is free.

use std::collections::BTreeSet;

use foretrain_core::Bytes;
use smallvec::SmallVec;

use super::cluster::Cluster;
use super::job::{Job, JobId, Share};
use super::placement::Placement;

/// One GPU.
#[derive(Clone, Debug, Default)]
pub struct Gpu {
    /// Jobs on it, in the order in which they came.
    pub tenants: SmallVec<[JobId; 2]>,
    /// Memory that they take.
    pub memory: Bytes,
    /// Sum of their utilisations when alone; above 1 where they wait for each other.
    pub utilisation: f64,
    /// Thousandths that are promised to jobs that asked for parts.
    pub promised: u16,
    /// Memory slices taken by isolated instances.
    pub slices: u8,
}

/// All GPUs.
#[derive(Clone, Debug)]
pub struct Occupancy {
    gpus: Vec<Gpu>,
    /// Whether each node is up.
    up: Vec<bool>,
    /// Idle GPUs of each node; none of a node that is down.
    idle: Vec<u32>,
    /// Nodes by kind and number of idle GPUs.
    by_idle: Vec<Vec<BTreeSet<u32>>>,
    /// GPUs that jobs share by parts and that have something left: (thousandths left, GPU).
    parts: BTreeSet<(u16, u32)>,
    /// GPUs cut into slices of which some are free.
    sliced: BTreeSet<u32>,
    idle_total: u32,
}

impl Occupancy {
    pub(super) fn new(cluster: &Cluster) -> Self {
        let most = cluster.largest_node() as usize;
        let mut by_idle = vec![vec![BTreeSet::new(); most + 1]; cluster.kinds().len()];
        for (number, node) in cluster.nodes().iter().enumerate() {
            by_idle[node.kind as usize][node.gpus as usize].insert(number as u32);
        }
        Self {
            gpus: vec![Gpu::default(); cluster.gpus() as usize],
            up: vec![true; cluster.nodes().len()],
            idle: cluster.nodes().iter().map(|node| node.gpus).collect(),
            by_idle,
            parts: BTreeSet::new(),
            sliced: BTreeSet::new(),
            idle_total: cluster.gpus(),
        }
    }

    /// One GPU.
    pub fn gpu(&self, gpu: u32) -> &Gpu {
        &self.gpus[gpu as usize]
    }

    /// All GPUs in the order of their numbers.
    pub fn gpus(&self) -> &[Gpu] {
        &self.gpus
    }

    /// Whether a node is up.
    pub fn is_up(&self, node: u32) -> bool {
        self.up[node as usize]
    }

    /// GPUs without a job, on nodes that are up.
    pub fn idle_total(&self) -> u32 {
        self.idle_total
    }

    /// GPUs of a node without a job; none if it is down.
    pub fn idle_of(&self, node: u32) -> u32 {
        self.idle[node as usize]
    }

    /// Nodes of a kind with exactly so many idle GPUs, in order.
    pub fn nodes_with_idle(&self, kind: u32, idle: u32) -> impl Iterator<Item = u32> + '_ {
        let kind = self.by_idle.get(kind as usize);
        kind.and_then(|by_idle| by_idle.get(idle as usize)).into_iter().flatten().copied()
    }

    /// The first node of a kind with at least so many idle GPUs, taking the fullest.
    pub fn tightest_node(&self, kind: u32, least: u32) -> Option<u32> {
        let by_idle = self.by_idle.get(kind as usize)?;
        by_idle.iter().skip(least as usize).find_map(|nodes| nodes.first().copied())
    }

    /// The node of a kind with the most idle GPUs, if it has any.
    pub fn emptiest_node(&self, kind: u32) -> Option<u32> {
        let by_idle = self.by_idle.get(kind as usize)?;
        by_idle.iter().skip(1).rev().find_map(|nodes| nodes.first().copied())
    }

    /// Idle GPUs of a node, lowest first.
    pub fn idle_gpus<'a>(
        &'a self,
        cluster: &Cluster,
        node: u32,
    ) -> impl Iterator<Item = u32> + use<'a> {
        let range = if self.up[node as usize] { cluster.gpus_of(node) } else { 0..0 };
        range.filter(|&gpu| self.gpus[gpu as usize].tenants.is_empty())
    }

    /// The GPU shared by parts that has the least left but enough.
    pub fn tightest_part(&self, thousandths: u16) -> impl Iterator<Item = u32> + '_ {
        self.parts.range((thousandths, 0)..).map(|(_, gpu)| *gpu)
    }

    /// GPUs that are cut into slices and have some left.
    pub fn cut_gpus(&self) -> impl Iterator<Item = u32> + '_ {
        self.sliced.iter().copied()
    }

    pub(super) fn add(&mut self, cluster: &Cluster, id: JobId, job: &Job, at: &Placement) {
        for &gpu in &at.gpus {
            self.unlist(gpu);
            let was_idle = self.gpus[gpu as usize].tenants.is_empty();
            let state = &mut self.gpus[gpu as usize];
            state.tenants.push(id);
            state.memory = Bytes::new(state.memory.get().saturating_add(job.memory.get()));
            state.utilisation += job.utilisation();
            if let Share::Part(thousandths) = job.share {
                state.promised = state.promised.saturating_add(thousandths);
            }
            state.slices |= at.slot.map_or(0, |slot| slot.mask);
            self.list(gpu);
            if was_idle {
                self.change_idle(cluster, cluster.node_of(gpu), -1);
            }
        }
    }

    pub(super) fn remove(&mut self, cluster: &Cluster, id: JobId, job: &Job, at: &Placement) {
        for &gpu in &at.gpus {
            self.unlist(gpu);
            let state = &mut self.gpus[gpu as usize];
            state.tenants.retain(|tenant| *tenant != id);
            state.memory = Bytes::new(state.memory.get().saturating_sub(job.memory.get()));
            state.utilisation = (state.utilisation - job.utilisation()).max(0.0);
            if let Share::Part(thousandths) = job.share {
                state.promised = state.promised.saturating_sub(thousandths);
            }
            state.slices &= !at.slot.map_or(0, |slot| slot.mask);
            if state.tenants.is_empty() {
                // Sums of floating point numbers do not come back to zero by themselves.
                *state = Gpu::default();
                if self.up[cluster.node_of(gpu) as usize] {
                    self.change_idle(cluster, cluster.node_of(gpu), 1);
                }
            } else {
                self.list(gpu);
            }
        }
    }

    /// Takes a node away or brings it back. Jobs have left it before.
    pub(super) fn set_up(&mut self, cluster: &Cluster, node: u32, up: bool) {
        if self.up[node as usize] == up {
            return;
        }
        let gpus = cluster.nodes()[node as usize].gpus as i64;
        self.change_idle(cluster, node, if up { gpus } else { -gpus });
        self.up[node as usize] = up;
    }

    fn change_idle(&mut self, cluster: &Cluster, node: u32, by: i64) {
        let kind = &mut self.by_idle[cluster.nodes()[node as usize].kind as usize];
        let idle = &mut self.idle[node as usize];
        kind[*idle as usize].remove(&node);
        *idle = (i64::from(*idle) + by) as u32;
        kind[*idle as usize].insert(node);
        self.idle_total = (i64::from(self.idle_total) + by) as u32;
    }

    fn unlist(&mut self, gpu: u32) {
        let state = &self.gpus[gpu as usize];
        self.parts.remove(&(1_000 - state.promised.min(1_000), gpu));
        self.sliced.remove(&gpu);
    }

    fn list(&mut self, gpu: u32) {
        let state = &self.gpus[gpu as usize];
        if state.promised > 0 && state.promised < 1_000 {
            self.parts.insert((1_000 - state.promised, gpu));
        }
        if state.slices != 0 && state.slices != u8::MAX {
            self.sliced.insert(gpu);
        }
    }
}
