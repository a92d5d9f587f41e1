//! A step's graph from a profile and measured times.

use foretrain_core::{Bytes, DType, InputError, Nanos, Result};
use foretrain_graph::{Phase, StepGraph};

use crate::line::{StepLine, Task};
use crate::profile::Profile;

/// Times of a step without synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepTimes {
    /// Forward pass.
    pub forward: Nanos,
    /// Backward pass.
    pub backward: Nanos,
    /// Parameter update; may be zero.
    pub optimiser: Nanos,
}

impl StepTimes {
    /// A step of which nothing but its whole time is known: a backward pass does twice the work of a
    /// forward pass.
    pub fn of_step(step: Nanos) -> Self {
        let forward = step.scale(1.0 / 3.0);
        Self { forward, backward: step - forward, optimiser: Nanos::ZERO }
    }
}

/// The graph of one training step on one device: a stream that runs the layers forward, then backward,
/// then the update, and a host thread that launches them and takes no time. Passes take the times in
/// proportion to the layers' work. Each tensor's gradient is ready when its layer's backward pass has
/// ended.
///
/// # Errors
/// If the profile has no work to share the times out by, or a time is negative.
pub fn step_graph(profile: &Profile, times: &StepTimes, dtype: DType) -> Result<StepGraph> {
    let work = profile.forward().get();
    if work <= 0.0 || profile.parameters() == 0 {
        return Err(InputError::new(format!("\"{}\" has no layers with work", profile.name)));
    }
    if [times.forward, times.backward, times.optimiser].iter().any(|time| *time < Nanos::ZERO) {
        return Err(InputError::new("a pass cannot take negative time"));
    }
    let mut line = StepLine::new();
    let mut shares = Shares::new(times.forward, work);
    for layer in &profile.layers {
        let time = shares.next(layer.forward.get());
        line.launch(&Task::kernel(&layer.name, Phase::Forward, time));
    }
    let mut shares = Shares::new(times.backward, work);
    for layer in profile.layers.iter().rev() {
        let mut time = shares.next(layer.forward.get());
        for tensor in layer.tensors.iter().rev() {
            let bytes = Bytes::new(dtype.bytes_of(tensor.elements));
            let kernel = Task::kernel(&layer.name, Phase::Backward, std::mem::take(&mut time));
            line.launch(&Task { gradient: Some(bytes), ..kernel });
        }
        if time > Nanos::ZERO {
            line.launch(&Task::kernel(&layer.name, Phase::Backward, time));
        }
    }
    if times.optimiser > Nanos::ZERO {
        line.launch(&Task::kernel("optimiser", Phase::Optimizer, times.optimiser));
    }
    Ok(line.close())
}

/// Shares a time out without losing nanoseconds.
struct Shares {
    time: Nanos,
    work: f64,
    done: f64,
    spent: Nanos,
}

impl Shares {
    fn new(time: Nanos, work: f64) -> Self {
        Self { time, work, done: 0.0, spent: Nanos::ZERO }
    }
    fn next(&mut self, work: f64) -> Nanos {
        self.done += work;
        let until = self.time.scale((self.done / self.work).min(1.0));
        let own = until - self.spent;
        self.spent = until;
        own
    }
}

#[cfg(test)]
mod tests {
    use foretrain_graph::NodeId;
    use foretrain_graph::attributes::well_known;

    use super::*;

    fn profile(name: &str) -> Profile {
        crate::named(name).unwrap().profile(None)
    }

    #[test]
    fn a_step_takes_its_time_and_shows_every_gradient() {
        let times = StepTimes::of_step(Nanos::from_millis(300));
        let graph = step_graph(&profile("resnet-50"), &times, DType::F32).unwrap();
        let total: Nanos = graph.node_ids().map(|id| graph.node(id).work).sum();
        assert_eq!(total, Nanos::from_millis(300));
        let bytes =
            |id: NodeId| graph.node_attributes.get_i64(well_known::GRADIENT_BYTES, id.index());
        assert_eq!(graph.node_ids().filter_map(bytes).sum::<i64>(), 4 * 25_557_032);
        assert_eq!(foretrain_rewrite::backward_passes(&graph), 1);
    }

    #[test]
    fn nonsense_is_refused() {
        let times = StepTimes::of_step(Nanos::from_millis(1));
        let empty = Profile { name: "nothing".into(), layers: Vec::new() };
        assert!(step_graph(&empty, &times, DType::F32).is_err());
        let backwards = StepTimes { forward: Nanos::from_nanos(-1), ..times };
        assert!(step_graph(&profile("resnet-18"), &backwards, DType::F32).is_err());
    }
}
