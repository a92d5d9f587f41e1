//! Working through the files of a job with as many in memory at once as threads and the memory
//! cap allow.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use foretrain_core::{Bytes, InputError, Result};

use crate::options::ReadOptions;
use crate::source::{TraceFile, size_of_file};

/// States how much memory a file's rank takes, or is about to take, in all. Whoever gets an error
/// has to give up.
pub type Hold<'a> = &'a dyn Fn(Bytes) -> Result<()>;

/// Files of one job differ a little in how much memory a byte of them takes.
const MARGIN: f64 = 1.1;

/// Lets files in, in order. Where memory is capped, a file comes in beside others only if what
/// the files before it took says that it fits. One that outgrows its place makes room for the
/// others and is done again when it has the memory to itself, so whether a file fits never depends
/// on the others, and nobody who holds memory waits for more of it.
pub(crate) struct Gate {
    files: Vec<(PathBuf, u64)>,
    cap: Option<u64>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<usize>,
    /// They outgrew their place; each is done again alone.
    postponed: VecDeque<usize>,
    inside: BTreeMap<usize, Share>,
    /// Memory per byte of the file, the most so far; `None` until a file is done.
    per_byte: Option<f64>,
}

#[derive(Clone, Copy, Default)]
struct Share {
    reserved: u64,
    needed: u64,
}

impl State {
    fn reserved(&self) -> u64 {
        self.inside.values().map(|share| share.reserved).sum()
    }
}

impl Gate {
    /// # Errors
    /// If the size of a file cannot be told.
    pub(crate) fn new(options: &ReadOptions, files: &[TraceFile]) -> Result<Self> {
        let sized = |file: &TraceFile| {
            Ok((file.path.clone(), size_of_file(&file.path)?.unwrap_or_default()))
        };
        let files: Vec<(PathBuf, u64)> = files.iter().map(sized).collect::<Result<_>>()?;
        let state = State { waiting: (0..files.len()).collect(), ..State::default() };
        Ok(Self {
            files,
            cap: options.memory_cap.map(Bytes::get),
            state: Mutex::new(state),
            changed: Condvar::new(),
        })
    }

    /// Does `work` for every file on the threads of `pool`, and gives the results in order of the
    /// files, up to the first failure at least. `work` gets the number of the file.
    pub(crate) fn run<T: Send>(
        &self,
        pool: &rayon::ThreadPool,
        work: impl Fn(usize, Hold<'_>) -> Result<T> + Sync,
    ) -> Vec<Result<T>> {
        let turns = pool.broadcast(|_| {
            let mut done = Vec::new();
            while let Some(turn) = self.enter() {
                let result = work(turn.index, &|needed| self.hold(turn.index, needed));
                if turn.leave(result.is_ok()) {
                    done.push((turn.index, result));
                }
            }
            done
        });
        let mut done: Vec<(usize, Result<T>)> = turns.into_iter().flatten().collect();
        done.sort_by_key(|&(index, _)| index);
        done.into_iter().map(|(_, result)| result).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a file to be let in; `None` if none is left.
    fn enter(&self) -> Option<Turn<'_>> {
        let mut state = self.lock();
        while !(state.waiting.is_empty() && state.postponed.is_empty()) {
            if let Some(index) = self.admit(&mut state) {
                return Some(Turn { gate: self, index });
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    fn admit(&self, state: &mut State) -> Option<usize> {
        let alone = state.inside.is_empty();
        let Some(&index) = state.waiting.front() else {
            let index = if alone { state.postponed.pop_front() } else { None }?;
            state.inside.insert(index, Share::default());
            return Some(index);
        };
        let mut share = Share::default();
        if let Some(cap) = self.cap {
            let bytes = self.files[index].1 as f64;
            let wanted = state.per_byte.map(|per_byte| (bytes * per_byte * MARGIN) as u64);
            let fits = wanted.is_some_and(|wanted| state.reserved().saturating_add(wanted) <= cap);
            if !(alone || fits) {
                return None;
            }
            share.reserved = wanted.unwrap_or(0).min(cap);
        }
        state.waiting.pop_front();
        state.inside.insert(index, share);
        Some(index)
    }

    fn hold(&self, index: usize, needed: Bytes) -> Result<()> {
        let Some(cap) = self.cap else { return Ok(()) };
        let needed = needed.get();
        if needed > cap {
            return Err(self.too_big(index, cap));
        }
        let mut state = self.lock();
        let Some(share) = state.inside.get_mut(&index) else { return Ok(()) };
        share.needed = share.needed.max(needed);
        share.reserved = share.reserved.max(needed);
        if state.reserved() <= cap {
            return Ok(());
        }
        state.postponed.push_back(index);
        Err(InputError::new("put off until there is memory for it").in_file(&self.files[index].0))
    }

    fn too_big(&self, index: usize, cap: u64) -> InputError {
        let cap = Bytes::new(cap);
        InputError::new(format!("analysing its events takes more than the memory cap of {cap}"))
            .in_file(&self.files[index].0)
            .hint("leave out Python frames, or read fewer categories or a time window")
    }
}

/// A file's stay inside, which ends even if the work panics.
struct Turn<'a> {
    gate: &'a Gate,
    index: usize,
}

impl Turn<'_> {
    /// Learns from a file. Whether it is done, not put off.
    fn leave(&self, succeeded: bool) -> bool {
        let mut state = self.gate.lock();
        if state.postponed.contains(&self.index) {
            return false;
        }
        if succeeded {
            let needed = state.inside.get(&self.index).map_or(0, |share| share.needed);
            let per_byte = needed as f64 / self.gate.files[self.index].1.max(1) as f64;
            state.per_byte = Some(state.per_byte.unwrap_or(0.0).max(per_byte));
        } else {
            // The first failure in order is the one to tell, and all before it were let in.
            state.waiting.clear();
            state.postponed.retain(|&index| index < self.index);
        }
        true
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.gate.lock().inside.remove(&self.index);
        self.gate.changed.notify_all();
    }
}
