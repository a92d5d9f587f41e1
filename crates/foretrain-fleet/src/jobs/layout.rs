//! Which columns of a log of samples hold what, in which unit.

use csv::ByteRecord;

use super::bind::{Binding, UnitFrom, binding};
use super::field::{ColumnHint, Field, Unit};
use super::schema::{bindable, unit_of};
use super::style::Style;
use super::value;

/// Which columns of a log hold what.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) time: Binding,
    pub(super) machine: Option<Binding>,
    pub(super) gpu: Option<Binding>,
    /// Columns of utilisation. Without a machine column, their titles name machines, or GPUs of one.
    pub(super) values: Vec<Value>,
    /// Titles of columns that nothing is read from.
    pub(super) unused: Vec<String>,
}

/// A column of utilisation.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) binding: Binding,
    /// Whether its title is of utilisation, and not the name of a machine.
    pub(super) of_utilisation: bool,
    /// The GPU that its title names.
    pub(super) gpu: Option<u32>,
}

const TIMES: [&str; 5] = ["time", "timestamp", "datetime", "date", "ts"];
const MACHINES: [&str; 7] = ["machine", "machineid", "node", "host", "hostname", "server", "ip"];
const GPUS: [&str; 6] = ["gpu", "gpuid", "gpuindex", "device", "index", "gpuuuid"];
/// Fields that a log has not, and a table of jobs may have beside times and utilisations.
const OF_JOBS: [Field; 8] = [
    Field::Id,
    Field::Start,
    Field::End,
    Field::Duration,
    Field::Wait,
    Field::User,
    Field::Status,
    Field::Part,
];

fn plain(title: &str) -> String {
    title.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Words at the end of a title that tell the unit.
const ENDS: [(&str, Unit); 8] = [
    ("percentage", Unit::PERCENT),
    ("percent", Unit::PERCENT),
    ("perc", Unit::PERCENT),
    ("pct", Unit::PERCENT),
    ("share", Unit::ONE),
    ("ratio", Unit::ONE),
    ("fraction", Unit::ONE),
    ("frac", Unit::ONE),
];

/// A title in plain letters without the unit at its end, and the unit.
fn without_unit(title: &str) -> (String, Option<Unit>) {
    let mut bare = plain(title);
    let end = ENDS.iter().find(|(end, _)| bare.ends_with(end));
    if let Some((end, _)) = end {
        bare.truncate(bare.len() - end.len());
    }
    let sign = title.contains('%').then_some(Unit::PERCENT);
    (bare, sign.or(end.map(|(_, unit)| *unit)))
}

/// Whether a title is of utilisation (`gpu0_util`, `util`, `GPU utilization (%)`), and of which GPU.
fn utilisation(title: &str) -> Option<Option<u32>> {
    let (bare, _) = without_unit(title);
    let bare = bare.strip_prefix("dcgmfidev").unwrap_or(&bare);
    let rest = bare.strip_prefix("gpu").unwrap_or(bare);
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (digits, rest) = rest.split_at(digits);
    let is_of = match rest {
        "util" | "utilisation" | "utilization" | "utl" | "smutil" => true,
        "utilisationgpu" | "utilizationgpu" => true,
        _ => rest.is_empty() && bare.len() > 3,
    };
    is_of.then(|| digits.parse().ok())
}

/// A cell of utilisation, and whether it says itself that it is percent.
pub(super) fn reading(cell: &[u8]) -> Option<(f64, bool)> {
    let bare = cell.strip_suffix(b"%").map_or(cell, <[u8]>::trim_ascii_end);
    Some((value::number(bare)?, bare.len() < cell.len()))
}

/// What the user says that a column holds.
fn hinted<'a>(hints: &'a [ColumnHint], title: &str) -> Option<&'a ColumnHint> {
    hints.iter().find(|hint| hint.column.eq_ignore_ascii_case(title))
}

impl Layout {
    /// Whether a table may be a log in spite of what the user says of its columns.
    pub(super) fn allows(hints: &[ColumnHint]) -> bool {
        let of_logs = [Field::Utilisation, Field::Machine, Field::Devices];
        hints.iter().all(|hint| of_logs.contains(&hint.field))
    }

