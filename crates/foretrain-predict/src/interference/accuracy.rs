//! How far predicted times of overlapped kernels are off, and how near any model could come.
//!
//! What a single run meets is largely chance; a step depends on the sum over its kernels. So errors
//! are taken run by run, of the sums over equal kernels and of the sums over recordings.

use std::collections::BTreeMap;

use foretrain_core::Nanos;
use foretrain_core::stats::mean;
use foretrain_graph::CollectiveKind;

use super::samples::{Sample, Samples};

/// A predicted time beside the recorded one.
#[derive(Clone, Copy, Debug)]
pub struct Timed<'a> {
    /// The recording's position.
    pub recording: usize,
    /// What was recorded.
    pub sample: &'a Sample,
    /// The predicted time.
    pub predicted: Nanos,
}

impl<'a> Timed<'a> {
    /// A predicted time of a sample of the recording at that position.
    pub fn new(recording: usize, sample: &'a Sample, predicted: Nanos) -> Self {
        Self { recording, sample, predicted }
    }
}

/// Mean absolute errors in percent of the recorded time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Runs that were predicted.
    pub runs: usize,
    /// Of single runs, each counting once.
    pub by_run: f64,
    /// Of the time that equal kernels of a recording take together, each kernel counting by that
    /// time.
    pub by_kernel: f64,
    /// Of the time that all overlapped runs of a recording take together, each recording counting
    /// once.
    pub by_recording: f64,
}

impl Accuracy {
    /// The errors of predictions; `None` without any.
    pub fn of(timed: &[Timed<'_>]) -> Option<Self> {
        let mut runs = Vec::with_capacity(timed.len());
        let mut kernels: BTreeMap<(usize, usize), Sums> = BTreeMap::new();
        let mut recordings: BTreeMap<usize, Sums> = BTreeMap::new();
        for row in timed {
            let own = Sums::default().and(row);
            runs.push(own.off() / own.recorded);
            let kernel = kernels.entry((row.recording, row.sample.kernel)).or_default();
            *kernel = kernel.and(row);
            let recording = recordings.entry(row.recording).or_default();
            *recording = recording.and(row);
        }
        let all: f64 = recordings.values().map(|sums| sums.recorded).sum();
        let off_by_kernel: f64 = kernels.values().map(Sums::off).sum();
        let by_recording: Vec<f64> =
            recordings.values().map(|sums| sums.off() / sums.recorded).collect();
        Some(Self {
            runs: runs.len(),
            by_run: 100.0 * mean(&runs)?,
            by_kernel: 100.0 * off_by_kernel / all,
            by_recording: 100.0 * mean(&by_recording)?,
        })
    }
}

/// Predicted and recorded time of several runs, ns.
#[derive(Clone, Copy, Default)]
struct Sums {
    predicted: f64,
    recorded: f64,
}

impl Sums {
    fn and(self, row: &Timed<'_>) -> Self {
        // A run takes at least a nanosecond, so that nothing is divided by zero.
        let recorded = row.sample.overlap.recorded.nanos().max(1) as f64;
        Self {
            predicted: self.predicted + row.predicted.nanos() as f64,
            recorded: self.recorded + recorded,
        }
    }

    fn off(&self) -> f64 {
        (self.predicted - self.recorded).abs()
    }
}

/// Each run at the median slow-down of the other overlapped runs of the same kernel, in the same
/// recording and beside the same kind of communication; runs without any others are left out.
///
/// That is no forecast: it knows the very kernel's slow-down on the very machine. What it is off by
/// is chance, which no model of kernels and collectives can foresee.
pub fn by_other_runs<'a>(recordings: &[&'a Samples]) -> Vec<Timed<'a>> {
    let mut timed = Vec::new();
    for (recording, samples) in recordings.iter().enumerate() {
        let mut alike: BTreeMap<(usize, CollectiveKind), Vec<&Sample>> = BTreeMap::new();
        for sample in &samples.samples {
            alike.entry((sample.kernel, sample.overlap.beside.kind)).or_default().push(sample);
        }
        for mut runs in alike.into_values() {
            runs.sort_by(|a, b| a.overlap.slowdown().total_cmp(&b.overlap.slowdown()));
            for (at, &sample) in runs.iter().enumerate() {
                let Some(slowdown) = median_of_others(&runs, at) else { continue };
                let predicted = sample.overlap.time_at(slowdown).clamp_positive();
                timed.push(Timed::new(recording, sample, predicted));
            }
        }
    }
    timed
}

