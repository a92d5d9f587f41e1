//! Matrix products.

use foretrain_core::{DType, Nanos, Result};
use foretrain_cost::kernels::{Gemm, Operation, is_held_out};
use serde::Deserialize;

use super::super::corpus::Corpus;
use super::table::{device, millis, rows, whole};
use super::{Case, Curves, Kernels};

/// Shapes that the curves were not fitted to.
pub(in crate::validate) const GEMM: Kernels = Kernels {
    name: "kernels-gemm",
    about: "Matrix products of shapes that the shipped curves were not fitted to: one in five of \
            each table, by a hash of the shape, in bf16, fp8 and fp4 (aiconfigurator, nine devices) \
            and f32 (NeuSight, six). The eight-bit and four-bit rows hold a quantisation of the \
            input, whose time was fitted with the curve. The reference is 75 % of the roofline.",
    curves: Curves::Own,
    cases: held_out,
};

/// The same from other devices' curves.
pub(in crate::validate) const GEMM_UNSEEN: Kernels = GEMM.by_relatives(
    "kernels-gemm-unseen-device",
    "The same products as if nothing had been measured on their device: the curve is the nearest \
     relative's, carried over by peak, bandwidth, processors and the best rate of any product \
     where it is known. Which relative is nearest was settled with these errors in view. The \
     reference is 75 % of the roofline.",
);

/// Tables of other people, which no curve has seen.
pub(in crate::validate) const GEMM_OTHER_SOURCES: Kernels = Kernels {
    name: "kernels-gemm-other-source",
    about: "Linear layers of transformers in f16 as other people measured them, none of it fitted: \
            forward on A100 and H100 (Vidur), forward and backward on A100 and GH200 (Perlmutter and \
            Vista; backward is two products). The shapes follow from the model's sizes. GH200 has \
            no curve of its own. Rows under 20 us are left out: Vidur's times are whole \
            microseconds. The reference is 75 % of the roofline.",
    curves: Curves::Own,
    cases: other_sources,
};

#[derive(Deserialize)]
struct Aiconfigurator {
    system: String,
    gemm_dtype: String,
    m: u64,
    n: u64,
    k: u64,
    latency_ms: f64,
}

#[derive(Deserialize)]
struct NeuSight {
    device: String,
    file: String,
    #[serde(rename = "B")]
    batch: Option<f64>,
    #[serde(rename = "M")]
    m: Option<f64>,
    #[serde(rename = "N")]
    n: Option<f64>,
    #[serde(rename = "K")]
    k: Option<f64>,
    latency_ms: f64,
}

fn held_out(corpus: &Corpus<'_>, cases: &mut Vec<Case>) -> Result<()> {
    let table = rows::<Aiconfigurator>(corpus, "kernels_aiconfigurator_gemm.csv.gz")?;
    cases.extend(table.iter().filter_map(|row| {
        let (dtype, name) = match row.gemm_dtype.as_str() {
            "bfloat16" => (DType::Bf16, "bf16"),
            "fp8" => (DType::F8E4m3, "fp8"),
            "nvfp4" => (DType::F4, "fp4"),
            _ => return None,
        };
        let gemm = Gemm { output: DType::Bf16, ..Gemm::new(row.m, row.n, row.k, dtype) };
        case(&row.system, gemm, name, millis(row.latency_ms)?)
    }));
    let table = rows::<NeuSight>(corpus, "kernels_neusight_fp32.csv.gz")?;
    let products = table.iter().filter(|row| matches!(&*row.file, "bmm.csv" | "linear.csv"));
    cases.extend(products.filter_map(|row| {
        let [batch, m, n, k] = [whole(row.batch?)?, whole(row.m?)?, whole(row.n?)?, whole(row.k?)?];
        let gemm = Gemm { batch, ..Gemm::new(m, n, k, DType::F32) };
        case(&row.device, gemm, "f32", millis(row.latency_ms)?)
    }));
    Ok(())
}

