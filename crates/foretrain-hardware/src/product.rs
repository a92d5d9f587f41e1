//! Devices by the names that drivers and profilers report.

use std::collections::BTreeSet;

use foretrain_core::Bytes;

use crate::device::Device;

/// Words that name a maker or a brand and tell no device from another.
const BRANDS: [&str; 13] = [
    "nvidia",
    "amd",
    "intel",
    "google",
    "aws",
    "tesla",
    "geforce",
    "instinct",
    "corporation",
    "inc",
    "gpu",
    "accelerator",
    "habana",
];

/// Words that say what the device's own entry says already.
const HARMLESS: [&str; 12] = [
    "hbm", "hbm2", "hbm2e", "hbm3", "hbm3e", "gddr6", "gddr6x", "oam", "ls", "xnack", "ecc", "chip",
];

/// The tokens of a product name, lower case, without brands.
fn tokens(name: &str) -> Vec<String> {
    const MOST: usize = 16;
    name.to_lowercase()
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|token| !token.is_empty() && !BRANDS.contains(token))
        .take(MOST)
        .map(str::to_owned)
        .collect()
}

/// The device that `name` reports: an exact product name or alias first, else the one device
/// whose product name has all its words in `name` while the remaining words are harmless.
pub(crate) fn find<'a>(devices: &'a [Device], name: &str) -> Option<&'a Device> {
    let wanted = tokens(name);
    if wanted.is_empty() {
        return None;
    }
    let exact = devices.iter().find(|device| names(device).any(|known| tokens(known) == wanted));
    exact.or_else(|| by_words(devices, &wanted))
}

fn names(device: &Device) -> impl Iterator<Item = &str> {
    let own = [device.name.as_str()].into_iter();
    device.products.iter().chain(&device.aliases).map(String::as_str).chain(own)
}

fn by_words<'a>(devices: &'a [Device], wanted: &[String]) -> Option<&'a Device> {
    let scored = devices.iter().filter_map(|device| Some((score(device, wanted)?, device)));
    let (mut best, mut tied) = (None::<(usize, &Device)>, false);
    for (score, device) in scored {
        match best {
            Some((top, _)) if score < top => {}
            Some((top, _)) if score == top => tied = true,
            _ => (best, tied) = (Some((score, device)), false),
        }
    }
    best.filter(|_| !tied).map(|(_, device)| device)
}

/// How many words of the best product name match, or `None` if a word tells against the device.
fn score(device: &Device, wanted: &[String]) -> Option<usize> {
    let wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
    names(device)
        .filter_map(|product| {
            let known = tokens(product);
            let all =
                !known.is_empty() && known.iter().all(|token| wanted.contains(token.as_str()));
            let extra_ok = || {
                wanted
                    .iter()
                    .filter(|token| !known.iter().any(|known| known == *token))
                    .all(|token| harmless(device, token))
            };
            (all && extra_ok()).then_some(known.len())
        })
        .max()
}

fn harmless(device: &Device, token: &str) -> bool {
    HARMLESS.contains(&token)
        || Some(token) == device.architecture.as_deref()
        || memory_token(token).is_some_and(|size| near(size, device.memory))
}

/// "80gb" as a size.
fn memory_token(token: &str) -> Option<Bytes> {
    let gib: u64 = token.strip_suffix("gb").or_else(|| token.strip_suffix('g'))?.parse().ok()?;
    Some(Bytes::from_gib(gib))
}

/// Within a tenth: marketed and reported sizes differ by the decimal prefix and by ECC.
fn near(a: Bytes, b: Bytes) -> bool {
    (a.as_f64() / b.as_f64() - 1.0).abs() < 0.1
}

#[cfg(test)]
mod tests {
    use crate::Catalogue;

    #[test]
    fn driver_names_find_their_device() {
        let catalogue = Catalogue::builtin();
        for (product, want) in [
            ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
            ("A100-SXM4-40GB", "a100-sxm4-40gb"),
            ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
            ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
            ("NVIDIA A800-SXM4-80GB", "a800-sxm4-80gb"),
            ("Tesla V100-SXM2-32GB", "v100-sxm2-32gb"),
            ("Tesla V100-SXM2-32GB-LS", "v100-sxm2-32gb"),
            ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
            ("Tesla V100-PCIE-16GB", "v100-pcie-16gb"),
            ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
            ("NVIDIA H100 PCIe", "h100-pcie-80gb"),
            ("NVIDIA H200", "h200-sxm"),
            ("NVIDIA H800", "h800-sxm5-80gb"),
            ("NVIDIA B200", "b200-sxm"),
            ("NVIDIA GB200", "gb200"),
            ("NVIDIA L4", "l4"),
            ("NVIDIA L40S", "l40s"),
            ("NVIDIA A10", "a10"),
            ("NVIDIA A10G", "a10g"),
            ("Tesla T4", "t4"),
            ("Tesla P100-PCIE-16GB", "p100-pcie-16gb"),
            ("Tesla P100-SXM2-16GB", "p100-sxm2-16gb"),
            ("GeForce RTX 3090", "rtx-3090"),
            ("NVIDIA GeForce RTX 4090", "rtx-4090"),
            ("NVIDIA GeForce RTX 2080 Ti", "rtx-2080-ti"),
            ("AMD Instinct MI250X", "mi250x-gcd"),
            ("AMD Instinct MI300X", "mi300x"),
            ("AMD Instinct MI300X OAM", "mi300x"),
            ("AMD Instinct MI325X", "mi325x"),
            ("TPU v5p chip", "tpu-v5p"),
        ] {
            let found = catalogue.device_by_product_name(product).map(|d| d.name.as_str());
            assert_eq!(found, Some(want), "{product}");
        }
    }

    #[test]
    fn other_devices_are_not_taken_for_known_ones() {
        let catalogue = Catalogue::builtin();
        for product in [
            "",
            "---",
            "NVIDIA",
            "AMD Radeon Graphics",
            "NVIDIA GeForce RTX 3090 Ti",
            "NVIDIA L40",
            "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
            "NVIDIA A100-SXM4-64GB",
            "Quadro RTX 8000",
            "NVIDIA H100 NVL",
            "GRID A100D-80C",
            "Tesla V100",
        ] {
            let found = catalogue.device_by_product_name(product).map(|d| d.name.as_str());
            assert_eq!(found, None, "{product}");
        }
    }
}
