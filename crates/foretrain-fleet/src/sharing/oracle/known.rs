//! What rows of a table of outcomes may speak of.

use std::collections::BTreeSet;

use foretrain_core::{InputError, Result, suggest};

use super::table::Row;
use crate::sharing::Workload;

/// Names of a workload, and which of them trials will ask for.
pub(super) struct Known {
    models: BTreeSet<String>,
    layers: BTreeSet<String>,
    /// Layers and the models that share them, each of the two also as `*`.
    shared: BTreeSet<(String, String)>,
}

/// Any layer, or any model.
const ANY: &str = "*";

impl Known {
    pub(super) fn of(workload: &Workload) -> Self {
        let models = || workload.models().iter();
        let layers = models().flat_map(|model| &model.layers);
        let mut shared = BTreeSet::new();
        for group in workload.groups() {
            let layer = group.signature.to_string();
            for &model in &group.models {
                let model = &workload.models()[model].name;
                for layer in [&layer, ANY] {
                    shared.insert((layer.to_owned(), model.clone()));
                    shared.insert((layer.to_owned(), ANY.to_owned()));
                }
            }
        }
        Self {
            models: models().map(|model| model.name.clone()).collect(),
            layers: layers.map(|layer| layer.signature.key(workload.rule()).to_string()).collect(),
            shared,
        }
    }

    /// Refuses names that there are not; a row that no trial will ask for is odd, and told.
    pub(super) fn check(&self, row: &Row) -> Result<Option<String>> {
        let Row { layer, model, line, .. } = row;
        find(layer, &self.layers, "no model has a layer", *line)?;
        find(model, &self.models, "no model is called", *line)?;
        if self.shared.contains(&(layer.clone(), model.clone())) {
            return Ok(None);
        }
        let what = if layer == ANY { "any layer" } else { layer };
        Ok(Some(match model.as_str() {
            ANY => format!("line {line} answers nothing, as no two models have {what}"),
            _ => {
                format!("line {line} answers nothing, as {model} shares {what} with no other model")
            }
        }))
    }
}

fn find(name: &str, there: &BTreeSet<String>, none: &str, line: u64) -> Result<()> {
    if name == ANY || there.contains(name) {
        return Ok(());
    }
    let nearest = suggest::nearest(name, there.iter().map(String::as_str));
    let hint = match nearest {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => "names are those of the report without --accuracy; * stands for any".into(),
    };
    Err(InputError::new(format!("{none} {name:?}")).at(format!("line {line}")).hint(hint))
}
