//! How many GPUs were there when: traces of preemptible machines.

mod time;

use std::collections::{BTreeMap, BTreeSet};

use foretrain_core::{InputError, Nanos, Result};
use serde_json::Value;

use super::table::{MOST_ROWS, Row, Table};

/// The number of GPUs over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Availability {
    /// From when on how many GPUs are there; times rise from zero, and the number changes each time.
    pub changes: Vec<(Nanos, u32)>,
    /// When the trace ends.
    pub until: Nanos,
}

/// What a trace leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// GPUs of a machine, where the trace counts machines.
    pub gpus_per_vm: u32,
    /// The kind of GPU to take, where the trace has several.
    pub kind: Option<String>,
    /// When the trace ends, from its beginning; else with its last row.
    pub until: Option<Nanos>,
}

/// GPUs that a row may have.
const MOST_GPUS: u64 = 10_000_000;
/// Time from the first to the last row: ten years.
const LONGEST: Nanos = Nanos::from_millis(10 * 366 * 86_400_000);

impl Availability {
    /// The number of GPUs at a time.
    pub fn at(&self, time: Nanos) -> u32 {
        let after = self.changes.partition_point(|(from, _)| *from <= time);
        after.checked_sub(1).map_or(0, |index| self.changes[index].1)
    }

    /// The changes after a time and before the end.
    pub fn after(&self, time: Nanos) -> impl Iterator<Item = (Nanos, u32)> {
        let first = self.changes.partition_point(|(from, _)| *from <= time);
        self.changes[first..].iter().copied().take_while(|(at, _)| *at < self.until)
    }

    /// GPUs times seconds.
    pub fn gpu_seconds(&self) -> f64 {
        let ends = self.changes.iter().skip(1).map(|(at, _)| *at).chain([self.until]);
        let spans = self.changes.iter().zip(ends);
        spans
            .map(|((from, gpus), to)| {
                f64::from(*gpus) * (to.min(self.until) - *from).clamp_positive().secs_f64()
            })
            .sum()
    }

    /// The most GPUs there ever are.
    pub fn most(&self) -> u32 {
        let during = self.changes.iter().filter(|(at, _)| *at < self.until);
        during.map(|(_, gpus)| *gpus).max().unwrap_or(0)
    }

    /// Without so many GPUs, at all times.
    #[must_use]
    pub fn without(&self, gpus: u32) -> Self {
        let rows = self.changes.iter().map(|(at, there)| (*at, there.saturating_sub(gpus)));
        Self { changes: changes(rows), until: self.until }
    }
}

/// One row: when, which GPUs, where, how many.
struct Seen {
    at: f64,
    kind: String,
    zone: String,
    gpus: u64,
    place: String,
}

/// Reads the text of a trace: a table with a time, and GPUs, machines or a count of a kind; or a JSON
/// list of `[time, kind, count]`.
///
/// # Errors
/// If it is neither, a cell cannot be read, it holds several kinds of GPU and none is chosen, or no time
/// passes in it.
pub fn parse(text: &str, options: &Options) -> Result<Availability> {
    if options.gpus_per_vm == 0 {
        return Err(InputError::new("0 GPUs per machine, expected 1 or more"));
    }
    let body = text.trim_start_matches('\u{feff}').trim_start();
    let mut seen =
        if body.starts_with('[') { from_json(body)? } else { from_table(text, options)? };
    choose_kind(&mut seen, options)?;
    // A trace may list one kind after another; equal times keep their order, the last counts.
    seen.sort_by(|a, b| a.at.total_cmp(&b.at));
    let (Some(first), Some(last)) = (seen.first(), seen.last()) else {
        return Err(InputError::new("a trace without rows"));
    };
    let (start, length) = (first.at, Nanos::from_secs_f64(last.at - first.at));
    if length > LONGEST {
        let error = InputError::new(format!("{length} between the first and the last row"));
        return Err(error.at(last.place.clone()).hint("times are seconds, or dates"));
    }
    let until = options.until.unwrap_or(length);
    if until <= Nanos::ZERO {
        return Err(InputError::new("a trace in which no time passes")
            .hint("the last row ends it; add one, or give --until"));
    }
    let mut groups: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut rows: Vec<(Nanos, u32)> = Vec::new();
    for row in seen {
        let at = Nanos::from_secs_f64(row.at - start);
        groups.insert((row.kind, row.zone), row.gpus);
        let total: u64 = groups.values().sum();
        let total = u32::try_from(total).unwrap_or(u32::MAX);
        match rows.last_mut() {
            Some((then, gpus)) if *then == at => *gpus = total,
            _ => rows.push((at, total)),
        }
    }
    Ok(Availability { changes: changes(rows.into_iter()), until })
}