    /// The layout of a log with these titles; none if the table is no log. `known` is the unit of
    /// utilisation in logs of its schema.
    pub(super) fn find(
        titles: &[String],
        rows: &[ByteRecord],
        known: Option<Unit>,
        hints: &[ColumnHint],
    ) -> Option<Self> {
        let hint = |title: &str| hinted(hints, title);
        let named = |names: &[&str], field: Field| {
            let by_hint =
                titles.iter().position(|title| hint(title).is_some_and(|h| h.field == field));
            let by_name = || {
                let is_free = |title: &str| hint(title).is_none();
                titles
                    .iter()
                    .position(|title| is_free(title) && names.contains(&plain(title).as_str()))
            };
            by_hint.or_else(by_name)
        };
        let time = named(&TIMES, Field::Submit)?;
        let machine = named(&MACHINES, Field::Machine);
        let gpu = named(&GPUS, Field::Devices).filter(|gpu| Some(*gpu) != machine);
        let is_key =
            |column: usize| column == time || Some(column) == machine || Some(column) == gpu;
        let others = || titles.iter().enumerate().filter(|(column, _)| !is_key(*column));
        // Columns that say of themselves that they are of utilisation.
        let said = || -> Vec<(usize, Option<u32>)> {
            let of = |title: &str| match hint(title) {
                Some(hint) => {
                    (hint.field == Field::Utilisation).then(|| utilisation(title).flatten())
                }
                None => utilisation(title),
            };
            let mut said: Vec<_> =
                others().filter_map(|(column, title)| Some((column, of(title)?))).collect();
            // The user's word comes first, then GPUs by their numbers; other columns are one
            // quantity each, and only the first of them is the one that is asked for.
            let by_user = |column: usize| hint(&titles[column]).is_some();
            if said.iter().any(|(column, _)| by_user(*column)) {
                said.retain(|(column, _)| by_user(*column));
            }
            if said.iter().any(|(_, gpu)| gpu.is_some()) {
                said.retain(|(_, gpu)| gpu.is_some());
            } else {
                said.truncate(1);
            }
            said
        };
        let found: Vec<(usize, Option<u32>)> = match (machine, gpu) {
            (Some(_), _) => said(),
            (None, Some(_)) => {
                // A name beside a GPU's number is the GPU's.
                let of_jobs = |title: &str| {
                    plain(title) != "name"
                        && bindable(title, &[], &[])
                            .is_some_and(|(field, _)| OF_JOBS.contains(&field))
                };
                if others().any(|(_, title)| of_jobs(title)) {
                    return None;
                }
                said()
            }
            // A column per machine, or per GPU of one.
            (None, None) => {
                let numeric = |column: usize| {
                    let mut cells = rows.iter().filter_map(|row| value::given(row.get(column)?));
                    cells.all(|cell| reading(cell).is_some())
                };
                let machine_like = |title: &str| {
                    bindable(title, &[], &[]).is_none() && title.chars().any(|c| c.is_ascii_digit())
                };
                let wide = others().all(|(column, title)| {
                    numeric(column) && (machine_like(title) || utilisation(title).is_some())
                });
                if time != 0 || !wide {
                    return None;
                }
                others().map(|(column, title)| (column, utilisation(title).flatten())).collect()
            }
        };
        if found.is_empty() {
            return None;
        }
        // Numbers in titles name GPUs, whatever a column beside them is.
        let by_titles = machine.is_some() && found.iter().any(|(_, gpu)| gpu.is_some());
        let gpu = gpu.filter(|_| !by_titles);
        let guessed = guess(rows, &found);
        let values = found.into_iter().map(|(column, gpu)| {
            let title = titles[column].as_str();
            let by_user = hint(title).and_then(|hint| hint.unit).map(|unit| (unit, UnitFrom::User));
            let by_schema = known.map(|unit| (unit, UnitFrom::Schema));
            let by_title = || Some((without_unit(title).1?, UnitFrom::Title));
            let (unit, unit_from) =
                by_user.or(by_schema).or_else(by_title).unwrap_or((guessed, UnitFrom::Guess));
            let (field, style) = (Field::Utilisation, Style::default());
            let binding = binding(column, title, field, Some(unit), unit_from, &[], style);
            Value { binding, of_utilisation: utilisation(title).is_some(), gpu }
        });
        let values: Vec<Value> = values.collect();
        let key = |column: usize, field: Field| {
            let unit = unit_of(&titles[column], field.dimension());
            let cells: Vec<&[u8]> = rows.iter().filter_map(|row| row.get(column)).collect();
            let style = Style::default();
            binding(column, &titles[column], field, unit, UnitFrom::Title, &cells, style)
        };
        let is_read = |column: usize| {
            column == time
                || Some(column) == machine
                || Some(column) == gpu
                || values.iter().any(|value| value.binding.column == column)
        };
        let unused = titles.iter().enumerate().filter(|(column, _)| !is_read(*column));
        Some(Self {
            time: key(time, Field::Submit),
            machine: machine.map(|column| key(column, Field::Machine)),
            gpu: gpu.map(|column| key(column, Field::Devices)),
            unused: unused.map(|(_, title)| title.clone()).collect(),
            values,
        })
    }
}

