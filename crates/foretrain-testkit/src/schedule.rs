//! The scheduler: runs the program on every rank in lock-step, instruction by instruction.
//!
//! All ranks run the same program, and nothing a rank does depends on a later instruction. So one
//! pass in program order gives every time in closed form, without an event queue:
//!
//! - a launch call returns after its own time, or once the launch `queue_depth` before it has
//!   started, if that is later;
//! - a kernel starts once its launch has returned plus the launch latency, and its stream is free;
//! - an all-reduce starts on a rank likewise, and not before the compute work launched so far;
//!   it ends on all ranks at once, one transfer time after the last rank has started.

use std::collections::VecDeque;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::intervals::Intervals;
use crate::program::{CopyKind, Instr, Program, SpanKind, Thread};
use crate::spec::JobSpec;
use crate::truth::CollectiveTruth;

/// A runtime call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Launch,
    LaunchEx,
    Memcpy,
    EventRecord,
    StreamWait,
    DeviceSync,
    StreamSync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A host span. A Python frame keeps its own id in `external` and its parent's in `correlation`.
    Span(u32),
    Runtime(Api),
    Kernel(u32),
    Comm(u32),
    Copy(CopyKind, u64),
    /// An all-reduce on Gloo's thread.
    Gloo(u32),
}

/// Something that happened, on the true clock, in ns since the job started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) what: What,
    pub(crate) thread: Thread,
    pub(crate) start: i64,
    pub(crate) end: i64,
    pub(crate) external: u64,
    pub(crate) correlation: u64,
    pub(crate) step: u32,
}

/// What one step of one rank did, before it is summed up.
#[derive(Clone, Debug, Default)]
pub(crate) struct StepLog {
    pub(crate) host_start: i64,
    pub(crate) host_end: i64,
    /// When the last device work of the step ended (on a CPU job: the host's end).
    pub(crate) completion: i64,
    pub(crate) compute: Intervals,
    pub(crate) copies: Intervals,
    pub(crate) loads: Intervals,
    /// From this rank's arrival to the last rank's.
    pub(crate) comm_waits: Intervals,
    /// From the last arrival to the end.
    pub(crate) comm_transfers: Intervals,
    pub(crate) kernels: u32,
}

#[derive(Default)]
struct Stream {
    free: i64,
    starts: VecDeque<i64>,
}

struct Rank {
    rng: Pcg64Mcg,
    slow: f64,
    now: i64,
    thread: Thread,
    compute: Stream,
    comm: Stream,
    pending_comms: u32,
    recording: bool,
    step: u32,
    open: Vec<usize>,
    externals: Vec<u64>,
    frames: Vec<u64>,
    next_external: u64,
    next_correlation: u64,
    next_frame: u64,
    events: Vec<Event>,
    log: StepLog,
}

pub(crate) struct Schedule<'a> {
    spec: &'a JobSpec,
    program: &'a Program,
    ranks: Vec<Rank>,
    network: Pcg64Mcg,
    pub(crate) collectives: Vec<CollectiveTruth>,
}

impl<'a> Schedule<'a> {
    pub(crate) fn new(spec: &'a JobSpec, program: &'a Program) -> Self {
        let ranks = (0..spec.ranks).map(|rank| Rank::new(spec, rank)).collect();
        let network = Pcg64Mcg::seed_from_u64(spec.seed ^ 0x6e65_7477_6f72_6b00);
        Self { spec, program, ranks, network, collectives: Vec::new() }
    }

    /// Runs the steps before the trace; of their device work only what reaches into the traced
    /// window is kept. Returns when each rank completed the last of them.
    pub(crate) fn warm_up(&mut self) -> Vec<Option<i64>> {
        for step in 0..self.spec.warmup_steps {
            self.run(step, false);
            for rank in &mut self.ranks {
                let window = rank.now;
                rank.events.retain(|event| event.end > window);
            }
        }
        self.collectives.clear();
        let warm = self.spec.warmup_steps > 0;
        self.ranks.iter().map(|rank| warm.then_some(rank.log.completion)).collect()
    }

    /// Runs traced step `index`; returns what every rank did.
    pub(crate) fn step(&mut self, index: u32) -> Vec<StepLog> {
        self.run(index, true);
        self.ranks.iter_mut().map(|rank| std::mem::take(&mut rank.log)).collect()
    }

    /// The profiler's own synchronisation when it stops.
    pub(crate) fn finish(&mut self) {
        if !self.spec.dialect.has_device() {
            return;
        }
        for rank in &mut self.ranks {
            rank.sync(self.spec, Api::DeviceSync);
        }
    }

    /// Takes the events of a rank since the last call.
    pub(crate) fn take_events(&mut self, rank: u32) -> Vec<Event> {
        std::mem::take(&mut self.ranks[rank as usize].events)
    }

    /// The host clock of a rank.
    pub(crate) fn now(&self, rank: u32) -> i64 {
        self.ranks[rank as usize].now
    }

