//! What the cluster did, added up over time.

use foretrain_core::Nanos;

use super::cluster::Cluster;
use super::fragments::Fragments;
use super::job::{Job, JobId};
use super::occupancy::Occupancy;

/// Integrals over the run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// GPU-seconds with a job.
    pub busy: f64,
    /// GPU-seconds of computation: of each job the utilisation that it has alone, scaled by the rate
    /// at which it gets on (`speed::computing`); at most all of a GPU.
    pub utilised: f64,
    /// GPU-seconds without a job on nodes that were up.
    pub idle: f64,
    /// Of these, those useless to the jobs of the table where they were (`Fragments`).
    pub useless: f64,
    /// GPU-seconds on nodes that were down.
    pub down: f64,
    /// Byte-seconds of GPU memory that jobs held.
    pub memory: f64,
    /// Joules that the GPUs drew.
    pub energy: f64,
    /// Job-seconds of waiting.
    pub waiting: f64,
}

/// The state of the cluster from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// From when.
    pub from: Nanos,
    /// GPUs with a job.
    pub busy: f64,
    /// GPUs by how much they compute.
    pub utilised: f64,
    /// Jobs without GPUs.
    pub waiting: f64,
    /// Jobs on GPUs.
    pub running: f64,
}

/// Samples kept; then pairs are merged, so that a run of any length can be drawn.
const MOST_SAMPLES: usize = 4_096;

pub(super) struct Gauge {
    fragments: Fragments,
    now: Nanos,
    last_change: Nanos,
    totals: Totals,
    /// What each GPU adds to the sums below: (busy, utilisation in millionths, bytes, milliwatts).
    gpus: Vec<(bool, i64, i64, i64)>,
    idle_of: Vec<u32>,
    busy: i64,
    utilised: i64,
    memory: i64,
    power: i64,
    useless: f64,
    down: i64,
    samples: Vec<Sample>,
    /// Shortest time that a sample covers.
    resolution: Nanos,
}

impl Gauge {
    pub(super) fn new(cluster: &Cluster, jobs: &[Job]) -> Self {
        let fragments = Fragments::new(jobs, cluster.largest_node());
        let idle_of: Vec<u32> = cluster.nodes().iter().map(|node| node.gpus).collect();
        let idle_power = |gpu: u32| (false, 0, 0, milliwatts(cluster.kind_of(gpu).idle_watts));
        let gpus: Vec<_> = (0..cluster.gpus()).map(idle_power).collect();
        Self {
            useless: idle_of.iter().map(|idle| fragments.useless(*idle)).sum(),
            power: gpus.iter().map(|gpu| gpu.3).sum(),
            fragments,
            now: Nanos::ZERO,
            last_change: Nanos::ZERO,
            totals: Totals::default(),
            gpus,
            idle_of,
            busy: 0,
            utilised: 0,
            memory: 0,
            down: 0,
            samples: Vec::new(),
            resolution: Nanos::from_millis(1_000),
        }
    }

    pub(super) fn begin(&mut self, now: Nanos) {
        (self.now, self.last_change) = (now, now);
    }

    /// Notes that GPUs are given or taken now.
    pub(super) fn change(&mut self) {
        self.last_change = self.now;
    }

    /// When GPUs were last given or taken.
    pub(super) fn last_change(&self) -> Nanos {
        self.last_change
    }

    pub(super) fn advance(&mut self, to: Nanos, waiting: usize, running: usize) {
        let seconds = (to - self.now).clamp_positive().secs_f64();
        if seconds > 0.0 {
            let all = self.gpus.len() as i64;
            let idle = all - self.busy - self.down;
            self.totals.busy += self.busy as f64 * seconds;
            self.totals.utilised += self.utilised as f64 / 1e6 * seconds;
            self.totals.idle += idle as f64 * seconds;
            self.totals.useless += self.useless * seconds;
            self.totals.down += self.down as f64 * seconds;
            self.totals.memory += self.memory as f64 * seconds;
            self.totals.energy += self.power as f64 / 1e3 * seconds;
            self.totals.waiting += waiting as f64 * seconds;
            self.sample(waiting, running, to);
        }
        self.now = self.now.max(to);
    }

