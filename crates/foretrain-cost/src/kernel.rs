//! A kernel's time on another device, by the ratio of the limits that bound it.
//!
//! Between the two bounds the ratio blends geometrically as in Habitat's wave scaling (Yu et al.,
//! ATC'21): with `g` the share of memory, `T'/T = (BW/BW')^g * (P/P')^(1-g)`, and from a kernel's
//! arithmetic intensity `x` and the destination's ridge point `R`, `g = 1 - x/2R` up to the
//! ridge and `R/2x` beyond. Clock and multiprocessor ratios stand together as the dense peak `P`.

use foretrain_core::{Bytes, DType, Estimate, Evidence, EvidenceKind, FlopRate, Flops};
use foretrain_hardware::Device;
use serde::Serialize;

/// What a kernel does, as far as it decides what bounds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelClass {
    /// Matrix multiplication.
    Gemm,
    /// Convolution.
    Convolution,
    /// Fused attention.
    Attention,
    /// One output per input position.
    Elementwise,
    /// Sums, norms, softmax.
    Reduction,
    /// Table look-up, gather, scatter, sort.
    Indexing,
    /// Copy or fill.
    Copy,
    /// The name tells nothing.
    Unknown,
}

impl KernelClass {
    /// The word for people and programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Convolution => "convolution",
            Self::Attention => "attention",
            Self::Elementwise => "elementwise",
            Self::Reduction => "reduction",
            Self::Indexing => "indexing",
            Self::Copy => "copy",
            Self::Unknown => "unknown",
        }
    }
}

/// Word in a kernel's or operator's lower-case name, and the class it tells. First match wins.
const WORDS: &[(&str, KernelClass)] = &[
    // The library of embedding tables multiplies no matrices on devices, whatever its name.
    ("fbgemm_gpu", KernelClass::Indexing),
    ("split_embedding", KernelClass::Indexing),
    ("attention", KernelClass::Attention),
    ("fmha", KernelClass::Attention),
    ("flash", KernelClass::Attention),
    ("conv", KernelClass::Convolution),
    ("wgrad", KernelClass::Convolution),
    ("dgrad", KernelClass::Convolution),
    ("fprop", KernelClass::Convolution),
    ("winograd", KernelClass::Convolution),
    ("gemm", KernelClass::Gemm),
    ("gemv", KernelClass::Reduction),
    ("addmm", KernelClass::Gemm),
    ("matmul", KernelClass::Gemm),
    ("linear", KernelClass::Gemm),
    ("cutlass", KernelClass::Gemm),
    ("nvjet", KernelClass::Gemm),
    ("cijk_", KernelClass::Gemm),
    ("aten::mm", KernelClass::Gemm),
    ("aten::bmm", KernelClass::Gemm),
    ("memcpy", KernelClass::Copy),
    ("memset", KernelClass::Copy),
    ("copy", KernelClass::Copy),
    ("catarray", KernelClass::Copy),
    ("embedding", KernelClass::Indexing),
    ("index", KernelClass::Indexing),
    ("gather", KernelClass::Indexing),
    ("scatter", KernelClass::Indexing),
    ("sort", KernelClass::Indexing),
    ("norm", KernelClass::Reduction),
    ("softmax", KernelClass::Reduction),
    ("reduce", KernelClass::Reduction),
    ("loss", KernelClass::Reduction),
    ("pool", KernelClass::Reduction),
    ("elementwise", KernelClass::Elementwise),
    ("multi_tensor", KernelClass::Elementwise),
    ("adam", KernelClass::Elementwise),
    ("gelu", KernelClass::Elementwise),
    ("relu", KernelClass::Elementwise),
    ("dropout", KernelClass::Elementwise),
    ("triton_poi", KernelClass::Elementwise),
    ("triton_red", KernelClass::Reduction),
    ("triton_per", KernelClass::Reduction),
    ("fill", KernelClass::Copy),
    ("cat", KernelClass::Copy),
];

