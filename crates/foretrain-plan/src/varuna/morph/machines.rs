//! Machines that hold their stage up.

use std::collections::{BTreeMap, BTreeSet};

use foretrain_core::stats::median;
use foretrain_core::{InputError, Result};

use crate::varuna::table::Table;

/// How long a machine takes for its stage.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its stage, as the table calls it.
    pub stage: String,
    /// Its forward pass, in the table's unit.
    pub forward: f64,
}

/// Reads a table with the columns machine, stage and forward (any unit, the same in all rows).
///
/// # Errors
/// If a column is missing, or a cell cannot be read.
pub fn parse(text: &str) -> Result<Vec<Machine>> {
    let mut table = Table::new(text)?;
    let name = table.needed("the machine", &["machine", "vm", "host", "node", "ip"])?;
    let stage = table.needed("the stage", &["stage"])?;
    let forward = table.needed(
        "the forward time",
        &[
            "forward",
            "forwards",
            "forwardms",
            "forwardus",
            "fwd",
            "fwds",
            "fwdms",
            "fwdtime",
            "forwardtime",
        ],
    )?;
    table
        .rows()
        .map(|row| {
            let row = row?;
            let cell = |column| row.cell(column).unwrap_or_default();
            let time = cell(forward).parse::<f64>().ok();
            let time = time.filter(|time| *time > 0.0 && *time < 1e15).ok_or_else(|| {
                InputError::new(format!("expected a time above 0, found {:?}", cell(forward)))
                    .at(format!("line {}", row.line))
            })?;
            Ok(Machine { name: cell(name).into(), stage: cell(stage).into(), forward: time })
        })
        .collect()
}

/// A machine that is to be left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Slow {
    /// Its name.
    pub name: String,
    /// Its stage.
    pub stage: String,
    /// Its forward pass over its stage's median.
    pub over_median: f64,
}

/// Machines whose forward pass is longer than their stage's median by more than `threshold` of it;
/// each once, by its worst stage.
pub fn slow(machines: &[Machine], threshold: f64) -> Vec<Slow> {
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for machine in machines {
        times.entry(&machine.stage).or_default().push(machine.forward);
    }
    let medians: BTreeMap<&str, f64> =
        times.iter().filter_map(|(stage, times)| Some((*stage, median(times)?))).collect();
    let mut all: Vec<Slow> = machines
        .iter()
        .map(|machine| Slow {
            name: machine.name.clone(),
            stage: machine.stage.clone(),
            over_median: machine.forward / medians[machine.stage.as_str()],
        })
        .filter(|machine| machine.over_median > 1.0 + threshold)
        .collect();
    all.sort_by(|a, b| b.over_median.total_cmp(&a.over_median).then(a.name.cmp(&b.name)));
    let mut seen = BTreeSet::new();
    all.retain(|machine| seen.insert(machine.name.clone()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_beyond_the_threshold_is_slow() {
        let text = "Machine,Stage,Forward_ms\na,0,100\nb,0,100\nc,0,115\nd,0,116\na,1,10\ne,1,10\nf,1,20\nf,0,130\n";
        let machines = parse(text).unwrap();
        // Stage 0 holds 100, 100, 115, 116, 130: its median is 115.
        let found = slow(&machines, 0.15);
        let names: Vec<&str> = found.iter().map(|machine| machine.name.as_str()).collect();
        assert_eq!(names, ["f"]);
        assert_eq!((found[0].stage.as_str(), found[0].over_median), ("1", 2.0));
        let found = slow(&machines, 0.12);
        assert_eq!(found.len(), 1, "a machine is listed once, by its worst stage");
        let even = "machine,stage,forward\na,0,100\nb,0,100\nc,0,115\n";
        assert!(slow(&parse(even).unwrap(), 0.15).is_empty(), "15 % is not more than 15 %");
        assert!(parse("machine,stage,forward\na,0,-1\n").is_err());
        assert!(parse("machine,forward\na,1\n").is_err());
    }
}
