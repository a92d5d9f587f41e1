//! Memory-bound kernels.

use foretrain_core::{Bytes, Nanos, Result};
use foretrain_cost::kernels::{Memory, MemoryKind, Operation, is_held_out};
use serde::Deserialize;

use super::super::corpus::Corpus;
use super::table::{device, millis, rows, whole};
use super::{Case, Curves, Kernels};

/// Sizes that the curves were not fitted to.
pub(in crate::validate) const MEMORY: Kernels = Kernels {
    name: "kernels-memory",
    about: "Memory-bound kernels of sizes that the shipped curves were not fitted to, one in five by \
            a hash of the bytes: additions, activations, norms and softmax forward and backward in \
            f16 on A100 and GH200 (Perlmutter, Vista), the optimiser's step on A100 (30 bytes per \
            parameter), embeddings (Vidur), and elementwise kernels, norms and softmax in f32 on six \
            older devices (NeuSight). Unfused norms, masks and rotations of the first source are \
            chains of many kernels and left out. The reference is 75 % of the bandwidth.",
    curves: Curves::Own,
    cases: held_out,
};

/// The same from other devices' curves.
pub(in crate::validate) const MEMORY_UNSEEN: Kernels = MEMORY.by_relatives(
    "kernels-memory-unseen-device",
    "The same kernels as if nothing had been measured on their device: the curve is the nearest \
     relative's, carried over by the bandwidth. Which relative is nearest was settled with these \
     errors in view. The reference is 75 % of the bandwidth.",
);

/// Kernels of another library.
pub(in crate::validate) const MEMORY_OTHER_SOURCES: Kernels = Kernels {
    name: "kernels-memory-other-source",
    about: "Additions, gated activations and RMS norms of an inference library on A100 and H100 \
            (Vidur), none of it fitted. Rows under 20 us are left out: the times are whole \
            microseconds. The reference is 75 % of the bandwidth.",
    curves: Curves::Own,
    cases: other_sources,
};

#[derive(Deserialize)]
struct Perlmutter {
    gpu: String,
    op: String,
    mp: Option<f64>,
    b: Option<f64>,
    h: Option<f64>,
    l: Option<f64>,
    dim: Option<f64>,
    encoders: Option<f64>,
    fwd_us: Option<f64>,
    bwd_us: Option<f64>,
}

#[derive(Deserialize)]
struct NeuSight {
    device: String,
    op: String,
    #[serde(rename = "B")]
    rows: Option<f64>,
    #[serde(rename = "H")]
    columns: Option<f64>,
    latency_ms: f64,
}

#[derive(Deserialize)]
struct Vidur {
    gpu: String,
    n_embd: u64,
    n_expanded_embd: u64,
    use_gated_mlp: String,
    num_tokens: u64,
    num_tensor_parallel_workers: u64,
    emb_ms: Option<f64>,
    input_layernorm_ms: Option<f64>,
    mlp_act_ms: Option<f64>,
    add_ms: Option<f64>,
}

/// Shorter rows of all sources are left out: the least unit of one is a tenth of that.
const SHORTEST: Nanos = Nanos::from_micros(10);

fn held_out(corpus: &Corpus<'_>, cases: &mut Vec<Case>) -> Result<()> {
    for row in rows::<Perlmutter>(corpus, "kernels_perlmutter_vista_fp16.csv.gz")? {
        training(&row, cases);
    }
    for row in rows::<NeuSight>(corpus, "kernels_neusight_fp32.csv.gz")? {
        let (Some(device), Some(elements)) = (device(&row.device), neusight_elements(&row)) else {
            continue;
        };
        let (kind, factors) = match row.op.as_str() {
            "ln" => (MemoryKind::Norm, 1),
            "softmax" => (MemoryKind::Softmax, 1),
            "add" | "mul" | "div" => (MemoryKind::Elementwise, 2),
            "addu" | "mulu" | "divu" | "powu" | "relu" | "tanh" | "gelu" | "pow" => {
                (MemoryKind::Elementwise, 1)
            }
            _ => continue,
        };
        let memory = memory(kind, 4 * factors * elements, 4 * elements);
        push(cases, device, memory, millis(row.latency_ms), true);
    }
    for row in rows::<Vidur>(corpus, "kernels_vidur_mlp_fwd.csv.gz")? {
        let Some(device) = device(&row.gpu) else { continue };
        if row.num_tensor_parallel_workers == 1 {
            let bytes = 2 * row.num_tokens * row.n_embd;
            let memory = memory(MemoryKind::Gather, bytes, bytes);
            push(cases, device, memory, row.emb_ms.and_then(millis), true);
        }
    }
    let bytes = |case: &Case| match case.operations[..] {
        [Operation::Memory(memory)] => [memory.read.get(), memory.written.get()],
        _ => [0; 2],
    };
    cases.retain(|case| case.measured >= SHORTEST && is_held_out(&bytes(case)));
    Ok(())
}