    fn run(&mut self, step: u32, recording: bool) {
        for rank in &mut self.ranks {
            rank.begin_step(step, recording);
        }
        for instr in &self.program.instrs {
            if let Instr::AllReduce { bucket } = *instr {
                self.all_reduce(bucket, step);
            } else {
                for rank in &mut self.ranks {
                    rank.execute(self.spec, self.program, *instr);
                }
            }
        }
        for rank in &mut self.ranks {
            rank.end_step(self.spec.dialect.has_device());
        }
    }

    fn all_reduce(&mut self, bucket: u32, step: u32) {
        let spec = self.spec;
        let arrivals: Vec<i64> = self.ranks.iter_mut().map(|rank| rank.arrive(spec)).collect();
        let last = arrivals.iter().copied().max().unwrap_or(0);
        let first = arrivals.iter().copied().min().unwrap_or(0);
        let base = self.program.transfers_ns[bucket as usize];
        let transfer = noisy(&mut self.network, base, spec.network_noise).max(1);
        for (rank, &arrival) in self.ranks.iter_mut().zip(&arrivals) {
            rank.reduce(spec, bucket, arrival, last, last + transfer);
        }
        self.collectives.push(CollectiveTruth {
            step,
            bucket,
            bytes: self.program.buckets[bucket as usize].bytes,
            arrivals_ns: arrivals,
            skew_ns: last - first,
            end_ns: last + transfer,
            transfer_ns: transfer,
        });
    }
}

/// A time with relative noise, within a tenth and twice of itself.
fn noisy(rng: &mut Pcg64Mcg, ns: i64, sigma: f64) -> i64 {
    if sigma == 0.0 || ns == 0 {
        return ns;
    }
    // Four uniforms: mean 2, variance 1/3.
    let sum: f64 = (0..4).map(|_| rng.random::<f64>()).sum();
    let factor = (1.0 + sigma * (sum - 2.0) * 3.0_f64.sqrt()).clamp(0.1, 2.0);
    (ns as f64 * factor).round() as i64
}

impl Rank {
    fn new(spec: &JobSpec, rank: u32) -> Self {
        let slow = spec.slow_rank.filter(|slow| slow.rank == rank).map_or(1.0, |slow| slow.factor);
        let stream = u64::from(rank).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self {
            rng: Pcg64Mcg::seed_from_u64(spec.seed.wrapping_add(stream)),
            slow,
            now: 0,
            thread: Thread::Main,
            compute: Stream::default(),
            comm: Stream::default(),
            pending_comms: 0,
            recording: false,
            step: 0,
            open: Vec::new(),
            externals: Vec::new(),
            frames: Vec::new(),
            next_external: 1,
            next_correlation: 1_000,
            next_frame: 1,
            events: Vec::new(),
            log: StepLog::default(),
        }
    }

    fn begin_step(&mut self, step: u32, recording: bool) {
        self.step = step;
        self.recording = recording;
        self.log = StepLog { host_start: self.now, ..StepLog::default() };
    }

    fn end_step(&mut self, has_device: bool) {
        self.log.host_end = self.now;
        self.log.completion =
            if has_device { self.compute.free.max(self.comm.free) } else { self.now };
    }

    fn execute(&mut self, spec: &JobSpec, program: &Program, instr: Instr) {
        match instr {
            Instr::Open { span, then_ns } => self.open(spec, program, span, then_ns),
            Instr::Close => self.close(),
            Instr::Switch(thread) => {
                self.spend(spec, spec.host.handover_ns);
                self.thread = thread;
            }
            Instr::Idle { ns } => self.spend(spec, ns),
            Instr::Load { ns } => {
                let start = self.now;
                self.spend(spec, ns);
                self.log.loads.push(start, self.now);
            }
            Instr::Launch { kernel } => self.launch(spec, program, kernel),
            Instr::Copy { kind, bytes, base_ns } => self.copy(spec, kind, bytes, base_ns),
            Instr::WaitComms => self.wait_comms(spec),
            Instr::SyncDevice => self.sync(spec, Api::DeviceSync),
            Instr::SyncStream => self.sync(spec, Api::StreamSync),
            Instr::AllReduce { .. } => {}
        }
    }

    fn spend(&mut self, spec: &JobSpec, ns: i64) {
        self.now += noisy(&mut self.rng, ns, spec.noise);
    }

    fn open(&mut self, spec: &JobSpec, program: &Program, span: u32, then_ns: i64) {
        let (external, correlation) = if program.spans[span as usize].kind == SpanKind::Python {
            let parent = self.frames.last().copied().unwrap_or(0);
            let frame = self.next_frame;
            self.next_frame += 1;
            self.frames.push(frame);
            self.externals.push(self.externals.last().copied().unwrap_or(0));
            (frame, parent)
        } else {
            let external = self.next_external;
            self.next_external += 1;
            self.frames.push(self.frames.last().copied().unwrap_or(0));
            self.externals.push(external);
            (external, 0)
        };
        self.open.push(self.events.len());
        self.record(What::Span(span), self.now, self.now, external, correlation);
        self.spend(spec, then_ns);
    }

