//! The time of a pass, by what it goes to.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Index, IndexMut, Mul};

use foretrain_core::Nanos;
use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::lower::{Group, Owner};

/// What a millisecond of a step goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Matrix products of linear layers.
    Gemm,
    /// Attention.
    Attention,
    /// Routed experts.
    Expert,
    /// Convolutions and recurrent layers.
    Convolution,
    /// Norms, activations, dropout, sums.
    Elementwise,
    /// Embedding and loss.
    Vocabulary,
    /// Forward work done a second time.
    Recompute,
    /// The device waits for the host to launch.
    Launch,
    /// Exposed communication among ranks that divide the width.
    TensorComm,
    /// Exposed communication among ranks that divide a sequence.
    ContextComm,
    /// Exposed communication among ranks that divide experts.
    ExpertComm,
    /// Exposed transfers between stages.
    PipelineComm,
    /// Waiting for other stages.
    Bubble,
    /// Exposed synchronisation of gradients.
    GradientSync,
    /// Exposed gathering of divided parameters.
    ParameterGather,
    /// The update.
    Optimiser,
    /// Exposed copies to and from the host.
    Offload,
}

impl Part {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 17] = [
        Self::Gemm,
        Self::Attention,
        Self::Expert,
        Self::Convolution,
        Self::Elementwise,
        Self::Vocabulary,
        Self::Recompute,
        Self::Launch,
        Self::TensorComm,
        Self::ContextComm,
        Self::ExpertComm,
        Self::PipelineComm,
        Self::Bubble,
        Self::GradientSync,
        Self::ParameterGather,
        Self::Optimiser,
        Self::Offload,
    ];

    /// For tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gemm => "matrix products",
            Self::Attention => "attention",
            Self::Expert => "experts",
            Self::Convolution => "convolutions",
            Self::Elementwise => "elementwise and norms",
            Self::Vocabulary => "embedding and loss",
            Self::Recompute => "recomputation",
            Self::Launch => "waiting for launches",
            Self::TensorComm => "tensor-parallel communication",
            Self::ContextComm => "context-parallel communication",
            Self::ExpertComm => "expert-parallel communication",
            Self::PipelineComm => "pipeline communication",
            Self::Bubble => "pipeline bubble",
            Self::GradientSync => "gradient synchronisation",
            Self::ParameterGather => "parameter gathering",
            Self::Optimiser => "optimiser",
            Self::Offload => "offloading",
        }
    }

    /// As JSON keys.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Gemm => "gemm",
            Self::Attention => "attention",
            Self::Expert => "expert",
            Self::Convolution => "convolution",
            Self::Elementwise => "elementwise",
            Self::Vocabulary => "vocabulary",
            Self::Recompute => "recompute",
            Self::Launch => "launch",
            Self::TensorComm => "tensor_comm",
            Self::ContextComm => "context_comm",
            Self::ExpertComm => "expert_comm",
            Self::PipelineComm => "pipeline_comm",
            Self::Bubble => "bubble",
            Self::GradientSync => "gradient_sync",
            Self::ParameterGather => "parameter_gather",
            Self::Optimiser => "optimiser",
            Self::Offload => "offload",
        }
    }
}

impl From<Owner> for Part {
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::Gemm => Self::Gemm,
            Owner::Attention => Self::Attention,
            Owner::Expert => Self::Expert,
            Owner::Convolution => Self::Convolution,
            Owner::Elementwise => Self::Elementwise,
            Owner::Vocabulary => Self::Vocabulary,
        }
    }
}

impl From<Group> for Part {
    fn from(group: Group) -> Self {
        match group {
            Group::Tensor => Self::TensorComm,
            Group::Context => Self::ContextComm,
            Group::Expert | Group::ExpertTensor => Self::ExpertComm,
        }
    }
}

/// A time by parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts([Nanos; Part::ALL.len()]);

impl Parts {
    /// The sum of all parts.
    pub fn total(&self) -> Nanos {
        self.0.iter().copied().sum()
    }
    /// Parts that take time, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Part, Nanos)> + '_ {
        Part::ALL.into_iter().map(|part| (part, self[part])).filter(|(_, time)| *time > Nanos::ZERO)
    }
    /// The work that is computation goes to recomputation; communication keeps its owner.
    pub(crate) fn as_recompute(&self) -> Self {
        let mut parts = Self::default();
        for (part, time) in self.iter() {
            let comm = matches!(part, Part::TensorComm | Part::ContextComm | Part::ExpertComm);
            parts[if comm { part } else { Part::Recompute }] += time;
        }
        parts
    }
}

