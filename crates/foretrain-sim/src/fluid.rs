//! Rates of running tasks, and what is left of them.
//!
//! An activity is a task or a whole collective, known by the queue that leads it. Its rate is set
//! by the slowest of its members under interference, then by max-min fair sharing of resources.
//! Only devices and resources where something started or ended are looked at again, with what is
//! connected to them by tasks that use several resources.

use foretrain_flow::{Demand, Paths, max_min};

use crate::interference::{MIN_RATE, TaskView};
use crate::options::Sharing;
use crate::program::{NONE, Program};
use crate::sharers::{self, Sharers};

const MAX_RATE: f64 = 1e9;

/// Members of a set of small integers to look at again.
#[derive(Default)]
struct Dirty {
    list: Vec<u32>,
    marked: Vec<bool>,
}

impl Dirty {
    fn new(size: usize) -> Self {
        Self { list: Vec::new(), marked: vec![false; size] }
    }
    fn mark(&mut self, index: u32) -> bool {
        let fresh = !std::mem::replace(&mut self.marked[index as usize], true);
        if fresh {
            self.list.push(index);
        }
        fresh
    }
    fn clear(&mut self) {
        for index in self.list.drain(..) {
            self.marked[index as usize] = false;
        }
    }
}

/// One activity's progress.
#[derive(Clone, Default)]
struct Flow {
    rate: f64,
    /// Work left at `since`, ns at full rate.
    left: f64,
    since: i64,
    end: i64,
    epoch: u32,
    /// The slots that progress together.
    members: Vec<u32>,
    demands: Vec<(u32, f64)>,
}

/// A task beside a communication, which may wait.
#[derive(Clone, Copy, PartialEq)]
struct Pair {
    own: u32,
    other: u32,
    waiting: bool,
}

/// Rates of a pair, in order of their queues.
#[derive(Clone, Copy)]
struct Known {
    pair: Pair,
    rates: [f64; 2],
}

pub(crate) struct Fluid<'a> {
    program: &'a Program,
    sharers: Sharers<'a>,
    flows: Vec<Flow>,
    /// Per device: `(queue, slot, waiting)` of what runs there, by queue.
    running: Vec<Vec<(u32, u32, bool)>>,
    /// Rate of each queue's task under interference alone.
    slowed: Vec<f64>,
    /// Leader of each queue's activity, `NONE` while it waits for its members.
    leader: Vec<u32>,
    /// Leaders per resource.
    users: Vec<Vec<u32>>,
    dirty_devices: Dirty,
    dirty_resources: Dirty,
    /// Leaders whose rate must be set.
    dirty_flows: Dirty,
    /// Leaders that have just started.
    fresh: Dirty,
    changed: Vec<u32>,
    views: Vec<TaskView>,
    rates: Vec<f64>,
    /// By slot of a task, the pair that it was in last.
    pairs: Vec<Known>,
}

impl<'a> Fluid<'a> {
    pub(crate) fn new(program: &'a Program, sharers: Sharers<'a>) -> Self {
        let queues = program.queues.len();
        let none = Pair { own: NONE, other: NONE, waiting: false };
        let asked = if sharers.devices > 0 { program.node_count() } else { 0 };
        Self {
            program,
            pairs: vec![Known { pair: none, rates: [1.0; 2] }; asked],
            flows: vec![Flow::default(); queues],
            running: vec![Vec::new(); sharers.devices],
            slowed: vec![1.0; queues],
            leader: vec![NONE; queues],
            users: vec![Vec::new(); sharers.capacities.len()],
            dirty_devices: Dirty::new(sharers.devices),
            dirty_resources: Dirty::new(sharers.capacities.len()),
            dirty_flows: Dirty::new(queues),
            fresh: Dirty::new(queues),
            changed: Vec::new(),
            views: Vec::new(),
            rates: Vec::new(),
            sharers,
        }
    }

    /// Changes with every change of rate.
    pub(crate) fn epoch(&self, leader: u32) -> u32 {
        self.flows[leader as usize].epoch
    }

    /// When the activity will end if nothing changes.
    pub(crate) fn end(&self, leader: u32) -> i64 {
        self.flows[leader as usize].end
    }

    /// A member of a collective has arrived and occupies its queue.
    pub(crate) fn wait(&mut self, slot: usize) {
        self.occupy(slot as u32, true);
    }

