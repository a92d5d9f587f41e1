//! Models of tables: those of the library, whole or cut down to fewer layers.

use std::collections::BTreeMap;
use std::sync::Arc;

use foretrain_core::{InputError, Result};
use foretrain_workload::model::{Block, Model, Role};
use foretrain_workload::{load, spec};

/// Models at hand, each made once.
#[derive(Debug, Default)]
pub(super) struct Models(BTreeMap<String, Arc<Model>>);

impl Models {
    /// A model of the library.
    pub(super) fn named(&mut self, name: &str) -> Result<Arc<Model>> {
        self.of(name.to_owned(), || load(name))
    }

    /// A model of the library with so many of its layers.
    pub(super) fn with_layers(&mut self, name: &str, layers: u32) -> Result<Arc<Model>> {
        let whole = self.named(name)?;
        if whole.body_layers() == layers {
            return Ok(whole);
        }
        self.of(format!("{name} with {layers} layers"), || cut(&whole, layers))
    }

    /// A model described in TOML.
    pub(super) fn described(&mut self, text: &str, name: &str) -> Result<Arc<Model>> {
        self.of(text.to_owned(), || spec::parse(text, name))
    }

    /// As `make` makes it the first time that `key` is asked for.
    pub(super) fn of(
        &mut self,
        key: String,
        make: impl FnOnce() -> Result<Model>,
    ) -> Result<Arc<Model>> {
        if let Some(known) = self.0.get(&key) {
            return Ok(Arc::clone(known));
        }
        let model = Arc::new(make()?);
        self.0.insert(key, Arc::clone(&model));
        Ok(model)
    }
}

/// The model with the first `layers` of its body layers.
fn cut(whole: &Model, layers: u32) -> Result<Model> {
    if layers > whole.body_layers() {
        return Err(InputError::new(format!(
            "{} has {} layers, not {layers}",
            whole.name,
            whole.body_layers()
        )));
    }
    let mut left = layers;
    let blocks = whole.blocks.iter().map(|block| {
        let mut repeat = block.repeat;
        if block.layer.role == Role::Body {
            repeat = repeat.min(left);
            left -= repeat;
        }
        Block { layer: Arc::clone(&block.layer), repeat }
    });
    Model::new(&*whole.name, &*whole.family, whole.sample, blocks.collect())
}

/// The model with `count` layers of the kind `keep` and then the rest of `layers` of the last kind.
pub(super) fn recut(whole: &Model, first: u32, layers: u32) -> Result<Model> {
    let body: Vec<_> = whole.blocks.iter().filter(|block| block.layer.role == Role::Body).collect();
    let (Some(head), Some(tail)) = (body.first(), body.last()) else {
        return cut(whole, layers);
    };
    let mut blocks = Vec::new();
    let mut dealt = false;
    for block in &whole.blocks {
        if block.layer.role != Role::Body {
            blocks.push(block.clone());
        } else if !std::mem::replace(&mut dealt, true) {
            blocks.push(Block { layer: Arc::clone(&head.layer), repeat: first.min(layers) });
            let rest = layers.saturating_sub(first);
            blocks.push(Block { layer: Arc::clone(&tail.layer), repeat: rest });
        }
    }
    Model::new(&*whole.name, &*whole.family, whole.sample, blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_model_keeps_its_ends() {
        let mut models = Models::default();
        let whole = models.named("llama-3.1-405b").unwrap();
        let part = models.with_layers("llama-3.1-405b", 7).unwrap();
        assert_eq!((whole.body_layers(), part.body_layers()), (126, 7));
        let layer = whole.parameters() - part.parameters();
        assert!(layer.is_multiple_of(126 - 7), "{layer} is not of whole layers");
        assert!(models.with_layers("llama-3.1-405b", 127).is_err());
    }

    #[test]
    fn recutting_chooses_how_many_layers_of_the_first_kind_stay() {
        let whole = load("deepseek-v3").unwrap();
        let layers = |first| recut(&whole, first, 4).unwrap();
        assert_eq!(layers(1).body_layers(), 4);
        // A layer of experts is larger than a dense one.
        assert!(layers(1).parameters() > layers(3).parameters());
    }
}
