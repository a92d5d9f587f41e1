//! Logs of how busy GPUs were: a row per point in time, with one or many GPUs in it.

use csv::ByteRecord;
use foretrain_core::Nanos;

use super::bind::{Binding, UnitFrom, binding};
use super::decode::Decoder;
use super::fault::Fault;
use super::field::{Field, Unit};
use super::table::{Table, TableRead};
use super::{instant, value};

/// Which columns of a log hold what.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    time: Binding,
    machine: Option<usize>,
    gpu: Option<usize>,
    /// Columns of utilisation. Without a machine column, their titles name machines.
    values: Vec<(usize, String)>,
    /// Parts of one, or hundredths.
    unit: Unit,
}

/// One machine at one point in time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Nanos,
    /// The machine; empty if the log names none.
    pub machine: String,
    /// How busy its GPUs were, 0 to 1, in order; `None` where the log has no value.
    pub busy: Vec<Option<f64>>,
    /// The first of them among the GPUs of the machine, for logs of one GPU per row.
    pub first: u32,
}

const TIMES: [&str; 5] = ["time", "timestamp", "datetime", "date", "ts"];
const MACHINES: [&str; 7] = ["machine", "machineid", "node", "host", "hostname", "server", "ip"];
const GPUS: [&str; 5] = ["gpu", "gpuid", "gpuindex", "device", "index"];

fn plain(title: &str) -> String {
    title.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a title is of utilisation: `gpu0_util`, `util`, `GPU utilization (%)`.
fn of_utilisation(title: &str) -> bool {
    let title = plain(title);
    let bare = title.trim_end_matches("percent").trim_end_matches("pct");
    let rest = bare.strip_prefix("gpu").unwrap_or(bare);
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    matches!(rest, "util" | "utilisation" | "utilization" | "utl" | "smutil")
        || (rest.is_empty() && bare.len() > 3)
}

impl Layout {
    /// The layout of a log with these titles; none if the table is no log.
    pub(super) fn find(titles: &[String], rows: &[ByteRecord]) -> Option<Self> {
        let named =
            |names: &[&str]| titles.iter().position(|title| names.contains(&plain(title).as_str()));
        let time = named(&TIMES)?;
        let machine = named(&MACHINES);
        let gpu = named(&GPUS).filter(|gpu| Some(*gpu) != machine);
        let is_key =
            |column: usize| column == time || Some(column) == machine || Some(column) == gpu;
        let others = || titles.iter().enumerate().filter(|(column, _)| !is_key(*column));
        let values: Vec<(usize, String)> = match machine {
            Some(_) => others()
                .filter(|(_, title)| of_utilisation(title))
                .map(|(column, title)| (column, title.clone()))
                .collect(),
            // A column per machine, or per GPU of one.
            None => {
                let numeric = |column: usize| {
                    let cells = rows.iter().filter_map(|row| value::given(row.get(column)?));
                    cells.fold((0, true), |(count, good), cell| {
                        (count + 1, good && value::number(cell).is_some())
                    })
                };
                let machine_like = |title: &str| {
                    super::schema::bindable(title, &[], &[]).is_none()
                        && title.chars().any(|c| c.is_ascii_digit())
                };
                let wide = others().all(|(column, title)| {
                    numeric(column).1 && (machine_like(title) || of_utilisation(title))
                });
                if time != 0 || !wide {
                    return None;
                }
                others().map(|(column, title)| (column, title.clone())).collect()
            }
        };
        if values.is_empty() {
            return None;
        }
        let most = rows
            .iter()
            .flat_map(|row| values.iter().filter_map(|(column, _)| row.get(*column)))
            .filter_map(|cell| value::number(value::given(cell)?))
            .fold(0.0, f64::max);
        let unit = if most > 1.5 { Unit::PERCENT } else { Unit::ONE };
        Some(Self { time: time_binding(time, &titles[time], rows), machine, gpu, values, unit })
    }
}

fn time_binding(column: usize, title: &str, rows: &[ByteRecord]) -> Binding {
    let cells: Vec<&[u8]> = rows.iter().filter_map(|row| row.get(column)).collect();
    binding(column, title, Field::Submit, None, UnitFrom::Guess, &cells)
}

impl Table {
    /// The time column of a log of samples.
    pub fn sample_time(&self) -> Option<&Binding> {
        self.layout().map(|layout| &layout.time)
    }

    /// Whether the first dates of a log say in which zone they are.
    pub fn samples_zoned(&self) -> bool {
        let Some(column) = self.layout().map(|layout| layout.time.column) else { return false };
        let dated = |row: &ByteRecord| instant::date(value::given(row.get(column)?)?);
        self.rows_ahead().filter_map(dated).any(|dated| dated.offset.is_some())
    }

    /// Hands every sample of a log to `visit`. With `as_written`, dates are taken by the clock of
    /// whoever wrote them and not in UTC.
    pub fn for_each_sample(
        mut self,
        as_written: bool,
        mut visit: impl FnMut(&Sample),
    ) -> TableRead {
        let mut decoder = Decoder { as_written, ..Decoder::default() };
        let mut read = TableRead::default();
        let Some(layout) = self.layout().cloned() else { return read };
        let mut row = ByteRecord::new();
        let mut sample = Sample::default();
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
            match layout.machine {
                Some(machine) => {
                    sample.machine.clear();
                    let name = row.get(machine).and_then(value::given).unwrap_or_default();
                    sample.machine.push_str(&String::from_utf8_lossy(name));
                    let gpu = layout.gpu.and_then(|gpu| value::given(row.get(gpu)?));
                    sample.first = gpu.map_or(0, index);
                    for (column, _) in &layout.values {
                        sample.busy.push(layout.busy(*column, &row, number, &mut decoder));
                    }
                    visit(&sample);
                }
                None => {
                    for (column, title) in &layout.values {
                        sample.machine.clear();
                        sample.machine.push_str(title);
                        sample.busy.clear();
                        sample.busy.push(layout.busy(*column, &row, number, &mut decoder));
                        visit(&sample);
                    }
                }
            }
        }
        TableRead { faults: decoder.faults, zoned: decoder.zoned, unzoned: decoder.unzoned, ..read }
    }
}

