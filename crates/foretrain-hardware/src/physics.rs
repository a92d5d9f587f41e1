//! What links and devices of each generation can and cannot do: defaults for figures that a file
//! leaves out, and limits that catch a wrong unit, a sum of both directions, or a sparse peak.
//!
//! Payload efficiencies of NVLink, PCIe and InfiniBand are NCCL's topology constants
//! (`src/graph/topo.h`: NVLink 18/20/20/20.6/40.1 GB/s per link for sm60/70/80/90/100, 12 GB/s
//! for PCIe 3 x16 and for a 100 Gbit/s NIC) over the wire rate. The rest are assumptions and say so.

use std::collections::BTreeMap;

use foretrain_core::{Bandwidth, DType, FlopRate, Nanos};

use crate::node::{LinkKind, NicKind};
use crate::source::Source;

/// Source id of NCCL's constants.
const NCCL: &str = "nccl";

/// One direction of one NVLink, GB/s, by generation.
const NVLINK_GBPS: [f64; 5] = [20.0, 25.0, 25.0, 25.0, 50.0];
/// NCCL's payload rate of the same, GB/s.
const NVLINK_PAYLOAD_GBPS: [f64; 5] = [18.0, 20.0, 20.0, 20.6, 40.1];
/// Links of the best device of each NVLink generation.
const NVLINK_MOST_LINKS: [u32; 5] = [4, 6, 12, 18, 18];
/// One direction of PCIe x16, GB/s, by generation from 3.
const PCIE_X16_GBPS: [f64; 4] = [15.75, 31.5, 63.0, 121.0];

/// Slack for figures that are sold rounded up: "26.5 GB/s" links, "32 GB/s" PCIe.
const ROUNDING: f64 = 1.07;

/// A default and the id of its source.
pub(crate) type Default<T> = (T, &'static str);

/// The share of the wire rate that payload reaches on a scale-up link.
pub(crate) fn link_efficiency(kind: LinkKind, generation: Option<u32>) -> Default<f64> {
    match kind {
        LinkKind::Nvlink | LinkKind::Nvswitch => match nvlink_index(generation) {
            Some(index) => (NVLINK_PAYLOAD_GBPS[index] / NVLINK_GBPS[index], NCCL),
            None => (0.8, Source::ASSUMED),
        },
        LinkKind::Pcie if generation == Some(3) => (12.0 / PCIE_X16_GBPS[0], NCCL),
        LinkKind::Pcie => (12.0 / PCIE_X16_GBPS[0], Source::ASSUMED),
        LinkKind::Xgmi | LinkKind::Socket => (0.75, Source::ASSUMED),
        LinkKind::Ici | LinkKind::Neuronlink | LinkKind::Ethernet => (0.85, Source::ASSUMED),
        LinkKind::None => (1.0, Source::DERIVED),
    }
}

/// One hop between devices of a node: NCCL's LL ring hop for NVLink and PCIe.
pub(crate) fn link_latency(kind: LinkKind) -> Default<Nanos> {
    match kind {
        LinkKind::Nvlink | LinkKind::Nvswitch => (Nanos::from_nanos(600), NCCL),
        LinkKind::Pcie => (Nanos::from_micros(1), NCCL),
        LinkKind::None => (Nanos::ZERO, Source::DERIVED),
        LinkKind::Socket => (Nanos::from_nanos(500), Source::ASSUMED),
        LinkKind::Xgmi | LinkKind::Ici | LinkKind::Neuronlink | LinkKind::Ethernet => {
            (Nanos::from_micros(1), Source::ASSUMED)
        }
    }
}

/// The share of a NIC's wire rate that payload reaches.
pub(crate) fn nic_efficiency(kind: NicKind) -> Default<f64> {
    match kind {
        NicKind::Infiniband | NicKind::Roce => (0.96, NCCL),
        NicKind::Slingshot => (0.92, Source::ASSUMED),
        // TCP with time stamps in frames of 1500 bytes: 1448 of the 1538 that the wire carries.
        NicKind::Ethernet => (0.94, Source::DERIVED),
        NicKind::Efa | NicKind::GpudirectTcp => (0.85, Source::ASSUMED),
        NicKind::None => (1.0, Source::DERIVED),
    }
}

/// The fabric of nodes that name none, by what their NICs speak.
pub(crate) const fn default_fabric(kind: NicKind) -> Option<&'static str> {
    match kind {
        NicKind::None => None,
        kind => Some(kind.as_str()),
    }
}

fn nvlink_index(generation: Option<u32>) -> Option<usize> {
    let index = usize::try_from(generation?.checked_sub(1)?).ok()?;
    (index < NVLINK_GBPS.len()).then_some(index)
}

/// Why `bandwidth` cannot be one direction of all links of one device.
pub(crate) fn link_excess(
    kind: LinkKind,
    generation: Option<u32>,
    links: Option<u32>,
    bandwidth: Bandwidth,
) -> Option<String> {
    let (most, what) = match kind {
        LinkKind::Nvlink | LinkKind::Nvswitch => {
            let index = nvlink_index(generation)?;
            let count = links.unwrap_or(NVLINK_MOST_LINKS[index]);
            let name = format!("{count} links of NVLink {}", index + 1);
            (NVLINK_GBPS[index] * f64::from(count), name)
        }
        LinkKind::Pcie => {
            let generation = generation?;
            let index = usize::try_from(generation.checked_sub(3)?).ok()?;
            (*PCIE_X16_GBPS.get(index)?, format!("PCIe {generation} x16"))
        }
        _ => (5_000.0, "a device's links".into()),
    };
    (bandwidth.gb_per_sec() > most * ROUNDING).then(|| {
        format!(
            "expected one direction of one device's links, found {bandwidth}; {what} carry at most {} each way",
            Bandwidth::from_gb_per_sec(most)
        )
    })
}