/// The median slow-down of all sorted runs but the one at `without`.
fn median_of_others(sorted: &[&Sample], without: usize) -> Option<f64> {
    let others = sorted.len().checked_sub(1).filter(|others| *others > 0)?;
    let slowdown = |nth: usize| sorted[nth + usize::from(nth >= without)].overlap.slowdown();
    Some(f64::midpoint(slowdown((others - 1) / 2), slowdown(others / 2)))
}

#[cfg(test)]
mod tests {
    use foretrain_cost::KernelClass;
    use foretrain_cost::interference::{DeviceLimits, KernelLoad, OverlapSample, TransferLoad};

    use super::*;

    /// Runs of kernels that take 100 µs alone: which kernel, beside what, and how many microseconds.
    fn recording(runs: &[(usize, CollectiveKind, i64)]) -> Samples {
        let sample = |&(kernel, kind, micros): &(usize, CollectiveKind, i64)| Sample {
            what: format!("kernel {kernel}"),
            kernel,
            overlap: OverlapSample {
                device: DeviceLimits::default(),
                kernel: KernelLoad {
                    alone: Nanos::from_micros(100),
                    class: KernelClass::Gemm,
                    blocks: 1,
                    threads: 1,
                    bandwidth: None,
                },
                beside: TransferLoad {
                    transfer: Nanos::from_millis(1),
                    kind,
                    bytes: None,
                    ranks: 8,
                    channels: 0,
                    moving: 1.0,
                },
                overlapped: 1.0,
                recorded: Nanos::from_micros(micros),
            },
        };
        Samples { samples: runs.iter().map(sample).collect(), ..Samples::default() }
    }

    const REDUCE: CollectiveKind = CollectiveKind::AllReduce;

    #[test]
    fn errors_that_cancel_in_a_sum_count_in_runs_only() {
        let one = recording(&[(0, REDUCE, 80), (0, REDUCE, 120), (1, REDUCE, 200)]);
        let other = recording(&[(0, REDUCE, 125)]);
        let timed: Vec<Timed<'_>> = [(0, &one), (1, &other)]
            .into_iter()
            .flat_map(|(recording, of)| {
                let predicted = Nanos::from_micros(100);
                of.samples.iter().map(move |sample| Timed::new(recording, sample, predicted))
            })
            .collect();
        let accuracy = Accuracy::of(&timed).expect("rows");
        let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-9, "{got} {want}");
        assert_eq!(accuracy.runs, 4);
        // 25, 16.7, 50 and 20 %.
        close(accuracy.by_run, (25.0 + 100.0 / 6.0 + 50.0 + 20.0) / 4.0);
        // 0 of 200, 100 of 200 and 25 of 125 µs: kernels of two recordings are two.
        close(accuracy.by_kernel, 100.0 * 125.0 / 525.0);
        // 100 of 400 and 25 of 125 µs.
        close(accuracy.by_recording, (25.0 + 20.0) / 2.0);
        assert_eq!(Accuracy::of(&[]), None);
    }

    #[test]
    fn a_run_is_told_by_the_others_alone() {
        let gather = CollectiveKind::AllGather;
        let samples = recording(&[
            (0, REDUCE, 130),
            (0, REDUCE, 110),
            (0, REDUCE, 150),
            (0, gather, 300),
            (1, REDUCE, 900),
        ]);
        let timed = by_other_runs(&[&samples]);
        let told: Vec<(f64, f64)> = timed
            .iter()
            .map(|t| (t.sample.overlap.recorded.micros_f64(), t.predicted.micros_f64()))
            .collect();
        // The gather and the other kernel have none like them.
        assert_eq!(told, [(110.0, 140.0), (130.0, 130.0), (150.0, 120.0)]);
    }
}