    fn close(&mut self) {
        self.externals.pop();
        self.frames.pop();
        let index = self.open.pop();
        if let Some(event) = index.filter(|_| self.recording).and_then(|i| self.events.get_mut(i)) {
            event.end = self.now;
        }
        // A parent ends after its last child, also where a child has no time of its own.
        self.now += 200;
    }

    fn record(&mut self, what: What, start: i64, end: i64, external: u64, correlation: u64) {
        let on_device = matches!(what, What::Kernel(_) | What::Comm(_) | What::Copy(..));
        if self.recording || on_device {
            let (thread, step) = (self.thread, self.step);
            self.events.push(Event { what, thread, start, end, external, correlation, step });
        }
    }

    /// A runtime call that only takes its time.
    fn call(&mut self, api: Api, ns: i64) -> u64 {
        let start = self.now;
        self.now += ns;
        let correlation = self.next_correlation;
        self.next_correlation += 1;
        let external = self.externals.last().copied().unwrap_or(0);
        self.record(What::Runtime(api), start, self.now, external, correlation);
        correlation
    }

    /// A call that puts work on a stream: blocks while the stream's queue is full.
    fn enqueue(&mut self, spec: &JobSpec, api: Api, on_comm: bool) -> u64 {
        let took = noisy(&mut self.rng, spec.host.launch_ns, spec.noise);
        let stream = if on_comm { &mut self.comm } else { &mut self.compute };
        let mut room = self.now;
        while stream.starts.len() >= spec.host.queue_depth {
            room = room.max(stream.starts.pop_front().unwrap_or(room));
        }
        let ns = took.max(room - self.now);
        self.call(api, ns)
    }

    fn occupy_compute(&mut self, spec: &JobSpec, ns: i64) -> (i64, i64) {
        let start = (self.now + spec.device.launch_latency_ns).max(self.compute.free);
        self.compute.starts.push_back(start);
        self.compute.free = start + ns;
        (start, start + ns)
    }

    fn launch(&mut self, spec: &JobSpec, program: &Program, kernel: u32) {
        let base = program.kernels[kernel as usize].base_ns;
        let ns = (noisy(&mut self.rng, base, spec.noise) as f64 * self.slow).round() as i64;
        self.log.kernels += 1;
        if !spec.dialect.has_device() {
            self.log.compute.push(self.now, self.now + ns);
            self.now += ns;
            return;
        }
        let correlation = self.enqueue(spec, Api::Launch, false);
        let (start, end) = self.occupy_compute(spec, ns);
        self.log.compute.push(start, end);
        let external = self.externals.last().copied().unwrap_or(0);
        self.record(What::Kernel(kernel), start, end, external, correlation);
    }

    fn copy(&mut self, spec: &JobSpec, kind: CopyKind, bytes: u64, base_ns: i64) {
        let ns = noisy(&mut self.rng, base_ns, spec.noise);
        let correlation = self.enqueue(spec, Api::Memcpy, false);
        let (start, end) = self.occupy_compute(spec, ns);
        self.log.copies.push(start, end);
        let external = self.externals.last().copied().unwrap_or(0);
        self.record(What::Copy(kind, bytes), start, end, external, correlation);
    }

    /// Issues a collective; returns when this rank is ready for it.
    fn arrive(&mut self, spec: &JobSpec) -> i64 {
        self.pending_comms += 1;
        if !spec.dialect.has_device() {
            self.now += spec.host.call_ns;
            return self.now.max(self.comm.free);
        }
        self.call(Api::EventRecord, spec.host.call_ns);
        self.call(Api::StreamWait, spec.host.call_ns);
        self.enqueue(spec, Api::LaunchEx, true);
        let issued = self.now + spec.device.launch_latency_ns;
        let start = issued.max(self.comm.free).max(self.compute.free);
        self.comm.starts.push_back(start);
        start
    }

    fn reduce(&mut self, spec: &JobSpec, bucket: u32, arrival: i64, last: i64, end: i64) {
        self.comm.free = end;
        self.log.comm_waits.push(arrival, last);
        self.log.comm_transfers.push(last, end);
        let external = self.externals.last().copied().unwrap_or(0);
        if spec.dialect.has_device() {
            let correlation = self.next_correlation - 1;
            self.record(What::Comm(bucket), arrival, end, external, correlation);
        } else {
            let external = self.next_external;
            self.next_external += 1;
            self.record(What::Gloo(bucket), arrival, end, external, 0);
        }
    }

    fn wait_comms(&mut self, spec: &JobSpec) {
        let pending = std::mem::take(&mut self.pending_comms);
        if !spec.dialect.has_device() {
            self.now = self.now.max(self.comm.free);
            return;
        }
        for _ in 0..pending {
            self.call(Api::StreamWait, spec.host.call_ns);
        }
        self.compute.free = self.compute.free.max(self.comm.free);
    }

    fn sync(&mut self, spec: &JobSpec, api: Api) {
        let until = match api {
            Api::DeviceSync => self.compute.free.max(self.comm.free),
            _ => self.compute.free,
        };
        let ns = spec.host.call_ns.max(until - self.now);
        self.call(api, ns);
    }
}
