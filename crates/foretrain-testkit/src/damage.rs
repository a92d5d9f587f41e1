//! Breaks traces in the ways that real ones are broken.
//!
//! Edits are made on the text, so that everything not damaged keeps its exact digits.

use std::collections::BTreeMap;

use foretrain_core::{InputError, Result};

/// A kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file ends after this many bytes.
    TruncateAt(usize),
    /// Every tenth name holds raw control characters.
    ControlCharacters,
    /// Every tenth name holds an unescaped quote.
    StrayQuotes,
    /// Every tenth name holds bytes that are no UTF-8.
    BadUtf8,
    /// Occupancies are `NaN` and bandwidths `Infinity`.
    NonFiniteArguments,
    /// Every twentieth duration is `NaN`.
    NonFiniteDurations,
    /// Every twentieth duration is negative.
    NegativeDurations,
    /// Correlation and flow ids exceed what a signed or a floating-point number holds.
    BigIds,
    /// Every third launch call is missing, with its flow; its kernel remains.
    KernelsWithoutLaunches,
    /// Every fifth kernel starts 3 us before its launch call.
    KernelsBeforeLaunches,
    /// Runs of up to eight launches become one graph launch with the same correlation for all.
    GraphLaunches,
    /// Collectives do not say what they exchange.
    DroppedCommArguments,
    /// All times are this much later, in ns (rounded to what the file can express).
    ClockShift(i64),
}

impl Damage {
    /// One of each kind, for tests that must survive all of them.
    pub const ALL: [Self; 13] = [
        Self::TruncateAt(10_000),
        Self::ControlCharacters,
        Self::StrayQuotes,
        Self::BadUtf8,
        Self::NonFiniteArguments,
        Self::NonFiniteDurations,
        Self::NegativeDurations,
        Self::BigIds,
        Self::KernelsWithoutLaunches,
        Self::KernelsBeforeLaunches,
        Self::GraphLaunches,
        Self::DroppedCommArguments,
        Self::ClockShift(1_500_000),
    ];

    /// Whether the damaged file is still JSON.
    pub const fn keeps_json(self) -> bool {
        !matches!(
            self,
            Self::TruncateAt(_)
                | Self::ControlCharacters
                | Self::StrayQuotes
                | Self::BadUtf8
                | Self::NonFiniteArguments
                | Self::NonFiniteDurations
        )
    }

    /// A damaged copy of a trace of this crate. The same input gives the same bytes.
    ///
    /// # Errors
    /// When the trace was not written by this crate, or is already damaged.
    pub fn apply(self, trace: &[u8]) -> Result<Vec<u8>> {
        if let Self::TruncateAt(bytes) = self {
            return Ok(trace[..bytes.min(trace.len())].to_vec());
        }
        let mut parts = Parts::split(trace)?;
        match self {
            Self::TruncateAt(_) => {}
            Self::ControlCharacters => parts.mark_names("\u{1}\t\n"),
            Self::StrayQuotes => parts.mark_names("\""),
            // The mark is a private character, replaced below by bytes that are no character.
            Self::BadUtf8 => parts.mark_names("\u{e000}"),
            Self::NonFiniteArguments => parts.for_each(|event| {
                event.replace("est. achieved occupancy %", "NaN");
                event.replace("memory bandwidth (GB/s)", "Infinity");
            }),
            Self::NonFiniteDurations => parts.every_duration(|_| "NaN".to_owned()),
            Self::NegativeDurations => parts.every_duration(|dur| format!("-{dur}")),
            Self::BigIds => parts.big_ids(),
            Self::KernelsWithoutLaunches => parts.drop_launches(),
            Self::KernelsBeforeLaunches => parts.early_kernels(),
            Self::GraphLaunches => parts.graph_launches(),
            Self::DroppedCommArguments => parts.for_each(Event::drop_comms),
            Self::ClockShift(ns) => parts.for_each(|event| event.shift(ns)),
        }
        let bytes = parts.join().into_bytes();
        Ok(if self == Self::BadUtf8 { spoil(&bytes) } else { bytes })
    }
}

/// Replaces the mark U+E000 (three bytes) by three bytes that start no character.
fn spoil(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, tail)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix("\u{e000}".as_bytes()) {
            out.extend_from_slice(&[0xff, 0xc3, 0x28]);
            rest = tail;
        } else {
            out.push(first);
            rest = tail;
        }
    }
    out
}

