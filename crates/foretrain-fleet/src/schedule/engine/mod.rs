//! The run: arrivals, ends, failures and decisions in the order of time.
//!
//! A running job does work at a rate that holds until something near it changes, so between events
//! nothing has to be computed: work is counted when a rate changes, and each change leaves one event
//! behind, for when the job would end. Events of older rates are told by their version and ignored.

mod decide;
mod machines;
mod ticks;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use foretrain_core::Nanos;
use smallvec::SmallVec;

use super::Setup;
use super::board::Board;
use super::failures::NodeEvents;
use super::gauge::Gauge;
use super::job::{Job, JobId};
use super::occupancy::Occupancy;
use super::outcome::{Ending, Outcome};
use super::placement::Placement;
use super::policy::{Policy, Rhythm};
use super::speed::{computing, held, speed};
use super::state::{Phase, Progress};
use ticks::next_tick;

/// What happens at a time, in the order in which it is dealt with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A job reaches a point of its work: its end, or where its speed changes by itself.
    Point(JobId, u32),
    /// A job has started up and begins to work.
    Started(JobId),
    Node(u32),
}

pub(super) struct Engine<'a> {
    setup: &'a Setup<'a>,
    now: Nanos,
    progress: Vec<Progress>,
    occupancy: Occupancy,
    waiting: BTreeSet<JobId>,
    running: BTreeSet<JobId>,
    /// Jobs by submission.
    arrivals: std::iter::Peekable<std::vec::IntoIter<JobId>>,
    events: BinaryHeap<Reverse<(Nanos, Kind)>>,
    nodes: NodeEvents,
    gauge: Gauge,
    /// Jobs that are not done.
    left: usize,
    /// How often machines failed or came back since a job last finished.
    fruitless: u32,
    /// Reused between decisions.
    before: BTreeMap<JobId, Option<Placement>>,
}

impl<'a> Engine<'a> {
    pub(super) fn new(setup: &'a Setup<'a>) -> Self {
        let jobs = setup.jobs;
        let mut progress = vec![Progress::new(); jobs.len()];
        let mut order: Vec<JobId> = (0..jobs.len() as JobId).collect();
        // They never come: a run must not go on for one that arrives when all others are done.
        order.retain(|id| {
            let impossible = setup.why_impossible(&jobs[*id as usize]).is_some();
            if impossible {
                progress[*id as usize].phase = Phase::Impossible;
            }
            !impossible
        });
        order.sort_by_key(|id| jobs[*id as usize].submit);
        let occupancy = Occupancy::new(setup.cluster);
        let nodes = NodeEvents::new(setup.failures, setup.cluster.nodes().len(), setup.seed);
        Self {
            setup,
            now: Nanos::ZERO,
            progress,
            gauge: Gauge::new(setup.cluster, jobs),
            occupancy,
            waiting: BTreeSet::new(),
            running: BTreeSet::new(),
            left: order.len(),
            arrivals: order.into_iter().peekable(),
            events: BinaryHeap::new(),
            nodes,
            fruitless: 0,
            before: BTreeMap::new(),
        }
    }

    pub(super) fn run(mut self, policy: &mut dyn Policy) -> Outcome {
        let rhythm = policy.rhythm();
        let first = self.setup.jobs.iter().map(|job| job.submit).min().unwrap_or(Nanos::ZERO);
        self.now = first;
        self.gauge.begin(first);
        for (node, time) in self.nodes.first(first) {
            self.events.push(Reverse((time, Kind::Node(node))));
        }
        let mut tick = next_tick(rhythm, first);
        let mut ending = Ending::Done;
        while self.left > 0 {
            let Some(time) = self.next_time(tick) else {
                ending = Ending::Stuck;
                break;
            };
            if let Some(until) = self.setup.until.filter(|until| time > *until) {
                self.advance(until.max(self.now));
                ending = Ending::Cut;
                break;
            }
            self.advance(time);
            // While the cluster was empty, ticks went by unused.
            if tick.is_some_and(|tick| tick < time) {
                tick = next_tick(rhythm, time);
            }
            let happened = self.take_events(policy);
            if tick == Some(time) {
                tick = next_tick(rhythm, time + Nanos::from_nanos(1));
                self.decide(policy);
            } else if rhythm == Rhythm::Events && happened {
                self.decide(policy);
            }
            let stuck = self.running.is_empty() && !self.waiting.is_empty() && self.is_stuck(tick);
            if stuck || self.fruitless > MOST_FRUITLESS {
                ending = if stuck { Ending::Stuck } else { Ending::Failures };
                break;
            }
        }
        self.outcome(policy, ending)
    }