    /// Notes what has changed on GPUs.
    ///
    /// `working` is how much of each of its GPUs a job computes on, nothing while it starts up.
    pub(super) fn settle(
        &mut self,
        occupancy: &Occupancy,
        cluster: &Cluster,
        gpus: &[u32],
        working: &dyn Fn(JobId) -> f64,
    ) {
        for &gpu in gpus {
            let (state, kind) = (occupancy.gpu(gpu), cluster.kind_of(gpu));
            let sum: f64 = state.tenants.iter().map(|id| working(*id)).sum();
            let utilisation = sum.clamp(0.0, 1.0);
            let watts = kind.idle_watts + (kind.busy_watts - kind.idle_watts) * utilisation;
            let new = (
                !state.tenants.is_empty(),
                (utilisation * 1e6).round() as i64,
                i64::try_from(state.memory.get()).unwrap_or(i64::MAX),
                milliwatts(watts),
            );
            let old = std::mem::replace(&mut self.gpus[gpu as usize], new);
            self.busy += i64::from(new.0) - i64::from(old.0);
            self.utilised += new.1 - old.1;
            self.memory = self.memory.saturating_add(new.2 - old.2);
            self.power += new.3 - old.3;
            let node = cluster.node_of(gpu);
            self.settle_node(node, occupancy.idle_of(node));
        }
    }

    /// Notes that a node went down or came back, after its jobs have left.
    pub(super) fn node(&mut self, occupancy: &Occupancy, cluster: &Cluster, node: u32) {
        let gpus = i64::from(cluster.nodes()[node as usize].gpus);
        self.down += if occupancy.is_up(node) { -gpus } else { gpus };
        self.settle_node(node, occupancy.idle_of(node));
    }

    fn settle_node(&mut self, node: u32, idle: u32) {
        let old = std::mem::replace(&mut self.idle_of[node as usize], idle);
        if old != idle {
            self.useless += self.fragments.useless(idle) - self.fragments.useless(old);
        }
    }

    fn sample(&mut self, waiting: usize, running: usize, to: Nanos) {
        let new = Sample {
            from: self.now,
            busy: self.busy as f64,
            utilised: self.utilised as f64 / 1e6,
            waiting: waiting as f64,
            running: running as f64,
        };
        if let Some(last) = self.samples.last_mut()
            && self.now - last.from < self.resolution
        {
            // By time, so that the area under the curve stays.
            let (old, added) = ((self.now - last.from).secs_f64(), (to - self.now).secs_f64());
            let mix = |a: f64, b: f64| (a * old + b * added) / (old + added);
            last.busy = mix(last.busy, new.busy);
            last.utilised = mix(last.utilised, new.utilised);
            last.waiting = mix(last.waiting, new.waiting);
            last.running = mix(last.running, new.running);
            return;
        }
        self.samples.push(new);
        if self.samples.len() >= MOST_SAMPLES {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let end = self.now;
        let all = std::mem::take(&mut self.samples);
        let mut pairs = all.chunks(2).peekable();
        while let Some(pair) = pairs.next() {
            let [one, two] = pair else {
                self.samples.extend_from_slice(pair);
                continue;
            };
            let next = pairs.peek().map_or(end, |next| next[0].from);
            let (a, b) = ((two.from - one.from).secs_f64(), (next - two.from).secs_f64());
            let mix = |x: f64, y: f64| if a + b > 0.0 { (x * a + y * b) / (a + b) } else { x };
            self.samples.push(Sample {
                from: one.from,
                busy: mix(one.busy, two.busy),
                utilised: mix(one.utilised, two.utilised),
                waiting: mix(one.waiting, two.waiting),
                running: mix(one.running, two.running),
            });
        }
        self.resolution = self.resolution.scale(2.0);
    }

    pub(super) fn finish(self) -> (Totals, Vec<Sample>) {
        (self.totals, self.samples)
    }
}

fn milliwatts(watts: f64) -> i64 {
    (watts * 1e3).round() as i64
}
