//! The layouts that are looked at.

use foretrain_hardware::Cluster;
use foretrain_workload::model::{Model, OpKind, Sample};

use crate::Software;
use crate::layout::{Layout, Recompute, Schedule, Sharding, Wish};
use crate::software::Fusion;
use crate::training::Training;

/// Bounds of a search beyond what the model and the batch allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Space {
    /// Choices that are made.
    pub wish: Wish,
    /// Schedules to try where the wish leaves them open.
    pub schedules: Vec<Schedule>,
    /// What replicas may divide where the wish leaves it open.
    pub shardings: Vec<Sharding>,
    /// Largest micro-batch.
    pub most_micro_batch: u64,
    /// Tensor parallelism beyond a node.
    pub tensor_beyond_node: bool,
}

impl Space {
    /// What `software` can do, with the choices of `wish`.
    pub fn of(software: &Software, wish: Wish) -> Self {
        let fully_sharded = software.name.starts_with("fsdp") || software.name == "xla";
        let shardings = if fully_sharded {
            vec![Sharding::None, Sharding::Gradients, Sharding::Parameters]
        } else {
            vec![Sharding::None, Sharding::Optimiser]
        };
        Self {
            wish,
            schedules: vec![Schedule::OneFOneB],
            shardings,
            most_micro_batch: 64,
            tensor_beyond_node: false,
        }
    }
}

/// Shortest part of a sequence that a search divides it into.
const SHORTEST_PART: u64 = 1024;

/// Every layout of `space` on `devices`, legal or not: [`check_layout`](crate::check::check_layout)
/// decides. Order is fixed: layouts that divide layers alike follow each other.
pub fn layouts(
    space: &Space,
    model: &Model,
    training: &Training,
    software: &Software,
    cluster: &Cluster,
    devices: u32,
) -> Vec<Layout> {
    let mut found = Vec::new();
    let wish = &space.wish;
    let node = cluster.devices_per_node();
    let body = model.body_layers();
    let all = divisors(devices);
    let sequence = match model.sample {
        Sample::Fixed => 0,
        _ => training.sequence,
    };
    let experts = experts(model);
    let tensors = chosen(wish.tensor, &all, |&tensor| space.tensor_beyond_node || tensor <= node);
    for tensor in tensors {
        let contexts = chosen(wish.context, &all, |&context| {
            context == 1
                || (context.is_power_of_two() && sequence / u64::from(context) >= SHORTEST_PART)
        });
        for context in contexts {
            let pipelines = chosen(wish.pipeline, &all, |&pipeline| pipeline <= body.max(1));
            for pipeline in pipelines {
                let model_ranks = u64::from(tensor) * u64::from(context) * u64::from(pipeline);
                if model_ranks > u64::from(devices)
                    || !u64::from(devices).is_multiple_of(model_ranks)
                {
                    continue;
                }
                let data = devices / model_ranks as u32;
                if wish.data.is_some_and(|wished| wished != data) {
                    continue;
                }
                let base = Layout {
                    tensor,
                    context,
                    pipeline,
                    data,
                    sequence_parallel: wish.sequence_parallel.unwrap_or(tensor > 1 && sequence > 0),
                    context_method: wish.context_method.unwrap_or_default(),
                    stage_layers: wish.stage_layers.clone(),
                    offload_optimiser: wish.offload_optimiser.unwrap_or(false),
                    offload_activations: wish.offload_activations.unwrap_or(false),
                    order: wish.order.unwrap_or_default(),
                    ..Layout::default()
                };
                with_experts(&base, experts, space, training, model, software, &mut found);
            }
        }
    }
    found
}

fn chosen(wish: Option<u32>, all: &[u32], may: impl Fn(&u32) -> bool) -> Vec<u32> {
    match wish {
        Some(wished) => vec![wished],
        None => all.iter().copied().filter(may).collect(),
    }
}

fn with_experts(
    base: &Layout,
    experts: u64,
    space: &Space,
    training: &Training,
    model: &Model,
    software: &Software,
    found: &mut Vec<Layout>,
) {
    let wish = &space.wish;
    let stage = base.tensor * base.context * base.data;
    let degrees = match wish.expert {
        Some(expert) => vec![expert],
        None if experts == 0 => vec![1],
        None => {
            divisors(stage).into_iter().filter(|&n| experts.is_multiple_of(u64::from(n))).collect()
        }
    };
    for expert in degrees {
        let inner = match wish.expert_tensor {
            Some(inner) => vec![inner],
            None if expert == 1 => vec![base.tensor],
            None => vec![1],
        };
        for expert_tensor in inner {
            let base = Layout { expert, expert_tensor, ..base.clone() };
            with_batches(&base, space, training, model, software, found);
        }
    }
}

