//! Logs of how busy GPUs were: a row per point in time, with one or many GPUs in it.

use std::hash::{Hash, Hasher};

use csv::ByteRecord;
use foretrain_core::Nanos;
use foretrain_core::diagnostics::Coverage;
use rustc_hash::FxHasher;

use super::bind::{Binding, UnitFrom};
use super::decode::Decoder;
use super::fault::Fault;
use super::field::Unit;
use super::layout::{BEYOND, Value, reading};
use super::table::{Table, TableRead};
use super::{instant, value};

/// One machine at one point in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Nanos,
    /// The machine; empty if the log names none.
    pub machine: String,
    /// How busy its GPUs were, 0 to 1, in order; `None` where the log has no value.
    pub busy: Vec<Option<f64>>,
    /// Which GPUs they are.
    pub gpus: Named,
}

/// What a log says of which GPUs a row is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Named {
    /// Nothing: one value may be the mean of a machine.
    #[default]
    Not,
    /// The number of the first; others follow it.
    From(u32),
    /// One GPU, by a name that is no number.
    Other(u64),
    /// The title that is taken for a machine could as well be that of this GPU of the only machine.
    Perhaps(u32),
}

/// What reading a log met.
#[derive(Debug, Default)]
pub struct SamplesRead {
    /// As of any table.
    pub read: TableRead,
    /// Its columns, those of one quantity and unit together, and rows (of utilisation: cells) with a
    /// value.
    pub columns: Vec<(Binding, Coverage)>,
}

impl Table {
    /// Whether the first dates of a log say in which zone they are.
    pub fn samples_zoned(&self) -> bool {
        let Some(column) = self.layout().map(|layout| layout.time.column) else { return false };
        let dated = |row: &ByteRecord| instant::date(value::given(row.get(column)?)?);
        self.rows_ahead().filter_map(dated).any(|dated| dated.offset.is_some())
    }

    /// Whether times are numbers since 1970, which are in UTC.
    pub fn dated_in_numbers(&self) -> bool {
        match self.layout() {
            Some(layout) => layout.time.since_1970,
            None => self.bindings().iter().any(|binding| binding.since_1970),
        }
    }

    /// Titles of columns of a log that nothing is read from.
    pub fn samples_unused(&self) -> &[String] {
        self.layout().map_or(&[], |layout| &layout.unused)
    }

    /// Hands every sample of a log to `visit`. With `as_written`, dates are taken by the clock of
    /// whoever wrote them and not in UTC.
    pub fn for_each_sample(
        mut self,
        as_written: bool,
        mut visit: impl FnMut(&Sample),
    ) -> SamplesRead {
        let mut decoder = Decoder { as_written, ..Decoder::default() };
        let mut read = TableRead::default();
        let Some(layout) = self.layout().cloned() else { return SamplesRead::default() };
        let mut row = ByteRecord::new();
        let mut sample = Sample::default();
        let (mut machines, mut gpus) = (0, 0);
        let mut cells = vec![0_u64; layout.values.len()];
        let from = layout.values.iter().find_map(|value| value.gpu);
        while self.next_row(&mut row, &mut read, &mut decoder.faults) {
            let number = read.rows;
            let cell = row.get(layout.time.column).and_then(value::given);
            let at = cell.and_then(|cell| decoder.instant(&layout.time, cell, number));
            let Some(at) = at else {
                if cell.is_none() {
                    decoder.meet(Fault::Unreadable, number, b"no time");
                }
                continue;
            };
            read.given += 1;
            sample.at = at;
            sample.busy.clear();
            let by_rows = layout.machine.is_some() || layout.gpu.is_some();
            if by_rows {
                let cell = |key: &Option<Binding>| value::given(row.get(key.as_ref()?.column)?);
                let (machine, gpu) = (cell(&layout.machine), cell(&layout.gpu));
                machines += u64::from(machine.is_some());
                gpus += u64::from(gpu.is_some());
                sample.machine.clear();
                sample.machine.push_str(&String::from_utf8_lossy(machine.unwrap_or_default()));
                sample.gpus = match (&layout.gpu, from) {
                    (Some(_), _) => named(gpu.unwrap_or_default()),
                    // Titles count from 0 or from 1.
                    (None, Some(_)) => Named::From(0),
                    (None, None) => Named::Not,
                };
                for (value, cells) in layout.values.iter().zip(&mut cells) {
                    let busy = value.busy(&row, number, &mut decoder);
                    *cells += u64::from(busy.is_some());
                    sample.busy.push(busy);
                }
                visit(&sample);
                continue;
            }
            for (value, cells) in layout.values.iter().zip(&mut cells) {
                sample.machine.clear();
                if !value.of_utilisation || value.gpu.is_some() {
                    sample.machine.push_str(&value.binding.title);
                }
                sample.gpus = value.gpu.map_or(Named::Not, Named::Perhaps);
                sample.busy.clear();
                let busy = value.busy(&row, number, &mut decoder);
                *cells += u64::from(busy.is_some());
                sample.busy.push(busy);
                visit(&sample);
            }
        }
        let rows = |used| Coverage { used, total: read.rows };
        let mut columns = vec![(layout.time, rows(read.given))];
        columns.extend(layout.machine.map(|machine| (machine, rows(machines))));
        columns.extend(layout.gpu.map(|gpu| (gpu, rows(gpus))));
        together(&layout.values, &cells, read.rows, &mut columns);
        let read = TableRead {
            faults: decoder.faults,
            zoned: decoder.zoned,
            unzoned: decoder.unzoned,
            ..read
        };
        SamplesRead { read, columns }
    }
}

