//! How far a step's time may be off, by cause.

use std::ops::{Index, IndexMut};

use foretrain_cost::kernels::Sustained;
use serde::Serialize;

use super::Laid;
use crate::software::Fusion;
use crate::times::{Part, Parts, PassTime};

/// What makes estimates err.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The form of the model itself, whatever the run.
    Form,
    /// Kernel times, by what their curves are known to: small shapes, borrowed curves.
    Curves,
    /// Matrix products in other libraries and under power.
    Products,
    /// Attention.
    Attention,
    /// Memory-bound kernels, the update among them.
    Memory,
    /// Routed experts.
    Experts,
    /// Exchanges with experts.
    ExpertComm,
    /// Other exposed communication.
    Communication,
    /// Waiting for the host.
    Launch,
    /// Software that runs each operator as a kernel of its own: its versions differ.
    Software,
    /// A generation of devices of which no run has been compared.
    Machine,
}

impl Cause {
    /// All of them, in order.
    pub const ALL: [Self; 11] = [
        Self::Form,
        Self::Curves,
        Self::Products,
        Self::Attention,
        Self::Memory,
        Self::Experts,
        Self::ExpertComm,
        Self::Communication,
        Self::Launch,
        Self::Software,
        Self::Machine,
    ];

    /// For tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Curves => "curves",
            Self::Products => "products",
            Self::Attention => "attention",
            Self::Memory => "memory-bound kernels",
            Self::Experts => "experts",
            Self::ExpertComm => "exchanges with experts",
            Self::Communication => "communication",
            Self::Launch => "launches",
            Self::Software => "unfused software",
            Self::Machine => "other machines",
        }
    }
}

/// A number for each cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Causes([f64; Cause::ALL.len()]);

/// Half of an 80 % interval over the time if a step consisted of nothing but the cause, relative;
/// times what the curves state for [`Cause::Curves`]. From the errors of described runs, fitted by
/// `foretrain validate --set e2e`, where each source's intervals come from the others' errors.
pub const SHIPPED: Causes =
    Causes([0.074, 1.36, 0.078, 0.100, 0.169, 0.64, 0.32, 0.34, 0.354, 0.095, 0.158]);

impl Causes {
    /// From all of them, in the order of [`Cause::ALL`].
    pub const fn from_array(values: [f64; Cause::ALL.len()]) -> Self {
        Self(values)
    }

    /// All of them, in order.
    pub const fn to_array(self) -> [f64; Cause::ALL.len()] {
        self.0
    }

    /// How much of a step each cause applies to.
    pub(super) fn of(laid: &Laid<'_>, parts: &Parts, pass: &PassTime) -> Self {
        let mut causes = Self::default();
        let whole = parts.total().nanos() as f64;
        if whole <= 0.0 {
            return causes;
        }
        let share = |part: &Part| parts[*part].nanos() as f64 / whole;
        // A bubble errs as what it waits for.
        let stretch = 1.0 / (1.0 - share(&Part::Bubble)).max(0.1);
        let sum = |parts: &[Part]| stretch * parts.iter().map(share).sum::<f64>();
        // Kernels of one class err alike, classes do not.
        let curves = pass.spread.iter().map(|spread| (stretch * spread / whole).powi(2));
        let job = laid.job;
        let device = job.machine.kernels().device();
        let generation = device.architecture.as_deref().unwrap_or("");
        let certain = |holds: bool| f64::from(u8::from(holds));

        causes[Cause::Form] = 1.0;
        causes[Cause::Curves] = curves.sum::<f64>().sqrt();
        causes[Cause::Products] =
            sum(&[Part::Gemm, Part::Convolution, Part::Vocabulary, Part::Recompute]);
        causes[Cause::Attention] = sum(&[Part::Attention]);
        causes[Cause::Memory] = sum(&[Part::Elementwise, Part::Optimiser, Part::Offload]);
        causes[Cause::Experts] = sum(&[Part::Expert]);
        causes[Cause::ExpertComm] = sum(&[Part::ExpertComm]);
        causes[Cause::Communication] = sum(&[
            Part::TensorComm,
            Part::ContextComm,
            Part::PipelineComm,
            Part::GradientSync,
            Part::ParameterGather,
        ]);
        causes[Cause::Launch] = sum(&[Part::Launch]);
        causes[Cause::Software] = certain(job.software.fusion == Fusion::Eager);
        causes[Cause::Machine] = certain(!Sustained::FROM_RUNS.contains(&generation));
        causes
    }

    /// Half of an 80 % interval over the time, relative: causes err independently.
    pub fn spread(&self, each: &Self) -> f64 {
        let squares = self.0.iter().zip(each.0).map(|(share, spread)| (share * spread).powi(2));
        squares.sum::<f64>().sqrt()
    }
}

impl Index<Cause> for Causes {
    type Output = f64;
    fn index(&self, cause: Cause) -> &f64 {
        &self.0[cause as usize]
    }
}

impl IndexMut<Cause> for Causes {
    fn index_mut(&mut self, cause: Cause) -> &mut f64 {
        &mut self.0[cause as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_add_up_as_squares() {
        let mut shares = Causes::default();
        assert!(shares.spread(&SHIPPED).abs() < 1e-12);
        shares[Cause::Products] = 0.5;
        shares[Cause::Launch] = 0.5;
        let (products, launch) = (SHIPPED[Cause::Products], SHIPPED[Cause::Launch]);
        let expected = 0.5 * products.hypot(launch);
        assert!((shares.spread(&SHIPPED) - expected).abs() < 1e-12);
    }
}
