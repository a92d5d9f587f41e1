//! How far each job has come.

use foretrain_core::Nanos;

use super::placement::Placement;

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Not submitted yet.
    Future,
    /// Submitted, without GPUs.
    Waiting,
    /// On GPUs.
    Running,
    /// Finished.
    Done,
    /// No GPUs of this cluster would ever do.
    Impossible,
}

/// How far one job has come.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Where it is in its life.
    pub phase: Phase,
    /// Its GPUs while it runs.
    pub at: Placement,
    /// Work that is done.
    pub done: f64,
    /// Work that outlives a failure.
    pub saved: f64,
    /// Units of work per second at present, once it has started up.
    pub speed: f64,
    /// Until when it starts up and does no work.
    pub starting_until: Nanos,
    /// Up to when `done` counts.
    pub counted_to: Nanos,
    /// When it first got GPUs.
    pub first_start: Option<Nanos>,
    /// When it last got GPUs.
    pub last_start: Option<Nanos>,
    /// When it finished.
    pub finish: Option<Nanos>,
    /// Time on GPUs.
    pub on_gpus: Nanos,
    /// GPU-seconds so far: attained service. GPUs that it shares count as whole ones.
    pub service: f64,
    /// GPUs that it holds at present, those that it shares divided among all on them.
    pub(super) holds: f64,
    /// GPU-seconds that it held so far, divided likewise.
    pub held: f64,
    /// How often it got GPUs.
    pub starts: u32,
    /// How often it lost them to others.
    pub preemptions: u32,
    /// How often it was moved or resized while running.
    pub moves: u32,
    /// How often a machine failed under it.
    pub failures: u32,
    /// Tells events of its present speed from older ones.
    pub(super) version: u32,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Future,
            at: Placement::default(),
            done: 0.0,
            saved: 0.0,
            speed: 0.0,
            starting_until: Nanos::ZERO,
            counted_to: Nanos::ZERO,
            first_start: None,
            last_start: None,
            finish: None,
            on_gpus: Nanos::ZERO,
            service: 0.0,
            holds: 0.0,
            held: 0.0,
            starts: 0,
            preemptions: 0,
            moves: 0,
            failures: 0,
            version: 0,
        }
    }

    /// Counts work, time and service up to `now`.
    pub(super) fn count_to(&mut self, now: Nanos) {
        if self.phase == Phase::Running {
            let elapsed = (now - self.counted_to).clamp_positive();
            let useful = (now - self.counted_to.max(self.starting_until)).clamp_positive();
            self.done += useful.secs_f64() * self.speed;
            self.on_gpus += elapsed;
            self.service += elapsed.secs_f64() * self.at.gpus.len() as f64;
            self.held += elapsed.secs_f64() * self.holds;
        }
        self.counted_to = now;
    }

    /// When `done` reaches `target` at the present speed; `None` if it never does.
    pub(super) fn reaches(&self, target: f64) -> Option<Nanos> {
        let left = (target - self.done).max(0.0);
        let seconds = if left > 0.0 { left / self.speed } else { 0.0 };
        // Beyond 200 years times would overflow.
        (seconds.is_finite() && seconds < 6e9).then(|| {
            // Rounded up: what is to be done is done then.
            let nanos = Nanos::from_nanos((seconds * 1e9).ceil() as i64);
            self.counted_to.max(self.starting_until).saturating_add(nanos)
        })
    }

    /// GPU-seconds up to `now`.
    pub fn service_at(&self, now: Nanos) -> f64 {
        let running =
            if self.phase == Phase::Running { now - self.counted_to } else { Nanos::ZERO };
        self.service + running.clamp_positive().secs_f64() * self.at.gpus.len() as f64
    }

    /// Work done up to `now`.
    pub fn done_at(&self, now: Nanos) -> f64 {
        if self.phase != Phase::Running {
            return self.done;
        }
        let useful = (now - self.counted_to.max(self.starting_until)).clamp_positive();
        self.done + useful.secs_f64() * self.speed
    }

    /// Time on GPUs up to `now`.
    pub fn on_gpus_at(&self, now: Nanos) -> Nanos {
        let running =
            if self.phase == Phase::Running { now - self.counted_to } else { Nanos::ZERO };
        self.on_gpus + running.clamp_positive()
    }
}
