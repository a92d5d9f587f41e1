//! What each communicator group is for, and how it grows with the job.

use foretrain_graph::{CollectiveKind, Glob, Phase, StepGraph};

/// What a group of ranks splits among its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The batch: replicas that synchronise gradients (or shards of them). Grows with the job.
    DataParallel,
    /// Layers' tensors. Stays as it is.
    TensorParallel,
    /// Layers. Stays as it is.
    PipelineParallel,
    /// Experts or embedding tables over the replicas. Grows with the job.
    ExpertParallel,
    /// Not known; stays as it is.
    Unknown,
}

impl Role {
    /// The words for tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DataParallel => "data-parallel",
            Self::TensorParallel => "tensor-parallel",
            Self::PipelineParallel => "pipeline-parallel",
            Self::ExpertParallel => "expert-parallel",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the group has more members when the job has more replicas.
    pub const fn grows(self) -> bool {
        matches!(self, Self::DataParallel | Self::ExpertParallel)
    }
}

impl Role {
    /// Reads a role as people write it: `dp`, `tp`, `pp`, `ep`, or the full words.
    pub fn parse(text: &str) -> Option<Self> {
        [
            ("dp", Self::DataParallel),
            ("tp", Self::TensorParallel),
            ("pp", Self::PipelineParallel),
            ("ep", Self::ExpertParallel),
        ]
        .into_iter()
        .find(|(short, role)| text.eq_ignore_ascii_case(short) || text == role.as_str())
        .map(|(_, role)| role)
    }
}

/// A role that somebody who knows the job gives to groups.
#[derive(Clone, Debug)]
pub struct GivenRole {
    /// Names of the groups.
    pub groups: Glob,
    /// Their role.
    pub role: Role,
}

/// A group's role and why it is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRole {
    /// Index in the graph's group table.
    pub group: usize,
    /// The role.
    pub role: Role,
    /// Why.
    pub reason: String,
}

/// The role of each group of a step: the first given one that matches its name, else from its
/// description if that tells, else from what the step uses it for.
pub fn group_roles(graph: &StepGraph, given: &[GivenRole]) -> Vec<GroupRole> {
    (0..graph.groups.len())
        .map(|group| {
            let name = &graph.groups[group].name;
            if let Some(given) = given.iter().find(|given| given.groups.matches(name)) {
                return GroupRole { group, role: given.role, reason: "as given".into() };
            }
            let described = from_description(&graph.groups[group].role);
            let (role, reason) = match described {
                Some(role) => (role, format!("described as \"{}\"", graph.groups[group].role)),
                None => from_use(graph, group),
            };
            GroupRole { group, role, reason }
        })
        .collect()
}

fn from_description(text: &str) -> Option<Role> {
    let lower = text.to_ascii_lowercase();
    let is = |word: &str| lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|w| w == word);
    if is("tp") || lower.contains("tensor") || lower.contains("model_parallel") {
        Some(Role::TensorParallel)
    } else if is("pp") || lower.contains("pipeline") || lower.contains("pipe") {
        Some(Role::PipelineParallel)
    } else if is("ep") || lower.contains("expert") {
        Some(Role::ExpertParallel)
    } else if is("dp") || is("fsdp") || is("ddp") || lower.contains("data") {
        Some(Role::DataParallel)
    } else {
        None
    }
}

#[derive(Default)]
struct Use {
    forward_reductions: usize,
    backward_reductions: usize,
    gathers: usize,
    exchanges: usize,
    transfers: usize,
}

fn from_use(graph: &StepGraph, group: usize) -> (Role, String) {
    let mut used = Use::default();
    for id in graph.node_ids() {
        let node = graph.node(id);
        let is_member = node.group.is_some_and(|g| g.index() == group);
        if !is_member || !node.kind.communicates() {
            continue;
        }
        let forward = matches!(node.phase, Phase::Forward | Phase::Unknown | Phase::Input);
        match node.collective {
            Some(CollectiveKind::AllReduce) if forward => used.forward_reductions += 1,
            Some(CollectiveKind::AllReduce | CollectiveKind::Reduce) => {
                used.backward_reductions += 1;
            }
            Some(CollectiveKind::AllGather | CollectiveKind::ReduceScatter) => used.gathers += 1,
            Some(CollectiveKind::AllToAll) => used.exchanges += 1,
            Some(CollectiveKind::Send | CollectiveKind::Recv | CollectiveKind::SendRecv) => {
                used.transfers += 1;
            }
            _ => {}
        }
    }
    let role = |role, why: &str| (role, why.to_owned());
    let reductions = used.forward_reductions + used.backward_reductions;
    if reductions > 0 && graph.node_ids().all(|id| graph.node(id).phase == Phase::Unknown) {
        return role(Role::Unknown, "all-reduces, but forward and backward are not told apart");
    }
    // A metric or two is often reduced in a forward pass; a layer's activations are reduced often.
    if used.forward_reductions > 2 {
        role(Role::TensorParallel, "all-reduces in the forward pass")
    } else if used.backward_reductions > 0 {
        role(Role::DataParallel, "all-reduces in or after the backward pass only")
    } else if used.exchanges > 0 {
        role(Role::ExpertParallel, "all-to-all exchanges")
    } else if used.gathers > 0 {
        role(Role::DataParallel, "all-gathers and reduce-scatters of shards")
    } else if used.transfers > 0 {
        role(Role::PipelineParallel, "sends and receives")
    } else {
        role(Role::Unknown, "too little use to tell")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foretrain_graph::Group;

    #[test]
    fn given_roles_come_first() {
        let mut graph = StepGraph::new();
        for name in ["dp_0", "dp_1", "rest"] {
            graph.add_group(Group { name: name.into(), role: "tp".into(), ..Group::default() });
        }
        let given = [GivenRole { groups: Glob::new("dp_*"), role: Role::DataParallel }];
        let roles: Vec<Role> = group_roles(&graph, &given).iter().map(|r| r.role).collect();
        assert_eq!(roles, [Role::DataParallel, Role::DataParallel, Role::TensorParallel]);
    }

    #[test]
    fn roles_are_read_in_both_spellings() {
        assert_eq!(Role::parse("DP"), Some(Role::DataParallel));
        assert_eq!(Role::parse("pipeline-parallel"), Some(Role::PipelineParallel));
        assert_eq!(Role::parse("zero"), None);
    }

    #[test]
    fn descriptions_are_read_as_words() {
        assert_eq!(from_description("mesh_tp"), Some(Role::TensorParallel));
        assert_eq!(from_description("TENSOR_MODEL_PARALLEL_GROUP"), Some(Role::TensorParallel));
        assert_eq!(from_description("DATA_PARALLEL_GROUP_WITH_CP"), Some(Role::DataParallel));
        assert_eq!(from_description("mesh_dp"), Some(Role::DataParallel));
        assert_eq!(from_description("default_pg"), None);
        assert_eq!(from_description("http"), None);
    }
}
