//! Which what-if made a job impossible.

use foretrain_core::InputError;
use foretrain_cost::CollectiveCall;

use super::Stage;
use super::timed::transfer;

/// Names the first degradation with which `stage` fails, and whether it takes those before it too.
pub(super) fn named(error: InputError, stage: &Stage, call: CollectiveCall) -> InputError {
    let fails = |from: usize, to: usize| {
        transfer(&stage.cluster, &stage.placed, call, &stage.degradations[from..to]).err()
    };
    let all = stage.degradations.len();
    let first = (0..all).find_map(|at| fails(0, at + 1).map(|error| (at, error)));
    // What fails without any degradation is no fault of theirs.
    let Some((at, found)) = first.filter(|_| fails(0, 0).is_none()) else { return error };
    let what = match fails(at, at + 1) {
        Some(_) => format!("`{}`", stage.degradations[at]),
        None => format!("`{}` after those before it", stage.degradations[at]),
    };
    let named = InputError::new(found.message()).at(what);
    found.hints().iter().cloned().fold(named, InputError::hint)
}
