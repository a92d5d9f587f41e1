//! Events to columns.

use foretrain_core::{InputError, Ledger, NameId, Nanos, Result, Severity};
use foretrain_trace::{Category, Trace, TrackId};

use super::arguments::Arguments;
use super::flows::Flows;
use super::header::Header;
use super::pairs::{Pairs, remove_rows};
use super::tracks::Tracks;
use super::{Watch, ascend, clock, correlation, report};
use crate::json::text::decode;
use crate::json::{Arg, Damage, DamageKind, Field, RawEvent, Sink, Value, number};
use crate::options::ReadOptions;

/// Longest event name kept; real kernels reach some three thousand characters.
const LONGEST_NAME: usize = 16 << 10;

/// What did not become a row, by reason.
#[derive(Debug, Default)]
struct Counts {
    seen: u64,
    kept: u64,
    skipped: u64,
    filtered: u64,
    points: u64,
    other_phases: u64,
    long_names: u64,
    long_arguments: u64,
}

/// Builds the table of one document.
pub(super) struct Builder<'a> {
    pub(super) trace: Trace,
    pub(super) ledger: Ledger,
    tracks: Tracks,
    flows: Flows,
    pairs: Pairs,
    header: Header,
    counts: Counts,
    categories: Vec<(String, Category)>,
    recognised: u64,
    old_layout: bool,
    ascend_tasks: u64,
    window: Option<(Nanos, Nanos)>,
    options: &'a ReadOptions,
    watch: Watch<'a>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        path: &str,
        options: &'a ReadOptions,
        window: Option<(Nanos, Nanos)>,
        watch: Watch<'a>,
    ) -> Self {
        let mut trace = Trace::default();
        trace.meta.path = path.into();
        Self {
            trace,
            ledger: Ledger::new(),
            tracks: Tracks::default(),
            flows: Flows::default(),
            pairs: Pairs::default(),
            header: Header::default(),
            counts: Counts::default(),
            categories: Vec::new(),
            recognised: 0,
            old_layout: false,
            ascend_tasks: 0,
            window,
            options,
            watch,
        }
    }

    /// The category of a spelling; there are few, so they are remembered.
    fn category(&mut self, cat: &str) -> Category {
        const REMEMBERED: usize = 64;
        if let Some((_, category)) = self.categories.iter().find(|(known, _)| known == cat) {
            return *category;
        }
        let category = Category::parse(cat);
        self.old_layout |= matches!(cat, "Operator" | "Kernel" | "Runtime");
        if self.categories.len() < REMEMBERED {
            self.categories.push((cat.into(), category));
        }
        category
    }

    fn track(&mut self, window: &str, event: &RawEvent) -> TrackId {
        let pid = decode(event.field(Field::Process), window);
        let tid = decode(event.field(Field::Thread), window);
        self.tracks.id(&pid, &tid)
    }

    /// Records that an event could not become a row.
    fn quarantine(&mut self, code: &str, message: &str, window: &str, event: &RawEvent) {
        let number = self.counts.seen;
        self.ledger.record_at(Severity::Dropped, code, message, || {
            let name = decode(event.field(Field::Name), window);
            let short: String = name.chars().take(60).collect();
            format!("event {number} \"{short}\"")
        });
    }

    /// The event's time, or a word in the ledger.
    fn time(&mut self, window: &str, event: &RawEvent) -> Option<i64> {
        match time_of(event.field(Field::Time), window) {
            Some(time) if time.unsigned_abs() < i64::MAX as u64 => Some(time),
            Some(_) => {
                self.quarantine(
                    "time-out-of-range",
                    "start beyond what can be told",
                    window,
                    event,
                );
                None
            }
            None => {
                self.quarantine("no-time", "start missing or not a number", window, event);
                None
            }
        }
    }

    fn duration(&mut self, window: &str, event: &RawEvent) -> Option<Nanos> {
        let field = event.field(Field::Duration);
        if field.kind == crate::json::Kind::Absent {
            self.ledger.record(
                Severity::Inferred,
                "no-duration",
                "duration missing; taken as zero",
            );
            return Some(Nanos::ZERO);
        }
        match time_of(field, window) {
            Some(nanos) if nanos >= 0 => Some(Nanos::from_nanos(nanos)),
            Some(_) => {
                let message = "negative duration; set aside, in no total";
                self.quarantine("negative-duration", message, window, event);
                None
            }
            None => {
                self.quarantine("bad-duration", "duration that is no number", window, event);
                None
            }
        }
    }

    fn complete(&mut self, window: &str, event: &RawEvent) -> Result<()> {
        self.counts.seen += 1;
        let Some(start) = self.time(window, event) else { return Ok(()) };
        let Some(duration) = self.duration(window, event) else { return Ok(()) };
        self.row(window, event, start, duration).map(drop)
    }

    fn begin(&mut self, window: &str, event: &RawEvent) -> Result<()> {
        self.counts.seen += 1;
        let Some(start) = self.time(window, event) else { return Ok(()) };
        let track = self.track(window, event);
        let row = self.row(window, event, start, Nanos::ZERO)?;
        self.pairs.begin(track, row);
        Ok(())
    }

    fn end(&mut self, window: &str, event: &RawEvent) {
        let Some(at) = self.time(window, event) else { return };
        let track = self.track(window, event);
        self.pairs.end(&mut self.trace, track, at);
    }

    /// Adds a row unless a filter says otherwise.
    fn row(
        &mut self,
        window: &str,
        event: &RawEvent,
        start: i64,
        duration: Nanos,
    ) -> Result<Option<u32>> {
        let category = self.category(event.field(Field::Category).raw(window));
        self.recognised += u64::from(!matches!(category, Category::Other | Category::Span));
        let start = Nanos::from_nanos(start);
        let outside = |(from, to): (Nanos, Nanos)| start + duration < from || start > to;
        if !self.options.wants(category) || self.window.is_some_and(outside) {
            self.counts.filtered += 1;
            return Ok(None);
        }
        let Ok(row) = u32::try_from(self.trace.len()) else {
            return Err(InputError::new("more than 4294967295 events in one trace")
                .in_file(&self.trace.meta.path)
                .hint("read a time window or fewer categories"));
        };
        let name_text = decode(event.field(Field::Name), window);
        let name = self.intern_name(&name_text);
        let track = self.track(window, event);
        let arguments = Arguments::gather(
            event,
            window,
            &mut self.trace.names,
            is_communication(&name_text),
            self.header.rank,
        );
        self.counts.kept += 1;
        self.counts.long_arguments += u64::from(arguments.too_long);
        self.ascend_tasks += u64::from(arguments.ascend_task);
        if category.is_device_work() {
            self.flows.saw_device_event(arguments.correlation != 0);
        }
        self.trace.category.push(category);
        self.trace.name.push(name);
        self.trace.start.push(start);
        self.trace.duration.push(duration);
        self.trace.track.push(track);
        self.place(category, track, &arguments);
        self.side_tables(row, category, &arguments);
        Ok(Some(row))
    }

    fn intern_name(&mut self, name: &str) -> NameId {
        if name.len() <= LONGEST_NAME {
            return self.trace.names.intern(name);
        }
        self.counts.long_names += 1;
        self.trace.names.intern(&name[..name.floor_char_boundary(LONGEST_NAME)])
    }

    /// Ids, stream and device. What the arguments leave out, device tracks tell.
    fn place(&mut self, category: Category, track: TrackId, arguments: &Arguments) {
        let on_device = category.is_device_work()
            || matches!(category, Category::GpuAnnotation | Category::DeviceSync);
        let track = self.tracks.get(track);
        let stream = arguments.stream.or_else(|| on_device.then(|| track_number(&track.tid))?);
        let device = arguments.device.or_else(|| on_device.then(|| track_number(&track.pid))?);
        self.trace.correlation.push(arguments.correlation);
        self.trace.external_id.push(arguments.external_id);
        self.trace.stream.push(stream.and_then(|s| i32::try_from(s).ok()).unwrap_or(-1));
        self.trace.device.push(device.and_then(|d| i16::try_from(d).ok()).unwrap_or(-1));
        self.trace.shapes.push(arguments.shapes);
        self.trace.types.push(arguments.types);
        self.trace.meta.has_shapes |= arguments.shapes != NameId::EMPTY;
    }

    fn side_tables(&mut self, row: u32, category: Category, arguments: &Arguments) {
        if let Some(mut comm) = arguments.real_comm() {
            comm.row = row;
            self.trace.comm_args.push(comm);
        }
        if let Some(mut launch) = arguments.launch
            && (category.is_device_work() || launch.graph_id != 0)
        {
            launch.row = row;
            self.trace.launch_args.push(launch);
        }
        if let Some(mut copy) = arguments.copy
            && matches!(category, Category::Memcpy | Category::Memset)
        {
            copy.row = row;
            self.trace.copy_args.push(copy);
        }
        if let Some(mut sync) = arguments.sync {
            sync.row = row;
            self.trace.sync_args.push(sync);
        }
    }

    fn flow(&mut self, window: &str, event: &RawEvent, is_start: bool) {
        let Some(at) = time_of(event.field(Field::Time), window) else {
            self.counts.other_phases += 1;
            return;
        };
        let track = self.track(window, event);
        let category = event.field(Field::Category).raw(window);
        let name = event.field(Field::Name).raw(window);
        let id = number::integer_bits(event.field(Field::Id).raw(window));
        self.flows.add((category, name), id, at, track, is_start);
    }

    fn metadata(&mut self, window: &str, event: &RawEvent) {
        let pid = decode(event.field(Field::Process), window);
        let name = decode(event.arg(Arg::Name), window);
        match event.field(Field::Name).raw(window) {
            "thread_name" => {
                let tid = decode(event.field(Field::Thread), window);
                self.tracks.name_thread(&pid, &tid, &name);
            }
            "process_name" => self.tracks.name_process(&pid, &name),
            _ => {}
        }
    }

    fn heap_bytes(&self) -> u64 {
        self.trace.heap_bytes() + self.flows.heap_bytes()
    }

    /// Completes the table.
    pub(super) fn finish(mut self) -> Result<(Trace, Ledger)> {
        (self.watch)(self.counts.seen, self.heap_bytes())?;
        self.finish_pairs();
        if self.ascend_tasks > 0 {
            let (processes, threads) = (self.tracks.process_names(), self.tracks.thread_names());
            self.recognised +=
                ascend::classify(&mut self.trace, &processes, &threads, &mut self.ledger);
        }
        self.refuse_foreign()?;
        correlation::recover(&mut self.trace, &mut self.flows, &mut self.ledger);
        self.set_base();
        self.trace.meta.producer = if self.ascend_tasks > 0 {
            "Ascend PyTorch profiler".into()
        } else {
            self.header.producer(self.old_layout)
        };
        self.report_counts();
        let Self { mut trace, ledger, tracks, flows, header, .. } = self;
        header.fill(&mut trace.meta);
        trace.flows.extend(flows.forward_backward);
        trace.tracks = tracks.finish();
        shrink(&mut trace);
        Ok((trace, ledger))
    }

    fn finish_pairs(&mut self) {
        let mut unended = self.pairs.unended();
        let message = "beginning of an event without its end, or the reverse";
        let unmatched = unended.len() as u64 + self.pairs.unmatched_ends;
        self.ledger.record_many(Severity::Dropped, "unpaired-event", message, unmatched, None);
        let negative = self.pairs.negative.len() as u64;
        let message = "negative duration; set aside, in no total";
        self.ledger.record_many(Severity::Dropped, "negative-duration", message, negative, None);
        unended.append(&mut self.pairs.negative);
        unended.sort_unstable();
        unended.dedup();
        self.counts.kept -= unended.len() as u64;
        remove_rows(&mut self.trace, &unended);
    }

    /// Refuses a document in which nothing looks like PyTorch's profiler.
    fn refuse_foreign(&self) -> Result<()> {
        // A list without any event is an empty trace, whoever wrote it.
        let counts = &self.counts;
        let events = counts.seen + counts.skipped + counts.points + counts.other_phases;
        let is_empty = events == 0 && self.tracks.processes().next().is_none();
        if self.recognised > 0 || self.header.is_kineto || is_empty {
            return Ok(());
        }
        let what = crate::source::sniff::foreign_name(self.tracks.processes());
        Err(InputError::new(format!("this is {what}, not a PyTorch profiler trace"))
            .in_file(&self.trace.meta.path)
            .hint("record one with torch.profiler and export_chrome_trace"))
    }

    /// Moves the table's zero to the start of its dense part.
    fn set_base(&mut self) {
        let dated = |(start, category): (&Nanos, &Category)| {
            clock::is_dated(*category).then_some(start.nanos())
        };
        let rows = self.trace.start.iter().zip(&self.trace.category);
        let starts: Vec<i64> = rows.filter_map(dated).collect();
        let any = self.trace.start.iter().map(|start| start.nanos()).min();
        let zero = clock::zero_of(&starts).or(any).unwrap_or(0);
        let shift = |start: &mut Nanos| *start -= Nanos::from_nanos(zero);
        self.trace.start.iter_mut().for_each(shift);
        for flow in &mut self.flows.forward_backward {
            shift(&mut flow.at);
        }
        self.trace.meta.base_nanos = self.header.base_nanos.saturating_add(zero);
    }

    fn report_counts(&mut self) {
        let counts = &self.counts;
        let ledger = &mut self.ledger;
        let mut say = |severity, code, message, count| {
            ledger.record_many(severity, code, message, count, None);
        };
        say(Severity::Note, "filtered", "events left out on request", counts.filtered);
        say(Severity::Note, "point-events", "instants and counters; not kept", counts.points);
        say(Severity::Note, "other-phases", "events of other kinds; not kept", counts.other_phases);
        say(
            Severity::Note,
            "other-flows",
            "arrows other than forward to backward; not kept",
            self.flows.other,
        );
        say(Severity::Dropped, "flow-without-id", "arrows without an id", self.flows.without_id);
        say(Severity::Repaired, "long-name", "names cut at 16 KiB", counts.long_names);
        say(
            Severity::Dropped,
            "long-argument",
            "arguments longer than 16 KiB",
            counts.long_arguments,
        );
        if self.counts.seen == 0 {
            ledger.record(
                Severity::Warning,
                "no-events",
                "the trace holds no events with a duration",
            );
        }
        let total = counts.seen + counts.skipped;
        if counts.skipped * 100 > total {
            let message = "more than 1 % of the events could not be read: results are incomplete";
            ledger.record(Severity::Warning, "incomplete", message);
        }
        ledger.cover("events", counts.kept, total - counts.filtered.min(total));
    }
}

