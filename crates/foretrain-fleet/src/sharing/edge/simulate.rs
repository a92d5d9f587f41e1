//! One run of the device with given batches.

use foretrain_core::{Bytes, InputError, Nanos, Result};

use super::{Edge, EdgeModel, Run};

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
type Millis = f64;

/// Plays all streams to their end with one batch per model, in `memory` (`None`: all models stay in
/// memory); `None` if a batch does not fit even alone.
///
/// # Errors
/// If the device cannot be simulated, or a model is not described for its batch.
pub fn simulate(edge: &Edge, memory: Option<Bytes>, batches: &[u32]) -> Result<Option<Outcome>> {
    edge.check()?;
    let runs = edge.models.iter().zip(batches).map(|(model, &batch)| {
        model.run(batch).copied().ok_or_else(|| {
            InputError::new(format!("no run of {batch} frames is described")).at(&model.name)
        })
    });
    let runs: Vec<Run> = runs.collect::<Result<_>>()?;
    if runs.len() != edge.models.len() {
        let message = format!("{} batches for {} models", runs.len(), edge.models.len());
        return Err(InputError::new(message));
    }
    Ok(Player::new(edge, memory, runs).play())
}

/// A stream: frames before `next` are done with.
#[derive(Clone, Copy, Default)]
struct Stream {
    next: u32,
    /// Frames that have come by the last look at the clock.
    come: u32,
    processed: u32,
}

struct Player<'a> {
    edge: &'a Edge,
    memory: Option<Bytes>,
    runs: Vec<Run>,
    /// Time and memory to load a model beside another, by both numbers.
    beside: Vec<Option<(Nanos, Bytes)>>,
    stamps: Vec<Millis>,
    streams: Vec<Stream>,
    /// Models in memory, the one used last at the end.
    resident: Vec<usize>,
    clock: Millis,
    loading: Millis,
    evictions: u64,
}

impl<'a> Player<'a> {
    fn new(edge: &'a Edge, memory: Option<Bytes>, runs: Vec<Run>) -> Self {
        let count = edge.models.len();
        let mut beside = vec![None; count * count];
        for shared in &edge.shared {
            beside[shared.model * count + shared.beside] = Some((shared.load, shared.resident));
        }
        let mut stamp = 0.0;
        let stamps = (0..edge.frames).map(|_| {
            let now = stamp;
            stamp += 1000.0 / edge.rate;
            now
        });
        let stamps = stamps.collect();
        let streams = vec![Stream::default(); count];
        let (resident, clock, loading, evictions) = (Vec::new(), 0.0, 0.0, 0);
        Self { edge, memory, runs, beside, stamps, streams, resident, clock, loading, evictions }
    }

    fn play(mut self) -> Option<Outcome> {
        let count = self.streams.len();
        while self.streams.iter().any(|stream| stream.next < self.edge.frames) {
            for model in 0..count {
                self.bring(model)?;
                self.serve(model);
            }
        }
        let frames = self.edge.frames;
        let served = self.streams.iter().map(|stream| {
            let processed = stream.processed;
            Served { frames, processed, skipped: frames - processed }
        });
        Some(Outcome {
            batches: self.runs.iter().map(|run| run.batch).collect(),
            served: served.collect(),
            time: Nanos::from_nanos_f64(self.clock * 1e6),
            loading: self.loading / self.clock,
            evictions: self.evictions,
        })
    }

    fn model(&self, model: usize) -> &'a EdgeModel {
        &self.edge.models[model]
    }

    /// What loading a model costs beside those in memory: the cheapest of its partners counts.
    fn rest(&self, model: usize, resident: &[usize]) -> (Nanos, Bytes) {
        let alone = (self.model(model).load, self.model(model).resident);
        let count = self.streams.len();
        let partners = resident.iter().filter(|&&other| other != model);
        partners
            .filter_map(|other| self.beside[model * count + other])
            .fold(alone, |best, rest| (best.0.min(rest.0), best.1.min(rest.1)))
    }

    /// Brings a model into memory; `None` if it does not fit even alone.
    fn bring(&mut self, model: usize) -> Option<()> {
        let Some(memory) = self.memory else { return Some(()) };
        let was_resident = self.resident.contains(&model);
        self.resident.retain(|&other| other != model);
        while self.needed(model) > memory {
            self.resident.pop()?;
            self.evictions += 1;
        }
        let (load, rest) = self.rest(model, &self.resident);
        let load = if was_resident { 0.0 } else { load.millis_f64() };
        self.resident.push(model);
        // The one before, in the round: it may still run while this one is loaded.
        let before = self.runs[model.checked_sub(1).unwrap_or(self.runs.len() - 1)];
        let fits = rest + before.memory + self.edge.runtime <= memory;
        let waits = if fits { (load - before.time.millis_f64()).max(0.0) } else { load };
        self.clock += waits;
        self.loading += waits;
        Some(())
    }

    /// Memory for a run of this model beside those in memory.
    fn needed(&self, model: usize) -> Bytes {
        let mut with: Vec<usize> = self.resident.clone();
        with.push(model);
        let others: Bytes = self.resident.iter().map(|&other| self.rest(other, &with).1).sum();
        others + self.runs[model].memory + self.edge.runtime
    }

    /// Waits for frames that can be ready in time and runs the newest of them.
    fn serve(&mut self, model: usize) {
        let Run { batch, time, .. } = self.runs[model];
        let (time, deadline) = (time.millis_f64(), self.edge.deadline.millis_f64());
        let last = self.edge.frames - 1;
        loop {
            let come = self.come(model);
            let stream = &mut self.streams[model];
            let waiting = come.saturating_sub(stream.next);
            stream.next = stream.next.max(come);
            // The last frame ends the stream, late or not.
            let is_worth = waiting > 0
                && (come > last || self.stamps[come as usize - 1] + deadline >= self.clock + time);
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
    fn come(&mut self, model: usize) -> u32 {
        let stream = &mut self.streams[model];
        while stream.come < self.edge.frames && self.stamps[stream.come as usize] <= self.clock {
            stream.come += 1;
        }
        stream.come
    }
}
