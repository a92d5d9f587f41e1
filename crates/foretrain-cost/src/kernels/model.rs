//! The time of an operation on one device.

use foretrain_core::{
    Bandwidth, DType, Evidence, EvidenceKind, FlopRate, InputError, Nanos, Result,
};
use foretrain_hardware::{Device, DeviceKind};
use serde::Serialize;

use super::attention::AttentionCurve;
use super::book::{Book, Found, Origin, Own};
use super::calibration::{Correction, KernelCalibration};
use super::class::Class;
use super::curve::{Limits, Spread};
use super::gemm::GemmTimer;
use super::memory::{CurveKind, MemoryCurve};
use super::operation::{Attention, Convolution, Gemm, Memory, Operation, Pass};

/// What a kernel's time rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A curve fitted on this device's kernels of this class and type.
    Fitted,
    /// The curve of another device, type or class, carried over by the ratio of the limits.
    Borrowed,
    /// Limits of the hardware alone.
    Limits,
}

/// An operation's time on a device.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KernelTime {
    /// Time on the device, without what the host needs to launch it.
    pub time: Nanos,
    /// No kernel can be faster: work over peak rate, bytes over bandwidth.
    pub bound: Nanos,
    /// Half of an 80 % interval over the time.
    pub relative_spread: f64,
    /// What it rests on.
    pub basis: Basis,
}

/// Kernel times of one device.
#[derive(Clone, Debug)]
pub struct KernelModel {
    device: Device,
    limits: Limits,
    gemm: [Option<Products>; Class::ALL.len()],
    attention: [Option<Found<AttentionCurve>>; 2],
    memory: [Option<Found<MemoryCurve>>; CurveKind::ALL.len()],
    calibration: Option<KernelCalibration>,
}

/// A product's curve made ready for a device.
#[derive(Clone, Debug)]
struct Products {
    timer: GemmTimer,
    from: Origin,
    /// By the user's own measurements.
    correction: Option<Correction>,
}

/// What an operation comes to before it is held against the bound.
#[derive(Clone, Copy)]
struct Answer {
    seconds: f64,
    from: Origin,
}

/// Share of the limits that kernels are taken to reach where nothing is known of them.
const UNKNOWN_SHARE: f64 = 0.7;
/// Error of that, relative.
const UNKNOWN_SPREAD: f64 = 0.5;
/// Further error of a type that runs on another type's curve.
const OTHER_TYPE: f64 = 0.15;
/// Further error of a kind of kernel that runs on another kind's curve.
const OTHER_KIND: f64 = 0.25;
/// Convolutions lose this much against the products they come to: gathering their input costs.
const CONVOLUTION_LOSS: f64 = 1.2;

impl KernelModel {
    /// The curves shipped for `device`, or those of its nearest relative.
    pub fn for_device(device: &Device) -> Self {
        Self::new(device, Own::Used)
    }

    /// As if nothing had been measured on `device`: all curves are its relatives'.
    pub fn by_relatives(device: &Device) -> Self {
        Self::new(device, Own::LeftOut)
    }

    fn new(device: &Device, own: Own) -> Self {
        let (book, limits) = (Book::shipped(), Limits::of(device));
        // Caches and cores make a CPU another kind of machine: no curve here is a relative's.
        let known = device.kind != DeviceKind::Cpu;
        let gemm = Class::ALL.map(|class| {
            let found = book.gemm(device, class, own).filter(|_| known)?;
            let timer = GemmTimer::new(found.curve, limits, class.peak(device));
            Some(Products { timer, from: found.from, correction: None })
        });
        let attention = [Pass::Forward, Pass::Backward]
            .map(|pass| book.attention(device, pass, own).filter(|_| known));
        let memory = CurveKind::ALL.map(|kind| book.memory(device, kind, own).filter(|_| known));
        Self { device: device.clone(), limits, gemm, attention, memory, calibration: None }
    }

