//! Local SGD: parameters averaged now and then.

use foretrain_core::{InputError, Result};
use foretrain_graph::NodeSet;

use crate::strategy::draft::Draft;
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{Pass, PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "local-sgd",
    stage: Stage::Step,
    about: "Replicas train alone and average their parameters every so many steps, after the optimiser.",
    source: "local SGD (arXiv 1805.09767), periodic model averaging",
    parameters: &[Parameter::new("period", Kind::Count, "8", "Steps between averages.")],
    build: &|values| {
        let period = values.count("period").unwrap_or(8);
        match u32::try_from(period) {
            Ok(period) if (1..=1_000).contains(&period) => Ok(Box::new(LocalSgd { period })),
            _ => {
                Err(InputError::new(format!("period = {period}: expected a number from 1 to 1000")))
            }
        }
    },
};

struct LocalSgd {
    period: u32,
}

impl Pass for LocalSgd {
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        let all = NodeSet::full(draft.graph.node_count());
        // Averaged are the parameters, once, however many micro-batches the steps hold.
        draft.repeat(&all, self.period)?;
        draft.steps *= self.period;
        let after: Vec<_> = draft.optimiser.last.into_iter().collect();
        let first = draft.first_work();
        for exchange in &mut draft.exchanges {
            exchange.after.clone_from(&after);
            exchange.before = first.into_iter().map(|anchor| anchor.later(1)).collect();
        }
        Ok(())
    }
}
