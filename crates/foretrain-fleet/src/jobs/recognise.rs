//! Which table it is: by its titles, by those beside it, by its first row, by what columns it has.

use std::path::Path;

use foretrain_core::words::counted;
use foretrain_core::{InputError, Result};

use super::bind::Bound;
use super::field::Field;
use super::read::{Opened, Rows};
use super::schema::{ALL, Kind, PLAIN, Schema};
use super::{instant, value};

/// Rows under titles, and the schema.
pub(super) fn titled(
    opened: Opened,
    stem: &str,
    header: Option<Vec<String>>,
    asked: Option<&'static Schema>,
) -> Result<(Box<dyn Rows>, &'static Schema)> {
    let text = match opened {
        Opened::Titled(rows) => {
            let schema = asked.unwrap_or_else(|| Schema::of(rows.titles()));
            return Ok((rows, schema));
        }
        Opened::Text(text) => text,
    };
    if let Some(why) = text.broken() {
        return Err(InputError::new(format!("not even its first line can be read: {why}")));
    }
    let titles: Vec<String> =
        text.first().iter().map(|cell| String::from_utf8_lossy(cell.trim_ascii()).into()).collect();
    let by_titles = Schema::of(&titles);
    // A first row of numbers is no header.
    let headless = asked.filter(|schema| schema.headerless.is_some()).or_else(|| {
        let stem = stem.split('.').next().unwrap_or(stem);
        let named = ALL.into_iter().find(|schema| {
            schema
                .headerless
                .is_some_and(|h| h.titles.len() == titles.len() && h.file == Some(stem))
        });
        named.or_else(|| Schema::of_row(text.first()))
    });
    if std::ptr::eq(by_titles, &raw const PLAIN) {
        if let Some(header) = header.filter(|header| header.len() == titles.len()) {
            let schema = asked.unwrap_or_else(|| Schema::of(&header));
            let header: Vec<&str> = header.iter().map(String::as_str).collect();
            return Ok((text.titled(&header), schema));
        }
        if let Some(schema) = headless
            && let Some(known) = schema.headerless
        {
            if known.titles.len() != titles.len() {
                return Err(InputError::new(format!(
                    "{} where {} has {}",
                    counted(titles.len(), "column"),
                    schema.name,
                    known.titles.len()
                )));
            }
            return Ok((text.titled(known.titles), schema));
        }
    }
    Ok((text.headed(), asked.unwrap_or(by_titles)))
}

/// Titles in a file beside the table, as `pai_job_table.header` beside `pai_job_table.csv`.
pub(super) fn header_beside(path: &Path) -> Option<Vec<String>> {
    let name = path.file_name()?.to_str()?;
    let stem = name.split('.').next()?;
    let beside = path.with_file_name(format!("{stem}.header"));
    let text = foretrain_hardware::read_text(&beside).ok()?;
    Some(text.lines().next()?.split(',').map(|title| title.trim().to_owned()).collect())
}

/// What the rows are about, by the columns they have.
pub(super) fn kind_of(schema: &'static Schema, bound: &mut Bound) -> Result<Kind> {
    let has = |field| bound.has(field);
    let timed = [Field::Submit, Field::Start, Field::End, Field::Duration, Field::Wait];
    let told = timed.iter().any(|field| bound.has(*field) || bound.misfits.contains(field));
    if !std::ptr::eq(schema, &raw const PLAIN) {
        return Ok(schema.kind);
    }
    let jobs = told || has(Field::Class) || (has(Field::Gpus) && has(Field::Id));
    if has(Field::Machine) && !told && !has(Field::Id) && has(Field::Gpus) {
        // What each has is all that there is to say of machines.
        bound.bindings.iter_mut().for_each(|binding| binding.per_node = false);
        return Ok(Kind::Machines);
    }
    if has(Field::Part) && (has(Field::Id) || has(Field::Alias)) {
        return Ok(Kind::Parts);
    }
    // Pods without jobs are jobs.
    if has(Field::Part) {
        for binding in bound.bindings.iter_mut().filter(|b| b.field == Field::Part) {
            binding.field = Field::Id;
        }
        return Ok(Kind::Jobs);
    }
    if has(Field::Id) && has(Field::Machine) && !told {
        return Ok(Kind::Parts);
    }
    if jobs {
        return Ok(Kind::Jobs);
    }
    let columns = match bound.unused.is_empty() {
        true => "none".to_owned(),
        false => bound.unused.join(", "),
    };
    let error =
        InputError::new("no table of jobs: none of its columns tells when or how long jobs ran")
            .hint(format!("columns that are not understood: {columns}"));
    let is_value = |title: &String| {
        let title = title.as_bytes();
        value::number(title).is_some() || instant::date(title).is_some()
    };
    let values = bound.unused.iter().filter(|title| is_value(title)).count();
    let error = match values > 0 && 2 * values >= bound.unused.len() {
        true => error.hint(
            "its first line looks like a row: put a line of titles before it, as in \
             job_id,submit_time,duration_s,gpus",
        ),
        false => error,
    };
    Err(error
        .hint("say what they hold with --column FIELD=COLUMN, as in --column submit=queued_at:ms"))
}