/// A trace cut into its events.
struct Parts {
    head: String,
    events: Vec<Event>,
    tail: String,
}

/// The text of one event.
struct Event(String);

const BETWEEN: &str = ",\n  {\n";

impl Parts {
    fn split(trace: &[u8]) -> Result<Self> {
        let foreign = || InputError::new("expected an undamaged trace written by this crate");
        let text = std::str::from_utf8(trace).map_err(|_| foreign())?;
        let open = "[\n  {\n    \"ph\"";
        let start = text.find(open).ok_or_else(foreign)? + "[\n".len();
        let end = text.rfind("\n  ],\n  \"traceName\"").or_else(|| text.rfind("\n]\n"));
        let end = end.filter(|&end| end > start).ok_or_else(foreign)?;
        let body = text[start..end].strip_prefix("  {\n").ok_or_else(foreign)?;
        Ok(Self {
            head: text[..start].to_owned(),
            events: body.split(BETWEEN).map(|event| Event(event.to_owned())).collect(),
            tail: text[end..].to_owned(),
        })
    }

    fn join(self) -> String {
        let events: Vec<String> = self.events.into_iter().map(|event| event.0).collect();
        format!("{}  {{\n{}{}", self.head, events.join(BETWEEN), self.tail)
    }

    fn for_each(&mut self, edit: impl FnMut(&mut Event)) {
        self.events.iter_mut().for_each(edit);
    }

    fn mark_names(&mut self, mark: &str) {
        for event in self.events.iter_mut().step_by(10) {
            if let Some(name) = event.get("name").map(|name| name.trim_matches('"').to_owned()) {
                // After the first character, so that the name still starts and ends as it did.
                let at = name.chars().next().map_or(0, char::len_utf8);
                let marked = format!("\"{}{mark}{}\"", &name[..at], &name[at..]);
                event.replace("name", &marked);
            }
        }
    }

    fn every_duration(&mut self, change: impl Fn(&str) -> String) {
        let spans = self.events.iter_mut().filter(|event| event.get("dur").is_some());
        for event in spans.step_by(20) {
            if let Some(changed) = event.get("dur").map(&change) {
                event.replace("dur", &changed);
            }
        }
    }

    fn big_ids(&mut self) {
        self.for_each(|event| {
            for key in ["correlation", "id"] {
                if let Some(id) = event.get(key).and_then(|id| id.parse::<u64>().ok()) {
                    event.replace(key, &(u64::MAX - id).to_string());
                }
            }
        });
    }

    /// Correlations of plain kernel launches, in order of issue.
    fn launches(&self) -> Vec<u64> {
        let collectives: Vec<u64> = self
            .events
            .iter()
            .filter(|event| event.is_kernel() && event.0.contains("nccl"))
            .filter_map(Event::correlation)
            .collect();
        let launches = self.events.iter().filter(|event| event.is_launch());
        let mut launches: Vec<u64> = launches
            .filter_map(Event::correlation)
            .filter(|launch| !collectives.contains(launch))
            .collect();
        launches.sort_unstable();
        launches
    }

    fn drop_launches(&mut self) {
        let dropped: Vec<u64> = self.launches().into_iter().step_by(3).collect();
        self.remove_launches(&dropped);
    }

    /// Removes launch calls and their flow starts; `dropped` is sorted.
    fn remove_launches(&mut self, dropped: &[u64]) {
        self.events.retain(|event| {
            let id = if event.is_launch() { event.correlation() } else { event.flow_id('s') };
            id.is_none_or(|id| dropped.binary_search(&id).is_err())
        });
    }

    fn early_kernels(&mut self) {
        let starts: BTreeMap<u64, i128> = self
            .events
            .iter()
            .filter(|event| event.is_launch())
            .filter_map(|event| Some((event.correlation()?, event.start_ns()?)))
            .collect();
        for event in self.events.iter_mut().filter(|event| event.is_kernel()).step_by(5) {
            let launch = event.correlation().and_then(|id| starts.get(&id));
            if let Some(start) = launch {
                event.set_start(start - 3_000);
            }
        }
    }

