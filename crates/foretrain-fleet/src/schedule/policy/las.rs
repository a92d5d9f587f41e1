//! Least attained service in discrete queues (Tiresias).

use foretrain_core::Nanos;

use super::super::board::Board;
use super::super::fragments::Fragments;
use super::super::job::JobId;
use super::queue::fragments;
use super::ranked::plan_anew;
use super::{Placer, Policy, Rhythm};

/// Jobs fall to a lower queue when they have had so much GPU-time; within a queue those that run go on,
/// and the others are served in order of arrival. No duration has to be known.
///
/// Source: Gu et al., NSDI 2019.
#[derive(Clone, Debug)]
pub struct LeastAttained {
    /// GPU-seconds at which a job leaves each queue but the last.
    limits: Vec<f64>,
    queues: Vec<Vec<JobId>>,
    rhythm: Rhythm,
    moving: Moving,
    stale: bool,
    fragments: Option<Fragments>,
}

/// What happens to those that keep their GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moving {
    /// The cluster is planned anew and jobs may be moved, so that all are placed well.
    Replan(Placer),
    /// Who runs stays where it is; who gets GPUs takes them wherever they are.
    Stay,
}

/// Two queues at four GPU-hours; beyond eight times of what most jobs need, order matters little.
pub const USUAL_LIMITS: [f64; 1] = [4.0 * 3_600.0];

impl LeastAttained {
    /// With these limits between queues, GPU-seconds.
    pub fn new(limits: Vec<f64>, moving: Moving) -> Self {
        let queues = vec![Vec::new(); limits.len() + 1];
        // Limits are crossed between events, so it looks at intervals.
        let rhythm = Rhythm::Every(Nanos::from_millis(60_000));
        Self { limits, queues, rhythm, moving, stale: false, fragments: None }
    }

    /// The same, asked at another interval.
    #[must_use]
    pub fn every(mut self, interval: Nanos) -> Self {
        self.rhythm = Rhythm::Every(interval);
        self
    }

    fn demote(&mut self, board: &Board<'_>) {
        for number in 0..self.limits.len() {
            let limit = self.limits[number];
            let spent = |id: &JobId| {
                // Time that was running when it was asked, by the size asked for.
                let progress = board.progress(*id);
                progress.on_gpus_at(board.now()).secs_f64() * f64::from(board.job(*id).gpus)
                    >= limit
            };
            let down: Vec<JobId> = self.queues[number].iter().copied().filter(spent).collect();
            if !down.is_empty() {
                self.queues[number].retain(|id| !down.contains(id));
                self.queues[number + 1].extend(down);
                self.stale = true;
            }
        }
    }

    /// Counts GPUs in order of the queues; who has some keeps them.
    fn stay(&mut self, board: &mut Board<'_>) {
        let order: Vec<JobId> = self.queues.iter().flatten().copied().collect();
        let mut left = board.gpus_up();
        let mut chosen = Vec::new();
        for id in order {
            let gpus = board.job(id).gpus;
            if gpus <= left {
                left -= gpus;
                chosen.push(id);
            } else {
                board.stop(id);
            }
        }
        let fragments = fragments(&mut self.fragments, board);
        for id in chosen {
            if board.waiting().contains(&id)
                && let Some(at) = Placer::Anywhere.find(board, id, fragments)
            {
                // Kinds and memory may still forbid it; then it waits.
                let _ = board.start(id, at);
            }
        }
    }

    /// Those that wait go behind those that run.
    fn rotate(&mut self, board: &Board<'_>) {
        for queue in &mut self.queues {
            let (running, waiting): (Vec<JobId>, Vec<JobId>) =
                queue.iter().partition(|id| board.running().contains(id));
            *queue = [running, waiting].concat();
        }
    }
}

impl Policy for LeastAttained {
    fn name(&self) -> String {
        "tiresias".into()
    }

    fn rhythm(&self) -> Rhythm {
        self.rhythm
    }

    fn arrived(&mut self, _board: &Board<'_>, id: JobId) {
        // A job that lost its machine is in a queue already.
        if !self.queues.iter().flatten().any(|known| *known == id) {
            self.queues[0].push(id);
        }
        self.stale = true;
    }

    fn left(&mut self, id: JobId) {
        for queue in &mut self.queues {
            queue.retain(|known| *known != id);
        }
        self.stale = true;
    }

    fn machines_changed(&mut self) {
        self.stale = true;
    }

    fn decide(&mut self, board: &mut Board<'_>) {
        self.demote(board);
        if !std::mem::take(&mut self.stale) {
            return;
        }
        match self.moving {
            Moving::Stay => self.stay(board),
            Moving::Replan(placer) => {
                let order: Vec<JobId> = self.queues.iter().flatten().copied().collect();
                plan_anew(board, &order, placer, fragments(&mut self.fragments, board));
                self.rotate(board);
            }
        }
    }
}
