//! Rows of shards put together.

use std::path::Path;

use foretrain_core::{InputError, Result};

use super::{ResultRow, Study};

/// Places that a complaint lists.
const LISTED: usize = 8;

/// The rows of the whole study, in its order, from files of rows in any order: the same as one run
/// would have made.
///
/// # Errors
/// If a row belongs to another study, is there twice or is missing; each is named.
pub fn merge(
    study: &Study,
    files: &[(impl AsRef<Path>, Vec<ResultRow>)],
) -> Result<Vec<ResultRow>> {
    let all = study.scenarios.len();
    let mut found: Vec<Option<(&Path, &ResultRow)>> = vec![None; all];
    let mut twice: Vec<String> = Vec::new();
    for (path, rows) in files {
        let path = path.as_ref();
        for row in rows {
            belongs(row, study).map_err(|error| error.in_file(path))?;
            let at = usize::try_from(row.scenario).unwrap_or(usize::MAX);
            let Some(slot) = found.get_mut(at) else { continue };
            match slot {
                Some((before, _)) => twice.push(format!(
                    "{} (in {} and {})",
                    at + 1,
                    before.display(),
                    path.display()
                )),
                None => *slot = Some((path, row)),
            }
        }
    }
    if !twice.is_empty() {
        return Err(InputError::new(format!("rows are there twice: scenario {}", listed(&twice)))
            .hint("name each shard's file once"));
    }
    let missing: Vec<String> =
        (0..all).filter(|&at| found[at].is_none()).map(|at| (at + 1).to_string()).collect();
    if !missing.is_empty() {
        let message =
            format!("{} of {all} rows are missing: scenario {}", missing.len(), listed(&missing));
        return Err(
            InputError::new(message).hint("run the shards that take them, or name their files")
        );
    }
    Ok(found.into_iter().flatten().map(|(_, row)| row.clone()).collect())
}

fn belongs(row: &ResultRow, study: &Study) -> Result<()> {
    let place = format!("scenario {}", row.scenario.saturating_add(1));
    let wrong = |message: String| Err(InputError::new(message).at(place.clone()));
    if row.study != study.hash {
        return wrong(format!(
            "a row of another scenario file, or of another version of foretrain (study {:?}, \
             expected {:?})",
            row.study, study.hash
        ));
    }
    let at = usize::try_from(row.scenario).unwrap_or(usize::MAX);
    let Some(scenario) = study.scenarios.get(at) else {
        return wrong(format!("the study has {} scenarios", study.scenarios.len()));
    };
    let (row, own) = (
        (&row.model, &row.cluster, row.devices),
        (&scenario.model, &scenario.cluster, scenario.devices),
    );
    if row == own {
        return Ok(());
    }
    wrong(format!(
        "the row is for {} on {} of {}, the scenario for {} on {} of {}",
        row.0, row.2, row.1, own.0, own.2, own.1
    ))
}

fn listed(items: &[String]) -> String {
    let shown = items.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
