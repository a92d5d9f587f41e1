//! What a policy sees and does.

use std::collections::{BTreeMap, BTreeSet};

use foretrain_core::Nanos;

use super::cluster::Cluster;
use super::job::{Job, JobId, Share};
use super::occupancy::Occupancy;
use super::placement::Placement;
use super::state::{Phase, Progress};

/// Why a job cannot start where a policy wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It is not waiting.
    NotWaiting,
    /// A GPU does not exist, is named twice, is down or is of another kind; or there are none.
    NoSuchGpus,
    /// The number of GPUs is not what it asks for, and it cannot change.
    WrongSize,
    /// Memory, parts or slices of a GPU do not suffice.
    Full,
}

/// The state of the cluster, and the place to change it. Changes count at once for what the policy
/// sees, and for the jobs when the policy is done: one that ends where it was never stopped.
pub struct Board<'a> {
    pub(super) jobs: &'a [Job],
    pub(super) cluster: &'a Cluster,
    pub(super) now: Nanos,
    pub(super) progress: &'a mut [Progress],
    pub(super) occupancy: &'a mut Occupancy,
    pub(super) waiting: &'a mut BTreeSet<JobId>,
    pub(super) running: &'a mut BTreeSet<JobId>,
    /// Where jobs were before this decision touched them.
    pub(super) before: &'a mut BTreeMap<JobId, Option<Placement>>,
}

impl<'a> Board<'a> {
    /// The time.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The machines.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// All jobs of the run, submitted or not.
    pub fn jobs(&self) -> &'a [Job] {
        self.jobs
    }

    /// A job.
    pub fn job(&self, id: JobId) -> &'a Job {
        &self.jobs[id as usize]
    }

    /// How far a job has come.
    pub fn progress(&self, id: JobId) -> &Progress {
        &self.progress[id as usize]
    }

    /// Jobs without GPUs, in the order of their submission.
    pub fn waiting(&self) -> &BTreeSet<JobId> {
        self.waiting
    }

    /// Jobs on GPUs, in the order of their submission.
    pub fn running(&self) -> &BTreeSet<JobId> {
        self.running
    }

    /// Jobs that are submitted and not done.
    pub fn active(&self) -> Vec<JobId> {
        self.waiting.union(self.running).copied().collect()
    }

    /// GPUs of nodes that are up, idle or not.
    pub fn gpus_up(&self) -> u32 {
        let nodes = self.cluster.nodes().iter().zip(0..);
        nodes.filter(|(_, number)| self.occupancy.is_up(*number)).map(|(node, _)| node.gpus).sum()
    }

    /// Who is on which GPU.
    pub fn occupancy(&self) -> &Occupancy {
        self.occupancy
    }

    /// Seconds that a job still needs, as the scheduler believes, at the size it asks for.
    pub fn expected_left(&self, id: JobId) -> f64 {
        let (job, progress) = (self.job(id), self.progress(id));
        let share = 1.0 - progress.done_at(self.now) / job.work.max(f64::MIN_POSITIVE);
        job.expected * share.clamp(0.0, 1.0)
    }

    /// Whether the job was running when this decision began.
    pub fn was_running(&self, id: JobId) -> bool {
        match self.before.get(&id) {
            Some(before) => before.is_some(),
            None => self.progress(id).phase == Phase::Running,
        }
    }

    /// Where the job was when this decision began.
    pub fn was_at(&self, id: JobId) -> Option<&Placement> {
        match self.before.get(&id) {
            Some(before) => before.as_ref(),
            None => Some(&self.progress(id).at).filter(|at| !at.gpus.is_empty()),
        }
    }

    /// Gives a waiting job its GPUs.
    ///
    /// GPUs that others use are given too: who packs jobs has to know what it does. Only memory,
    /// parts and slices are guarded.
    ///
    /// # Errors
    /// If that is not possible; nothing has changed then.
    pub fn start(&mut self, id: JobId, at: Placement) -> Result<(), Refused> {
        self.check(id, &at)?;
        self.remember(id);
        self.occupancy.add(self.cluster, id, &self.jobs[id as usize], &at);
        let progress = &mut self.progress[id as usize];
        (progress.at, progress.phase) = (at, Phase::Running);
        self.waiting.remove(&id);
        self.running.insert(id);
        Ok(())
    }

    /// Takes a running job's GPUs; it waits then.
    pub fn stop(&mut self, id: JobId) {
        if self.progress[id as usize].phase != Phase::Running {
            return;
        }
        self.remember(id);
        let progress = &mut self.progress[id as usize];
        let at = std::mem::take(&mut progress.at);
        progress.phase = Phase::Waiting;
        self.occupancy.remove(self.cluster, id, &self.jobs[id as usize], &at);
        self.running.remove(&id);
        self.waiting.insert(id);
    }

    /// Takes all running jobs' GPUs, to plan anew.
    pub fn stop_all(&mut self) {
        for id in self.running.iter().copied().collect::<Vec<_>>() {
            self.stop(id);
        }
    }

    fn remember(&mut self, id: JobId) {
        let progress = &self.progress[id as usize];
        self.before
            .entry(id)
            .or_insert_with(|| (progress.phase == Phase::Running).then(|| progress.at.clone()));
    }

    fn check(&self, id: JobId, at: &Placement) -> Result<(), Refused> {
        let Some(progress) = self.progress.get(id as usize) else {
            return Err(Refused::NotWaiting);
        };
        let job = self.job(id);
        if progress.phase != Phase::Waiting {
            return Err(Refused::NotWaiting);
        }
        let (least, most) = job.sizes();
        let size = at.gpus.len() as u32;
        if size < least || size > most {
            return Err(Refused::WrongSize);
        }
        let ordered = at.gpus.windows(2).all(|pair| pair[0] < pair[1]);
        let exist = at.gpus.last().is_some_and(|last| *last < self.cluster.gpus());
        if !ordered || !exist {
            return Err(Refused::NoSuchGpus);
        }
        at.gpus.iter().try_for_each(|&gpu| self.check_gpu(job, gpu, at))
    }

    fn check_gpu(&self, job: &Job, gpu: u32, at: &Placement) -> Result<(), Refused> {
        let node = self.cluster.node_of(gpu);
        let kind = self.cluster.nodes()[node as usize].kind;
        if !self.occupancy.is_up(node) || !self.cluster.suits(job.kind, kind) {
            return Err(Refused::NoSuchGpus);
        }
        let (state, kind) = (self.occupancy.gpu(gpu), self.cluster.kind_of(gpu));
        let wanted = state.memory.get().saturating_add(job.memory.get());
        if kind.memory.is_some_and(|memory| wanted > memory.get()) {
            return Err(Refused::Full);
        }
        let fits = match (job.share, at.slot) {
            // Slices are for those that ask for one, of any size.
            (Share::Whole | Share::Part(_), Some(_)) => false,
            (Share::Slice(_), Some(slot)) => {
                kind.sliced
                    && state.slices & slot.mask == 0
                    && (state.slices != 0 || state.tenants.is_empty())
            }
            (Share::Slice(_), None) => false,
            (Share::Part(thousandths), None) => {
                let others = state.tenants.is_empty() || state.promised > 0;
                others && state.promised + thousandths <= 1_000
            }
            (Share::Whole, None) => state.promised == 0 && state.slices == 0,
        };
        if fits { Ok(()) } else { Err(Refused::Full) }
    }
}