impl Index<Part> for Parts {
    type Output = Nanos;
    fn index(&self, part: Part) -> &Nanos {
        &self.0[part as usize]
    }
}

impl IndexMut<Part> for Parts {
    fn index_mut(&mut self, part: Part) -> &mut Nanos {
        &mut self.0[part as usize]
    }
}

impl AddAssign for Parts {
    fn add_assign(&mut self, other: Self) {
        for (own, more) in self.0.iter_mut().zip(other.0) {
            *own += more;
        }
    }
}

impl Add for Parts {
    type Output = Self;
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Mul<u64> for Parts {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        let times = i64::try_from(times).unwrap_or(i64::MAX);
        Self(self.0.map(|time| Nanos::from_nanos(time.nanos().saturating_mul(times))))
    }
}

impl Sum for Parts {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), Add::add)
    }
}

impl Serialize for Parts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (part, time) in self.iter() {
            map.serialize_entry(part.key(), &time.millis_f64())?;
        }
        map.end()
    }
}

/// How little host and device hinder each other; larger is less. From the smallest model of vTrain's
/// grid (GPT h1024 L12), which is not scored: a median error of 5 to 6 % with 3 to 4, 9 % with 2.
const TAKING_TURNS: i32 = 4;

/// A pass over a layer or a chunk on one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PassTime {
    /// Device time, and communication that nothing hides.
    pub parts: Parts,
    /// Communication beside kernels that is hidden.
    pub hidden: Nanos,
    /// Launches by the host.
    pub launches: u64,
    /// Floating-point work done.
    pub flops: f64,
    /// Sum of squares of each kernel class's absolute uncertainty, by part: spreads of one class
    /// add up linearly, since its kernels err alike.
    pub spread: [f64; 6],
}

impl AddAssign for PassTime {
    fn add_assign(&mut self, other: Self) {
        self.parts += other.parts;
        self.hidden += other.hidden;
        self.launches += other.launches;
        self.flops += other.flops;
        for (own, more) in self.spread.iter_mut().zip(other.spread) {
            *own += more;
        }
    }
}

impl PassTime {
    /// So many passes.
    pub(crate) fn times(mut self, times: u64) -> Self {
        let factor = times as f64;
        self.parts = self.parts * times;
        self.hidden = self.hidden.scale(factor);
        self.launches *= times;
        self.flops *= factor;
        self.spread = self.spread.map(|spread| spread * factor);
        self
    }

    /// With the device held up where the host launches more slowly than it computes.
    ///
    /// Within a pass the two take turns at being ahead, so the pass takes longer than the slower of
    /// them does on its own.
    pub(crate) fn paced(mut self, per_launch: Nanos, per_pass: Nanos) -> Self {
        let host = per_launch.scale(self.launches as f64) + per_pass;
        let device = self.parts.total();
        let slower = host.max(device);
        if slower > Nanos::ZERO {
            let ratio = host.min(device).nanos() as f64 / slower.nanos() as f64;
            let stretch = (1.0 + ratio.powi(TAKING_TURNS)).powf(1.0 / f64::from(TAKING_TURNS));
            self.parts[Part::Launch] += slower.scale(stretch) - device;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(device: i64, launches: u64) -> PassTime {
        let mut pass = PassTime { launches, ..PassTime::default() };
        pass.parts[Part::Gemm] = Nanos::from_micros(device);
        pass
    }

    #[test]
    fn a_pass_takes_at_least_as_long_as_host_and_device() {
        let paced = |device, launches| {
            let pass = pass(device, launches).paced(Nanos::from_micros(10), Nanos::ZERO);
            assert_eq!(pass.parts[Part::Gemm], Nanos::from_micros(device));
            pass.parts.total().micros_f64()
        };
        // One far above the other hides it, either way round.
        assert!((paced(1000, 10) - 1000.0).abs() < 0.1);
        assert!((paced(100, 100) - 1000.0).abs() < 0.1);
        assert_eq!(paced(0, 100), 1000.0);
        assert_eq!(paced(0, 0), 0.0);
        // Side by side both are held up: the fourth root of two.
        assert!((paced(1000, 100) - 1189.2).abs() < 0.1);
        for device in [300, 700, 1300, 2000] {
            let together = paced(device, 100);
            assert!(together > 1000.0_f64.max(device as f64), "{device}: {together}");
        }
    }
}