    /// Starts an activity. True if its end is known already: it shares nothing.
    pub(crate) fn launch(&mut self, leader: u32, members: &[u32], work: i64, now: i64) -> bool {
        let flow = &mut self.flows[leader as usize];
        flow.epoch = flow.epoch.wrapping_add(1);
        (flow.rate, flow.left, flow.since) = (1.0, work as f64, now);
        flow.end = now.saturating_add(work);
        flow.members.clear();
        flow.members.extend_from_slice(members);
        flow.demands.clear();
        if self.sharers.is_empty() || work == 0 {
            return true;
        }
        let mut shares = false;
        for &member in members {
            let queue = self.program.queue[member as usize];
            self.leader[queue as usize] = leader;
            shares |= self.occupy(member, false);
            if let Some(demands) = self.sharers.demands.get(member as usize) {
                for &(resource, amount) in demands {
                    sharers::add(&mut self.flows[leader as usize].demands, resource, amount);
                }
            }
        }
        for &(resource, _) in &self.flows[leader as usize].demands {
            self.users[resource as usize].push(leader);
            self.dirty_resources.mark(resource);
            shares = true;
        }
        if shares {
            self.fresh.mark(leader);
        }
        !shares
    }

    /// Puts a task among those running on its device, if it has one.
    fn occupy(&mut self, slot: u32, waiting: bool) -> bool {
        let queue = self.program.queue[slot as usize];
        let device = self.sharers.device[queue as usize];
        if device == NONE {
            return false;
        }
        let running = &mut self.running[device as usize];
        match running.binary_search_by_key(&queue, |entry| entry.0) {
            Ok(at) => running[at] = (queue, slot, waiting),
            Err(at) => running.insert(at, (queue, slot, waiting)),
        }
        self.dirty_devices.mark(device);
        true
    }

    /// Ends an activity.
    pub(crate) fn finish(&mut self, leader: u32, members: &[u32]) {
        let flow = &mut self.flows[leader as usize];
        flow.epoch = flow.epoch.wrapping_add(1);
        for &(resource, _) in &flow.demands {
            self.users[resource as usize].retain(|user| *user != leader);
            self.dirty_resources.mark(resource);
        }
        flow.demands.clear();
        for &member in members {
            let queue = self.program.queue[member as usize];
            self.leader[queue as usize] = NONE;
            self.slowed[queue as usize] = 1.0;
            let device = self.sharers.device[queue as usize];
            if device != NONE {
                let running = &mut self.running[device as usize];
                running.retain(|entry| entry.0 != queue);
                self.dirty_devices.mark(device);
            }
        }
    }

    pub(crate) fn is_dirty(&self) -> bool {
        let lists = [&self.dirty_devices, &self.dirty_resources, &self.fresh];
        lists.iter().any(|dirty| !dirty.list.is_empty())
    }

    /// Sets all rates that may have changed; returns how many activities have a new end.
    pub(crate) fn settle(&mut self, now: i64) -> usize {
        self.changed.clear();
        for index in 0..self.dirty_devices.list.len() {
            self.interfere(self.dirty_devices.list[index] as usize);
        }
        self.dirty_devices.clear();
        for index in 0..self.fresh.list.len() {
            self.dirty_flows.mark(self.fresh.list[index]);
        }
        for index in 0..self.dirty_flows.list.len() {
            let leader = self.dirty_flows.list[index];
            if self.flows[leader as usize].demands.is_empty() {
                self.set_rate(leader, self.cap(leader), now);
            } else {
                for &(resource, _) in &self.flows[leader as usize].demands {
                    self.dirty_resources.mark(resource);
                }
            }
        }
        self.dirty_flows.clear();
        self.share(now);
        self.fresh.clear();
        self.changed.len()
    }

    /// The leader of a changed activity.
    pub(crate) fn changed(&self, index: usize) -> u32 {
        self.changed[index]
    }

    /// Asks the model about one device.
    fn interfere(&mut self, device: usize) {
        let Some(model) = self.sharers.interference else { return };
        let running = &self.running[device];
        self.rates.clear();
        self.rates.resize(running.len(), 1.0);
        let pair = self.pair(device);
        if let Some(known) = pair.and_then(|pair| self.known(pair)) {
            self.rates.copy_from_slice(&known);
        } else if running.len() > 1 {
            self.views.clear();
            for &(queue, slot, waiting) in running {
                let (class, node) = self.program.node_of(slot as usize);
                let info = &self.program.queues[queue as usize];
                let kind = self.program.kind[slot as usize];
                let (queue, device) = (info.id, info.device);
                self.views.push(TaskView { class, node, kind, queue, device, waiting });
            }
            model.rates(&self.views, &mut self.rates);
            if let (Some(pair), &[first, second]) = (pair, &self.rates[..]) {
                self.pairs[pair.own as usize] = Known { pair, rates: [first, second] };
            }
        }
        for (&(queue, _, waiting), &rate) in self.running[device].iter().zip(&self.rates) {
            let rate = if rate >= MIN_RATE { rate.min(MAX_RATE) } else { MIN_RATE };
            let before = std::mem::replace(&mut self.slowed[queue as usize], rate);
            let leader = self.leader[queue as usize];
            if !waiting && leader != NONE && before != rate {
                self.dirty_flows.mark(leader);
            }
        }
    }