    /// The same with a user's corrections.
    ///
    /// # Errors
    /// If they are of another device.
    pub fn calibrated_by(mut self, calibration: &KernelCalibration) -> Result<Self> {
        if calibration.device != self.device.name {
            let (theirs, own) = (&calibration.device, &self.device.name);
            let why = format!("the kernel times were measured on {theirs}, not on {own}");
            return Err(InputError::new(why).hint(format!(
                "leave them out, or measure on {own}: foretrain calibrate kernels"
            )));
        }
        for (class, products) in Class::ALL.into_iter().zip(&mut self.gemm) {
            if let Some(products) = products {
                products.correction = calibration.of(class);
            }
        }
        self.calibration = Some(calibration.clone());
        Ok(self)
    }

    /// The user's corrections, if it has any.
    pub fn calibration(&self) -> Option<&KernelCalibration> {
        self.calibration.as_ref()
    }

    /// The device they are of.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// No kernel can be faster.
    pub fn bound(&self, operation: &Operation) -> Nanos {
        let dtype = operation.dtype().unwrap_or(DType::F32);
        let rate = self.device.peak(dtype).map_or(0.0, FlopRate::get);
        let compute = if rate > 0.0 { operation.flops().get() / rate } else { 0.0 };
        let bandwidth = Bandwidth::get(self.device.memory_bandwidth);
        let memory = if bandwidth > 0.0 { operation.bytes().as_f64() / bandwidth } else { 0.0 };
        Nanos::from_secs_f64(compute.max(memory))
    }

    /// The operation's time alone on the device.
    pub fn time(&self, operation: &Operation) -> KernelTime {
        let bound = self.bound(operation);
        match self.answer(operation).filter(|answer| answer.seconds.is_finite()) {
            Some(Answer { seconds, from }) => KernelTime {
                time: Nanos::from_secs_f64(seconds).max(bound),
                bound,
                relative_spread: from.spread.at(seconds),
                basis: from.basis,
            },
            None => KernelTime {
                time: bound.scale(1.0 / UNKNOWN_SHARE),
                bound,
                relative_spread: UNKNOWN_SPREAD,
                basis: Basis::Limits,
            },
        }
    }

    /// What an operation's time rests on, in words.
    pub fn evidence(&self, operation: &Operation) -> Evidence {
        let what = format!("kernel time of {}", operation.class_name());
        let spread = self.time(operation).relative_spread;
        let Some(Answer { from, .. }) = self.answer(operation) else {
            let source = format!("{:.0} % of the device's limits", UNKNOWN_SHARE * 100.0);
            return Evidence::new(EvidenceKind::Assumed, what, source, spread);
        };
        let fit = from.fit;
        let mut curve = format!(
            "curve of {} fitted to {} rows of {}, median error {:.1} % on {} others",
            from.owner, fit.rows, fit.source, fit.error_percent, fit.held_out
        );
        if let Some(rows) = from.corrected {
            curve += &format!(", corrected by {rows} measured shapes");
        }
        match from.basis {
            Basis::Fitted => Evidence::new(EvidenceKind::Calibrated, what, curve, spread),
            _ => {
                let source = format!("{curve}, carried over by the ratio of the limits");
                Evidence::new(EvidenceKind::Inferred, what, source, spread)
            }
        }
    }

    /// What the measurements that the device's curve is fitted to hold beside the kernel (timers,
    /// a quantisation of the input, rotation and caching of keys), to compare with them.
    pub fn around(&self, operation: &Operation) -> Nanos {
        let book = Book::shipped();
        let (around, elements) = match operation {
            Operation::Gemm(gemm) => {
                let (class, _) = Class::of(gemm.dtype, &self.device);
                (book.around_gemm(&self.device, class), (gemm.m * gemm.k) as f64)
            }
            Operation::Attention(attention) => {
                let heads = attention.heads + 2 * attention.kv_heads;
                let rows = attention.batch * attention.queries;
                let elements = (heads * rows * attention.head_dim) as f64;
                (book.around_attention(&self.device, attention.pass), elements)
            }
            Operation::Memory(memory) => {
                (book.around_memory(&self.device, CurveKind::of(memory).0), 0.0)
            }
            Operation::Convolution(_) => return Nanos::ZERO,
        };
        Nanos::from_secs_f64(around.seconds(elements, &self.limits))
    }

