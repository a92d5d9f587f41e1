//! A whole step.

use foretrain_core::{Estimate, Nanos};
use serde::Serialize;

use super::Laid;
use super::spread::{Causes, SHIPPED};
use crate::layout::Schedule;
use crate::pipeline::{Orders, PipelineTimes, Place};
use crate::times::{Part, Parts, PassTime};

/// A step, by parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// From one step to the next.
    pub time: Nanos,
    /// What the busiest stage's rank spends it on; adds up to `time`.
    pub parts: Parts,
    /// The stage that `parts` is of.
    pub stage: u32,
    /// Micro-batches of one replica.
    pub micro_batches: u64,
    /// Communication of that rank that is hidden.
    pub hidden: Nanos,
    /// Floating-point work of one rank of that stage.
    pub flops: f64,
    /// Every stage.
    pub stages: Vec<StageTime>,
    /// Half of an 80 % interval over the time.
    pub relative_spread: f64,
    /// How much of the step each cause of error applies to.
    pub causes: Causes,
}

/// One stage's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageTime {
    /// In passes.
    pub busy: Nanos,
    /// Its first pass begins, since the step's start.
    pub started: Nanos,
    /// Passes done.
    pub computed: Nanos,
    /// Gradients synchronised.
    pub synchronised: Nanos,
    /// The update.
    pub update: Nanos,
}

/// Times that grow by the same amount with each further round of micro-batches.
#[derive(Clone, Copy)]
struct Grown<'a> {
    first: &'a PipelineTimes,
    later: Option<&'a PipelineTimes>,
    rounds: u64,
}

impl Grown<'_> {
    fn of(&self, what: impl Fn(&PipelineTimes) -> Nanos) -> Nanos {
        let first = what(self.first);
        match self.later {
            None => first,
            Some(later) => first + (what(later) - first).scale(self.rounds as f64),
        }
    }
}

impl Step {
    /// From the times of a played pipeline; with `later` those of one more round, of which there
    /// are `rounds` more than were played at first.
    pub(super) fn of(
        laid: &Laid<'_>,
        orders: &Orders,
        first: &PipelineTimes,
        rounds: u64,
        later: Option<&PipelineTimes>,
    ) -> Self {
        let grown = Grown { first, later, rounds };
        let overlap = laid.job.software.overlap_gradients;
        let stages: Vec<StageTime> = (0..laid.layout.pipeline)
            .map(|stage| {
                let at = stage as usize;
                let chunks = laid.chunks_of(orders, stage);
                let sync = |chunk: &usize| laid.syncs[*chunk].gradients.total;
                let after =
                    if overlap { Nanos::ZERO } else { chunks.iter().map(sync).sum::<Nanos>() };
                StageTime {
                    busy: grown.of(|times| times.busy[at]),
                    started: grown.of(|times| times.started[at]),
                    computed: grown.of(|times| times.computed[at]),
                    synchronised: grown.of(|times| times.synchronised[at]) + after,
                    update: chunks.iter().map(|&chunk| laid.syncs[chunk].update).sum(),
                }
            })
            .collect();
        let gather = |stage: u32| -> Nanos {
            laid.chunks_of(orders, stage).iter().map(|&chunk| laid.syncs[chunk].gather_after).sum()
        };
        let gather_after = (0..laid.layout.pipeline).map(gather).max().unwrap_or(Nanos::ZERO);
        let update = stages.iter().map(|stage| stage.update).max().unwrap_or(Nanos::ZERO);
        // Checked afterwards, an update waits for no other stage.
        let apart = matches!(laid.layout.schedule, Schedule::ZbH2 | Schedule::ZbV);
        let ends = |stage: &StageTime| {
            stage.synchronised - if apart { stage.started } else { Nanos::ZERO }
        };
        let passes = stages.iter().map(ends).max().unwrap_or(Nanos::ZERO);
        let between = laid.between_steps();
        let time = passes + update + gather_after + between;
        let stage = busiest(&stages);
        let mut step = Self {
            time,
            parts: Parts::default(),
            stage,
            micro_batches: laid.micro_batches,
            hidden: Nanos::ZERO,
            flops: 0.0,
            stages,
            relative_spread: 0.0,
            causes: Causes::default(),
        };
        let sending = grown.of(|times| times.sending[stage as usize]);
        // What the gate costs, it costs once, however many rounds follow.
        let gather = gather_after + first.gated[stage as usize];
        step.divide(laid, orders, [sending, gather, update, between]);
        step
    }

    /// The time with its 80 % interval.
    pub fn estimate(&self) -> Estimate<Nanos> {
        let factor = 1.0 + self.relative_spread;
        Estimate::between(self.time, self.time.scale(1.0 / factor), self.time.scale(factor))
    }

    /// Gives every millisecond of the busiest stage its owner.
    fn divide(
        &mut self,
        laid: &Laid<'_>,
        orders: &Orders,
        [sending, gather, update, between]: [Nanos; 4],
    ) {
        let own = self.stages[self.stage as usize];
        let mut pass = PassTime::default();
        for chunk in laid.chunks_of(orders, self.stage) {
            let cost = &laid.chunks[chunk];
            let times = if laid.layout.schedule == Schedule::DualPipe {
                // Each direction has half of the micro-batches.
                self.micro_batches / 2
            } else {
                self.micro_batches
            };
            for part in [&cost.forward, &cost.backward, &cost.weights] {
                pass += part.times(times);
            }
        }
        let mut parts = pass.parts;
        parts[Part::PipelineComm] += sending;
        parts[Part::GradientSync] += own.synchronised - own.computed;
        parts[Part::ParameterGather] += gather;
        parts[Part::Optimiser] += update;
        parts[Part::Launch] += between;
        let left = self.time - parts.total();
        parts[Part::Bubble] += left.clamp_positive();
        self.hidden = pass.hidden;
        self.flops = pass.flops;
        self.causes = Causes::of(laid, &parts, &pass);
        self.relative_spread = self.causes.spread(&SHIPPED);
        self.parts = parts;
    }
}

/// The stage with most to do; the first of equals.
fn busiest(stages: &[StageTime]) -> u32 {
    let mut best = 0;
    for (at, stage) in stages.iter().enumerate() {
        if stage.busy > stages[best].busy {
            best = at;
        }
    }
    best as u32
}

impl Laid<'_> {
    /// Host time between a step's update and the next step.
    pub(crate) fn between_steps(&self) -> Nanos {
        let machine = self.job.machine;
        let pace = machine.host().pace * machine.factors().host;
        self.job.software.host_per_step.scale(pace)
    }

    /// Chunks of the model that `stage` holds.
    pub(crate) fn chunks_of(&self, orders: &Orders, stage: u32) -> Vec<usize> {
        (0..orders.chunks).map(|chunk| self.chunk_at(orders, Place { stage, chunk })).collect()
    }
}
