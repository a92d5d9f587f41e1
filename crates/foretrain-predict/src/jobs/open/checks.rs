//! Rates and sizes of opened rows that no machine has.

use foretrain_core::Bytes;
use foretrain_core::units::significant;
use foretrain_fleet::pai::{Hardware, Resource, Work};

/// Rounding, and a machine that is a little better than its data sheet.
const MORE: f64 = 1.05;

/// What cannot be, or not of this machine, in sentences.
pub(super) fn warnings(
    work: &Work,
    hardware: &Hardware,
    scale: Option<f64>,
    gradients: Option<Bytes>,
) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(scale) = scale {
        warnings.extend(too_fast(work, hardware, scale));
    }
    let held = work.dense_weights.unwrap_or_default() + work.embedding_weights.unwrap_or_default();
    let has_weights = work.dense_weights.is_some_and(|bytes| bytes > Bytes::ZERO);
    match gradients {
        Some(gradients) if has_weights && gradients.as_f64() > 4.0 * held.as_f64() => {
            warnings.push(format!(
                "gradients of {gradients}, but weights of {held} with the optimiser's state: the row's traffic does not fit its class, cNodes or weights"
            ));
        }
        Some(gradients) if !has_weights && gradients > hardware.gpu_memory => {
            warnings.push(format!(
                "gradients of {gradients} do not fit a GPU's {}: the row's traffic does not fit its class or cNodes",
                hardware.gpu_memory
            ));
        }
        _ => {}
    }
    warnings
}

/// The resource that the row's step time strains most, if above its peak.
fn too_fast(work: &Work, hardware: &Hardware, scale: f64) -> Option<String> {
    let uses = |resource: Resource| match resource {
        Resource::Flops => work.flops.get() > 0.0,
        Resource::Memory => work.memory_access > Bytes::ZERO,
        Resource::Pcie => work.input > Bytes::ZERO,
        Resource::Ethernet | Resource::NvLink => false,
    };
    let of_peak = |resource: Resource| hardware.efficiency.of(resource) / scale;
    let resource = Resource::ALL
        .into_iter()
        .filter(|resource| uses(*resource))
        .max_by(|a, b| of_peak(*a).total_cmp(&of_peak(*b)))
        .filter(|resource| of_peak(*resource) > MORE)?;
    Some(format!(
        "in the row's step time {} would have to go at {} times the machine's peak: machine, class or traffic do not fit the row",
        resource.name(),
        significant(of_peak(resource), 3)
    ))
}