/// Drops rows that change nothing.
fn changes(rows: impl Iterator<Item = (Nanos, u32)>) -> Vec<(Nanos, u32)> {
    let mut kept: Vec<(Nanos, u32)> = rows.collect();
    kept.dedup_by_key(|(_, gpus)| *gpus);
    kept
}

/// A profile holds for one kind of GPU.
fn choose_kind(seen: &mut Vec<Seen>, options: &Options) -> Result<()> {
    let kinds: BTreeSet<String> = seen.iter().map(|row| row.kind.clone()).collect();
    let listed = || kinds.iter().cloned().collect::<Vec<_>>().join(", ");
    match &options.kind {
        Some(wanted) => {
            seen.retain(|row| row.kind.eq_ignore_ascii_case(wanted));
            if seen.is_empty() {
                let error = InputError::new(format!("no GPUs of kind {wanted:?} in the trace"));
                return Err(error.hint(format!("it has {}", listed())));
            }
            Ok(())
        }
        None if kinds.len() > 1 => {
            Err(InputError::new(format!("GPUs of several kinds: {}", listed()))
                .hint("choose the one that the profile is of, by --gpu-kind"))
        }
        None => Ok(()),
    }
}

fn from_table(text: &str, options: &Options) -> Result<Vec<Seen>> {
    let mut table = Table::new(text)?;
    let columns = Columns::of(&table, options)?;
    table
        .rows()
        .map(|row| {
            let row = row?;
            columns.seen(&row).map_err(|error| error.at(format!("line {}", row.line)))
        })
        .collect()
}

struct Columns {
    time: usize,
    seconds: f64,
    count: usize,
    gpus_each: u64,
    kind: Option<usize>,
    zone: Option<usize>,
}

impl Columns {
    fn of(table: &Table<'_>, options: &Options) -> Result<Self> {
        const UNITS: [(&[&str], f64); 4] = [
            (&["timems", "timestampms", "milliseconds"], 1e-3),
            (&["timemin", "minutes", "timeminutes"], 60.0),
            (&["timeh", "hours", "timehours"], 3600.0),
            (
                &["timestamp", "timestamps", "time", "times", "seconds", "t", "date", "datetime"],
                1.0,
            ),
        ];
        const GPUS: [&str; 8] = [
            "gpus",
            "availablegpus",
            "gpusavailable",
            "gpucount",
            "numgpus",
            "available",
            "count",
            "number",
        ];
        const VMS: [&str; 8] =
            ["vms", "availablevms", "vmcount", "numvms", "machines", "nodes", "instances", "hosts"];
        let mut time = None;
        for (names, seconds) in UNITS {
            if let Some(column) = table.column(names)? {
                time = Some((column, seconds));
                break;
            }
        }
        let (time, seconds) = match time {
            Some(found) => found,
            None => (table.needed("the time", UNITS[3].0)?, 1.0),
        };
        let (count, gpus_each) = match (table.column(&GPUS)?, table.column(&VMS)?) {
            (Some(column), _) => (column, 1),
            (None, Some(column)) => (column, u64::from(options.gpus_per_vm)),
            (None, None) => (table.needed("the number of GPUs", &["gpus", "vms"])?, 1),
        };
        let kind = table.column(&["gpukind", "gputype", "kind", "type", "gpu", "instancetype"])?;
        let zone = table.column(&["zone", "availabilityzone", "region"])?;
        Ok(Self { time, seconds, count, gpus_each, kind, zone })
    }

    fn seen(&self, row: &Row) -> Result<Seen> {
        let text = |column: Option<usize>| {
            column.and_then(|column| row.cell(column)).unwrap_or_default().to_owned()
        };
        let time = row.cell(self.time).unwrap_or_default();
        let count = row.cell(self.count).unwrap_or_default();
        Ok(Seen {
            at: time::seconds(time, self.seconds)?,
            kind: text(self.kind),
            zone: text(self.zone),
            gpus: gpus(count.parse().ok(), self.gpus_each, count)?,
            place: format!("line {}", row.line),
        })
    }
}

/// Whole numbers only: half a GPU is a slip. `24.0` is 24.
fn gpus(count: Option<f64>, each: u64, shown: &str) -> Result<u64> {
    let whole = count.filter(|count| count.fract() == 0.0 && (0.0..=1e7).contains(count));
    let total = whole.map(|count| (count as u64).saturating_mul(each));
    total.filter(|total| *total <= MOST_GPUS).ok_or_else(|| {
        InputError::new(format!("expected a number of 0 to {MOST_GPUS} GPUs, found {shown:?}"))
    })
}