/// Columns of utilisation, those of one unit as one.
fn together(values: &[Value], cells: &[u64], rows: u64, columns: &mut Vec<(Binding, Coverage)>) {
    let mut units: Vec<(Binding, Coverage, usize)> = Vec::new();
    for (value, used) in values.iter().zip(cells) {
        let binding = &value.binding;
        let alike = |known: &&mut (Binding, Coverage, usize)| {
            (known.0.unit, known.0.unit_from) == (binding.unit, binding.unit_from)
        };
        match units.iter_mut().find(alike) {
            Some((_, coverage, more)) => {
                coverage.used += used;
                coverage.total += rows;
                *more += 1;
            }
            None => units.push((binding.clone(), Coverage { used: *used, total: rows }, 0)),
        }
    }
    columns.extend(units.into_iter().map(|(mut binding, coverage, more)| {
        if more > 0 {
            binding.title = format!("{} and {more} more", binding.title);
        }
        (binding, coverage)
    }));
}

/// A GPU that is named `3` or `gpu3`, or otherwise.
fn named(name: &[u8]) -> Named {
    let letters = name.iter().position(u8::is_ascii_digit).unwrap_or(name.len());
    let is_word =
        name[..letters].iter().all(|byte| byte.is_ascii_alphabetic() || b" _:".contains(byte));
    let number = value::integer(&name[letters..])
        .and_then(|index| u32::try_from(index).ok())
        .filter(|index| is_word && *index < 256);
    number.map_or_else(
        || {
            let mut hasher = FxHasher::default();
            name.hash(&mut hasher);
            Named::Other(hasher.finish())
        },
        Named::From,
    )
}

impl Value {
    fn busy(&self, row: &ByteRecord, number: u64, decoder: &mut Decoder) -> Option<f64> {
        let cell = value::given(row.get(self.binding.column)?)?;
        let Some((written, is_percent)) = reading(cell) else {
            decoder.meet(Fault::Unreadable, number, cell);
            return None;
        };
        let unit = if is_percent { Unit::PERCENT } else { self.binding.unit };
        let busy = written * unit.factor;
        if (0.0..=1.0).contains(&busy) {
            return Some(busy);
        }
        let guessed = self.binding.unit_from == UnitFrom::Guess && unit == Unit::ONE;
        let contradicts = guessed && busy > BEYOND && busy <= 100.0;
        let fault = if contradicts { Fault::BusyInAnotherUnit } else { Fault::BusyBeyondFull };
        decoder.meet(fault, number, cell);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::TableOptions;
    use super::*;

    fn read(text: &str) -> (Vec<Sample>, SamplesRead) {
        let table = Table::from_bytes("s.csv", text.into(), &TableOptions::default()).unwrap();
        let mut samples = Vec::new();
        let read = table.for_each_sample(false, |sample| samples.push(sample.clone()));
        (samples, read)
    }

    #[test]
    fn rows_say_which_gpu_they_are_about() {
        let gpus = |text: &str| read(text).0.iter().map(|sample| sample.gpus).collect::<Vec<_>>();
        let long = "time,node,gpu,util\n5,n1,0,90\n5,n1,gpu7,0\n";
        assert_eq!(gpus(long), [Named::From(0), Named::From(7)]);
        let uuids = "time,node,gpu,util\n5,n1,GPU-4f3a,90\n5,n1,GPU-5b,0\n";
        let [Named::Other(one), Named::Other(two)] = gpus(uuids)[..] else { panic!("no number") };
        assert_ne!(one, two);
        assert_eq!(gpus("time,node,gpu0\n5,n1,90\n"), [Named::From(0)]);
        assert_eq!(gpus("time,node,gpu_util\n5,n1,90\n"), [Named::Not]);
        assert_eq!(gpus("time,gpu3\n5,90\n"), [Named::Perhaps(3)]);
    }

    /// A unit that was told by the first rows and that later ones contradict is no silent loss.
    #[test]
    fn a_guess_that_later_rows_contradict_is_said_to_be_wrong() {
        let mut text = "time,node,gpu,util\n".to_owned();
        for time in 0..520 {
            text += &format!("{},n1,0,1\n", 1_700_000_000 + time);
        }
        text += "1700001000,n1,0,95\n1700001001,n1,0,950\n1700001002,n1,0,95 %\n";
        let (samples, read) = self::read(&text);
        assert_eq!(read.read.faults.count(Fault::BusyInAnotherUnit), 1);
        assert_eq!(read.read.faults.count(Fault::BusyBeyondFull), 1);
        let last = samples.last().unwrap().busy[0].unwrap();
        assert!((last - 0.95).abs() < 1e-9, "the cell says its unit");
        let (binding, coverage) = read.columns.last().unwrap();
        assert_eq!((binding.unit, binding.unit_from), (Unit::ONE, UnitFrom::Guess));
        assert_eq!(*coverage, Coverage { used: 521, total: 523 });
    }

    #[test]
    fn a_title_in_percent_is_in_percent() {
        let text = "time,machine,gpu0_util_pct,gpu1_util_pct\n5,n1,0.5,1.0\n6,n1,0.4,1.2\n";
        let (samples, read) = self::read(text);
        let busy: Vec<f64> = samples[1].busy.iter().flatten().copied().collect();
        assert!((busy[0] - 0.004).abs() < 1e-9 && (busy[1] - 0.012).abs() < 1e-9, "{busy:?}");
        assert_eq!(read.columns.last().unwrap().0.title, "gpu0_util_pct and 1 more");
    }
}