/// The number of a GPU that is named `3` or `gpu3`.
fn index(name: &[u8]) -> u32 {
    let digits = name.iter().position(u8::is_ascii_digit).map_or(&b""[..], |at| &name[at..]);
    value::integer(digits)
        .and_then(|index| u32::try_from(index).ok())
        .filter(|i| *i < 256)
        .unwrap_or(0)
}

impl Layout {
    fn busy(
        &self,
        column: usize,
        row: &ByteRecord,
        number: u64,
        decoder: &mut Decoder,
    ) -> Option<f64> {
        let cell = value::given(row.get(column)?)?;
        let bare = cell.strip_suffix(b"%").unwrap_or(cell);
        let Some(busy) = value::number(bare) else {
            decoder.meet(Fault::Unreadable, number, cell);
            return None;
        };
        let busy = busy * self.unit.factor;
        if !(0.0..=1.0).contains(&busy) {
            decoder.meet(Fault::BusyBeyondFull, number, cell);
            return None;
        }
        Some(busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(header: &str, row: &str) -> Option<Layout> {
        let titles: Vec<String> = header.split(',').map(str::to_owned).collect();
        Layout::find(&titles, &[ByteRecord::from(row.split(',').collect::<Vec<_>>())])
    }

    #[test]
    fn logs_are_long_or_wide() {
        let philly =
            layout("time,machineId,gpu0_util,gpu1_util", "2017-10-03 00:00:00 PDT,m51,9,NA");
        assert_eq!(philly.unwrap().values.len(), 2);
        let long = layout("timestamp,node,gpu,util", "1700000000,n1,gpu3,0.5").unwrap();
        assert_eq!((long.gpu, long.values.len(), long.unit), (Some(2), 1, Unit::ONE));
        let wide = layout("Time,10.140.1.10,10.140.1.54", "2023-07-01 08:00:00+08:00,8.1,7.8");
        let wide = wide.unwrap();
        assert_eq!((wide.machine, wide.values.len(), wide.unit), (None, 2, Unit::PERCENT));
        assert!(layout("timestamp,duration,num_gpus", "5,6,7").is_none());
        assert!(layout("job_id,start,end", "1,2,3").is_none());
        assert!(layout("name,time,application,num_replicas,batch_size", "a,1,b,1,2").is_none());
    }
}