    fn graph_launches(&mut self) {
        let mut leader_of = BTreeMap::new();
        let mut run: Vec<u64> = Vec::new();
        for launch in self.launches() {
            if run.len() == 8 || run.last().is_some_and(|last| last + 1 != launch) {
                run.clear();
            }
            run.push(launch);
            leader_of.insert(launch, run[0]);
        }
        let followers: Vec<u64> =
            leader_of.iter().filter(|(id, leader)| id != leader).map(|(id, _)| *id).collect();
        self.remove_launches(&followers);
        self.for_each(|event| {
            let id = event.correlation().or_else(|| event.flow_id('f'));
            if let Some(leader) = id.and_then(|id| leader_of.get(&id)) {
                event.replace("correlation", &leader.to_string());
                event.replace("id", &leader.to_string());
                if event.is_launch() {
                    let hip = event.0.contains("hipLaunchKernel");
                    let name = if hip { "\"hipGraphLaunch\"" } else { "\"cudaGraphLaunch\"" };
                    event.replace("name", name);
                }
            }
        });
    }
}

impl Event {
    /// The raw text of the first value of that key: a number or a string, quotes included.
    fn get(&self, key: &str) -> Option<&str> {
        let (start, end) = self.find(key)?;
        self.0.get(start..end)
    }

    fn find(&self, key: &str) -> Option<(usize, usize)> {
        let pattern = format!("\"{key}\": ");
        let start = self.0.find(&pattern)? + pattern.len();
        let value = &self.0[start..];
        let length = match value.strip_prefix('"') {
            Some(string) => string.find('"')? + 2,
            None => value.find([',', '\n', '}'])?,
        };
        Some((start, start + length))
    }

    fn replace(&mut self, key: &str, value: &str) {
        if let Some((start, end)) = self.find(key) {
            self.0.replace_range(start..end, value);
        }
    }

    fn correlation(&self) -> Option<u64> {
        self.get("correlation")?.parse().ok()
    }

    fn flow_id(&self, phase: char) -> Option<u64> {
        let launch = self.0.contains("\"ac2g\"") || self.0.contains("\"launch\"");
        let right = self.get("ph")?.trim_matches('"').starts_with(phase);
        if launch && right { self.get("id")?.parse().ok() } else { None }
    }

    fn is_kernel(&self) -> bool {
        matches!(self.get("cat"), Some("\"kernel\"" | "\"Kernel\""))
    }

    fn is_launch(&self) -> bool {
        matches!(self.get("name"), Some("\"cudaLaunchKernel\"" | "\"hipLaunchKernel\""))
    }

    /// The start in ns, in the file's own epoch.
    fn start_ns(&self) -> Option<i128> {
        let text = self.get("ts")?;
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        Some(whole.parse::<i128>().ok()? * 1_000 + fraction.parse::<i128>().ok()?)
    }

    fn set_start(&mut self, ns: i128) {
        let integer = self.get("ts").is_some_and(|text| !text.contains('.'));
        let (us, rest) = (ns.div_euclid(1_000), ns.rem_euclid(1_000));
        self.replace("ts", &if integer { us.to_string() } else { format!("{us}.{rest:03}") });
    }

    fn shift(&mut self, ns: i64) {
        if let Some(start) = self.start_ns() {
            self.set_start(start + i128::from(ns));
        }
    }

