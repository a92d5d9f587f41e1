//! Communication: none, and whether there is any to change.

use foretrain_core::{InputError, Result};
use foretrain_rewrite::collectives;

use crate::whatif::sketch::Sketch;

/// Takes all communication out. Ranks then wait for nobody, so none is late for another.
pub(super) fn none(sketch: &mut Sketch<'_>) -> Result<()> {
    check_there_is_some(sketch)?;
    for class in sketch.classes() {
        let all = sketch.communication(class);
        sketch.silence(class, &all);
    }
    sketch.is_late = false;
    Ok(())
}

/// A change of the network that changes nothing would be taken for an answer.
pub(super) fn check_there_is_some(sketch: &Sketch<'_>) -> Result<()> {
    // Of the job as drafted: what an earlier change of the scenario took away is no mistake.
    let draft = &sketch.ground.draft;
    let talks = draft.job.classes.iter().any(|class| collectives(&class.graph).next().is_some());
    let alone = draft.gpus == 1;
    match talks {
        true => Ok(()),
        false if alone => Err(InputError::new("a job of one GPU does not communicate")
            .hint("ask about a larger job: add `gpus=8`, or --gpus 8")),
        false => Err(InputError::new("the step does not communicate, so this changes nothing")),
    }
}

/// A strategy, and buckets as a part of it, need several replicas.
pub(super) fn check_synchronised(sketch: &Sketch<'_>) -> Result<()> {
    if sketch.ground.draft.inserted.iter().any(|inserted| !inserted.placed.is_empty()) {
        return Ok(());
    }
    Err(InputError::new(
        "the job synchronises no gradients, so there is no strategy or bucket to change",
    )
    .hint("ask about several replicas: add `gpus=8`, or --gpus 8"))
}
