//! The same models with and without shared layers, at several sizes of memory.

use foretrain_core::{Bytes, Result};

use super::search::{Best, search};
use super::{Edge, Memory};

/// One of the runs that are set side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The memory as it was asked for.
    pub wanted: Memory,
    /// What that comes to; `None` if all models stay in memory.
    pub memory: Option<Bytes>,
    /// Whether layers are shared.
    pub shared: bool,
    /// The best choice of batches; `None` if none fits.
    pub best: Option<Best>,
}

/// Plays the device at each size of memory without and, if there are any, with shared layers. What
/// stays in memory is never loaded, so with unlimited memory there is nothing that sharing changes.
///
/// # Errors
/// If the device cannot be simulated.
pub fn compare(edge: &Edge, memories: &[Memory]) -> Result<Vec<Compared>> {
    let apart = Edge { shared: Vec::new(), ..edge.clone() };
    let mut compared = Vec::new();
    for &wanted in memories {
        let memory = edge.memory(wanted);
        let with = (!edge.shared.is_empty() && memory.is_some()).then_some((true, edge));
        for (shared, edge) in std::iter::once((false, &apart)).chain(with) {
            compared.push(Compared { wanted, memory, shared, best: search(edge, memory)? });
        }
    }
    Ok(compared)
}
