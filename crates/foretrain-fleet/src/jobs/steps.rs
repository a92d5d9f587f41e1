//! Rows of Slurm that are steps of a job: `101.batch`, `101.extern`, `101.0`.

use csv::ByteRecord;

use super::bind::Binding;
use super::field::Field;
use super::value;

/// Titles that only tables of Slurm have beside `JobID`.
const SLURM: [&str; 12] = [
    "nodelist",
    "alloctres",
    "reqtres",
    "allocgres",
    "reqgres",
    "nnodes",
    "allocnodes",
    "elapsed",
    "elapsedraw",
    "alloccpus",
    "exitcode",
    "jobidraw",
];

/// Tells rows of steps from rows of jobs.
#[derive(Debug)]
pub(super) struct Steps {
    /// The column of ids.
    column: usize,
    /// Whether `101.0` is a step whatever comes before it.
    numbered: bool,
    /// The id of the last job.
    last: Vec<u8>,
}

impl Steps {
    /// For a table with these columns and first rows; none if it has no ids.
    pub(super) fn of(
        titles: &[String],
        bindings: &[Binding],
        ahead: &[ByteRecord],
    ) -> Option<Self> {
        let id = bindings.iter().find(|binding| binding.field == Field::Id)?;
        let slurm = id.title.eq_ignore_ascii_case("JobID")
            && titles.iter().any(|title| SLURM.iter().any(|own| title.eq_ignore_ascii_case(own)));
        // Ids that went through a table of decimals all end with `.0`.
        let whole = |row: &ByteRecord| row.get(id.column).is_some_and(is_job);
        let numbered = slurm && ahead.iter().any(whole);
        Some(Self { column: id.column, numbered, last: Vec::new() })
    }

    /// The id of a row.
    pub(super) fn id(&self, row: &ByteRecord) -> String {
        String::from_utf8_lossy(row.get(self.column).unwrap_or_default()).into_owned()
    }

    /// Whether a row is a step. Rows are to be given in their order.
    pub(super) fn is_step(&mut self, row: &ByteRecord) -> bool {
        let Some(id) = row.get(self.column).and_then(value::given) else { return false };
        let step = id.iter().position(|&byte| byte == b'.').is_some_and(|dot| {
            let (job, step) = (&id[..dot], &id[dot + 1..]);
            is_job(job)
                && match step {
                    b"batch" | b"extern" | b"interactive" => true,
                    _ => is_number(step) && (self.numbered || self.last == job),
                }
        });
        if !step {
            self.last.clear();
            self.last.extend_from_slice(id);
        }
        step
    }
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

/// `101`, `101_3` of an array, `101+0` of a heterogeneous job.
fn is_job(id: &[u8]) -> bool {
    let id = id.trim_ascii();
    match id.iter().position(|byte| matches!(byte, b'_' | b'+')) {
        Some(at) => {
            let rest = &id[at + 1..];
            is_number(&id[..at])
                && rest.iter().all(|byte| byte.is_ascii_digit() || b"+_[],-%".contains(byte))
        }
        None => is_number(id),
    }
}
