//! Queues of jobs that are alike.

use std::collections::{BTreeMap, BTreeSet};

use foretrain_core::Nanos;

use super::super::board::Board;
use super::super::job::{Job, JobId};

/// Jobs by their nearest centre, in the sum of absolute differences of scaled features. Centres are
/// found anew when half as many jobs again have come as there were.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    queues: usize,
    features: BTreeMap<JobId, Features>,
    centres: Vec<Features>,
    of: BTreeMap<JobId, usize>,
    /// Jobs that there were when centres were found.
    found_among: usize,
}

/// GPUs (logarithm), mean and peak utilisation, memory (logarithm).
type Features = [f64; 4];

/// Rounds of finding centres; they settle in fewer.
const ROUNDS: usize = 20;

impl Groups {
    pub(super) fn new(queues: usize) -> Self {
        let (features, of) = (BTreeMap::new(), BTreeMap::new());
        Self { queues: queues.max(1), features, centres: Vec::new(), of, found_among: 0 }
    }

    pub(super) fn add(&mut self, job: &Job, id: JobId) {
        let memory = job.memory.as_f64() / 1e9;
        let features = [
            f64::from(job.gpus.max(1)).log2(),
            job.utilisation(),
            job.peak.clamp(0.0, 1.0),
            (1.0 + memory).log2(),
        ];
        self.features.insert(id, features);
        let many = self.features.len();
        if many > self.found_among + self.found_among / 2 + 2 {
            self.find_centres();
        } else {
            self.of.insert(id, nearest(&self.centres, &features));
        }
    }

    pub(super) fn remove(&mut self, id: JobId) {
        self.features.remove(&id);
        self.of.remove(&id);
        if self.features.is_empty() {
            self.found_among = 0;
        }
    }

    /// The first jobs of the queue with the highest credit: median wait times length, or the length
    /// where nobody has waited yet.
    pub(super) fn next(
        &self,
        board: &Board<'_>,
        waiting: &BTreeSet<JobId>,
        count: usize,
    ) -> Vec<JobId> {
        let mut queues: Vec<Vec<JobId>> = vec![Vec::new(); self.centres.len().max(1)];
        for id in waiting {
            queues[self.of.get(id).copied().unwrap_or(0)].push(*id);
        }
        let credit = |queue: &[JobId]| {
            // Jobs are in the order of submission, so the middle one waited the median.
            let wait = queue
                .get(queue.len() / 2)
                .map_or(Nanos::ZERO, |id| board.now() - board.job(*id).submit);
            wait.secs_f64().max(1.0) * queue.len() as f64
        };
        let best = queues.iter().rev().max_by(|a, b| credit(a).total_cmp(&credit(b)));
        best.map(|queue| queue.iter().copied().take(count).collect()).unwrap_or_default()
    }

    /// Medians of the jobs nearest to each centre, until they stay; from jobs spread over the list.
    fn find_centres(&mut self) {
        let all: Vec<Features> = self.features.values().copied().collect();
        let mut sorted = all.clone();
        sorted.sort_by(|a, b| {
            let sum = |features: &Features| features.iter().sum::<f64>();
            sum(a).total_cmp(&sum(b))
        });
        let place = |queue: usize| (2 * queue + 1) * sorted.len() / (2 * self.queues);
        let mut centres: Vec<Features> =
            (0..self.queues).map(|queue| sorted[place(queue)]).collect();
        for _ in 0..ROUNDS {
            let mut members: Vec<Vec<&Features>> = vec![Vec::new(); centres.len()];
            for features in &all {
                members[nearest(&centres, features)].push(features);
            }
            let next: Vec<Features> = centres
                .iter()
                .zip(&members)
                .map(
                    |(centre, members)| if members.is_empty() { *centre } else { medians(members) },
                )
                .collect();
            if next == centres {
                break;
            }
            centres = next;
        }
        self.of =
            self.features.iter().map(|(id, features)| (*id, nearest(&centres, features))).collect();
        self.centres = centres;
        self.found_among = all.len();
    }
}

fn nearest(centres: &[Features], features: &Features) -> usize {
    let distance = |centre: &Features| -> f64 {
        centre.iter().zip(features).map(|(a, b)| (a - b).abs()).sum()
    };
    let near = centres.iter().enumerate().min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)));
    near.map_or(0, |(number, _)| number)
}

fn medians(members: &[&Features]) -> Features {
    std::array::from_fn(|feature| {
        let mut values: Vec<f64> = members.iter().map(|member| member[feature]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_are_alike_share_a_queue() {
        let mut groups = Groups::new(2);
        for id in 0..20 {
            let gpus = if id % 2 == 0 { 1 } else { 64 };
            groups.add(&Job::new("job", Nanos::ZERO, gpus, Nanos::ZERO), id);
        }
        let small = groups.of[&0];
        assert!((0..20).all(|id| (groups.of[&id] == small) == (id % 2 == 0)), "{:?}", groups.of);
    }
}
