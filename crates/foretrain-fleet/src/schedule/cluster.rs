//! The machines that jobs are placed on.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

use foretrain_core::{Bytes, InputError, Result};

/// GPUs of one make.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuKind {
    /// As jobs ask for it.
    pub name: String,
    /// Memory of one GPU; `None` if it is not known, and then any job fits.
    pub memory: Option<Bytes>,
    /// Power that an idle GPU draws, watts.
    pub idle_watts: f64,
    /// Power that a busy GPU draws, watts.
    pub busy_watts: f64,
    /// Whether GPUs are cut into isolated slices (NVIDIA's MIG) for jobs that ask for slices.
    pub sliced: bool,
}

/// GPUs in one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// How many.
    pub gpus: u32,
    /// Which, as an index into the cluster's kinds.
    pub kind: u32,
    /// Nodes of one rack are near each other.
    pub rack: u32,
}

/// All machines. GPUs are numbered through, node by node.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    kinds: Vec<GpuKind>,
    nodes: Vec<Node>,
    /// Number of each node's first GPU, and one past the last GPU of all.
    first: Vec<u32>,
    /// The node of each GPU.
    node_of: Vec<u32>,
    /// GPUs of the largest nodes of each kind, and how many nodes are as large.
    node_size: Vec<(u32, u32)>,
    /// The first kind that has the name of each.
    named_as: Vec<u32>,
}

/// More would be a mistake in a file, and cost memory before anyone noticed.
const MOST_GPUS: u64 = 4_000_000;
/// Roughly what data-centre GPUs draw, for clusters of which nothing is known, watts.
const USUAL_WATTS: (f64, f64) = (60.0, 350.0);

impl GpuKind {
    /// A kind of which only the name is known.
    pub fn named(name: impl Into<String>) -> Self {
        let (idle_watts, busy_watts) = USUAL_WATTS;
        Self { name: name.into(), memory: None, idle_watts, busy_watts, sliced: false }
    }

    fn name(&self) -> &str {
        &self.name
    }

    /// Whether its power is no more than the usual one.
    pub(super) fn power_is_assumed(&self) -> bool {
        (self.idle_watts, self.busy_watts) == USUAL_WATTS
    }
}

impl Cluster {
    /// Nodes of the given kinds.
    ///
    /// # Errors
    /// If there is no GPU, there are more than four million, or a node's kind is not among the kinds.
    pub fn new(kinds: Vec<GpuKind>, nodes: Vec<Node>) -> Result<Self> {
        let total: u64 = nodes.iter().map(|node| u64::from(node.gpus)).sum();
        if total == 0 || total > MOST_GPUS {
            return Err(InputError::new(format!(
                "a cluster has 1 to {MOST_GPUS} GPUs, found {total}"
            )));
        }
        if let Some(odd) = nodes.iter().find(|node| node.kind as usize >= kinds.len()) {
            let (kind, known) = (odd.kind, kinds.len());
            return Err(InputError::new(format!("a node has GPU kind {kind} of {known}")));
        }
        let (mut first, mut node_of) = (Vec::with_capacity(nodes.len() + 1), Vec::new());
        let mut node_size = vec![(0, 0); kinds.len()];
        for (number, node) in nodes.iter().enumerate() {
            let (size, count): &mut (u32, u32) = &mut node_size[node.kind as usize];
            match node.gpus.cmp(size) {
                Ordering::Greater => (*size, *count) = (node.gpus, 1),
                Ordering::Equal => *count += 1,
                Ordering::Less => {}
            }
            first.push(node_of.len() as u32);
            node_of.extend((0..node.gpus).map(|_| number as u32));
        }
        first.push(node_of.len() as u32);
        let mut names: BTreeMap<&str, u32> = BTreeMap::new();
        let name = |(kind, number)| *names.entry(GpuKind::name(kind)).or_insert(number);
        let named_as = kinds.iter().zip(0u32..).map(name).collect();
        Ok(Self { kinds, nodes, first, node_of, node_size, named_as })
    }

    /// Equal nodes, in racks of `per_rack`.
    ///
    /// # Errors
    /// As [`Cluster::new`].
    pub fn uniform(nodes: u32, gpus: u32, per_rack: u32, kind: GpuKind) -> Result<Self> {
        if u64::from(nodes) * u64::from(gpus) > MOST_GPUS {
            let total = u64::from(nodes) * u64::from(gpus);
            return Err(InputError::new(format!(
                "a cluster has 1 to {MOST_GPUS} GPUs, found {total}"
            )));
        }
        let node = |number: u32| Node { gpus, kind: 0, rack: number / per_rack.max(1) };
        Self::new(vec![kind], (0..nodes).map(node).collect())
    }

    /// All kinds of GPUs.
    pub fn kinds(&self) -> &[GpuKind] {
        &self.kinds
    }

    /// Whether GPUs of one kind do for a job that needs another: kinds of one name are told apart by
    /// their memory, and jobs ask by name.
    pub fn suits(&self, wanted: Option<u32>, kind: u32) -> bool {
        let name = |kind: u32| self.named_as.get(kind as usize);
        wanted.is_none_or(|wanted| name(wanted) == name(kind))
    }

    /// All nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// GPUs in all.
    pub fn gpus(&self) -> u32 {
        self.node_of.len() as u32
    }

    /// The GPUs of a node.
    pub fn gpus_of(&self, node: u32) -> Range<u32> {
        self.first[node as usize]..self.first[node as usize + 1]
    }

    /// The node of a GPU.
    pub fn node_of(&self, gpu: u32) -> u32 {
        self.node_of[gpu as usize]
    }

    /// What a GPU is.
    pub fn kind_of(&self, gpu: u32) -> &GpuKind {
        &self.kinds[self.nodes[self.node_of(gpu) as usize].kind as usize]
    }

    /// GPUs of the largest node.
    pub fn largest_node(&self) -> u32 {
        self.node_size.iter().map(|(size, _)| *size).max().unwrap_or(0)
    }

    /// GPUs of the largest nodes of a kind, and how many nodes are as large.
    pub fn node_size(&self, kind: u32) -> (u32, u32) {
        self.node_size.get(kind as usize).copied().unwrap_or((0, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_numbered_through() {
        let kind = GpuKind::named("v100");
        let nodes = [3, 0, 2].map(|gpus| Node { gpus, kind: 0, rack: 0 });
        let cluster = Cluster::new(vec![kind], nodes.to_vec()).expect("valid");
        assert_eq!(cluster.gpus(), 5);
        assert_eq!(cluster.gpus_of(2), 3..5);
        assert_eq!([0, 2, 3, 4].map(|gpu| cluster.node_of(gpu)), [0, 0, 2, 2]);
    }

    #[test]
    fn impossible_clusters_are_refused() {
        let kind = GpuKind::named("v100");
        assert!(Cluster::uniform(0, 8, 4, kind.clone()).is_err());
        assert!(Cluster::uniform(u32::MAX, u32::MAX, 4, kind.clone()).is_err());
        assert!(Cluster::new(vec![kind], vec![Node { gpus: 1, kind: 1, rack: 0 }]).is_err());
    }
}
