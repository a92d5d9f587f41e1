//! Step times of runs that only a description is known of: model, layout, batch, machine.

mod case;
mod table;
mod vtrain;

pub(super) use vtrain::VTrain;
