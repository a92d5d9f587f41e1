//! Finding GPUs for a job.

use smallvec::SmallVec;

use super::super::board::Board;
use super::super::job::{Job, JobId, Share};
use super::super::placement::Placement;
use super::super::slices;
use crate::schedule::fragments::Fragments;

/// How to choose among free GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placer {
    /// On as few nodes as its GPUs fit on, or not at all: whole idle nodes for what fills them, in one
    /// rack if there is one with enough, and the fullest node that has enough for the rest.
    Consolidated,
    /// As consolidated, on the first nodes rather than the fullest.
    FirstFit,
    /// On whatever is idle, from the emptiest node on.
    Anywhere,
    /// Consolidated, on the nodes where the fewest idle GPUs become useless for the jobs there are.
    LeastFragments,
}

impl Placer {
    /// GPUs without other jobs (or with enough parts or slices left) for a job; `None` if there are
    /// none now.
    pub fn find(self, board: &Board<'_>, id: JobId, fragments: &Fragments) -> Option<Placement> {
        self.find_for(board, board.job(id), board.job(id).gpus, fragments)
    }

    /// The same for another number of GPUs.
    pub fn find_for(
        self,
        board: &Board<'_>,
        job: &Job,
        gpus: u32,
        fragments: &Fragments,
    ) -> Option<Placement> {
        let kinds = 0..board.cluster().kinds().len() as u32;
        let mut fitting = kinds.filter(|&kind| fits(board, job, kind));
        match job.share {
            Share::Part(thousandths) => part(board, job, thousandths)
                .or_else(|| fitting.find_map(|kind| self.whole(board, kind, 1, fragments))),
            Share::Slice(sevenths) => slice(board, job, sevenths, &mut fitting),
            Share::Whole => fitting.find_map(|kind| self.whole(board, kind, gpus, fragments)),
        }
    }

    fn whole(
        self,
        board: &Board<'_>,
        kind: u32,
        gpus: u32,
        fragments: &Fragments,
    ) -> Option<Placement> {
        let occupancy = board.occupancy();
        if gpus == 0 || occupancy.idle_total() < gpus {
            return None;
        }
        let (size, nodes) = board.cluster().node_size(kind);
        let (full, rest) = (gpus / size.max(1), gpus % size.max(1));
        // Where nodes are of many sizes, large jobs may never find enough of the largest.
        if self == Self::Anywhere || full > nodes {
            return anywhere(board, kind, gpus);
        }
        let mut nodes: SmallVec<[(u32, u32); 8]> = SmallVec::new();
        if full > 0 {
            nodes
                .extend(whole_nodes(board, kind, size, full)?.into_iter().map(|node| (node, size)));
        }
        if rest > 0 {
            let taken = |node: u32| nodes.iter().any(|(other, _)| *other == node);
            let node = match self {
                Self::FirstFit => first_with(board, kind, rest, taken),
                Self::LeastFragments => {
                    let cost = |node: u32| fragments.added(occupancy.idle_of(node), rest);
                    let all = with_at_least(board, kind, rest).filter(|node| !taken(*node));
                    all.min_by(|a, b| cost(*a).total_cmp(&cost(*b)).then(a.cmp(b)))
                }
                _ => with_at_least(board, kind, rest).find(|node| !taken(*node)),
            };
            nodes.push((node?, rest));
        }
        let gpus = nodes.iter().flat_map(|&(node, count)| {
            occupancy.idle_gpus(board.cluster(), node).take(count as usize)
        });
        Some(Placement::of(gpus))
    }
}

/// Whether GPUs of a kind would do.
fn fits(board: &Board<'_>, job: &Job, kind: u32) -> bool {
    let memory = board.cluster().kinds()[kind as usize].memory;
    board.cluster().suits(job.kind, kind) && memory.is_none_or(|memory| job.memory <= memory)
}

/// Nodes of a kind with at least so many idle GPUs, the fullest first.
fn with_at_least<'a>(
    board: &'a Board<'_>,
    kind: u32,
    least: u32,
) -> impl Iterator<Item = u32> + 'a {
    let most = board.cluster().largest_node();
    (least..=most).flat_map(move |idle| board.occupancy().nodes_with_idle(kind, idle))
}