fn other_sources(corpus: &Corpus<'_>, cases: &mut Vec<Case>) -> Result<()> {
    for row in rows::<Vidur>(corpus, "kernels_vidur_mlp_fwd.csv.gz")? {
        let Some(device) = device(&row.gpu) else { continue };
        if row.num_tensor_parallel_workers != 1 {
            continue;
        }
        let bytes = 2 * row.num_tokens * row.n_embd;
        let sum = memory(MemoryKind::Elementwise, 2 * bytes, bytes);
        push(cases, device, sum, row.add_ms.and_then(millis), false);
        let norm = memory(MemoryKind::Norm, bytes, bytes);
        push(cases, device, norm, row.input_layernorm_ms.and_then(millis), false);
        if row.use_gated_mlp.eq_ignore_ascii_case("true") {
            let bytes = 2 * row.num_tokens * row.n_expanded_embd;
            let gated = memory(MemoryKind::Elementwise, 2 * bytes, bytes);
            push(cases, device, gated, row.mlp_act_ms.and_then(millis), false);
        }
    }
    cases.retain(|case| case.measured >= super::SHORT);
    Ok(())
}

fn neusight_elements(row: &NeuSight) -> Option<u64> {
    Some(whole(row.rows?)? * whole(row.columns?)?)
}

/// A kernel of a training step in f16, forward and backward. Backward reads the gradient beside
/// the input.
fn training(row: &Perlmutter, cases: &mut Vec<Case>) -> Option<()> {
    let device = device(&row.gpu)?;
    let ranks = row.mp.unwrap_or(1.0);
    if row.op.ends_with("Stage_optimizer") {
        return optimiser(row, device, ranks, cases);
    }
    let tokens = row.b? * row.l?;
    let (kind, elements) = match row.op.as_str() {
        "res_add" => (MemoryKind::Elementwise, tokens * row.dim?),
        "gelu" => (MemoryKind::Elementwise, tokens * 4.0 * row.dim? / ranks),
        "layernorm" => (MemoryKind::Norm, tokens * row.dim?),
        "ScaledUpperTriangMaskedSoftmax" => (MemoryKind::Softmax, tokens * row.l? * row.h? / ranks),
        _ => return None,
    };
    let bytes = 2 * whole(elements)?;
    let forward = if row.op == "res_add" { 2 * bytes } else { bytes };
    let time = |us: Option<f64>| us.and_then(|us| millis(us * 1e-3));
    push(cases, device, memory(kind, forward, bytes), time(row.fwd_us), true);
    // Backward an addition does nothing; what the table gives for it is the forward time again.
    if row.op != "res_add" {
        push(cases, device, memory(kind, 2 * bytes, bytes), time(row.bwd_us), true);
    }
    Some(())
}

/// A stage's parameters: twelve squares of the width per layer, and the embedding at both ends.
fn optimiser(
    row: &Perlmutter,
    device: &'static str,
    ranks: f64,
    cases: &mut Vec<Case>,
) -> Option<()> {
    // The other machine's times do not depend on the width: they are no times of this kernel.
    if device != "a100-sxm4-80gb" {
        return None;
    }
    let (layers, dim) = (row.encoders?, row.dim?);
    let embedding = if row.op.starts_with("middle") { 0.0 } else { 50_304.0 * dim / ranks };
    let parameters = layers * 12.0 * dim * dim / ranks + embedding;
    let (read, written) = ((16.0 * parameters) as u64, (14.0 * parameters) as u64);
    let memory = memory(MemoryKind::Optimiser, read, written);
    push(cases, device, memory, millis(row.fwd_us? * 1e-3), true);
    Some(())
}

fn memory(kind: MemoryKind, read: u64, written: u64) -> Memory {
    Memory { kind, read: Bytes::new(read), written: Bytes::new(written) }
}

fn push(
    cases: &mut Vec<Case>,
    device: &'static str,
    memory: Memory,
    measured: Option<Nanos>,
    around: bool,
) {
    let backward = memory.read.get() > memory.written.get() && memory.kind == MemoryKind::Norm;
    let group = format!("{:?}{}", memory.kind, if backward { " backward" } else { "" });
    let group = group.to_lowercase();
    let operations = vec![Operation::Memory(memory)];
    cases.extend(measured.map(|measured| Case { device, group, operations, measured, around }));
}
