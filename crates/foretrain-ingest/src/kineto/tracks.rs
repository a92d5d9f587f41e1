//! Threads and streams, and the names that metadata events give them.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use foretrain_trace::{Track, TrackId};
use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// Tracks in order of first use.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    rows: Vec<Track>,
    lookup: HashTable<u32>,
    // Runs of events share a track.
    last: u32,
    threads: BTreeMap<(String, String), String>,
    processes: BTreeMap<String, String>,
}

fn hash(pid: &str, tid: &str) -> u64 {
    FxBuildHasher.hash_one((pid, tid))
}

impl Tracks {
    /// The track of a process and thread, added if new.
    pub(super) fn id(&mut self, pid: &str, tid: &str) -> TrackId {
        let matches = |track: &Track| track.pid == pid && track.tid == tid;
        if self.rows.get(self.last as usize).is_some_and(matches) {
            return TrackId::new(self.last);
        }
        let rows = &self.rows;
        let found = self.lookup.find(hash(pid, tid), |&id| matches(&rows[id as usize])).copied();
        self.last = found.unwrap_or_else(|| self.add(pid, tid));
        TrackId::new(self.last)
    }

    fn add(&mut self, pid: &str, tid: &str) -> u32 {
        let id = TrackId::from_index(self.rows.len()).get();
        self.rows.push(Track { pid: pid.into(), tid: tid.into(), name: String::new() });
        let rows = &self.rows;
        self.lookup.insert_unique(hash(pid, tid), id, |&id| {
            let track = &rows[id as usize];
            hash(&track.pid, &track.tid)
        });
        id
    }

    /// Names a thread.
    pub(super) fn name_thread(&mut self, pid: &str, tid: &str, name: &str) {
        self.threads.insert((pid.into(), tid.into()), name.trim().into());
    }

    /// Names a process.
    pub(super) fn name_process(&mut self, pid: &str, name: &str) {
        self.processes.insert(pid.into(), name.trim().into());
    }

    /// The name of each track's process, empty if none.
    pub(super) fn process_names(&self) -> Vec<String> {
        let name = |track: &Track| self.processes.get(&track.pid).cloned().unwrap_or_default();
        self.rows.iter().map(name).collect()
    }

    /// The name of each track's thread, empty if none.
    pub(super) fn thread_names(&self) -> Vec<String> {
        let name = |track: &Track| {
            self.threads.get(&(track.pid.clone(), track.tid.clone())).cloned().unwrap_or_default()
        };
        self.rows.iter().map(name).collect()
    }

    /// Names of processes that metadata mentions, in order of their ids.
    pub(super) fn processes(&self) -> impl Iterator<Item = &str> {
        self.processes.values().map(String::as_str)
    }

    /// The tracks with their names: the thread's, else the process's.
    pub(super) fn finish(self) -> Vec<Track> {
        let (threads, processes) = (self.thread_names(), self.process_names());
        let names = threads.into_iter().zip(processes);
        let mut rows = self.rows;
        for (track, (thread, process)) in rows.iter_mut().zip(names) {
            track.name = if thread.is_empty() { process } else { thread };
        }
        rows
    }

    /// One track.
    pub(super) fn get(&self, id: TrackId) -> &Track {
        &self.rows[id.index()]
    }
}
