//! Whether a layout goes with a model, a batch and a cluster.

use foretrain_core::{DType, InputError, Result};
use foretrain_hardware::Cluster;
use foretrain_workload::model::{Model, Op, OpKind, Sample, Split};

use crate::layout::{ContextMethod, Layout, Schedule, Sharding};
use crate::training::Training;

/// Longest sequence, and most tokens of a micro-batch, that are taken seriously; far above any run,
/// far below where sizes overflow.
const LONGEST: u64 = 1 << 24;
const MOST_TOKENS: u64 = 1 << 31;
/// Most samples of a step.
const LARGEST_BATCH: u64 = 1 << 40;

/// Checks what is trained, whatever the layout.
///
/// # Errors
/// For sizes of nothing or beyond any run, and for number formats that the device does not have.
pub fn check_training(training: &Training, model: &Model, cluster: &Cluster) -> Result<()> {
    let sizes = [
        ("global batch", training.global_batch, LARGEST_BATCH),
        ("sequence length", training.sequence, LONGEST),
    ];
    for (what, value, most) in sizes {
        let needed = what != "sequence length" || !matches!(model.sample, Sample::Fixed);
        if (needed && value == 0) || value > most {
            return Err(InputError::new(format!("a {what} of {value} is outside 1 to {most}")));
        }
    }
    if matches!(model.sample, Sample::Pair { .. }) && !(1..=LONGEST).contains(&training.target) {
        return Err(InputError::new(format!(
            "\"{}\" needs a target length from 1 to {LONGEST}, found {}",
            model.name, training.target
        )));
    }
    if let Sample::Tokens { longest: Some(longest), .. } = model.sample
        && training.sequence > longest
    {
        return Err(InputError::new(format!(
            "\"{}\" has {longest} learned positions, fewer than the sequence's {}",
            model.name, training.sequence
        )));
    }
    if !training.expert_imbalance.is_finite()
        || !(1.0..=1000.0).contains(&training.expert_imbalance)
    {
        return Err(InputError::new(format!(
            "an expert imbalance of {} is no ratio of busiest to mean from 1 to 1000",
            training.expert_imbalance
        )));
    }
    if let Some(lora) = training.lora
        && !(1..=65_536).contains(&lora.rank)
    {
        return Err(InputError::new(format!("a LoRA rank of {} is outside 1 to 65536", lora.rank)));
    }
    if let Some(lora) = training.lora
        && !model.layers().any(|layer| layer.ops.iter().any(|op| lora.adapts(op)))
    {
        return Err(InputError::new(format!("\"{}\" has no layers for adapters", model.name))
            .hint("leave --lora out"));
    }
    let compute = training.precision.compute;
    let device = &cluster.node.device;
    let has_own = |dtype| device.peak.contains_key(&dtype);
    if matches!(compute, DType::Bf16 | DType::Tf32) && !has_own(compute) && has_own(DType::F16) {
        return Err(InputError::new(format!("{} has no {} units", device.name, compute.as_str()))
            .hint("choose --precision fp16 or fp32"));
    }
    if matches!(compute, DType::F8E4m3 | DType::F8E5m2 | DType::F4)
        && device.peak(compute).is_none()
    {
        let has: Vec<&str> = device.peak.keys().map(|dtype| dtype.as_str()).collect();
        return Err(InputError::new(format!(
            "{} has no {} units (it has {})",
            device.name,
            compute.as_str(),
            has.join(", ")
        ))
        .hint(if has_own(DType::Bf16) {
            "choose --precision bf16"
        } else {
            "choose --precision fp16"
        }));
    }
    Ok(())
}

/// Checks a layout; the first thing that does not go.
///
/// # Errors
/// If a degree does not divide what it should divide, or the job does not fit on the cluster.
pub fn check_layout(
    layout: &Layout,
    model: &Model,
    training: &Training,
    cluster: &Cluster,
) -> Result<()> {
    positive(layout)?;
    let devices = layout.devices();
    if let Some(available) = cluster.devices()
        && devices > available
    {
        return Err(InputError::new(format!(
            "the layout takes {devices} devices, and {} has {available}",
            cluster.name
        )));
    }
    let tokens = training.sequence.max(training.target).max(1);
    if layout.micro_batch.saturating_mul(tokens) > MOST_TOKENS {
        return Err(InputError::new(format!(
            "a micro-batch of {} sequences of {tokens} tokens is beyond any device",
            layout.micro_batch
        )));
    }
    for op in model.blocks.iter().flat_map(|block| &block.layer.ops) {
        check_op(layout, op)?;
    }
    sequence(layout, training, model)?;
    experts(layout, model)?;
    groups(layout)?;
    pipeline(layout, model)
}

fn positive(layout: &Layout) -> Result<()> {
    let degrees = [
        ("tp", layout.tensor),
        ("pp", layout.pipeline),
        ("dp", layout.data),
        ("cp", layout.context),
        ("ep", layout.expert),
        ("etp", layout.expert_tensor),
        ("vpp", layout.virtual_stages),
        ("hsdp", layout.shard_group.unwrap_or(1)),
    ];
    for (name, degree) in degrees {
        if degree == 0 {
            return Err(InputError::new(format!("{name} = 0, and it is at least 1")));
        }
    }
    if layout.micro_batch == 0 {
        return Err(InputError::new("mbs = 0, and it is at least 1"));
    }
    if layout.devices() > u64::from(u32::MAX) {
        return Err(InputError::new("tp x pp x cp x dp is more than any machine has devices"));
    }
    Ok(())
}

