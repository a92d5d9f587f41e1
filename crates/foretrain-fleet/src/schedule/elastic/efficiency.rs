//! What a step is worth.

/// Noise of the gradients while training is in one phase (an epoch, say), by batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Work that is done when the phase ends, in steps at the initial batch.
    pub until: f64,
    /// Batches, ascending, each with the squared norm of its mean gradient and the variance of
    /// gradients at the initial batch.
    pub noise: Vec<(u64, f64, f64)>,
}

/// What a step is worth over the whole of training.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Efficiency {
    phases: Vec<Phase>,
}

impl Efficiency {
    /// From phases in the order of training. Without any, a step of any batch is worth its samples.
    pub fn new(phases: Vec<Phase>) -> Self {
        Self { phases }
    }

    /// Steps at the initial batch that one step at `batch` is worth:
    /// `(variance + square) / (variance / scale + square)` with `scale = batch / initial`.
    /// Source: Pollux, OSDI 2021, equations 5 to 7.
    pub fn gain(&self, batch: u64, initial: u64, done: f64) -> f64 {
        let scale = batch as f64 / initial.max(1) as f64;
        let Some(phase) = self.phase(done) else { return scale };
        let (square, variance) = noise(&phase.noise, batch);
        let below = variance / scale + square;
        if below > 0.0 { (variance + square) / below } else { 1.0 }
    }

    /// Work that is done when the present phase ends; `None` in the last.
    pub fn phase_end(&self, done: f64) -> Option<f64> {
        let at = self.at(done);
        (at + 1 < self.phases.len()).then(|| self.phases[at].until)
    }

    /// Phases.
    pub(super) fn phases(&self) -> usize {
        self.phases.len()
    }

    fn phase(&self, done: f64) -> Option<&Phase> {
        self.phases.get(self.at(done))
    }

    /// The phase that training is in.
    pub(super) fn at(&self, done: f64) -> usize {
        // A trifle: work is counted in floating point.
        let past = |phase: &Phase| phase.until <= done * (1.0 + 1e-12) + 1e-9;
        self.phases.partition_point(past).min(self.phases.len().saturating_sub(1))
    }
}

/// Square and variance at a batch, on lines between those that were measured.
fn noise(measured: &[(u64, f64, f64)], batch: u64) -> (f64, f64) {
    let above = measured.partition_point(|(size, ..)| *size < batch);
    match (above.checked_sub(1).and_then(|below| measured.get(below)), measured.get(above)) {
        (Some(&(low, s0, v0)), Some(&(high, s1, v1))) => {
            let part = (batch - low) as f64 / (high - low).max(1) as f64;
            (s0 + (s1 - s0) * part, v0 + (v1 - v0) * part)
        }
        (Some(&(_, square, variance)), None) | (None, Some(&(_, square, variance))) => {
            (square, variance)
        }
        (None, None) => (1.0, 0.0),
    }
}
