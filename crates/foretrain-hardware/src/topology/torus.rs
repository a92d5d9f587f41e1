//! Tori: every node is a router with a cable to its neighbours along each dimension.

use foretrain_core::{InputError, Result};

use super::grid_nodes;
use super::network::{Cable, Plan, Wiring};

/// Cables carry the rate of a node's NICs together over the first level's oversubscription.
/// `Ok(None)` if that takes too many.
///
/// # Errors
/// If the grid has fewer nodes than asked for.
pub(super) fn wire(plan: &Plan<'_>, dimensions: &[u32]) -> Result<Option<Wiring>> {
    let nodes = grid_nodes(dimensions);
    if nodes < u64::from(plan.nodes) {
        return Err(InputError::new(format!(
            "a torus of {dimensions:?} has {nodes} nodes, {} are needed",
            plan.nodes
        ))
        .hint("enlarge `dimensions` in the fabric or cluster"));
    }
    if nodes.saturating_mul(dimensions.len() as u64) > plan.cables {
        return Ok(None);
    }
    let mut wiring = Wiring::default();
    for node in 0..nodes {
        let mut rest = node;
        let place = dimensions.iter().map(|&size| {
            let at = rest % u64::from(size);
            rest /= u64::from(size);
            at.to_string()
        });
        let place: Vec<String> = place.collect();
        wiring.switch(format!("router{}", place.join(".")));
    }
    for node in 0..plan.nodes {
        wiring.leaf.extend(std::iter::repeat_n(node, plan.nics as usize));
    }
    let capacity = plan.nic * f64::from(plan.nics);
    let mut stride = 1;
    for (order, &size) in dimensions.iter().enumerate() {
        for node in 0..nodes as u32 {
            let at = node / stride % size;
            // Two nodes are neighbours once, not twice.
            if size > 2 || (size == 2 && at == 0) {
                let next = node - at * stride + (at + 1) % size * stride;
                let order = order as u8;
                wiring.cables.push(Cable { ends: [node, next], capacity, order });
            }
        }
        stride *= size;
    }
    Ok(Some(wiring))
}
