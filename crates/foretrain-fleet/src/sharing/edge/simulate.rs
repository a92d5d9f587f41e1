//! One run of the device with given batches.

use foretrain_core::words::{counted, of_number};
use foretrain_core::{Bytes, InputError, Nanos, Result};

use super::{Edge, Run};

/// What became of a stream's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    /// Frames that came.
    pub frames: u32,
    /// Frames whose batch was run. As in the published simulation, frames that are late themselves
    /// but share a batch with one that is not count as run.
    pub processed: u32,
    /// Frames that were passed over.
    pub skipped: u32,
}

impl Served {
    /// Part of the frames that was processed.
    pub fn share(&self) -> f64 {
        f64::from(self.processed) / f64::from(self.frames)
    }

    /// The share in hundredths, which choices of batches are compared by.
    pub(super) fn hundredths(&self) -> u32 {
        // Of two hundredths that are equally near, the double decides, as published: 0.425 lies
        // below its name.
        let digits: String = format!("{:.2}", self.share()).split('.').collect();
        digits.parse().unwrap_or(0)
    }
}

/// What a run of the device came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Batch of each model.
    pub batches: Vec<u32>,
    /// Each model's stream.
    pub served: Vec<Served>,
    /// Time from the first frame to the last run's end.
    pub time: Nanos,
    /// Part of it in which the device waited for a model to load.
    pub loading: f64,
    /// Times that a model was put out of memory.
    pub evictions: u64,
}

/// Milliseconds as a double. Times and the frames' stamps are summed up in them, as the published
/// simulation does: where a run ends just as a frame comes, the last bit decides, and turns that
/// repeat would repeat the other decision.
pub(super) type Millis = f64;

/// Plays all streams to their end with one batch per model, in `memory` (`None`: all models stay in
/// memory); `None` if a batch does not fit even alone.
///
/// # Errors
/// If the device cannot be simulated, or a model is not described for its batch.
pub fn simulate(edge: &Edge, memory: Option<Bytes>, batches: &[u32]) -> Result<Option<Outcome>> {
    edge.check()?;
    let runs = edge.models.iter().zip(batches).map(|(model, &batch)| {
        model.run(batch).copied().ok_or_else(|| {
            InputError::new(format!("no run of {} is described", counted(batch, "frame")))
                .at(&model.name)
        })
    });
    let runs: Vec<Run> = runs.collect::<Result<_>>()?;
    if runs.len() != edge.models.len() {
        let message = {
            let batches = of_number(runs.len(), "batch", "batches");
            format!("{} {batches} for {}", runs.len(), counted(edge.models.len(), "model"))
        };
        return Err(InputError::new(message));
    }
    Ok(play(edge, memory, &stamps(edge), &runs))
}

/// When the frames of every stream come.
pub(super) fn stamps(edge: &Edge) -> Vec<Millis> {
    let next = |stamp: &Millis| Some(stamp + 1000.0 / edge.rate);
    std::iter::successors(Some(0.0), next).take(edge.frames as usize).collect()
}

/// Plays a device that can be simulated with these runs of its models.
pub(super) fn play(
    edge: &Edge,
    memory: Option<Bytes>,
    stamps: &[Millis],
    runs: &[Run],
) -> Option<Outcome> {
    Player::new(edge, memory, stamps, runs).play()
}

/// A stream: frames before `next` are done with.
#[derive(Clone, Copy, Default)]
struct Stream {
    next: u32,
    processed: u32,
}

/// What a model takes to bring in, alone and beside others.
struct Loads {
    alone: (Millis, Bytes),
    /// The same beside another model, with that one's number.
    beside: Vec<(usize, Millis, Bytes)>,
    /// Of its run.
    run: (Millis, Bytes),
    batch: u32,
}

/// A turn allocates nothing: there are millions of them.
struct Player<'a> {
    memory: Option<Bytes>,
    runtime: Bytes,
    deadline: Millis,
    models: Vec<Loads>,
    stamps: &'a [Millis],
    streams: Vec<Stream>,
    /// Frames of each stream that have come by the last look at the clock.
    come: u32,
    /// Models in memory, the one used last at the end; and whether each is.
    order: Vec<usize>,
    is_resident: Vec<bool>,
    clock: Millis,
    loading: Millis,
    evictions: u64,
}

