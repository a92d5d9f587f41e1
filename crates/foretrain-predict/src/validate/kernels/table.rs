//! Reading the tables, and the catalogue's names of their devices.

use foretrain_core::{InputError, Nanos, Result};
use serde::de::DeserializeOwned;

use crate::validate::corpus::Corpus;

/// Devices as tables name them.
const DEVICES: [(&str, &str); 20] = [
    ("a100_sxm", "a100-sxm4-80gb"),
    ("h100_sxm", "h100-sxm5-80gb"),
    ("h200_sxm", "h200-sxm"),
    ("b200_sxm", "b200-sxm"),
    ("gb200", "gb200"),
    ("b300_sxm", "b300-sxm"),
    ("gb300", "gb300"),
    ("l40s", "l40s"),
    ("rtx_pro_6000_server", "rtx-pro-6000"),
    ("a100", "a100-sxm4-80gb"),
    ("h100", "h100-sxm5-80gb"),
    ("A100-SXM4-80GB", "a100-sxm4-80gb"),
    ("GH200-120GB", "gh200-96gb"),
    ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
    ("NVIDIA L4", "l4"),
    ("Tesla T4", "t4"),
    ("Tesla P100-PCIE-16GB", "p100-pcie-16gb"),
    ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
    ("Tesla V100-PCIE-32GB", "v100-pcie-32gb"),
    ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
];

/// The catalogue's name, for devices that it has.
pub(super) fn device(name: &str) -> Option<&'static str> {
    DEVICES.iter().find(|(known, _)| *known == name).map(|&(_, device)| device)
}

/// The rows of `measured/<name>`, none if the table is not there.
pub(super) fn rows<T: DeserializeOwned>(corpus: &Corpus<'_>, name: &str) -> Result<Vec<T>> {
    let file = format!("measured/{name}");
    let Some(text) = corpus.root().text(&file)? else { return Ok(Vec::new()) };
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let wrong = |error: csv::Error| InputError::new(error.to_string()).in_file(&file);
    reader.deserialize().map(|row| row.map_err(wrong)).collect()
}

/// A time of a table, if it is one.
pub(super) fn millis(value: f64) -> Option<Nanos> {
    (value.is_finite() && value > 0.0).then(|| Nanos::from_micros_f64(value * 1e3))
}

/// A size that a table writes with a decimal point.
pub(super) fn whole(value: f64) -> Option<u64> {
    ((1.0..1e12).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}
