//! The tables that are known by their titles. One module per source, registered in [`ALL`].

mod acme;
mod alibaba_2020;
mod alibaba_2023;
mod features;
mod gavel;
mod helios;
mod itp;
mod muri;
pub(super) mod philly;
mod plain;
mod pollux;
mod tiresias;
mod unified;

use csv::ByteRecord;
use foretrain_core::suggest::nearest;
use foretrain_core::{InputError, Result};

use super::field::{Field, Unit};
use super::job::Job;

pub(super) use features::FEATURES;
pub(super) use plain::{Meant, PLAIN, bindable, is_per_node, meant, rank, unit_of};

/// What the rows of a table are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Jobs.
    Jobs,
    /// Pods, tasks or instances, several of which may belong to one job.
    Parts,
    /// Machines and their GPUs.
    Machines,
    /// How busy GPUs were at points in time.
    Samples,
}

impl Kind {
    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs",
            Self::Parts => "parts of jobs",
            Self::Machines => "machines",
            Self::Samples => "GPU samples",
        }
    }
}

/// A column that a schema knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) field: Field,
    pub(super) unit: Unit,
    /// Whether a table without it is of another schema.
    needed: bool,
}

const fn needed(title: &'static str, field: Field, unit: Unit) -> Column {
    Column { title, field, unit, needed: true }
}

const fn also(title: &'static str, field: Field, unit: Unit) -> Column {
    Column { title, field, unit, needed: false }
}

/// How a table without a header is known.
#[derive(Clone, Copy)]
pub(super) struct Headerless {
    /// The file that it is published as, without what follows the first dot.
    pub(super) file: Option<&'static str>,
    /// Titles of all its columns in order.
    pub(super) titles: &'static [&'static str],
    /// Whether a first row looks like one of it.
    tells: fn(&ByteRecord) -> bool,
}

/// A known kind of table.
pub struct Schema {
    /// The name for `--schema`.
    pub name: &'static str,
    /// What it is, with its source.
    pub about: &'static str,
    /// What its rows are about.
    pub kind: Kind,
    pub(super) columns: &'static [Column],
    pub(super) headerless: Option<Headerless>,
    /// What the fields of a row say beyond their columns.
    pub(super) complete: Option<fn(&mut Job)>,
}

impl std::fmt::Debug for Schema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All of them. Where the titles of a table hold several schemas, the one with more columns wins.
pub static ALL: [&Schema; 24] = [
    &FEATURES,
    &alibaba_2020::JOB,
    &alibaba_2020::TASK,
    &alibaba_2020::INSTANCE,
    &alibaba_2020::SENSOR,
    &alibaba_2020::GROUP,
    &alibaba_2020::MACHINE,
    &alibaba_2023::POD,
    &alibaba_2023::NODE,
    &philly::JOB,
    &philly::MACHINE,
    &philly::GPU_UTIL,
    &philly::SUMMARY,
    &helios::JOB,
    &acme::JOB,
    &itp::JOB,
    &gavel::CONTINUOUS,
    &gavel::PHYSICAL,
    &tiresias::JOB,
    &muri::JOB,
    &muri::RESULT,
    &pollux::JOB,
    &unified::JOB,
    &plain::PLAIN,
];

impl Schema {
    /// The schema of this name.
    ///
    /// # Errors
    /// If there is none; the error suggests the nearest.
    pub fn named(name: &str) -> Result<&'static Schema> {
        ALL.into_iter().find(|schema| schema.name == name).ok_or_else(|| {
            let names = ALL.map(|schema| schema.name);
            let error = InputError::new(format!("no schema of job tables called {name:?}"));
            match nearest(name, names) {
                Some(name) => error.hint(format!("did you mean {name:?}?")),
                None => error.hint(format!("schemas are {}", names.join(", "))),
            }
        })
    }

    /// The schema that titles tell of; `plain` if no other.
    pub(super) fn of(titles: &[String]) -> &'static Schema {
        let has = |title: &str| titles.iter().any(|known| known.eq_ignore_ascii_case(title));
        let fits = |schema: &Schema| {
            let mut needed = schema.columns.iter().filter(|column| column.needed).peekable();
            needed.peek().is_some() && needed.all(|column| has(column.title))
        };
        let held = |schema: &Schema| schema.columns.iter().filter(|c| has(c.title)).count();
        let best = ALL.into_iter().filter(|schema| fits(schema)).max_by_key(|schema| held(schema));
        best.unwrap_or(&PLAIN)
    }

    /// The schema that a first row without titles tells of.
    pub(super) fn of_row(row: &ByteRecord) -> Option<&'static Schema> {
        ALL.into_iter().find(|schema| {
            schema
                .headerless
                .is_some_and(|known| row.len() == known.titles.len() && (known.tells)(row))
        })
    }
}

/// Whether a cell of a first row holds a number, or nothing.
fn numeric(row: &ByteRecord, column: usize) -> bool {
    let Some(cell) = row.get(column) else { return false };
    super::value::given(cell).is_none_or(|cell| super::value::number(cell).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_known_by_its_own_titles() {
        for schema in ALL.into_iter().filter(|schema| !schema.columns.is_empty()) {
            let titles: Vec<String> =
                schema.columns.iter().map(|column| column.title.to_owned()).collect();
            assert_eq!(Schema::of(&titles).name, schema.name);
            assert!(std::ptr::eq(Schema::named(schema.name).unwrap(), schema));
            if let Some(headerless) = schema.headerless {
                for column in schema.columns {
                    assert!(headerless.titles.contains(&column.title), "{}", column.title);
                }
            }
        }
        assert!(Schema::named("philly-jobs").unwrap_err().hints()[0].contains("philly"));
    }
}
