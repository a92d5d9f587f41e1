//! Machines that go down and come back.

use std::cmp::Reverse;

use foretrain_core::Nanos;

use super::super::job::JobId;
use super::super::policy::Policy;
use super::super::state::Phase;
use super::{Engine, Kind};

impl Engine<'_> {
    /// A machine goes down or comes back.
    pub(super) fn toggle(&mut self, node: u32, policy: &mut dyn Policy) {
        let up = self.occupancy.is_up(node);
        if up {
            let gpus = self.setup.cluster.gpus_of(node);
            let mut hit: Vec<JobId> =
                gpus.flat_map(|gpu| self.occupancy.gpu(gpu).tenants.iter().copied()).collect();
            hit.sort_unstable();
            hit.dedup();
            for id in hit {
                self.lose(id, policy);
            }
        }
        self.occupancy.set_up(self.setup.cluster, node, !up);
        self.gauge.node(&self.occupancy, self.setup.cluster, node);
        policy.machines_changed();
        self.fruitless += 1;
        let next = self.nodes.next(node, !up, self.now);
        self.events.push(Reverse((next, Kind::Node(node))));
    }

    /// A job loses its machine, and the work since its last checkpoint.
    fn lose(&mut self, id: JobId, policy: &mut dyn Policy) {
        let every = self.setup.failures.map_or(Nanos::ZERO, |failures| failures.checkpoint_every);
        let progress = &mut self.progress[id as usize];
        progress.count_to(self.now);
        let run = progress.last_start.map_or(Nanos::ZERO, |start| self.now - start);
        let since = if every > Nanos::ZERO { run.nanos() % every.nanos() } else { run.nanos() };
        let lost = Nanos::from_nanos(since).secs_f64() * progress.speed;
        progress.done = (progress.done - lost).max(progress.saved);
        progress.failures += 1;
        progress.phase = Phase::Waiting;
        progress.version += 1;
        let at = std::mem::take(&mut progress.at);
        self.running.remove(&id);
        self.waiting.insert(id);
        self.vacate(id, &at);
        policy.arrived(&self.board_view(), id);
    }
}
