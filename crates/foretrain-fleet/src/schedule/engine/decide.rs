//! What a policy decided becomes what jobs do.

use std::cmp::Reverse;

use foretrain_core::Nanos;

use super::super::Costs;
use super::super::job::JobId;
use super::super::placement::Placement;
use super::super::policy::Policy;
use super::super::state::Phase;
use super::{Engine, Kind, neighbours};

impl Engine<'_> {
    /// Asks the policy, and books what it changed.
    pub(super) fn decide(&mut self, policy: &mut dyn Policy) {
        policy.decide(&mut self.board_view());
        let before = std::mem::take(&mut self.before);
        let after = |id: JobId| {
            let progress = &self.progress[id as usize];
            (progress.phase == Phase::Running).then_some(&progress.at)
        };
        let changed: Vec<(JobId, Option<Placement>)> =
            before.into_iter().filter(|(id, was)| was.as_ref() != after(*id)).collect();
        if changed.is_empty() {
            return;
        }
        self.gauge.change();
        let mut touched: Vec<Placement> = Vec::new();
        for (id, was) in changed {
            self.change(id, was.as_ref());
            touched.extend(was);
            touched.push(self.progress[id as usize].at.clone());
        }
        if self.setup.costs.relaunch_all {
            for id in self.running.clone() {
                self.start_up(id, self.setup.costs.restart);
                touched.push(self.progress[id as usize].at.clone());
            }
        }
        let affected = if self.setup.costs.relaunch_all {
            self.running.clone()
        } else {
            neighbours(&self.occupancy, &touched)
        };
        self.refresh(&touched, affected);
    }

    /// Books what a decision changed for one job.
    fn change(&mut self, id: JobId, was: Option<&Placement>) {
        let now = self.now;
        let progress = &mut self.progress[id as usize];
        let at = progress.at.clone();
        // What was done was done where it was.
        if let Some(was) = was {
            progress.at = was.clone();
            progress.phase = Phase::Running;
            progress.count_to(now);
            progress.at = at.clone();
        }
        if at.gpus.is_empty() {
            progress.phase = Phase::Waiting;
            progress.preemptions += 1;
            progress.saved = progress.done;
            progress.version += 1;
            return;
        }
        progress.phase = Phase::Running;
        progress.counted_to = now;
        progress.moves += u32::from(was.is_some());
        progress.saved = progress.done;
        let fresh = progress.first_start.is_none();
        progress.first_start.get_or_insert(now);
        progress.last_start = Some(now);
        progress.starts += 1;
        let Costs { start, restart, .. } = self.setup.costs;
        self.start_up(id, if fresh { start } else { restart });
    }

    fn start_up(&mut self, id: JobId, cost: Nanos) {
        let progress = &mut self.progress[id as usize];
        progress.count_to(self.now);
        progress.starting_until = progress.starting_until.max(self.now + cost);
        if cost > Nanos::ZERO {
            self.events.push(Reverse((progress.starting_until, Kind::Started(id))));
        }
    }
}
