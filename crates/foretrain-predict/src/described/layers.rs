//! From the operations of a forward pass to layers.

use std::collections::HashMap;

use foretrain_core::Result;
use foretrain_workload::Chain;
use foretrain_workload::model::{
    Block, Conv2d, Elementwise, Norm, Op, OpKind, Parameter, SelfAttention, Split,
};

use super::kind::Kind;
use super::products::Product;
use super::walk::{Call, Pass};

/// Values that so many operations read (masks, positions) do not hold a cut up.
const SHARED: usize = 4;

/// An operation per sample.
struct Step {
    op: Op,
    positions: Option<u64>,
    /// Numbers of its result.
    numbers: u64,
    cut: bool,
}

/// The layers of a pass of `batch` samples.
pub(super) fn blocks(pass: Pass<'_>, batch: u64) -> Result<Vec<Block>> {
    let cuts = cuts(&pass.calls);
    let mut steps: Vec<Step> = Vec::with_capacity(pass.calls.len());
    let mut scores: Option<(Product, usize)> = None;
    for (at, (call, cut)) in pass.calls.into_iter().zip(cuts).enumerate() {
        let product = match call.kind {
            Kind::Both { left, right } => both(&call, left, right),
            _ => None,
        };
        let attention = product.zip(scores).and_then(|(values, (scores, from))| {
            Some((scores.attention(&values, batch)?, scores, from))
        });
        if let Some((attention, product, from)) = attention {
            // What lies between works on the scores, which one kernel never writes.
            let numbers = product.numbers().div_ceil(batch);
            let mut place = 0;
            steps.retain(|step| {
                place += 1;
                place <= from || step.numbers != numbers
            });
            steps.push(step(
                &call,
                at,
                OpKind::Attention(attention),
                Some(product.rows),
                batch,
                cut,
            ));
            scores = None;
            continue;
        }
        if let Some((kind, positions)) = operation(&call, product, batch) {
            if let Some(product) = product {
                scores = Some((product, steps.len()));
            }
            steps.push(step(&call, at, kind, positions, batch, cut));
        }
    }
    let mut chain = Chain::default();
    for step in steps {
        chain.add(step.op, step.positions, step.numbers);
        if step.cut {
            chain.cut();
        }
    }
    chain.blocks()
}

fn step(
    call: &Call<'_>,
    at: usize,
    kind: OpKind,
    positions: Option<u64>,
    batch: u64,
    cut: bool,
) -> Step {
    let name = call.operator.name.trim_start_matches("aten::").trim_end_matches('_');
    let mut op = Op::new(format!("{name}.{at}"), kind, Split::Whole);
    op.tied = call.tied;
    let named = call.parameters.iter();
    op.parameters =
        named.map(|&(name, elements)| Parameter { name, elements, divided: false }).collect();
    Step { op, positions, numbers: numbers(call, batch), cut }
}

/// Numbers of the result per sample.
fn numbers(call: &Call<'_>, batch: u64) -> u64 {
    call.operator.outputs.first().map_or(1, |output| output.elements).div_ceil(batch).max(1)
}

fn both(call: &Call<'_>, left: usize, right: usize) -> Option<Product> {
    let shape = |at: usize| call.operator.inputs.get(at)?.first().map(|operand| &operand.shape[..]);
    Product::of(shape(left)?, shape(right)?)
}

/// Kind and positions of an operation. Without recorded shapes it is work on each number.
fn operation(
    call: &Call<'_>,
    product: Option<Product>,
    batch: u64,
) -> Option<(OpKind, Option<u64>)> {
    let each = |what| Some((OpKind::Elementwise { what, width: numbers(call, batch) }, None));
    let known = match call.kind {
        Kind::Each(what) => return each(what),
        Kind::Both { .. } => product.map(|product| {
            let kind = OpKind::Linear { inputs: product.inner, outputs: product.columns };
            (kind, Some(product.count.saturating_mul(product.rows).div_ceil(batch)))
        }),
        _ => shaped(call, batch),
    };
    let known = known.filter(|(_, positions)| *positions != Some(0));
    known.or_else(|| each(Elementwise::Scale))
}