/// The first node with at least so many idle GPUs.
fn first_with(
    board: &Board<'_>,
    kind: u32,
    least: u32,
    taken: impl Fn(u32) -> bool,
) -> Option<u32> {
    let most = board.cluster().largest_node();
    let firsts = (least..=most).filter_map(|idle| {
        board.occupancy().nodes_with_idle(kind, idle).find(|node| !taken(*node))
    });
    firsts.min()
}

/// Nodes with `size` idle GPUs: in the rack with the fewest of them that has enough, else from the
/// rack with the most on.
fn whole_nodes(board: &Board<'_>, kind: u32, size: u32, wanted: u32) -> Option<Vec<u32>> {
    let nodes: Vec<u32> = board.occupancy().nodes_with_idle(kind, size).collect();
    let wanted = wanted as usize;
    if nodes.len() < wanted {
        return None;
    }
    if wanted == 1 {
        return Some(vec![nodes[0]]);
    }
    let rack = |node: u32| board.cluster().nodes()[node as usize].rack;
    let mut racks: Vec<(u32, Vec<u32>)> = Vec::new();
    let mut by_rack = nodes;
    by_rack.sort_by_key(|node| (rack(*node), *node));
    for node in by_rack {
        match racks.last_mut().filter(|(number, _)| *number == rack(node)) {
            Some((_, members)) => members.push(node),
            None => racks.push((rack(node), vec![node])),
        }
    }
    racks.sort_by_key(|(number, members)| (members.len(), *number));
    if let Some((_, members)) = racks.iter().find(|(_, members)| members.len() >= wanted) {
        return Some(members[..wanted].to_vec());
    }
    Some(racks.into_iter().rev().flat_map(|(_, members)| members).take(wanted).collect())
}

fn anywhere(board: &Board<'_>, kind: u32, gpus: u32) -> Option<Placement> {
    let occupancy = board.occupancy();
    let most = board.cluster().largest_node();
    let nodes = (1..=most).rev().flat_map(|idle| occupancy.nodes_with_idle(kind, idle));
    let all = nodes.flat_map(|node| occupancy.idle_gpus(board.cluster(), node));
    let found: SmallVec<[u32; 8]> = all.take(gpus as usize).collect();
    (found.len() == gpus as usize).then(|| Placement::of(found))
}

/// A GPU that is shared by parts and has enough left.
fn part(board: &Board<'_>, job: &Job, thousandths: u16) -> Option<Placement> {
    let mut parts = board.occupancy().tightest_part(thousandths);
    parts.find(|gpu| fits_beside(board, job, *gpu)).map(|gpu| Placement::of([gpu]))
}

/// Whether a GPU is of the right kind and has memory left for a job beside those there.
fn fits_beside(board: &Board<'_>, job: &Job, gpu: u32) -> bool {
    let cluster = board.cluster();
    let kind = cluster.nodes()[cluster.node_of(gpu) as usize].kind;
    let wanted = board.occupancy().gpu(gpu).memory.get().saturating_add(job.memory.get());
    let memory = cluster.kinds()[kind as usize].memory;
    cluster.suits(job.kind, kind) && memory.is_none_or(|memory| wanted <= memory.get())
}

/// A slice of a GPU that is cut already, else of an idle one.
fn slice(
    board: &Board<'_>,
    job: &Job,
    sevenths: u8,
    fitting: &mut impl Iterator<Item = u32>,
) -> Option<Placement> {
    let (cluster, occupancy) = (board.cluster(), board.occupancy());
    let at = |gpu: u32| {
        let slot = slices::find(sevenths, occupancy.gpu(gpu).slices)?;
        Some(Placement { slot: Some(slot), ..Placement::of([gpu]) })
    };
    let right = |gpu: &u32| fits_beside(board, job, *gpu);
    occupancy.cut_gpus().filter(right).find_map(at).or_else(|| {
        let kind = fitting.find(|kind| cluster.kinds()[*kind as usize].sliced)?;
        let node = occupancy.tightest_node(kind, 1)?;
        at(occupancy.idle_gpus(cluster, node).next()?)
    })
}