fn check_op(layout: &Layout, op: &Op) -> Result<()> {
    let tensor = u64::from(layout.tensor);
    let divides = |what: &str, number: u64| {
        if number.is_multiple_of(tensor) {
            return Ok(());
        }
        Err(InputError::new(format!(
            "tp = {tensor} does not divide {what} = {number} of {}",
            op.name
        )))
    };
    match op.kind {
        OpKind::Attention(attention) => {
            divides("heads", attention.heads)?;
            if attention.kv_heads > tensor {
                divides("key-value heads", attention.kv_heads)?;
            } else if !tensor.is_multiple_of(attention.kv_heads.max(1)) {
                return Err(InputError::new(format!(
                    "tp = {tensor} is no multiple of the {} key-value heads",
                    attention.kv_heads
                )));
            }
            let heads_ranks = tensor * u64::from(layout.context);
            let ulysses = layout.context > 1 && layout.context_method == ContextMethod::Ulysses;
            if ulysses && !attention.heads.is_multiple_of(heads_ranks) {
                return Err(InputError::new(format!(
                    "tp x cp = {heads_ranks} does not divide {} heads, as Ulysses needs",
                    attention.heads
                )));
            }
            Ok(())
        }
        OpKind::Linear { inputs, .. } if op.split == Split::Rows => divides("inputs", inputs),
        OpKind::Linear { outputs, .. } if op.split == Split::Columns => divides("outputs", outputs),
        OpKind::Experts(experts) => {
            let ranks = u64::from(layout.expert_tensor);
            if experts.hidden.is_multiple_of(ranks) {
                Ok(())
            } else {
                Err(InputError::new(format!(
                    "etp = {ranks} does not divide the experts' width {}",
                    experts.hidden
                )))
            }
        }
        _ => Ok(()),
    }
}

fn sequence(layout: &Layout, training: &Training, model: &Model) -> Result<()> {
    let parts = u64::from(layout.context);
    let fixed = matches!(model.sample, Sample::Fixed);
    if parts > 1 && fixed {
        return Err(InputError::new(format!(
            "\"{}\" has no sequence for cp to divide",
            model.name
        )));
    }
    if parts > 1 && !training.sequence.is_multiple_of(2 * parts) {
        return Err(InputError::new(format!(
            "cp = {parts} needs a sequence that is a multiple of {}, found {}",
            2 * parts,
            training.sequence
        )));
    }
    let tensor = u64::from(layout.tensor);
    let part = training.sequence / parts.max(1);
    if layout.sequence_parallel && layout.tensor > 1 && !fixed && !part.is_multiple_of(tensor) {
        return Err(InputError::new(format!(
            "sequence parallelism over tp = {tensor} does not divide {part} positions"
        )));
    }
    Ok(())
}

fn experts(layout: &Layout, model: &Model) -> Result<()> {
    let ops = || model.blocks.iter().flat_map(|block| &block.layer.ops);
    let counts = ops().filter_map(|op| match op.kind {
        OpKind::Experts(experts) => Some(experts.experts),
        _ => None,
    });
    let counts: Vec<u64> = counts.collect();
    if !counts.is_empty() && layout.expert_tensor > layout.tensor {
        return Err(InputError::new(format!(
            "etp = {} is more than tp = {}: ranks that divide an expert see the same tokens",
            layout.expert_tensor, layout.tensor
        )));
    }
    if layout.expert == 1 {
        return Ok(());
    }
    let ranks = u64::from(layout.expert);
    if counts.is_empty() {
        return Err(InputError::new(format!("\"{}\" has no experts for ep to divide", model.name)));
    }
    if let Some(count) = counts.iter().find(|count| !count.is_multiple_of(ranks)) {
        return Err(InputError::new(format!("ep = {ranks} does not divide {count} experts")));
    }
    let stage = u64::from(layout.tensor) * u64::from(layout.context) * u64::from(layout.data);
    let taken = ranks * u64::from(layout.expert_tensor);
    if !stage.is_multiple_of(taken) {
        return Err(InputError::new(format!(
            "ep x etp = {taken} does not divide the {stage} ranks of a stage (tp x cp x dp)"
        )));
    }
    Ok(())
}

fn groups(layout: &Layout) -> Result<()> {
    let Some(group) = layout.shard_group else { return Ok(()) };
    let ranks = layout.gradient_ranks();
    if !ranks.is_multiple_of(group) {
        return Err(InputError::new(format!("hsdp = {group} does not divide dp x cp = {ranks}")));
    }
    if layout.sharding != Sharding::Parameters {
        return Err(InputError::new("hsdp divides parameters, so it needs zero=3"));
    }
    Ok(())
}

fn pipeline(layout: &Layout, model: &Model) -> Result<()> {
    let body = model.body_layers();
    let chunks = match layout.schedule {
        Schedule::DualPipe => layout.pipeline,
        _ => layout.chunks(),
    };
    if layout.pipeline > 1 && chunks > body {
        return Err(InputError::new(format!(
            "{body} layers cannot fill {chunks} chunks of a pipeline"
        )));
    }
    if layout.pipeline == 1 && layout.virtual_stages > 1 {
        return Err(InputError::new("vpp needs more than one stage"));
    }
    Ok(())
}
