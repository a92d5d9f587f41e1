//! Cost functions and models of users' own: by name, and put in the place of ours.

use std::sync::{Arc, PoisonError, RwLock};

use foretrain_core::{Bytes, Evidence, EvidenceKind, Nanos};
use foretrain_cost::interference::OverlapModel;
use foretrain_cost::own::{OwnCosts, OwnNode};
use foretrain_graph::StepGraph;
use foretrain_graph::attributes::well_known;

/// Things by name; one that is installed again takes the place of the earlier one.
struct Installed<T>(RwLock<Vec<(String, T)>>);

impl<T: Clone> Installed<T> {
    fn put(&self, name: &str, value: T) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(other, _)| other != name);
        all.push((name.to_owned(), value));
    }

    fn get(&self, name: &str) -> Option<T> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    fn names(&self) -> Vec<String> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(name, _)| name.clone()).collect()
    }
}

static COSTS: Installed<Arc<dyn OwnCosts>> = Installed(RwLock::new(Vec::new()));
static INTERFERENCE: Installed<OverlapModel> = Installed(RwLock::new(Vec::new()));

/// Makes a cost function known to this process under its name.
pub fn install_costs(costs: Arc<dyn OwnCosts>) {
    let name = costs.name().to_owned();
    COSTS.put(&name, costs);
}

/// The cost function of a name.
pub fn costs(name: &str) -> Option<Arc<dyn OwnCosts>> {
    COSTS.get(name)
}

/// Names of the cost functions that are installed.
pub fn costs_names() -> Vec<String> {
    COSTS.names()
}

/// Makes a model of interference known to this process.
pub fn install_interference(name: &str, model: OverlapModel) {
    INTERFERENCE.put(name, model);
}

/// The model of interference that is installed under a name.
pub fn interference(name: &str) -> Option<OverlapModel> {
    INTERFERENCE.get(name)
}

/// How far users' own times may be off, as far as nobody says.
const SPREAD: f64 = 0.05;

/// Asks for the time of everything but communication, and says how much that changed.
pub(crate) fn apply(costs: &dyn OwnCosts, graph: &mut StepGraph) -> Option<Evidence> {
    let (mut changed, mut before, mut after) = (0, Nanos::ZERO, Nanos::ZERO);
    let ids: Vec<_> = graph.node_ids().filter(|&id| !graph.kind(id).communicates()).collect();
    for id in ids {
        let node = graph.node(id);
        let attributes = &graph.node_attributes;
        let moved = attributes.get_i64(well_known::BYTES_MOVED, id.index());
        let view = OwnNode {
            name: graph.name(id),
            kind: node.kind,
            phase: node.phase,
            module: graph.names.get(node.module),
            dtype: node.dtype,
            flops: attributes.get_f64(well_known::FLOPS, id.index()),
            moved: moved.and_then(|bytes| u64::try_from(bytes).ok()).map(Bytes::new),
        };
        let Some(own) = costs.node(&view, node.work) else { continue };
        let own = own.clamp_positive();
        (changed, before, after) = (changed + 1, before + node.work, after + own);
        graph.set_work(id, own);
    }
    (changed > 0).then(|| {
        Evidence::new(
            EvidenceKind::Inferred,
            "times of your own",
            format!("{} gives {changed} nodes {after} in place of {before}", costs.name()),
            SPREAD,
        )
    })
}
