//! Profiler traces event by event: the smallest input that shows one thing.

use std::fmt::Write as _;

/// Events as text, in the order in which they are added. Times are microseconds.
#[derive(Clone, Debug, Default)]
pub struct Events(String);

impl Events {
    /// Adds a complete event. Times are written as given, so they may be any text.
    pub fn add(&mut self, cat: &str, name: &str, ts: &str, dur: &str, tid: u32, args: &str) {
        let pid = if cat.contains("kernel") { 0 } else { 9 };
        self.raw(&format!(
            r#"{{"ph":"X","cat":"{cat}","name":"{name}","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#
        ));
    }

    /// Adds the text of an event as it is, sound or not.
    pub fn raw(&mut self, event: &str) {
        let separator = if self.0.is_empty() { "" } else { ",\n" };
        let _ = write!(self.0, "{separator}{event}");
    }

    /// Adds a kernel on a stream of device 0; `more` goes behind its arguments.
    pub fn kernel(
        &mut self,
        name: &str,
        ts: f64,
        dur: f64,
        stream: u32,
        correlation: u64,
        more: &str,
    ) {
        let args = format!(r#""device":0,"stream":{stream},"correlation":{correlation}{more}"#);
        self.add("kernel", name, &ts.to_string(), &dur.to_string(), stream, &args);
    }

    /// Adds a call of the CUDA runtime on thread 1.
    pub fn launch(&mut self, name: &str, ts: f64, dur: f64, correlation: u64) {
        let args = format!(r#""correlation":{correlation}"#);
        self.add("cuda_runtime", name, &ts.to_string(), &dur.to_string(), 1, &args);
    }

    /// Adds a `ProfilerStep` mark.
    pub fn step(&mut self, number: u32, ts: f64, dur: f64) {
        let name = format!("ProfilerStep#{number}");
        self.add("user_annotation", &name, &ts.to_string(), &dur.to_string(), 1, "");
    }

    /// The whole document; `head` goes in front of its members.
    pub fn text(&self, head: &str) -> String {
        format!("{{{head}\"schemaVersion\":1,\"traceEvents\":[\n{}\n]}}", self.0)
    }
}

/// A head that states the rank.
pub fn rank(n: u32, of: u32) -> String {
    format!(r#""distributedInfo":{{"backend":"nccl","rank":{n},"world_size":{of}}},"#)
}

/// Forty kernels in 10 ms, launched one by one, so many times.
pub fn repetitions(count: u64) -> Events {
    let mut events = Events::default();
    for i in 0..40 * count {
        let at = i as f64 * 250.0;
        events.launch("cudaLaunchKernel", at, 5.0, i + 1);
        events.kernel(&format!("kernel_{}", i % 40), at + 10.0, 200.0, 7, i + 1, "");
    }
    events
}

/// A thousand events: one step and 999 operators, of which number 500 is the given text.
pub fn thousand(event_500: &str) -> Events {
    let mut events = Events::default();
    events.step(1, 0.0, 2000.0);
    for i in 1..1000 {
        if i == 500 {
            events.raw(event_500);
        } else {
            events.raw(&operator("aten::mm", i));
        }
    }
    events
}

/// Operator number `i` of [`thousand`].
pub fn operator(name: &str, i: u32) -> String {
    let at = i * 2;
    format!(
        r#"{{"ph":"X","cat":"cpu_op","name":"{name}","pid":9,"tid":1,"ts":{at},"dur":1,"args":{{}}}}"#
    )
}

/// One of four ranks with clocks of their own: twenty all-reduces that end together, rank 1 always
/// 1.6 ms late, rank 2's clock 11.56 s ahead, rank 3's gaining 20 us per second.
pub fn own_clocks(n: u32) -> Events {
    const ALL_REDUCE: &str = r#","Collective name":"allreduce","In msg nelems":1024,"Out msg nelems":1024,"dtype":"Float","Group size":4,"Process Group Name":"0","Process Group Ranks":"[0, 1, 2, 3]""#;
    let clock = |t: f64| match n {
        2 => t + 11_560_000.0,
        3 => t * (1.0 + 20e-6),
        _ => t,
    };
    let mut events = Events::default();
    for i in 0..20 {
        let end = f64::from(i) * 100_000.0 + 50_000.0;
        let start = end - 5_000.0 + if n == 1 { 1_600.0 } else { 0.0 };
        let (from, to) = (clock(1e9 + start), clock(1e9 + end));
        let name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)";
        events.kernel(name, from, to - from, 20, 0, ALL_REDUCE);
    }
    events
}