fn shaped(call: &Call<'_>, batch: u64) -> Option<(OpKind, Option<u64>)> {
    let data = call.kind.data(call.operator)?;
    let input = |at: usize| call.operator.inputs.get(at)?.first();
    let weight = call.kind.weight().and_then(input).map(|weight| &weight.shape[..]);
    let output = call.operator.outputs.first()?;
    let rows = |width: u64| data.elements.checked_div(width).map(|rows| rows.div_ceil(batch));
    Some(match call.kind {
        Kind::Linear => {
            let [outputs, inputs] = *weight? else { return None };
            (OpKind::Linear { inputs, outputs }, rows(inputs))
        }
        Kind::Product { .. } => {
            let [inputs, outputs] = *weight? else { return None };
            (OpKind::Linear { inputs, outputs }, rows(inputs))
        }
        Kind::Convolution => (convolution(&data.shape, weight?, &output.shape)?, Some(1)),
        Kind::Attention => attention(call, &data.shape)?,
        Kind::BatchNorm => {
            let channels = *data.shape.get(1)?;
            let places = data.elements.checked_div(channels)?.div_ceil(batch);
            (OpKind::BatchNorm { channels, places }, Some(1))
        }
        Kind::Norm { is_rms, .. } => {
            let width = weight.map_or_else(|| data.shape.last().copied(), across)?;
            let norm = if is_rms { Norm::Rms } else { Norm::Layer };
            (OpKind::Norm { norm, width }, rows(width))
        }
        Kind::Embedding => {
            let [rows, width] = *weight? else { return None };
            (OpKind::Embedding { rows, width, lookups: 1 }, Some(data.elements.div_ceil(batch)))
        }
        Kind::Bag => {
            let [rows, width] = *weight? else { return None };
            let lookups = data.elements.div_ceil(batch);
            (OpKind::Embedding { rows, width, lookups }, Some(1))
        }
        Kind::Loss => {
            let vocabulary = *data.shape.get(1).or(data.shape.last())?;
            (OpKind::CrossEntropy { vocabulary }, rows(vocabulary))
        }
        Kind::Pool => {
            let inputs = data.elements.div_ceil(batch);
            (OpKind::Pool { inputs, outputs: numbers(call, batch) }, None)
        }
        Kind::Each(_) | Kind::Both { .. } => return None,
    })
}

/// Numbers of these extents.
fn across(extents: &[u64]) -> Option<u64> {
    extents.iter().try_fold(1_u64, |all, n| all.checked_mul(*n))
}

/// One-dimensional filters get a height of 1; the depth of three-dimensional ones goes with it.
fn convolution(data: &[u64], filter: &[u64], output: &[u64]) -> Option<OpKind> {
    let plane = |sides: &[u64]| -> Option<(u64, u64)> {
        let (last, first) = sides.split_last()?;
        Some((across(first)?, *last))
    };
    let (&outputs, &per_group, &inputs) = (filter.first()?, filter.get(1)?, data.get(1)?);
    let (from, to) = (*data.last()?, *output.last()?);
    Some(OpKind::Convolution(Conv2d {
        inputs,
        outputs,
        kernel: plane(filter.get(2..)?)?,
        // Padding moves the extents by less than half a stride.
        stride: (from as f64 / to.max(1) as f64).round().max(1.0) as u64,
        padding: None,
        dilation: 1,
        size: plane(output.get(2..)?)?,
        groups: inputs.checked_div(per_group)?.max(1),
    }))
}

/// Queries, keys and values as (samples, heads, positions, width).
fn attention(call: &Call<'_>, queries: &[u64]) -> Option<(OpKind, Option<u64>)> {
    let shape = |at: usize| call.operator.inputs.get(at)?.first().map(|operand| &operand.shape[..]);
    let [_, heads, positions, head_dim] = *queries else { return None };
    let [_, kv_heads, _, _] = *shape(1)? else { return None };
    let value_dim = *shape(2)?.last()?;
    let causal = call.operator.flags.iter().any(|&(_, flag)| flag);
    let kind =
        SelfAttention { heads, kv_heads, head_dim, value_dim, causal, window: None, cross: false };
    Some((OpKind::Attention(kind), Some(positions)))
}

/// For each operation whether only one value of the sample is alive after it.
fn cuts(calls: &[Call<'_>]) -> Vec<bool> {
    let mut readers: HashMap<usize, (usize, usize)> = HashMap::new();
    for (at, call) in calls.iter().enumerate() {
        for value in &call.reads {
            let reader = readers.entry(*value).or_default();
            *reader = (at, reader.1 + 1);
        }
    }
    let mut ends = vec![0_usize; calls.len()];
    let mut alive = 0;
    let mut cuts = Vec::with_capacity(calls.len());
    for (at, call) in calls.iter().enumerate() {
        for value in &call.writes {
            if let Some(&(last, count)) = readers.get(value)
                && last > at
                && count < SHARED
            {
                alive += 1;
                ends[last] += 1;
            }
        }
        alive -= ends[at];
        cuts.push(alive <= 1);
    }
    cuts
}