impl<'a> Player<'a> {
    fn new(edge: &Edge, memory: Option<Bytes>, stamps: &'a [Millis], runs: &[Run]) -> Self {
        let count = edge.models.len();
        let models = edge.models.iter().zip(runs).enumerate().map(|(number, (model, run))| {
            let mut beside: Vec<(usize, Millis, Bytes)> = Vec::new();
            for pair in edge.shared.iter().filter(|pair| pair.model == number) {
                // Of two accounts of one pair the last counts.
                beside.retain(|(other, ..)| *other != pair.beside);
                if pair.beside != number {
                    beside.push((pair.beside, pair.load.millis_f64(), pair.resident));
                }
            }
            Loads {
                alone: (model.load.millis_f64(), model.resident),
                beside,
                run: (run.time.millis_f64(), run.memory),
                batch: run.batch,
            }
        });
        Self {
            memory,
            runtime: edge.runtime,
            deadline: edge.deadline.millis_f64(),
            models: models.collect(),
            stamps,
            streams: vec![Stream::default(); count],
            come: 0,
            order: Vec::with_capacity(count),
            is_resident: vec![false; count],
            clock: 0.0,
            loading: 0.0,
            evictions: 0,
        }
    }

    fn frames(&self) -> u32 {
        self.stamps.len() as u32
    }

    fn play(mut self) -> Option<Outcome> {
        let (count, frames) = (self.streams.len(), self.frames());
        while self.streams.iter().any(|stream| stream.next < frames) {
            for model in 0..count {
                self.bring(model)?;
                self.serve(model);
            }
        }
        let served = self.streams.iter().map(|stream| {
            let processed = stream.processed;
            Served { frames, processed, skipped: frames - processed }
        });
        Some(Outcome {
            batches: self.models.iter().map(|model| model.batch).collect(),
            served: served.collect(),
            time: Nanos::from_nanos_f64(self.clock * 1e6),
            loading: self.loading / self.clock,
            evictions: self.evictions,
        })
    }

    /// What loading a model costs beside those in memory: the cheapest of its partners counts.
    fn rest(&self, model: usize) -> (Millis, Bytes) {
        let Loads { alone, beside, .. } = &self.models[model];
        let partners = beside.iter().filter(|(other, ..)| self.is_resident[*other]);
        partners.fold(*alone, |best, (_, load, bytes)| (best.0.min(*load), best.1.min(*bytes)))
    }

    /// Brings a model into memory; `None` if it does not fit even alone.
    fn bring(&mut self, model: usize) -> Option<()> {
        let Some(memory) = self.memory else { return Some(()) };
        let was_resident = self.is_resident[model];
        if was_resident {
            self.order.retain(|&other| other != model);
        }
        self.is_resident[model] = true;
        while self.needed(model) > memory {
            let last = self.order.pop()?;
            self.is_resident[last] = false;
            self.evictions += 1;
        }
        let (load, rest) = self.rest(model);
        let load = if was_resident { 0.0 } else { load };
        self.order.push(model);
        // The one before, in the round: it may still run while this one is loaded.
        let before = &self.models[model.checked_sub(1).unwrap_or(self.models.len() - 1)];
        let (time, bytes) = before.run;
        let fits = rest + bytes + self.runtime <= memory;
        let waits = if fits { (load - time).max(0.0) } else { load };
        self.clock += waits;
        self.loading += waits;
        Some(())
    }

    /// Memory for a run of this model beside those in memory.
    fn needed(&self, model: usize) -> Bytes {
        let others: Bytes = self.order.iter().map(|&other| self.rest(other).1).sum();
        others + self.models[model].run.1 + self.runtime
    }

    /// Waits for frames that can be ready in time and runs the newest of them.
    fn serve(&mut self, model: usize) {
        let Loads { run: (time, _), batch, .. } = self.models[model];
        let last = self.frames() - 1;
        loop {
            let come = self.come();
            let stream = &mut self.streams[model];
            let waiting = come.saturating_sub(stream.next);
            stream.next = stream.next.max(come);
            // The last frame ends the stream, late or not.
            let is_worth = waiting > 0
                && (come > last
                    || self.stamps[come as usize - 1] + self.deadline >= self.clock + time);
            if is_worth {
                stream.processed += waiting.min(batch);
                self.clock += time;
                return;
            }
            if come > last {
                return;
            }
            // The device looks again every millisecond; nothing changes before the next frame.
            let next = self.stamps[come as usize];
            self.clock += (next - self.clock).ceil().max(1.0);
        }
    }

    /// Frames of a stream that have come; the first is there when the clock starts.
    fn come(&mut self) -> u32 {
        let later = &self.stamps[self.come as usize..];
        self.come += later.iter().take_while(|stamp| **stamp <= self.clock).count() as u32;
        self.come
    }
}