/// Parts of one, or hundredths, by the size of the first values. What is above 100 is of neither, and
/// cells that say so themselves tell nothing of the others.
fn guess(rows: &[ByteRecord], columns: &[(usize, Option<u32>)]) -> Unit {
    let cells =
        rows.iter().flat_map(|row| columns.iter().filter_map(|(column, _)| row.get(*column)));
    let most = cells
        .filter_map(|cell| reading(value::given(cell)?))
        .filter(|(number, is_percent)| !is_percent && *number <= 100.0)
        .map(|(number, _)| number)
        .fold(0.0, f64::max);
    if most > BEYOND { Unit::PERCENT } else { Unit::ONE }
}

/// A share of one is not above this, whatever a driver rounds.
pub(super) const BEYOND: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&str]) -> Vec<ByteRecord> {
        let row = |row: &&str| ByteRecord::from(row.split(',').collect::<Vec<_>>());
        rows.iter().map(row).collect()
    }

    fn layout(header: &str, row: &str) -> Option<Layout> {
        let titles: Vec<String> = header.split(',').map(str::to_owned).collect();
        Layout::find(&titles, &rows(&[row]), None, &[])
    }

    fn unit(layout: &Layout) -> (Unit, UnitFrom) {
        (layout.values[0].binding.unit, layout.values[0].binding.unit_from)
    }

    #[test]
    fn logs_are_long_or_wide() {
        let philly =
            layout("time,machineId,gpu0_util,gpu1_util", "2017-10-03 00:00:00 PDT,m51,9,NA");
        assert_eq!(philly.unwrap().values.len(), 2);
        let long = layout("timestamp,node,gpu,util", "1700000000,n1,gpu3,0.5").unwrap();
        assert_eq!(long.gpu.as_ref().map(|gpu| gpu.column), Some(2));
        assert_eq!((long.values.len(), unit(&long)), (1, (Unit::ONE, UnitFrom::Guess)));
        let wide = layout("Time,10.140.1.10,10.140.1.54", "2023-07-01 08:00:00+08:00,8.1,7.8");
        let wide = wide.unwrap();
        assert!(wide.machine.is_none());
        assert_eq!((wide.values.len(), unit(&wide)), (2, (Unit::PERCENT, UnitFrom::Guess)));
        assert!(layout("timestamp,duration,num_gpus", "5,6,7").is_none());
        assert!(layout("job_id,start,end", "1,2,3").is_none());
        assert!(layout("name,time,application,num_replicas,batch_size", "a,1,b,1,2").is_none());
        assert!(layout("timestamp,job_id,gpu,gpu_util", "5,a,1,50").is_none());
    }

    /// What monitors write.
    #[test]
    fn logs_of_monitors_are_known() {
        let smi = layout(
            "timestamp, index, utilization.gpu [%], memory.used [MiB]",
            "2024/03/01 01:00:00.123,0,95 %,1000 MiB",
        );
        let smi = smi.unwrap();
        assert_eq!((smi.values.len(), unit(&smi)), (1, (Unit::PERCENT, UnitFrom::Title)));
        assert_eq!(smi.unused, [" memory.used [MiB]"]);
        let named = layout("timestamp, index, name, utilization.gpu [%]", "5,0,NVIDIA A100,95 %");
        assert!(named.is_some_and(|named| named.gpu.is_some()));
        let dcgm = layout("timestamp,Hostname,gpu,DCGM_FI_DEV_GPU_UTIL", "5,n1,0,95").unwrap();
        assert!(dcgm.gpu.is_some());
        // Two quantities of one GPU are not two GPUs.
        let two = layout("time,node,gpu_util,sm_util", "5,n1,80,50").unwrap();
        assert_eq!((two.values.len(), two.unused), (1, vec!["sm_util".to_owned()]));
    }

    #[test]
    fn titles_and_users_tell_the_unit_before_values_do() {
        for (title, unit) in [
            ("gpu0_util_pct", Unit::PERCENT),
            ("GPU 0 utilization [%]", Unit::PERCENT),
            ("util_percent", Unit::PERCENT),
            ("util_ratio", Unit::ONE),
            ("gpu_util_share", Unit::ONE),
            ("gpu_utilisation_fraction", Unit::ONE),
        ] {
            for value in ["0.5", "80"] {
                let found = layout(&format!("time,node,{title}"), &format!("5,n1,{value}"));
                let binding = found.unwrap().values[0].binding.clone();
                assert_eq!((binding.unit, binding.unit_from), (unit, UnitFrom::Title), "{title}");
            }
        }
        let titles = ["time", "node", "busyness"].map(str::to_owned);
        let hint = ["utilisation=busyness:%".parse().unwrap()];
        assert!(Layout::allows(&hint));
        let found = Layout::find(&titles, &rows(&["5,n1,0.5"]), None, &hint).unwrap();
        assert_eq!(unit(&found), (Unit::PERCENT, UnitFrom::User));
    }
}