impl KernelClass {
    /// The class that a kernel's or operator's name tells.
    pub fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let found = WORDS.iter().find(|(word, _)| name.contains(word));
        found.map_or(Self::Unknown, |&(_, class)| class)
    }

    /// Share of memory in what bounds the class, and the relative spread of a ratio built on it.
    pub(crate) const fn memory_share(self) -> (f64, f64) {
        match self {
            Self::Gemm => (0.2, 0.25),
            Self::Convolution => (0.35, 0.3),
            Self::Attention => (0.35, 0.35),
            Self::Elementwise | Self::Copy => (1.0, 0.12),
            Self::Reduction => (0.95, 0.2),
            Self::Indexing => (0.9, 0.3),
            Self::Unknown => (0.6, 0.45),
        }
    }
}

/// New time over old, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelRatio {
    /// Time on `to` over time on `from`.
    pub ratio: Estimate<f64>,
    /// The class by name.
    pub class: KernelClass,
    /// Share of memory in what bounds the kernel on `to`, 0 to 1.
    pub memory_share: f64,
    /// What the ratio rests on.
    pub evidence: Evidence,
}

/// Spread of a ratio whose memory share follows from FLOPs and bytes.
const ROOFLINE_SPREAD: f64 = 0.18;
/// Spread added where a device lacks the figure that is needed.
const MISSING_FIGURE_SPREAD: f64 = 0.3;

/// How much longer (or shorter) a kernel takes on `to` than on `from`.
///
/// FLOPs and bytes decide what bounds it if both are known, else the class its name tells. A
/// `dtype` of `None` counts as f32. The same device gives exactly 1. Launch overhead is the
/// host's and is not scaled here.
pub fn kernel_ratio(
    name: &str,
    dtype: Option<DType>,
    flops: Option<Flops>,
    bytes: Option<Bytes>,
    from: &Device,
    to: &Device,
) -> KernelRatio {
    let class = KernelClass::of(name);
    let dtype = dtype.unwrap_or(DType::F32);
    let (by_class, class_spread) = class.memory_share();
    let by_roofline = memory_share(flops, bytes, to.ridge(dtype));
    let memory_share = by_roofline.unwrap_or(by_class);
    if from == to {
        let evidence = Evidence::new(EvidenceKind::Measured, "kernel time", "same device", 0.0);
        return KernelRatio { ratio: Estimate::exact(1.0), class, memory_share, evidence };
    }
    let memory = quotient(from.memory_bandwidth.get(), to.memory_bandwidth.get());
    let peak = |device: &Device| device.peak(dtype).map_or(0.0, FlopRate::get);
    let compute = quotient(peak(from), peak(to));
    let missing = memory.is_none() || compute.is_none();
    // Without one of the two figures the other has to do; without both nothing is known.
    let memory = memory.or(compute).unwrap_or(1.0);
    let compute = compute.unwrap_or(memory);
    let value = memory.powf(memory_share) * compute.powf(1.0 - memory_share);
    let spread = if by_roofline.is_some() { ROOFLINE_SPREAD } else { class_spread }
        + if missing { MISSING_FIGURE_SPREAD } else { 0.0 };
    KernelRatio {
        ratio: Estimate::with_relative_spread(value, spread),
        class,
        memory_share,
        evidence: evidence(from, to, by_roofline.is_some(), missing, spread),
    }
}

/// Habitat's share, from what is known.
fn memory_share(flops: Option<Flops>, bytes: Option<Bytes>, ridge: Option<f64>) -> Option<f64> {
    let (flops, bytes) = (flops?.get(), bytes?.as_f64());
    let ridge = ridge.filter(|ridge| ridge.is_finite() && *ridge > 0.0)?;
    if bytes <= 0.0 || !flops.is_finite() || flops < 0.0 {
        return None;
    }
    let intensity = flops / bytes;
    Some(if intensity <= ridge { 1.0 - 0.5 * intensity / ridge } else { 0.5 * ridge / intensity })
}

fn quotient(from: f64, to: f64) -> Option<f64> {
    let value = from / to;
    (value.is_finite() && value > 0.0).then_some(value)
}

fn evidence(from: &Device, to: &Device, roofline: bool, missing: bool, spread: f64) -> Evidence {
    let basis = if roofline { "FLOPs and bytes" } else { "the kernel's name" };
    let lack = if missing { "; a peak is not in the catalogue" } else { "" };
    let source = format!(
        "ratio of memory bandwidth and dense peak, {} to {}, weighed by {basis}{lack}",
        from.name, to.name
    );
    let kind = if roofline && !missing { EvidenceKind::Catalogue } else { EvidenceKind::Inferred };
    Evidence::new(kind, "kernel time on another device", source, spread)
}