fn from_json(text: &str) -> Result<Vec<Seen>> {
    let rows: Vec<Value> = serde_json::from_str(text)
        .map_err(|error| InputError::new(format!("not a JSON list: {error}")))?;
    if rows.len() > MOST_ROWS {
        return Err(InputError::new(format!("more than {MOST_ROWS} entries")));
    }
    let entry = |(index, row): (usize, &Value)| {
        let place = format!("entry {index}");
        let parts = row.as_array().map(Vec::as_slice);
        let (at, kind, count) = match parts {
            Some([at, count]) => (at, "", count),
            Some([at, Value::String(kind), count]) => (at, kind.as_str(), count),
            _ => {
                return Err(InputError::new("expected [time, kind of GPU, count]").at(place));
            }
        };
        let at = match at {
            Value::String(text) => time::seconds(text, 1.0),
            other => time::seconds(&other.to_string(), 1.0),
        };
        let gpus = gpus(count.as_f64(), 1, &count.to_string());
        let both = at.and_then(|at| Ok((at, gpus?)));
        let (at, gpus) = both.map_err(|error| error.at(place.clone()))?;
        Ok(Seen { at, kind: kind.to_owned(), zone: String::new(), gpus, place })
    };
    rows.iter().enumerate().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options { gpus_per_vm: 4, ..Options::default() }
    }

    fn changes_of(text: &str) -> Vec<(f64, u32)> {
        let trace = parse(text, &options()).unwrap();
        trace.changes.iter().map(|(at, gpus)| (at.secs_f64(), *gpus)).collect()
    }

    #[test]
    fn heads_in_many_spellings_and_times_in_many_forms() {
        let expected = [(0.0, 8), (60.0, 16)];
        for text in [
            "time,gpus\n0,8\n60,16\n90,16\n",
            "\u{feff}Timestamp, Available GPUs\n100,8\n160,16\n190,16\n",
            "# a comment\ntime_ms,num_vms\n0,2\n60000,4\n90000,4\n",
            "date,instances\n2024-02-28T23:59:30Z,2\n2024-02-29T00:00:30Z,4\n2024-02-29 00:01,4\n",
            "[[0, 8], [60, 16], [90, 16]]",
            "[[0, \"A100\", 8], [60.0, \"A100\", 16.0]]",
        ] {
            assert_eq!(changes_of(text), expected, "{text}");
        }
    }

    #[test]
    fn kinds_are_chosen_and_zones_add_up() {
        let text = "time,gpu_type,zone,count\n0,A,x,4\n0,A,y,8\n0,B,x,100\n10,A,x,0\n20,A,x,0\n";
        let error = parse(text, &options()).unwrap_err();
        assert!(error.message().contains("A, B"), "{error}");
        let trace = parse(text, &Options { kind: Some("a".into()), ..options() }).unwrap();
        let gpus: Vec<u32> = trace.changes.iter().map(|(_, gpus)| *gpus).collect();
        assert_eq!(gpus, [12, 8]);
        assert_eq!(trace.gpu_seconds(), 120.0 + 80.0);
        assert_eq!((trace.at(Nanos::from_millis(9_999)), trace.at(trace.until)), (12, 8));
        assert_eq!(trace.without(9).changes.last().map(|(_, gpus)| *gpus), Some(0));
        assert!(parse(text, &Options { kind: Some("c".into()), ..options() }).is_err());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let said = |text: &str| {
            let error = parse(text, &options()).unwrap_err();
            format!("{error} {}", error.hints().join(" "))
        };
        for (text, expected) in [
            ("", "empty"),
            ("time,gpus\n", "without rows"),
            ("time,gpus\n0,8\n", "no time passes"),
            ("time,cores\n0,8\n", "number of GPUs"),
            ("when,gpus\n0,8\n", "no column for the time"),
            ("time,gpus\n0,8\nx,8\n", "line 3"),
            ("time,gpus\n0,-8\n", "line 2"),
            ("time,gpus\n0,2.5\n", "line 2"),
            ("time,gpus\n0,nan\n", "line 2"),
            ("time,gpus\n0,99999999999\n", "line 2"),
            ("time,vms\n0,9999999\n", "line 2"),
            ("time,gpus\n0,8\n1e18,8\n", "line 3"),
            ("time,time,gpus\n0,0,8\n", "two columns"),
            ("[1]", "entry 0"),
            ("[[0,1],[1,\"a\"]]", "entry 1"),
            ("[[0,", "JSON"),
        ] {
            let found = said(text);
            assert!(found.contains(expected), "{text:?}: {found}");
        }
    }
}
