//! What a capture says, in place of what was not asked for.
//!
//! A capture holds what a user would otherwise have to measure and type: the step's time without
//! the profiler, its spread, the batch, and what DDP does with gradients and buffers. Whatever an
//! option says takes its place.

use std::sync::Arc;

use foretrain_core::stats::median;
use foretrain_core::{Bytes, Evidence, EvidenceKind, Nanos};
use foretrain_graph::StepGraph;
use foretrain_graph::attributes::well_known::GRADIENT_BYTES;
use foretrain_rewrite::BucketCaps;
use foretrain_trace::Capture;
use foretrain_trace::capture::{CapturedDdp, CapturedLayout, CapturedSteps};

use super::base::MOST_NOISE;
use super::copies::BucketCopies;
use super::{PredictOptions, Start};

/// Un-profiled steps without which their median is no better than the trace's.
const FEWEST_STEPS: usize = 3;
/// Gradients of trace and model may differ by this much before it is worth a warning.
const GRADIENT_SLACK: f64 = 0.02;

/// Which answers rest on captures, for what is said of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FromCapture {
    pub(crate) step: bool,
    pub(crate) spread: bool,
    pub(super) buffers: bool,
    pub(super) copies: bool,
}

impl FromCapture {
    /// How a figure is known, for the end of a sentence.
    pub(crate) fn how(captured: bool) -> &'static str {
        if captured { "from the capture" } else { "as given" }
    }
}

impl Start {
    /// Fills what the options leave open from the captures, and says so.
    pub(crate) fn complete(&mut self, options: &PredictOptions) -> PredictOptions {
        let mut options = options.clone();
        let captures = std::mem::take(&mut self.captures);
        if captures.is_empty() {
            return options;
        }
        self.complete_step(&captures, &mut options);
        if options.replica_batch.is_none()
            && let Some(batch) = agreed(captures.iter().map(|capture| capture.replica_batch))
        {
            options.replica_batch = Some(batch);
            self.say("samples per replica and step", format!("{batch} from the capture"));
        }
        let builds = options.strategy.is_none() && self.ranks.lead().layout.lacks_synchronisation();
        if let Some(lead) = captures.first().filter(|_| builds) {
            self.complete_synchronisation(lead, &mut options);
        }
        if options.cores.is_none()
            && let [alone] = captures.as_slice()
            && alone.world_size == 1
            && alone.is_of_cpu()
            && let Some(cores) = alone.environment.quota_cores
        {
            // A quota is shared by all ranks in its container, so that of one rank alone counts.
            options.cores = Some(cores);
            self.say("cores of a rank", format!("{cores}, the quota from the capture"));
        }
        self.captures = captures;
        options
    }

    fn complete_step(&mut self, captures: &[Arc<Capture>], options: &mut PredictOptions) {
        let enough = |steps: &CapturedSteps| steps.times().len() >= FEWEST_STEPS;
        let steps: Vec<f64> = captures
            .iter()
            .filter(|capture| enough(&capture.unprofiled))
            .filter_map(|capture| capture.unprofiled.median())
            .map(|step| step.nanos() as f64)
            .collect();
        if options.unprofiled_step.is_none()
            && let Some(step) = median(&steps).filter(|step| *step >= 1.0)
        {
            options.unprofiled_step = Some(Nanos::from_nanos(step.round() as i64));
            self.captured.step = true;
        }
        let spreads: Vec<f64> =
            captures.iter().filter_map(|capture| capture.unprofiled.spread()).collect();
        if options.step_spread.is_none()
            && let Some(spread) = median(&spreads)
        {
            options.step_spread = Some(spread.min(MOST_NOISE));
            self.captured.spread = true;
            if spread > MOST_NOISE {
                self.warnings.push(format!(
                    "steps without the profiler differ by {:.0} % from each other: that is more than the noise of independent ranks, of which {:.0} % is assumed (--step-spread)",
                    spread * 100.0,
                    MOST_NOISE * 100.0
                ));
            }
        }
    }

    /// What DDP will do to a job that was recorded without it, or by one process under it.
    fn complete_synchronisation(&mut self, capture: &Capture, options: &mut PredictOptions) {
        let gradients = capture.gradient_bytes();
        let shown = shown_gradients(&self.ranks.lead().graph);
        if options.gradient_bytes.is_none() && gradients > Bytes::ZERO {
            if shown == Bytes::ZERO {
                options.gradient_bytes = Some(gradients);
                self.say("gradient bytes", format!("{gradients} from the capture"));
            } else if differ(shown, gradients) {
                self.warnings.push(format!(
                    "the trace shows {shown} of gradients, the capture's model has {gradients}: the trace's are used (--gradient-bytes)"
                ));
            }
        }
        let (ddp, how) = match &capture.layout {
            CapturedLayout::Ddp(ddp) => (ddp.clone(), "from the capture"),
            // The recording has no DDP; another will most likely have PyTorch's defaults.
            CapturedLayout::None => (
                CapturedDdp { cap_is_default: true, broadcast_buffers: true, ..Default::default() },
                "of the capture's model",
            ),
            CapturedLayout::Sharded { .. } => return,
        };
        if options.buckets == BucketCaps::default()
            && !ddp.cap_is_default
            && ddp.bucket_cap > Bytes::ZERO
        {
            options.buckets = BucketCaps::uniform(ddp.bucket_cap);
            self.say("cap of gradient buckets", format!("{} {how}", ddp.bucket_cap));
        }
        if options.bucket_copies == BucketCopies::default() && ddp.gradient_as_bucket_view {
            options.bucket_copies = BucketCopies::None;
            self.captured.copies = true;
        }
        if options.buffer_bytes.is_none() && ddp.broadcast_buffers && capture.buffers > Bytes::ZERO
        {
            options.buffer_bytes = Some(capture.buffers);
            self.captured.buffers = true;
        }
    }

    fn say(&mut self, what: &str, source: String) {
        self.evidence.push(Evidence::new(EvidenceKind::Measured, what, source, 0.0));
    }
}

/// Gradients whose sizes the trace shows, together.
fn shown_gradients(graph: &StepGraph) -> Bytes {
    let bytes = graph.node_ids().filter_map(|id| {
        let bytes = graph.node_attributes.get_i64(GRADIENT_BYTES, id.index())?;
        u64::try_from(bytes).ok().map(Bytes::new)
    });
    bytes.sum()
}

fn differ(one: Bytes, other: Bytes) -> bool {
    let (one, other) = (one.get() as f64, other.get() as f64);
    (one - other).abs() > GRADIENT_SLACK * other
}

/// What all that say anything say.
fn agreed(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let mut values = values.flatten();
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}