    fn answer(&self, operation: &Operation) -> Option<Answer> {
        match operation {
            Operation::Gemm(gemm) => self.gemm(gemm),
            Operation::Attention(attention) => self.attention(attention),
            Operation::Convolution(convolution) => self.convolution(convolution),
            Operation::Memory(memory) => self.memory(memory),
        }
    }

    fn gemm(&self, gemm: &Gemm) -> Option<Answer> {
        let (class, same_type) = Class::of(gemm.dtype, &self.device);
        let products = self.gemm[class as usize].as_ref()?;
        let answer = products.corrected(products.timer.seconds(gemm));
        Some(if same_type { answer } else { answer.borrowed(OTHER_TYPE) })
    }

    fn attention(&self, attention: &Attention) -> Option<Answer> {
        let pass = usize::from(attention.pass != Pass::Forward);
        let Found { curve, from } = self.attention[pass].as_ref()?;
        let (class, same_type) = Class::of(attention.dtype, &self.device);
        let slowdown = attention.kernel.slowdown(self.device.architecture.as_deref());
        let peak = class.peak(&self.device);
        let seconds = curve.seconds(attention, &self.limits, peak, slowdown);
        let answer = Answer { seconds, from: *from };
        let measured_type = same_type && class == Class::Half;
        Some(if measured_type { answer } else { answer.borrowed(OTHER_TYPE) })
    }

    fn convolution(&self, convolution: &Convolution) -> Option<Answer> {
        let bytes = convolution.bytes().as_f64();
        if convolution.is_depthwise() {
            // A few multiplications per place: the memory's rate bounds it, or the vector units'.
            let Found { curve, from } = self.memory[CurveKind::Elementwise as usize].as_ref()?;
            let peak = Class::F32.peak(&self.device) * UNKNOWN_SHARE;
            let compute = if peak > 0.0 { convolution.flops().get() / peak } else { 0.0 };
            let seconds = curve.seconds(bytes, &self.limits).max(compute);
            return Some(Answer { seconds, from: from.borrowed(UNKNOWN_SPREAD) });
        }
        let (class, _) = Class::of(convolution.dtype, &self.device);
        let products = self.gemm[class as usize].as_ref()?;
        let seconds = products.timer.seconds_moving(&convolution.as_gemm(), bytes);
        Some(products.corrected(seconds * CONVOLUTION_LOSS).borrowed(OTHER_KIND))
    }

    fn memory(&self, memory: &Memory) -> Option<Answer> {
        let (kind, same_kind) = CurveKind::of(memory);
        let Found { curve, from } = self.memory[kind as usize].as_ref()?;
        let seconds = curve.seconds((memory.read + memory.written).as_f64(), &self.limits);
        let answer = Answer { seconds, from: *from };
        Some(if same_kind { answer } else { answer.borrowed(OTHER_KIND) })
    }
}

impl Products {
    fn corrected(&self, seconds: f64) -> Answer {
        let Some(correction) = self.correction else { return Answer { seconds, from: self.from } };
        let spread = Spread { large: correction.spread, small: correction.spread };
        let corrected = Some(correction.rows);
        let from = Origin { spread, basis: Basis::Fitted, corrected, ..self.from };
        Answer { seconds: correction.apply(seconds), from }
    }
}

impl Answer {
    fn borrowed(self, further_error: f64) -> Self {
        Self { from: self.from.borrowed(further_error), ..self }
    }
}
