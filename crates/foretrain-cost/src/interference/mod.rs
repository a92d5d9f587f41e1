//! How much longer things take when they run beside each other.
//!
//! Two domains with a schema of features each: kernels and collectives that overlap on one device
//! (here), and whole jobs that share a device ([`colocation`]). Both build on a formula with few
//! constants, and both may carry boosted trees for what the formula leaves over; a [`ModelFile`]
//! holds either or both.
//!
//! ```
//! use foretrain_core::{Bytes, Nanos};
//! use foretrain_cost::interference::{
//!     Activity, DeviceLimits, KernelLoad, OverlapModel, SlowdownModel, TransferLoad,
//! };
//! use foretrain_cost::KernelClass;
//! use foretrain_graph::CollectiveKind;
//!
//! // A GEMM whose 264 blocks fill all 132 multiprocessors once, beside a collective that holds 24.
//! let device = DeviceLimits { multiprocessors: 132, memory_bandwidth: 3.35e12 };
//! let gemm = KernelLoad {
//!     alone: Nanos::from_micros(400),
//!     class: KernelClass::Gemm,
//!     blocks: 264,
//!     threads: 1024,
//!     bandwidth: None,
//! };
//! let gather = TransferLoad {
//!     transfer: Nanos::from_millis(2),
//!     kind: CollectiveKind::AllGather,
//!     bytes: Some(Bytes::from_mib(512)),
//!     ranks: 8,
//!     channels: 24,
//!     moving: 1.0,
//! };
//! let mut slowdowns = [1.0; 2];
//! let running = [Activity::Kernel(gemm), Activity::Transfer(gather)];
//! OverlapModel::Analytic(Default::default()).slowdowns(&device, &running, &mut slowdowns);
//! assert!(slowdowns[0] > 1.5 && slowdowns[1] >= 1.0, "{slowdowns:?}");
//! ```

mod activity;
mod analytic;
pub mod colocation;
mod file;
mod fixed;
mod learned;
#[cfg(test)]
mod tests;

pub use activity::{Activity, DeviceLimits, KernelLoad, TransferLoad};
pub use analytic::Analytic;
pub use file::{Domain, ModelFile, TrainedOn};
pub use fixed::Fixed;
pub use learned::{FEATURES, Learned, OverlapSample};

use std::fmt::Debug;
use std::sync::Arc;

/// How activities that run at the same time on one device slow each other down.
pub trait SlowdownModel: Debug + Send + Sync {
    /// Writes how many times longer each activity takes than alone, at least 1. `slowdowns` has
    /// the length of `running` and holds 1 everywhere. The answer depends on the set of
    /// activities, not on their order.
    fn slowdowns(&self, device: &DeviceLimits, running: &[Activity], slowdowns: &mut [f64]);
}

/// A model of a user's own.
#[derive(Clone, Debug)]
pub struct Own {
    /// Its name; models of one name are taken for the same.
    pub name: &'static str,
    /// The model. Slow-downs below 1, and what is no number, count as 1.
    pub model: Arc<dyn SlowdownModel>,
}

impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The models there are.
#[derive(Clone, Debug, PartialEq)]
pub enum OverlapModel {
    /// One factor for computation, one for communication.
    Fixed(Fixed),
    /// A formula of multiprocessors, memory bandwidth and launch delay.
    Analytic(Analytic),
    /// The formula, corrected by trees that were fitted to traces.
    Learned(Learned),
    /// Somebody's own.
    Own(Own),
}

impl SlowdownModel for OverlapModel {
    fn slowdowns(&self, device: &DeviceLimits, running: &[Activity], slowdowns: &mut [f64]) {
        match self {
            Self::Fixed(model) => model.slowdowns(device, running, slowdowns),
            Self::Analytic(model) => model.slowdowns(device, running, slowdowns),
            Self::Learned(model) => model.slowdowns(device, running, slowdowns),
            Self::Own(own) => {
                own.model.slowdowns(device, running, slowdowns);
                for slowdown in slowdowns {
                    if !(*slowdown >= 1.0 && slowdown.is_finite()) {
                        *slowdown = 1.0;
                    }
                }
            }
        }
    }
}

impl OverlapModel {
    /// The name that `--interference` takes, or what kind of file it came from.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Fixed(_) => "fixed factors",
            Self::Analytic(_) => "analytic",
            Self::Learned(_) => "learned",
            Self::Own(own) => own.name,
        }
    }
}

/// Why trees over these features cannot be used, a lowercase fragment.
fn other_features(found: &[String], known: &[&str]) -> Option<String> {
    (found != known).then(|| {
        let (found, known) = (found.join(", "), known.join(", "));
        format!("its features are {found}; this version knows {known}")
    })
}
