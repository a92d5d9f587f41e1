//! Matrix products of a profiler trace whose operators' shapes were recorded.
//!
//! A product is a kernel whose name says so, launched by an operator two of whose inputs fit
//! together as factors. Runs of one shape and type count once, by their median. What a library
//! launches beside the product (the sum of split parts) is not in its time.

use std::collections::BTreeMap;

use foretrain_core::stats::median;
use foretrain_core::{DType, Nanos};
use foretrain_cost::KernelClass;
use foretrain_cost::kernels::{Gemm, KernelSample, Operation};
use foretrain_graph::NodeKind;
use foretrain_graph::attributes::well_known;

use super::KernelSamples;
use crate::Recording;
use crate::scale::Origin;

/// Words in names of kernels, lower case, and the type of their factors. First match wins.
const TYPES: [(&str, DType); 16] = [
    ("e4m3", DType::F8E4m3),
    ("fp8", DType::F8E4m3),
    ("bf16", DType::Bf16),
    ("bfloat16", DType::Bf16),
    ("nvjet_tst", DType::Bf16),
    ("_bbs_", DType::Bf16),
    ("tf32", DType::Tf32),
    ("nvjet_hsh", DType::F16),
    ("_hhs_", DType::F16),
    ("_hss_", DType::F16),
    ("fp16", DType::F16),
    ("f16", DType::F16),
    ("h884", DType::F16),
    ("half", DType::F16),
    ("sgemm", DType::F32),
    ("f32f32", DType::F32),
];

/// The products of a recording whose graphs were built.
pub fn of_recording(recording: &Recording) -> KernelSamples {
    let device = Some(Origin::of_recording(recording).device).filter(|name| !name.is_empty());
    let mut found = KernelSamples { device, ..KernelSamples::default() };
    let mut runs: BTreeMap<([u64; 4], DType), (Vec<f64>, String)> = BTreeMap::new();
    for graph in &recording.graphs {
        for id in graph.node_ids().filter(|&id| graph.kind(id) == NodeKind::Kernel) {
            let name = graph.name(id);
            let place = || name.chars().take(60).collect::<String>();
            if KernelClass::of(name) != KernelClass::Gemm || graph.is_carried_in(id) {
                continue;
            }
            let attribute = |key| graph.node_attributes.get_i64(key, id.index());
            let time = attribute(well_known::RECORDED_DURATION).filter(|&nanos| nanos > 0);
            let shapes = graph.node_attributes.get_str(well_known::SHAPES, id.index());
            let (Some(time), Some(shapes)) = (time, shapes) else {
                found.leave_out("the operator's shapes were not recorded", place);
                continue;
            };
            let Some(sizes) = factors(shapes) else {
                found.leave_out("no two inputs are factors of one another", place);
                continue;
            };
            let lower = name.to_ascii_lowercase();
            let Some((_, dtype)) = TYPES.iter().find(|(word, _)| lower.contains(word)) else {
                found.leave_out("the kernel's name does not tell its type", place);
                continue;
            };
            let run = runs.entry((sizes, *dtype)).or_insert_with(|| (Vec::new(), place()));
            run.0.push(time as f64);
        }
    }
    found.samples = runs
        .into_iter()
        .filter_map(|(([batch, m, n, k], dtype), (times, name))| {
            let operation = Operation::Gemm(Gemm { batch, ..Gemm::new(m, n, k, dtype) });
            let time = Nanos::from_nanos_f64(median(&times)?);
            Some(KernelSample {
                operation,
                time,
                place: format!("{batch} x {m}x{n}x{k} by {name}"),
            })
        })
        .collect();
    found
}

/// Batch, rows, columns and length of the sums of the first two inputs that are factors.
fn factors(shapes: &str) -> Option<[u64; 4]> {
    let inputs: Vec<serde_json::Value> = serde_json::from_str(shapes).ok()?;
    let inputs: Vec<Option<Vec<u64>>> = inputs
        .iter()
        .map(|input| input.as_array()?.iter().map(serde_json::Value::as_u64).collect())
        .collect();
    inputs.windows(2).find_map(|pair| {
        let [Some(a), Some(b)] = pair else { return None };
        let product = match (&a[..], &b[..]) {
            (&[m, k], &[inner, n]) if k == inner => [1, m, n, k],
            (&[batch, m, k], &[others, inner, n]) if batch == others && k == inner => {
                [batch, m, n, k]
            }
            _ => return None,
        };
        product.iter().all(|&size| size > 0).then_some(product)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_found_behind_biases() {
        for (shapes, want) in [
            ("[[8, 4], [4, 16]]", Some([1, 8, 16, 4])),
            ("[[16], [8, 4], [4, 16], [], []]", Some([1, 8, 16, 4])),
            ("[[2, 8, 4], [2, 4, 16]]", Some([2, 8, 16, 4])),
            ("[[8, 4], [5, 16]]", None),
            ("[[8, 0], [0, 16]]", None),
            ("[[[8, 4]], [4, 16]]", None),
            ("[]", None),
            ("", None),
            ("{\"a\": 1}", None),
        ] {
            assert_eq!(factors(shapes), want, "{shapes}");
        }
    }
}