fn case(system: &str, gemm: Gemm, group: &str, measured: Nanos) -> Option<Case> {
    let device = device(system)?;
    is_held_out(&[gemm.batch, gemm.m, gemm.n, gemm.k]).then(|| Case {
        device,
        group: group.into(),
        operations: vec![Operation::Gemm(gemm)],
        measured,
        around: true,
    })
}

#[derive(Deserialize)]
struct Vidur {
    gpu: String,
    n_head: u64,
    n_kv_head: u64,
    n_embd: u64,
    n_expanded_embd: u64,
    use_gated_mlp: String,
    num_tokens: u64,
    num_tensor_parallel_workers: u64,
    attn_pre_proj_ms: Option<f64>,
    attn_post_proj_ms: Option<f64>,
    mlp_up_proj_ms: Option<f64>,
    mlp_down_proj_ms: Option<f64>,
}

#[derive(Deserialize)]
struct Perlmutter {
    gpu: String,
    op: String,
    mp: Option<f64>,
    b: Option<f64>,
    l: Option<f64>,
    dim: Option<f64>,
    fwd_us: Option<f64>,
    bwd_us: Option<f64>,
}

const SHORTEST: Nanos = super::SHORT;

fn other_sources(corpus: &Corpus<'_>, cases: &mut Vec<Case>) -> Result<()> {
    for row in rows::<Vidur>(corpus, "kernels_vidur_mlp_fwd.csv.gz")? {
        let Some(device) = device(&row.gpu) else { continue };
        let (ranks, width) = (row.num_tensor_parallel_workers.max(1), row.n_embd);
        let heads = row.n_head + 2 * row.n_kv_head;
        let gates = if row.use_gated_mlp.eq_ignore_ascii_case("true") { 2 } else { 1 };
        let inner = row.n_expanded_embd / ranks;
        let head = width / row.n_head.max(1);
        for (time, n, k) in [
            (row.attn_pre_proj_ms, heads * head / ranks, width),
            (row.attn_post_proj_ms, width, width / ranks),
            (row.mlp_up_proj_ms, gates * inner, width),
            (row.mlp_down_proj_ms, width, inner),
        ] {
            let Some(measured) = time.and_then(millis) else { continue };
            let product = Gemm::new(row.num_tokens, n, k, DType::F16);
            cases.push(Case {
                device,
                group: "forward (vidur)".into(),
                operations: vec![Operation::Gemm(product)],
                measured,
                around: false,
            });
        }
    }
    for row in rows::<Perlmutter>(corpus, "kernels_perlmutter_vista_fp16.csv.gz")? {
        linear(&row, cases);
    }
    cases.retain(|case| case.measured >= SHORTEST);
    Ok(())
}

/// A linear layer of GPT-NeoX: queries, keys and values; projection; both of the MLP.
fn linear(row: &Perlmutter, cases: &mut Vec<Case>) -> Option<()> {
    let device = device(&row.gpu)?;
    let [ranks, batch, length, dim] =
        [whole(row.mp.unwrap_or(1.0))?, whole(row.b?)?, whole(row.l?)?, whole(row.dim?)?];
    let (m, slice) = (batch * length, |width: u64| width / ranks);
    let (n, k) = match row.op.as_str() {
        "linear1" => (slice(3 * dim), dim),
        "linear2" => (dim, slice(dim)),
        "linear3" => (slice(4 * dim), dim),
        "linear4" => (dim, slice(4 * dim)),
        _ => return None,
    };
    let product = |m, n, k| Operation::Gemm(Gemm::new(m, n, k, DType::F16));
    let mut add = |time: Option<f64>, pass: &str, operations| {
        let Some(measured) = time.and_then(|us| millis(us * 1e-3)) else { return };
        let group = format!("{pass} (perlmutter, vista)");
        cases.push(Case { device, group, operations, measured, around: false });
    };
    add(row.fwd_us, "forward", vec![product(m, n, k)]);
    add(row.bwd_us, "backward", vec![product(m, k, n), product(n, k, m)]);
    Some(())
}
