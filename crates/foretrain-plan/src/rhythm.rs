//! How a pipeline's stages take turns: warm-up, micro-batches in flight, bubble.

use foretrain_core::Result;
use serde::Serialize;

use crate::layout::Schedule;
use crate::pipeline::{Kind, Orders};
use crate::step::{Laid, Step};

/// The rhythm of a pipeline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rhythm {
    /// Micro-batches of one replica.
    pub micro_batches: u64,
    /// Chunks of layers per stage.
    pub chunks: u32,
    /// Every stage, first to last.
    pub stages: Vec<StageRhythm>,
    /// Idle share of the passes if all chunks took the same time and nothing had to be sent,
    /// `(p - 1) / (v m + p - 1)` (Narayanan et al., 2021, 2.2); of schedules that alternate whole
    /// passes only.
    pub ideal_bubble: Option<f64>,
    /// Idle share of the passes as simulated, over all stages.
    pub bubble: f64,
}

/// One stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StageRhythm {
    /// Forward passes over a chunk before forward and backward passes alternate.
    pub warm_up: u64,
    /// Forward passes over a chunk that are kept at once.
    pub in_flight: u64,
}

impl Laid<'_> {
    /// The rhythm of the layout's pipeline; `None` without one.
    ///
    /// # Errors
    /// If the schedule has no form for the number of micro-batches.
    pub fn rhythm(&self, step: &Step) -> Result<Option<Rhythm>> {
        if self.layout.pipeline <= 1 {
            return Ok(None);
        }
        let orders = self.job.orders_of(self.layout, self.played_first())?;
        let all_forward = self.layout.schedule == Schedule::GPipe;
        let stages = (0..self.layout.pipeline)
            .map(|stage| {
                let in_flight = peak(&orders, stage);
                if all_forward {
                    // As many as there are, however few are played.
                    let passes = self.micro_batches * u64::from(orders.chunks);
                    return StageRhythm { warm_up: passes, in_flight: passes };
                }
                StageRhythm { warm_up: warm_up(&orders, stage), in_flight }
            })
            .collect();
        let whole = matches!(self.layout.schedule, Schedule::GPipe | Schedule::OneFOneB);
        let ideal_bubble = whole.then(|| {
            let others = f64::from(self.layout.pipeline - 1);
            // GPipe runs its chunks one after the other, which saves nothing.
            let chunks = if all_forward { 1.0 } else { f64::from(orders.chunks) };
            others / (chunks * self.micro_batches as f64 + others)
        });
        Ok(Some(Rhythm {
            micro_batches: self.micro_batches,
            chunks: orders.chunks,
            stages,
            ideal_bubble,
            bubble: bubble(step, self.layout.schedule),
        }))
    }
}

/// Forward passes before the first that a backward pass follows at once. Where all come first, they
/// are all warm-up if there are chunks to go through, else the last alternates already.
fn warm_up(orders: &Orders, stage: u32) -> u64 {
    let tasks = &orders.stages[stage as usize];
    let first = tasks.iter().take_while(|task| task.kind == Kind::Forward).count();
    let all = tasks.iter().filter(|task| task.kind == Kind::Forward).count();
    let alternates = first < all || orders.chunks == 1;
    (if alternates { first.saturating_sub(1) } else { first }) as u64
}

fn peak(orders: &Orders, stage: u32) -> u64 {
    let held = |moment: &Vec<u32>| moment.iter().map(|&count| u64::from(count)).sum();
    orders.fullest(stage).iter().map(held).max().unwrap_or(0)
}

/// Idle share between the first pass of all and the last: of each stage's own span where no stage
/// waits for the others between steps.
fn bubble(step: &Step, schedule: Schedule) -> f64 {
    let apart = matches!(schedule, Schedule::ZbH2 | Schedule::ZbV);
    let last = step.stages.iter().map(|stage| stage.computed).max().unwrap_or_default();
    let (mut busy, mut span) = (0.0, 0.0);
    for stage in &step.stages {
        busy += stage.busy.nanos() as f64;
        span += (if apart { stage.computed - stage.started } else { last }).nanos() as f64;
    }
    if span > 0.0 { (1.0 - busy / span).max(0.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::orders;

    fn warm_ups(chunks: u32, micro_batches: u32) -> Vec<u64> {
        let orders = orders(Schedule::OneFOneB, 4, chunks, micro_batches).unwrap();
        (0..4).map(|stage| warm_up(&orders, stage)).collect()
    }

    /// Megatron-LM, issue 169.
    #[test]
    fn warm_up_of_plain_and_interleaved_pipelines() {
        assert_eq!(warm_ups(1, 8), [3, 2, 1, 0]);
        assert_eq!(warm_ups(1, 4), [3, 2, 1, 0]);
        assert_eq!(warm_ups(2, 8), [10, 8, 6, 4]);
        let orders = orders(Schedule::OneFOneB, 4, 2, 8).unwrap();
        let held: Vec<u64> = (0..4).map(|stage| peak(&orders, stage)).collect();
        assert_eq!(held, [11, 9, 7, 5]);
    }
}
