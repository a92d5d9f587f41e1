//! The table of step times measured in published traces.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use foretrain_core::{InputError, Result};

/// Measured step times by file and step.
///
/// The table is CSV with at least the columns `model` (folder and name of the trace), `metric`
/// ("ProfilerStep 12 duration"), `value`, `unit` ("ms") and `where` (path below `traces/`); other
/// metrics are passed over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTable {
    /// Milliseconds by normalised path or folder and name, and step name without `#`. `None`
    /// where rows contradict each other.
    times: BTreeMap<(String, String), Option<f64>>,
}

impl StepTable {
    /// Reads a table.
    ///
    /// # Errors
    /// If it cannot be read, lacks a column, or a step time is no positive number.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| InputError::io(&error, path))?;
        Self::parse(&text).map_err(|error| error.in_file(path))
    }

    /// Reads a table from text.
    ///
    /// # Errors
    /// As [`StepTable::read`].
    pub fn parse(text: &str) -> Result<Self> {
        let mut reader = reader(text);
        let header = reader.headers().map_err(|error| unreadable(&error))?.clone();
        let column = |name: &str| {
            header
                .iter()
                .position(|field| field == name)
                .ok_or_else(|| InputError::new(format!("no column \"{name}\"")).at("line 1"))
        };
        let (model, metric) = (column("model")?, column("metric")?);
        let (value, unit, path) = (column("value")?, column("unit")?, column("where")?);
        let mut table = Self::default();
        for row in reader.records() {
            let row = row.map_err(|error| unreadable(&error))?;
            let get = |column: usize| row.get(column).unwrap_or_default();
            let Some(step) = step_of(get(metric)).filter(|_| get(unit) == "ms") else { continue };
            let time: f64 = get(value).parse().unwrap_or(f64::NAN);
            if !(time.is_finite() && time > 0.0) {
                let found = format!("step time \"{}\" is no positive number", get(value));
                return Err(InputError::new(found).at(place(&row)));
            }
            let mut keys = vec![normalised(get(path)), normalised(get(model))];
            keys.dedup();
            for file in keys {
                table
                    .times
                    .entry((file, step.clone()))
                    .and_modify(|known| *known = known.filter(|&known| known == time))
                    .or_insert(Some(time));
            }
        }
        Ok(table)
    }

    /// Measured time of a step in milliseconds. `file` is relative to the data directory, `step`
    /// as its mark spells it ("ProfilerStep#12").
    pub fn step_ms(&self, file: &str, step: &str) -> Option<f64> {
        let step = step.replace('#', " ");
        let file = normalised(file);
        let below = file.strip_prefix("traces/").unwrap_or(&file);
        let mut parts = below.rsplitn(3, '/');
        let (name, folder) = (parts.next()?, parts.next());
        let short = folder.map_or(name.to_owned(), |folder| format!("{folder}/{name}"));
        let find = |file: &str| self.times.get(&(file.to_owned(), step.clone())).copied();
        find(below).or_else(|| find(&short)).flatten()
    }
}

/// "ProfilerStep 12 duration" names step "ProfilerStep 12".
fn step_of(metric: &str) -> Option<String> {
    let step = metric.strip_suffix(" duration")?;
    step.starts_with("ProfilerStep").then(|| step.to_owned())
}

/// A file packed or not is the same file.
fn normalised(file: &str) -> String {
    file.trim().trim_start_matches("./").trim_end_matches(".gz").to_owned()
}

/// A reader of a table whose rows may be cut short.
pub(super) fn reader(text: &str) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes())
}

/// "line N" of a row.
pub(super) fn place(row: &csv::StringRecord) -> String {
    format!("line {}", row.position().map_or(0, csv::Position::line))
}

pub(super) fn unreadable(error: &csv::Error) -> InputError {
    InputError::new(format!("not a table of comma-separated values: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "source,model,metric,value,unit,where\n\
        o/r,run/a.json.gz,ProfilerStep 7 duration,12.5,ms,o+r/x/run/a.json.gz\n\
        o/r,run/b.json,ProfilerStep 7 duration,3.25,ms,o+r/x/run/b.json\n\
        o/r,test/t.json.gz,ProfilerStep 1 duration,4,ms,o+r/diff/test/t.json.gz\n\
        o/r,test/t.json.gz,ProfilerStep 1 duration,5,ms,o+r/other/test/t.json.gz\n\
        o/r,GPT,collective time,603,us,\"everywhere, (\"\"81\"\" instances)\"\n";

    #[test]
    fn rows_match_by_path_then_by_folder_and_name_in_both_spellings() {
        let table = StepTable::parse(TABLE).expect("table");
        let find = |file, step| table.step_ms(file, step);
        assert_eq!(find("traces/o+r/x/run/a.json.gz", "ProfilerStep#7"), Some(12.5));
        assert_eq!(find("traces/o+r/x/run/a.json", "ProfilerStep#7"), Some(12.5));
        assert_eq!(find("elsewhere/run/b.json.gz", "ProfilerStep#7"), Some(3.25));
        assert_eq!(find("run/b.json", "ProfilerStep#7"), Some(3.25));
        assert_eq!(find("run/b.json", "ProfilerStep#8"), None);
        assert_eq!(find("other/b.json", "ProfilerStep#7"), None);
        assert_eq!(find("b.json", "ProfilerStep#7"), None);
    }

    #[test]
    fn files_of_one_name_with_different_times_match_by_path_only() {
        let table = StepTable::parse(TABLE).expect("table");
        assert_eq!(table.step_ms("traces/o+r/diff/test/t.json.gz", "ProfilerStep#1"), Some(4.0));
        assert_eq!(table.step_ms("traces/o+r/other/test/t.json", "ProfilerStep#1"), Some(5.0));
        assert_eq!(table.step_ms("third/test/t.json", "ProfilerStep#1"), None);
    }

    #[test]
    fn damaged_tables_are_refused_with_their_line() {
        let bad = TABLE.replace("12.5", "fast");
        let error = StepTable::parse(&bad).expect_err("no number");
        assert_eq!(error.place(), Some("line 2"));
        assert!(StepTable::parse("a,b\n1,2\n").is_err());
        assert!(StepTable::parse("").is_err());
        for bad in ["-1", "0", "NaN", "inf"] {
            assert!(StepTable::parse(&TABLE.replace("3.25", bad)).is_err(), "{bad}");
        }
    }
}
