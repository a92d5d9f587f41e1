//! Fused attention.

use foretrain_core::{DType, Result};
use foretrain_cost::kernels::{Attention, AttentionKernel, Operation, Pass, is_held_out};
use serde::Deserialize;

use super::super::corpus::Corpus;
use super::table::{device, millis, rows, whole};
use super::{Case, Curves, Kernels};

/// Shapes that the curves were not fitted to.
pub(in crate::validate) const ATTENTION: Kernels = Kernels {
    name: "kernels-attention",
    about: "Fused attention of shapes that the shipped curves were not fitted to, one in five by a \
            hash of the shape: causal and forward on eight devices (aiconfigurator; the rows hold \
            rotation and caching of keys, whose time was fitted with the curve), forward and \
            backward without a mask on A100 (Perlmutter). The backward rows of GH200 are impossibly \
            fast and left out. The reference is 75 % of the roofline.",
    curves: Curves::Own,
    cases: held_out,
};

/// The same from other devices' curves.
pub(in crate::validate) const ATTENTION_UNSEEN: Kernels = ATTENTION.by_relatives(
    "kernels-attention-unseen-device",
    "The same kernels as if nothing had been measured on their device: the curve is the nearest \
     relative's, carried over by peak, bandwidth and processors. Which relative is nearest was \
     settled with these errors in view. The reference is 75 % of the roofline.",
);

#[derive(Deserialize)]
struct Aiconfigurator {
    system: String,
    batch_size: u64,
    isl: u64,
    num_heads: u64,
    num_key_value_heads: u64,
    head_dim: u64,
    latency_ms: f64,
}

#[derive(Deserialize)]
struct Perlmutter {
    gpu: String,
    op: String,
    mp: Option<f64>,
    b: Option<f64>,
    h: Option<f64>,
    l: Option<f64>,
    dim: Option<f64>,
    fwd_us: Option<f64>,
    bwd_us: Option<f64>,
}

fn held_out(corpus: &Corpus<'_>, cases: &mut Vec<Case>) -> Result<()> {
    let table = rows::<Aiconfigurator>(corpus, "kernels_aiconfigurator_context_attention.csv.gz")?;
    cases.extend(table.iter().filter_map(|row| {
        let device = device(&row.system).filter(|&device| device != A100)?;
        let sizes = [row.batch_size, row.num_heads, row.num_key_value_heads, row.isl, row.head_dim];
        let shape = shape(sizes, true, DType::Bf16);
        let operations = vec![Operation::Attention(shape)];
        let measured = millis(row.latency_ms)?;
        is_held_out(&sizes).then(|| {
            let group = "forward, causal".into();
            Case { device, group, operations, measured, around: true }
        })
    }));
    for row in rows::<Perlmutter>(corpus, "kernels_perlmutter_vista_fp16.csv.gz")? {
        fused(&row, cases);
    }
    Ok(())
}

/// Its training kernel is Perlmutter's; aiconfigurator's is one for inference.
const A100: &str = "a100-sxm4-80gb";

fn fused(row: &Perlmutter, cases: &mut Vec<Case>) -> Option<()> {
    let device = device(&row.gpu).filter(|&device| device == A100 && row.op == "flash_atten")?;
    let [ranks, batch, all, length, dim] =
        [whole(row.mp?)?, whole(row.b?)?, whole(row.h?)?, whole(row.l?)?, whole(row.dim?)?];
    let (heads, width) = (all / ranks, dim / all);
    let sizes = [batch, heads, heads, length, width];
    if all % ranks != 0 || dim % all != 0 || !is_held_out(&sizes) {
        return None;
    }
    for (pass, time, name) in
        [(Pass::Forward, row.fwd_us, "forward"), (Pass::Backward, row.bwd_us, "backward")]
    {
        let Some(measured) = time.and_then(|us| millis(us * 1e-3)) else { continue };
        let shape = Attention { pass, ..shape(sizes, false, DType::F16) };
        let operations = vec![Operation::Attention(shape)];
        cases.push(Case { device, group: name.into(), operations, measured, around: true });
    }
    Some(())
}

/// Sizes: sequences, heads, heads of keys, length, width.
fn shape(sizes: [u64; 5], causal: bool, dtype: DType) -> Attention {
    let [batch, heads, kv_heads, length, width] = sizes;
    Attention {
        batch,
        heads,
        kv_heads,
        queries: length,
        keys: length,
        head_dim: width,
        value_dim: width,
        causal,
        window: None,
        dtype,
        pass: Pass::Forward,
        kernel: AttentionKernel::Tuned,
    }
}