#[cfg(test)]
mod tests {
    use foretrain_hardware::Catalogue;

    use super::*;

    fn device(name: &str) -> Device {
        Catalogue::builtin().cluster(name).unwrap().node.device
    }

    #[test]
    fn names_tell_the_class() {
        for (name, want) in [
            ("ampere_bf16_s16816gemm_bf16_128x256_ldg8", KernelClass::Gemm),
            ("void cutlass::Kernel<cutlass_80_tensorop>", KernelClass::Gemm),
            ("flash_fwd_kernel", KernelClass::Attention),
            ("void at::native::vectorized_elementwise_kernel<4>", KernelClass::Elementwise),
            ("void at::native::reduce_kernel<512, 1>", KernelClass::Reduction),
            ("vectorized_layer_norm_kernel", KernelClass::Reduction),
            ("Memcpy DtoD (Device -> Device)", KernelClass::Copy),
            ("sm80_xmma_wgrad_implicit_gemm", KernelClass::Convolution),
            ("Cijk_Ailk_Bljk_BBS_BH_MT128x128", KernelClass::Gemm),
            ("embedding_backward_kernel", KernelClass::Indexing),
            ("my_kernel", KernelClass::Unknown),
            ("", KernelClass::Unknown),
        ] {
            assert_eq!(KernelClass::of(name), want, "{name}");
        }
    }

    #[test]
    fn each_bound_scales_by_its_own_limit() {
        let (a, h) = (device("dgx-a100"), device("dgx-h100"));
        let copy = kernel_ratio("Memcpy DtoD", None, None, None, &a, &h);
        let want = a.memory_bandwidth.get() / h.memory_bandwidth.get();
        assert!((copy.ratio.value - want).abs() < 1e-12);
        // A thousand times past the ridge only the peak counts.
        let (flops, bytes) = (Flops::new(1e15), Bytes::new(1_000_000_000));
        let gemm = kernel_ratio("gemm", Some(DType::Bf16), Some(flops), Some(bytes), &a, &h);
        let want = a.peak(DType::Bf16).unwrap().get() / h.peak(DType::Bf16).unwrap().get();
        assert!((gemm.ratio.value / want - 1.0).abs() < 0.001, "{gemm:?}");
        assert!(gemm.ratio.value < copy.ratio.value);
        // At the ridge both count alike.
        let ridge = h.ridge(DType::Bf16).unwrap();
        let at = kernel_ratio(
            "x",
            Some(DType::Bf16),
            Some(Flops::new(ridge * 1e9)),
            Some(bytes),
            &a,
            &h,
        );
        assert!((at.memory_share - 0.5).abs() < 1e-9);
    }

    #[test]
    fn ratios_invert_and_the_same_device_is_exact() {
        let (a, h) = (device("dgx-a100"), device("dgx-h100"));
        let there = kernel_ratio("softmax", None, None, None, &a, &h).ratio.value;
        let back = kernel_ratio("softmax", None, None, None, &h, &a).ratio.value;
        assert!((there * back - 1.0).abs() < 1e-12);
        let same = kernel_ratio("softmax", None, None, None, &a, &a);
        assert_eq!(same.ratio, Estimate::exact(1.0));
    }

    #[test]
    fn odd_figures_give_finite_ratios() {
        let (a, mut bare) = (device("dgx-a100"), device("dgx-h100"));
        bare.peak.clear();
        let gemm = |flops, bytes| {
            kernel_ratio("gemm", None, Some(Flops::new(flops)), Some(Bytes::new(bytes)), &a, &bare)
        };
        for (flops, bytes) in [(0.0, 0), (f64::NAN, 1), (f64::INFINITY, 1), (-1.0, 1), (1.0, 0)] {
            let found = gemm(flops, bytes);
            assert!(found.ratio.value.is_finite() && found.ratio.value > 0.0);
            assert!(found.evidence.source.contains("not in the catalogue"));
            assert!(found.evidence.relative_spread > MISSING_FIGURE_SPREAD);
        }
    }
}