/// The fastest NIC taken for one: far above what is sold, so only slips of the pen are caught.
const FASTEST_NIC: Bandwidth = Bandwidth::from_gb_per_sec(10_000.0);

/// Why `bandwidth` cannot be one NIC's.
pub(crate) fn nic_excess(bandwidth: Bandwidth) -> Option<String> {
    (bandwidth.get() > FASTEST_NIC.get()).then(|| {
        format!(
            "expected one direction of one NIC, found {bandwidth}; no NIC exceeds {FASTEST_NIC}"
        )
    })
}

/// Whether two rates are the same figure, give or take a rounding.
fn about(a: FlopRate, b: FlopRate) -> bool {
    (a.get() / b.get() - 1.0).abs() < 0.03
}

/// The first peak that looks like a rate with structured sparsity, and why.
///
/// `known` are the dense peaks of the device this one is based on or is sold as.
pub(crate) fn sparse_looking(
    vendor: &str,
    peak: &BTreeMap<DType, FlopRate>,
    sparse: &BTreeMap<DType, FlopRate>,
    known: &BTreeMap<DType, FlopRate>,
) -> Option<(DType, String)> {
    for (&dtype, &rate) in peak {
        if let Some(&dense) = known.get(&dtype)
            && about(rate, dense * 2.0)
        {
            return Some((
                dtype,
                format!("{rate} is the {dtype} rate with 2:4 sparsity; the dense peak is {dense}"),
            ));
        }
        if let Some(&with_sparsity) = sparse.get(&dtype)
            && rate.get() >= with_sparsity.get() * 0.98
        {
            return Some((
                dtype,
                format!("the dense {dtype} peak {rate} is not below peak_sparse {with_sparsity}"),
            ));
        }
    }
    out_of_proportion(vendor, peak)
}

/// NVIDIA's tensor cores double their rate with each halving of the type; a step of four, or of
/// one, is a sparse figure beside dense ones.
fn out_of_proportion(vendor: &str, peak: &BTreeMap<DType, FlopRate>) -> Option<(DType, String)> {
    let rate = |dtype| peak.get(&dtype).copied();
    let looks = |dtype: DType, rate: FlopRate, other: DType, beside: FlopRate| {
        (
            dtype,
            format!(
                "{dtype} at {rate} looks like the rate with 2:4 sparsity beside {other} at {beside}"
            ),
        )
    };
    if let (Some(bf16), Some(f16)) = (rate(DType::Bf16), rate(DType::F16)) {
        if about(bf16, f16 * 2.0) {
            return Some(looks(DType::Bf16, bf16, DType::F16, f16));
        }
        if about(f16, bf16 * 2.0) && vendor == "nvidia" {
            return Some(looks(DType::F16, f16, DType::Bf16, bf16));
        }
    }
    if vendor != "nvidia" {
        return None;
    }
    let bf16 = rate(DType::Bf16)?;
    if let Some(tf32) = rate(DType::Tf32)
        && about(bf16, tf32 * 4.0)
    {
        return Some(looks(DType::Bf16, bf16, DType::Tf32, tf32));
    }
    rate(DType::F8E4m3)
        .filter(|&fp8| about(bf16, fp8))
        .map(|fp8| looks(DType::Bf16, bf16, DType::F8E4m3, fp8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_together_are_noticed() {
        let gb = Bandwidth::from_gb_per_sec;
        let excess = |generation, links, rate| {
            link_excess(LinkKind::Nvswitch, Some(generation), links, gb(rate))
        };
        assert_eq!(excess(3, Some(12), 300.0), None);
        assert!(excess(3, Some(12), 600.0).unwrap().contains("300.0 GB/s each way"));
        assert!(excess(4, None, 900.0).is_some());
        assert_eq!(excess(5, None, 900.0), None);
        assert!(link_excess(LinkKind::Pcie, Some(4), None, gb(64.0)).is_some());
        assert_eq!(link_excess(LinkKind::Pcie, Some(4), None, gb(32.0)), None);
    }

    #[test]
    fn sparse_peaks_are_noticed() {
        let peaks = |pairs: &[(DType, f64)]| -> BTreeMap<DType, FlopRate> {
            pairs.iter().map(|&(dtype, t)| (dtype, FlopRate::from_tflops(t))).collect()
        };
        let none = BTreeMap::new();
        let h200 = peaks(&[(DType::Bf16, 989.5)]);
        let found = |peak: &[(DType, f64)], known: &BTreeMap<_, _>| {
            sparse_looking("nvidia", &peaks(peak), &none, known).map(|(dtype, _)| dtype)
        };
        assert_eq!(found(&[(DType::Bf16, 1979.0)], &h200), Some(DType::Bf16));
        assert_eq!(found(&[(DType::Bf16, 989.0)], &h200), None);
        assert_eq!(found(&[(DType::Bf16, 624.0), (DType::Tf32, 156.0)], &none), Some(DType::Bf16));
        assert_eq!(found(&[(DType::Bf16, 312.0), (DType::Tf32, 156.0)], &none), None);
        assert_eq!(
            found(&[(DType::Bf16, 1979.0), (DType::F8E4m3, 1979.0)], &none),
            Some(DType::Bf16)
        );
    }
}
