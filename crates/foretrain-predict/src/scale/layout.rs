//! How ranks are laid out in the recorded job, and how its groups grow.

use foretrain_cost::GroupPlacement;
use foretrain_graph::StepGraph;

use crate::roles::{GivenRole, GroupRole, Role, group_roles};

/// How ranks are laid out in the recorded job.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Ranks in the recorded job.
    pub(crate) world_size: u32,
    /// Ranks of one model replica.
    pub(crate) replica_size: u32,
    /// Role of each group.
    pub(crate) roles: Vec<GroupRole>,
    /// Members of each group; a group whose size is not recorded is taken for the whole job.
    sizes: Vec<u32>,
}

impl Layout {
    pub(crate) fn new(world_size: u32, graph: &StepGraph, given: &[GivenRole]) -> Self {
        let roles = group_roles(graph, given);
        let size = |size: u32| if size == 0 { world_size } else { size };
        let sizes: Vec<u32> = graph.groups.iter().map(|group| size(group.size)).collect();
        let size = |r: &GroupRole| sizes[r.group];
        let largest =
            |role: Role| roles.iter().filter(|r| r.role == role).map(size).max().unwrap_or(1);
        let growing = roles.iter().filter(|r| r.role.grows()).map(size).max();
        let replica_size = match growing {
            Some(growing) => (world_size / growing).max(1),
            None => {
                let tensor = largest(Role::TensorParallel);
                tensor.saturating_mul(largest(Role::PipelineParallel)).clamp(1, world_size)
            }
        };
        Self { world_size, replica_size, roles, sizes }
    }

    pub(crate) fn role(&self, group: usize) -> Role {
        self.roles.get(group).map_or(Role::Unknown, |r| r.role)
    }

    /// Members of a group.
    pub(crate) fn size(&self, group: usize) -> u32 {
        self.sizes.get(group).copied().unwrap_or(self.world_size)
    }

    /// Whether the recording synchronises replicas.
    pub(crate) fn synchronises(&self) -> bool {
        self.roles.iter().any(|r| r.role.grows())
    }

    /// Whether gradients have to be synchronised that nothing synchronised in the recording: it
    /// had one replica. With several replicas and no synchronisation in sight, what is there may
    /// be hidden, and would be counted twice.
    pub(crate) fn lacks_synchronisation(&self) -> bool {
        !self.synchronises() && self.world_size <= self.replica_size
    }

    /// Where a group's ranks sit in the recorded job, and in one of `replicas` replicas.
    pub(crate) fn placements(
        &self,
        graph: &StepGraph,
        group: usize,
        replicas: u32,
    ) -> (GroupPlacement, GroupPlacement) {
        let grows = self.role(group).grows();
        let members = graph.groups.get(group);
        let size = self.size(group);
        let usual = if grows { self.replica_size } else { 1 };
        let stride = members.and_then(|g| stride(&g.ranks)).unwrap_or(usual);
        let scaled = if grows { replicas } else { size };
        (GroupPlacement::strided(size, stride), GroupPlacement::strided(scaled, stride))
    }
}

/// Distance between neighbouring ranks of a group, if it is constant.
fn stride(ranks: &[u32]) -> Option<u32> {
    let step = ranks.get(1)?.checked_sub(*ranks.first()?)?;
    ranks.windows(2).all(|w| w[1].checked_sub(w[0]) == Some(step)).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretrain_graph::Group;

    #[test]
    fn a_group_of_unknown_size_is_the_whole_job() {
        let mut graph = StepGraph::new();
        for (name, size) in [("world", 0), ("pair", 2)] {
            graph.add_group(Group { name: name.into(), size, ..Group::default() });
        }
        let layout = Layout::new(8, &graph, &[]);
        let ranks = |group| layout.placements(&graph, group, 1).0.ranks();
        assert_eq!((ranks(0), ranks(1)), (8, 2));
    }

    #[test]
    fn only_even_spacing_has_a_stride() {
        assert_eq!(stride(&[0, 8, 16]), Some(8));
        assert_eq!(stride(&[0, 1, 3]), None);
        assert_eq!(stride(&[4, 2]), None);
        assert_eq!(stride(&[7]), None);
    }
}