    fn job(&self, id: JobId) -> &'a Job {
        &self.setup.jobs[id as usize]
    }

    /// The next time at which something can change.
    fn next_time(&mut self, tick: Option<Nanos>) -> Option<Nanos> {
        self.drop_stale();
        let event = self.events.peek().map(|Reverse((time, _))| *time);
        let arrival = self.arrivals.peek().map(|id| self.setup.jobs[*id as usize].submit);
        // Without jobs in the cluster nothing is decided, and machines may fail unseen.
        let busy = !self.running.is_empty() || !self.waiting.is_empty();
        let tick = tick.filter(|_| busy);
        let event = event.filter(|_| busy || arrival.is_none());
        let soonest = [event, arrival, tick].into_iter().flatten().min()?;
        Some(soonest.max(self.now))
    }

    fn drop_stale(&mut self) {
        while let Some(Reverse((_, Kind::Point(id, version)))) = self.events.peek() {
            if self.progress[*id as usize].version == *version {
                break;
            }
            self.events.pop();
        }
    }

    /// Whether jobs wait that nothing will ever start: no job runs or arrives, and either nothing else
    /// can happen or the policy has left them waiting for a month.
    fn is_stuck(&self, tick: Option<Nanos>) -> bool {
        let may_change = tick.is_some() || self.setup.failures.is_some();
        let patient = self.now - self.gauge.last_change() < PATIENCE;
        self.arrivals.len() == 0 && !(may_change && patient)
    }

    fn advance(&mut self, time: Nanos) {
        self.gauge.advance(time, self.waiting.len(), self.running.len());
        self.now = time;
    }

    /// Deals with everything that happens now. Whether anything did that a policy should know of.
    fn take_events(&mut self, policy: &mut dyn Policy) -> bool {
        let mut happened = false;
        while let Some(&Reverse((time, kind))) = self.events.peek() {
            if time > self.now {
                break;
            }
            self.events.pop();
            match kind {
                Kind::Point(id, version) => {
                    if self.progress[id as usize].version == version {
                        happened |= self.reach(id, policy);
                    }
                }
                Kind::Started(id) => {
                    let at = self.progress[id as usize].at.clone();
                    self.settle(&at.gpus);
                }
                Kind::Node(node) => {
                    self.toggle(node, policy);
                    happened = true;
                }
            }
        }
        while let Some(id) =
            self.arrivals.next_if(|id| self.setup.jobs[*id as usize].submit <= self.now)
        {
            self.arrive(id, policy);
            happened = true;
        }
        happened
    }

    fn arrive(&mut self, id: JobId, policy: &mut dyn Policy) {
        self.progress[id as usize].phase = Phase::Waiting;
        self.waiting.insert(id);
        policy.arrived(&self.board_view(), id);
    }

    /// A job reaches its end or a change of its speed. Whether it ended.
    fn reach(&mut self, id: JobId, policy: &mut dyn Policy) -> bool {
        let work = self.job(id).work;
        let progress = &mut self.progress[id as usize];
        progress.count_to(self.now);
        // Rounding may leave a trifle.
        if progress.done < work * (1.0 - 1e-12) - 1e-9 {
            self.refresh(&[], [id]);
            return false;
        }
        progress.done = work;
        progress.finish = Some(self.now);
        self.fruitless = 0;
        progress.phase = Phase::Done;
        progress.version += 1;
        let at = std::mem::take(&mut progress.at);
        self.running.remove(&id);
        self.left -= 1;
        self.vacate(id, &at);
        policy.left(id);
        true
    }

    /// Has the gauge look at GPUs.
    fn settle(&mut self, gpus: &[u32]) {
        let (jobs, progress, now) = (self.setup.jobs, &self.progress, self.now);
        let cluster = self.setup.cluster;
        let working = |id: JobId| {
            let state = &progress[id as usize];
            let starts = state.starting_until > now;
            if starts { 0.0 } else { computing(&jobs[id as usize], state, cluster) }
        };
        self.gauge.settle(&self.occupancy, cluster, gpus, &working);
    }

    /// Frees a job's GPUs; those that shared them go faster.
    fn vacate(&mut self, id: JobId, at: &Placement) {
        let (cluster, job) = (self.setup.cluster, self.job(id));
        self.occupancy.remove(cluster, id, job, at);
        self.gauge.change();
        let neighbours = neighbours(&self.occupancy, [at]);
        self.refresh(std::slice::from_ref(at), neighbours);
    }

    fn board_view(&mut self) -> Board<'_> {
        Board {
            jobs: self.setup.jobs,
            cluster: self.setup.cluster,
            now: self.now,
            progress: &mut self.progress,
            occupancy: &mut self.occupancy,
            waiting: &mut self.waiting,
            running: &mut self.running,
            before: &mut self.before,
        }
    }

    /// Works out the speeds of jobs, and has the gauge look at their GPUs and at those that others
    /// were given or left.
    fn refresh(&mut self, given: &[Placement], jobs: impl IntoIterator<Item = JobId>) {
        let mut gpus: SmallVec<[u32; 16]> =
            given.iter().flat_map(|at| at.gpus.iter().copied()).collect();
        for id in jobs {
            if self.pace(id) {
                // All of them go at the pace of the slowest, those that it shares with nobody too.
                gpus.extend_from_slice(&self.progress[id as usize].at.gpus);
            }
        }
        gpus.sort_unstable();
        gpus.dedup();
        self.settle(&gpus);
    }

    /// Works out a job's speed and when it next reaches a point of its work. Whether it runs.
    fn pace(&mut self, id: JobId) -> bool {
        let job = self.job(id);
        let progress = &mut self.progress[id as usize];
        if progress.phase != Phase::Running {
            return false;
        }
        progress.count_to(self.now);
        let others = (self.setup.jobs, self.setup.interference);
        let (cluster, occupancy) = (self.setup.cluster, &self.occupancy);
        progress.speed = speed(job, &progress.at, progress.done, cluster, occupancy, others);
        progress.holds = held(job, &progress.at, occupancy);
        progress.version += 1;
        let change = job.scaling.as_ref().and_then(|scaling| scaling.changes_after(progress.done));
        let target = change.map_or(job.work, |change| change.min(job.work));
        if let Some(time) = progress.reaches(target) {
            self.events.push(Reverse((time, Kind::Point(id, progress.version))));
        }
        true
    }

    fn outcome(mut self, policy: &dyn Policy, ending: Ending) -> Outcome {
        for progress in &mut self.progress {
            progress.count_to(self.now);
        }
        Outcome::new(policy.name(), self.setup, &self.progress, (self.now, ending), self.gauge)
    }
}

/// How often machines may fail or come back while no job finishes: where they fail faster than jobs
/// work, nothing ever ends.
const MOST_FRUITLESS: u32 = 100_000;
/// How long a policy that is asked again may leave jobs waiting on an idle cluster.
const PATIENCE: Nanos = Nanos::from_millis(30 * 24 * 3_600_000);

/// Jobs on the GPUs of these placements.
fn neighbours<'a>(
    occupancy: &Occupancy,
    placements: impl IntoIterator<Item = &'a Placement>,
) -> BTreeSet<JobId> {
    let gpus = placements.into_iter().flat_map(|at| &at.gpus);
    gpus.flat_map(|gpu| {
        occupancy.gpu(*gpu).tenants.iter().copied().collect::<SmallVec<[JobId; 2]>>()
    })
    .collect()
}