fn shrink(trace: &mut Trace) {
    trace.category.shrink_to_fit();
    trace.name.shrink_to_fit();
    trace.start.shrink_to_fit();
    trace.duration.shrink_to_fit();
    trace.track.shrink_to_fit();
    trace.correlation.shrink_to_fit();
    trace.external_id.shrink_to_fit();
    trace.stream.shrink_to_fit();
    trace.device.shrink_to_fit();
    trace.shapes.shrink_to_fit();
    trace.types.shrink_to_fit();
}

/// A time in microseconds, as a number or as text.
fn time_of(value: Value, window: &str) -> Option<i64> {
    if value.is_some() { number::micros_to_nanos(value.raw(window)) } else { None }
}

/// The number in a device track's id: "7" or "stream 7".
fn track_number(id: &str) -> Option<i64> {
    let digits = id.trim_start_matches("stream").trim();
    number::integer(digits)
}

fn is_communication(name: &str) -> bool {
    name == "record_param_comms"
        || ["c10d::", "nccl:", "gloo:", "hccl:", "mpi:", "ucc:", "xccl:", "rccl:"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

impl Sink for Builder<'_> {
    type Stop = InputError;

    fn event(&mut self, window: &str, event: &RawEvent) -> Result<()> {
        match event.field(Field::Phase).raw(window) {
            "X" => return self.complete(window, event),
            "s" => self.flow(window, event, true),
            "f" | "t" => self.flow(window, event, false),
            "M" => self.metadata(window, event),
            "B" => return self.begin(window, event),
            "E" => self.end(window, event),
            "i" | "I" | "R" | "C" => self.counts.points += 1,
            _ => self.counts.other_phases += 1,
        }
        Ok(())
    }

    fn member(&mut self, key: &str, value: &str) -> Result<()> {
        self.header.member(key, value, &mut self.ledger);
        Ok(())
    }

    fn damage(&mut self, damage: &Damage<'_>) -> Result<()> {
        if self.options.strict {
            return Err(report::refuse(damage, &self.trace.meta.path));
        }
        self.trace.meta.truncated |= damage.kind == DamageKind::Truncated;
        self.counts.skipped +=
            u64::from(matches!(damage.kind, DamageKind::Skipped | DamageKind::NotAnObject));
        report::record(damage, &mut self.ledger);
        Ok(())
    }

    fn progress(&mut self, _: u64) -> Result<()> {
        self.options.cancel.check()?;
        (self.watch)(self.counts.seen, self.heap_bytes())
    }
}