    /// Cuts out collective arguments, by name or by position, with the comma before them.
    fn drop_comms(&mut self) {
        for (first, last, close) in [
            ("\"Collective name\"", "\"Process Group Ranks\": ", "]\""),
            ("\"Concrete Inputs\"", "\"Input Dims\": ", "[]]"),
        ] {
            if first.starts_with("\"Concrete") && !self.0.contains("\"record_param_comms\"") {
                continue;
            }
            let Some(start) = self.0.find(first) else { continue };
            let Some(end) = self.0[start..].find(last).and_then(|at| {
                let from = start + at;
                self.0[from..].find(close).map(|length| from + length + close.len())
            }) else {
                continue;
            };
            let comma = self.0[..start].rfind(',').unwrap_or(start);
            self.0.replace_range(comma..end, "");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, JobSpec, generate};
    use serde_json::Value;

    fn events(bytes: &[u8]) -> Vec<Value> {
        let value: Value = serde_json::from_slice(bytes).unwrap();
        value.get("traceEvents").unwrap_or(&value).as_array().unwrap().clone()
    }

    fn trace(dialect: Dialect) -> Vec<u8> {
        let spec = JobSpec { steps: 1, ..JobSpec::tiny_ddp().with_dialect(dialect) };
        generate(&spec).unwrap().ranks.remove(0)
    }

    #[test]
    fn undamaged_parts_join_to_the_same_bytes() {
        for dialect in Dialect::ALL {
            let trace = trace(dialect);
            assert_eq!(Parts::split(&trace).unwrap().join().into_bytes(), trace, "{dialect:?}");
        }
    }

    #[test]
    fn every_damage_changes_the_file_and_only_some_break_the_json() {
        for dialect in Dialect::ALL {
            let trace = trace(dialect);
            for damage in Damage::ALL {
                let damaged = damage.apply(&trace).unwrap();
                let parses = serde_json::from_slice::<Value>(&damaged).is_ok();
                let device_only = matches!(
                    damage,
                    Damage::KernelsWithoutLaunches
                        | Damage::KernelsBeforeLaunches
                        | Damage::GraphLaunches
                        | Damage::NonFiniteArguments
                );
                let hip = matches!(dialect, Dialect::Rocm | Dialect::RocmRoctracer);
                let untouched = (device_only && !dialect.has_device())
                    || (damage == Damage::NonFiniteArguments && hip)
                    || (damage == Damage::DroppedCommArguments && dialect == Dialect::Pytorch18);
                assert_eq!(damaged == trace, untouched, "{dialect:?} {damage:?}");
                assert_eq!(parses, untouched || damage.keeps_json(), "{dialect:?} {damage:?}");
            }
        }
    }

    #[test]
    fn graph_launches_fan_out_to_all_their_kernels() {
        let trace = trace(Dialect::Pytorch24);
        let damaged = Damage::GraphLaunches.apply(&trace).unwrap();
        let count = |bytes: &[u8], key: &str, value: &str| {
            events(bytes).iter().filter(|event| event[key] == value).count()
        };
        let graphs = count(&damaged, "name", "cudaGraphLaunch");
        assert!(graphs > 5);
        assert_eq!(count(&damaged, "name", "cudaLaunchKernel"), 0);
        assert_eq!(count(&damaged, "cat", "kernel"), count(&trace, "cat", "kernel"));
        let correlation = |event: &Value| event["args"]["correlation"].as_u64();
        let all = events(&damaged);
        let launched: Vec<u64> = all
            .iter()
            .filter(|event| event["cat"] == "cuda_runtime")
            .filter_map(correlation)
            .collect();
        let kernels = all.iter().filter(|event| event["cat"] == "kernel");
        assert!(kernels.filter_map(correlation).all(|id| launched.contains(&id)));
    }

    #[test]
    fn a_clock_shift_is_exact_and_keeps_durations() {
        let trace = trace(Dialect::Pytorch23);
        let shifted = Damage::ClockShift(-2_345).apply(&trace).unwrap();
        let before = Parts::split(&trace).unwrap();
        let after = Parts::split(&shifted).unwrap();
        for (a, b) in before.events.iter().zip(&after.events) {
            assert_eq!(a.start_ns().unwrap() - 2_345, b.start_ns().unwrap());
            assert_eq!(a.get("dur"), b.get("dur"));
        }
    }

    #[test]
    fn comm_arguments_go_completely() {
        for dialect in [Dialect::Pytorch20, Dialect::Pytorch24] {
            let damaged = Damage::DroppedCommArguments.apply(&trace(dialect)).unwrap();
            for event in events(&damaged) {
                let args = &event["args"];
                assert!(args.get("Collective name").is_none());
                if event["name"] == "record_param_comms" {
                    assert!(args.get("Concrete Inputs").is_none() && args.get("Ev Idx").is_some());
                }
            }
        }
    }

    #[test]
    fn foreign_files_are_refused() {
        assert!(Damage::BigIds.apply(b"[1, 2]").is_err());
        assert!(Damage::BigIds.apply(&[0xff]).is_err());
        assert_eq!(Damage::TruncateAt(1).apply(b"[1, 2]").unwrap(), b"[");
    }
}