fn with_batches(
    base: &Layout,
    space: &Space,
    training: &Training,
    model: &Model,
    software: &Software,
    found: &mut Vec<Layout>,
) {
    let wish = &space.wish;
    let data = u64::from(base.data);
    if !training.global_batch.is_multiple_of(data) {
        return;
    }
    let per_replica = training.global_batch / data;
    let micro_batches: Vec<u64> = match wish.micro_batch {
        Some(wished) => vec![wished],
        None => powers_of_two(per_replica, space.most_micro_batch),
    };
    for micro_batch in micro_batches {
        if !per_replica.is_multiple_of(micro_batch.max(1)) {
            continue;
        }
        let rounds = per_replica / micro_batch.max(1);
        for (schedule, virtual_stages) in schedules(base, space, model, rounds) {
            for sharding in shardings(base, space) {
                for recompute in recomputations(base, space, model, software, virtual_stages) {
                    // Splitting the backward pass beside recomputation has been measured to lose.
                    if schedule.splits_backward()
                        && recompute != Recompute::None
                        && wish.recompute.is_none()
                    {
                        continue;
                    }
                    found.push(Layout {
                        micro_batch,
                        schedule,
                        virtual_stages,
                        sharding,
                        shard_group: wish.shard_group,
                        recompute,
                        ..base.clone()
                    });
                }
            }
        }
    }
}

fn schedules(base: &Layout, space: &Space, model: &Model, rounds: u64) -> Vec<(Schedule, u32)> {
    let wish = &space.wish;
    if base.pipeline == 1 {
        return vec![(wish.schedule.unwrap_or_default(), wish.virtual_stages.unwrap_or(1))];
    }
    let tried = wish.schedule.map_or_else(|| space.schedules.clone(), |schedule| vec![schedule]);
    let per_stage = model.body_layers() / base.pipeline;
    let mut all = Vec::new();
    for schedule in tried {
        let chunks: Vec<u32> = match (schedule, wish.virtual_stages) {
            (_, Some(chunks)) => vec![chunks],
            (Schedule::OneFOneB, None) if rounds.is_multiple_of(u64::from(base.pipeline)) => {
                divisors(per_stage)
            }
            _ => vec![1],
        };
        all.extend(chunks.into_iter().map(|chunks| (schedule, chunks)));
    }
    all
}

fn shardings(base: &Layout, space: &Space) -> Vec<Sharding> {
    if let Some(wished) = space.wish.sharding {
        return vec![wished];
    }
    if space.wish.shard_group.is_some() {
        return vec![Sharding::Parameters];
    }
    let alone = base.gradient_ranks() == 1;
    let divides = |sharding: &Sharding| !alone || *sharding == Sharding::None;
    space.shardings.iter().copied().filter(divides).collect()
}

fn recomputations(
    base: &Layout,
    space: &Space,
    model: &Model,
    software: &Software,
    virtual_stages: u32,
) -> Vec<Recompute> {
    if let Some(wished) = space.wish.recompute {
        return vec![wished];
    }
    let mut all = vec![Recompute::None, Recompute::Full];
    // A compiler chooses what to form again by itself; parts of it are not for a layout to say.
    if software.attention.is_none() {
        all.push(Recompute::Selective);
    }
    let layers = model.body_layers() / (base.pipeline * virtual_stages).max(1);
    if software.fusion != Fusion::Compiled {
        let parts = [1, 2, 3].map(|quarters| layers * quarters / 4);
        let mut parts: Vec<u32> = parts.into_iter().filter(|&n| n > 0 && n < layers).collect();
        parts.dedup();
        all.extend(parts.into_iter().map(Recompute::Layers));
    }
    all
}

fn experts(model: &Model) -> u64 {
    let ops = model.blocks.iter().flat_map(|block| &block.layer.ops);
    let counts = ops.filter_map(|op| match op.kind {
        OpKind::Experts(experts) => Some(experts.experts),
        _ => None,
    });
    counts.max().unwrap_or(0)
}

fn powers_of_two(divides: u64, most: u64) -> Vec<u64> {
    let powers = (0..64).map(|n| 1_u64 << n).take_while(|&power| power <= most);
    powers.filter(|&power| divides.is_multiple_of(power)).collect()
}

fn divisors(number: u32) -> Vec<u32> {
    let mut small = Vec::new();
    let mut large = Vec::new();
    let mut candidate = 1_u32;
    while u64::from(candidate) * u64::from(candidate) <= u64::from(number) {
        if number.is_multiple_of(candidate) {
            small.push(candidate);
            if candidate != number / candidate {
                large.push(number / candidate);
            }
        }
        candidate += 1;
    }
    large.reverse();
    small.extend(large);
    small
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_in_order() {
        assert_eq!(divisors(12), [1, 2, 3, 4, 6, 12]);
        assert_eq!(divisors(1), [1]);
        assert_eq!(divisors(16), [1, 2, 4, 8, 16]);
        assert!(divisors(0).is_empty());
        assert_eq!(powers_of_two(24, 64), [1, 2, 4, 8]);
    }
}
