//! The measured tables of collectives as rows of one type.
//!
//! Each table counts sizes, names machines and marks doubtful rows in its own way; one module per
//! table undoes that, and only that. Nothing is dropped silently: what cannot be a row is counted
//! with the reason, and what should not be scored keeps its flag.

mod aiconfigurator;
mod deepbench;
mod excerpts;
mod fields;
mod misc;
mod nccl_tests;
mod physics;
mod profiles;
mod stas00;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use foretrain_core::{Bytes, DType, InputError, Nanos, Result};
use foretrain_graph::CollectiveKind;

use fields::{Fields, Sheet};

/// One measured collective.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MeasuredRow {
    /// File name of the table without its ending.
    pub(super) table: &'static str,
    /// Machine or log, as the table names it.
    pub(super) system: String,
    /// Device, as the table names it.
    pub(super) gpu: String,
    /// The entry of the hardware catalogue that stands for the machine with its NICs.
    pub(super) cluster: Option<&'static str>,
    /// Operation. A transfer in one direction is [`CollectiveKind::Send`].
    pub(super) kind: CollectiveKind,
    /// Ranks, at least 2.
    pub(super) ranks: u32,
    /// Scale-up domains they are on; a rack of one NVLink domain is one.
    pub(super) nodes: u32,
    /// The larger of a rank's input and output buffer.
    pub(super) bytes: Bytes,
    /// Element type.
    pub(super) dtype: Option<DType>,
    /// Library or tool and its version, algorithm if it was forced.
    pub(super) library: Option<String>,
    /// Time of one operation.
    pub(super) time: Nanos,
    /// Why not to trust the row.
    pub(super) flag: Option<String>,
}

/// The rows of all tables, and what is in them that is no row.
#[derive(Debug, Default)]
pub(in super::super) struct Measured {
    pub(super) rows: Vec<MeasuredRow>,
    /// Rows left out, by table and reason.
    pub(super) left_out: BTreeMap<(&'static str, &'static str), usize>,
}

/// What a table's row is.
enum Parsed {
    Row(MeasuredRow),
    /// No measured collective of devices; the reason is for people.
    LeftOut(&'static str),
}

/// One table: its file and how to read its rows.
struct Table {
    /// Name of the file, plain or with `.gz`.
    name: &'static str,
    row: fn(&Fields<'_>) -> Result<Parsed>,
}

/// All tables.
const TABLES: [Table; 9] = [
    Table { name: "collectives_nccl_tests", row: nccl_tests::row },
    Table { name: "collectives_aiconfigurator_nccl", row: aiconfigurator::row },
    Table { name: "collectives_stas00", row: stas00::row },
    Table { name: "collectives_vidur", row: profiles::vidur },
    Table { name: "collectives_vtrain_allreduce_lut", row: profiles::vtrain },
    Table { name: "collectives_perlmutter_vista", row: profiles::perlmutter_vista },
    Table { name: "collectives_issue_excerpts", row: excerpts::row },
    Table { name: "collectives_misc_small", row: misc::row },
    Table { name: "collectives_deepbench_allreduce", row: deepbench::row },
];

/// Reads the tables that are in a directory.
///
/// # Errors
/// If a table cannot be read, lacks a column, or holds a figure that is no number; and if there is
/// no table at all.
pub(super) fn read(directory: &Path) -> Result<Measured> {
    let mut measured = Measured::default();
    let mut found = false;
    for table in &TABLES {
        if let Some(sheet) = Sheet::open(directory, table.name)? {
            found = true;
            measured.add(table, &sheet)?;
        }
    }
    if !found {
        return Err(InputError::new("no table of measured collectives was found")
            .in_file(directory)
            .hint("expected files such as collectives_nccl_tests.csv.gz"));
    }
    Ok(measured)
}

impl Measured {
    fn add(&mut self, table: &Table, sheet: &Sheet) -> Result<()> {
        sheet.for_each(|fields| {
            match (table.row)(fields)? {
                Parsed::Row(row) => {
                    let row = MeasuredRow { table: table.name, ..row };
                    self.rows.push(physics::flagged(row)?);
                }
                Parsed::LeftOut(why) => *self.left_out.entry((table.name, why)).or_default() += 1,
            }
            Ok(())
        })
    }
}

/// What a row says besides its machine and its time.
struct Point {
    kind: CollectiveKind,
    ranks: u32,
    nodes: u32,
    bytes: u64,
}

impl Point {
    /// The row of a machine that took `micros`.
    fn on(
        self,
        system: &str,
        gpu: &str,
        cluster: Option<&'static str>,
        micros: f64,
    ) -> MeasuredRow {
        MeasuredRow {
            table: "",
            system: system.to_owned(),
            gpu: gpu.to_owned(),
            cluster,
            kind: self.kind,
            ranks: self.ranks,
            nodes: self.nodes,
            bytes: Bytes::new(self.bytes),
            dtype: None,
            library: None,
            time: Nanos::from_micros_f64(micros),
            flag: None,
        }
    }
}

impl MeasuredRow {
    fn flagged(mut self, why: &str) -> Self {
        let known = self.flag.take().map(|flag| flag + "; ").unwrap_or_default();
        self.flag = Some(known + why);
        self
    }
}

/// The text, unless it is empty.
fn filled(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// The first entry whose prefix a name has.
fn by_prefix(name: &str, clusters: &[(&str, &'static str)]) -> Option<&'static str> {
    clusters.iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, cluster)| *cluster)
}

/// Reasons that several tables have.
const NO_SIZE: &str = "no size: a peak or an average over sizes";
const NO_TIME: &str = "no time, and none follows from its bandwidth";
const ONE_RANK: &str = "one rank moves nothing";
const NO_RANKS: &str = "number of ranks not known";