    /// A task beside a communication, if that is all that runs on a device: the usual case.
    fn pair(&self, device: usize) -> Option<Pair> {
        let &[(_, first, first_waits), (_, second, second_waits)] = &self.running[device][..]
        else {
            return None;
        };
        let communicates = |slot: u32| self.program.kind[slot as usize].communicates();
        match (communicates(first), communicates(second)) {
            (false, true) => Some(Pair { own: first, other: second, waiting: second_waits }),
            (true, false) => Some(Pair { own: second, other: first, waiting: first_waits }),
            _ => None,
        }
    }

    /// What the model said of a pair when the same two met in an earlier iteration.
    fn known(&self, pair: Pair) -> Option<[f64; 2]> {
        let known = &self.pairs[pair.own as usize];
        (known.pair == pair).then_some(known.rates)
    }

    /// The rate of an activity if resources were plenty.
    fn cap(&self, leader: u32) -> f64 {
        let members = self.flows[leader as usize].members.iter();
        let rates = members.map(|&m| self.slowed[self.program.queue[m as usize] as usize]);
        rates.fold(MAX_RATE, f64::min)
    }

    fn set_rate(&mut self, leader: u32, rate: f64, now: i64) {
        let flow = &mut self.flows[leader as usize];
        let same = flow.rate == rate;
        if !same {
            flow.left = (flow.left - (now - flow.since) as f64 * flow.rate).max(0.0);
            (flow.since, flow.rate) = (now, rate);
            // To the nearest; `as` stops at the ends of the range.
            flow.end = now.saturating_add((flow.left / rate + 0.5) as i64);
            flow.epoch = flow.epoch.wrapping_add(1);
        }
        if !same || self.fresh.marked[leader as usize] {
            self.changed.push(leader);
        }
    }

    /// Shares the dirty resources and all that are connected to them.
    fn share(&mut self, now: i64) {
        let mut leaders = Dirty::default();
        if self.dirty_resources.list.is_empty() {
            return;
        }
        leaders.marked.resize(self.flows.len(), false);
        let mut at = 0;
        while let Some(&resource) = self.dirty_resources.list.get(at) {
            at += 1;
            for &leader in &self.users[resource as usize] {
                if leaders.mark(leader) {
                    for &(other, _) in &self.flows[leader as usize].demands {
                        self.dirty_resources.mark(other);
                    }
                }
            }
        }
        leaders.list.sort_unstable();
        self.dirty_resources.list.sort_unstable();
        for (leader, rate) in self.fill(&leaders.list) {
            self.set_rate(leader, rate, now);
        }
        self.dirty_resources.clear();
    }

    /// Max-min fair rates of activities that use no resources but the dirty ones.
    fn fill(&self, leaders: &[u32]) -> Vec<(u32, f64)> {
        let resources = &self.dirty_resources.list;
        let capacities: Vec<f64> =
            resources.iter().map(|&r| self.sharers.capacities[r as usize]).collect();
        let place = |resource: u32| resources.binary_search(&resource).unwrap_or_default() as u32;
        let (mut paths, mut wanted) = (Paths::new(), Vec::with_capacity(leaders.len()));
        for &leader in leaders {
            let demands = self.flows[leader as usize].demands.iter();
            paths.push(demands.map(|&(resource, amount)| (place(resource), amount)));
            wanted.push(Demand {
                weight: self.weight(leader),
                cap: self.cap(leader),
                ..Demand::default()
            });
        }
        let fair = max_min(&capacities, &paths, &wanted);
        leaders.iter().zip(fair).map(|(&leader, fair)| (leader, fair.rate.max(MIN_RATE))).collect()
    }

    fn weight(&self, leader: u32) -> f64 {
        match self.sharers.sharing {
            Sharing::Rate => 1.0,
            Sharing::Usage => {
                let amounts = self.flows[leader as usize].demands.iter().map(|(_, amount)| *amount);
                1.0 / amounts.fold(0.0, f64::max)
            }
        }
    }
}
