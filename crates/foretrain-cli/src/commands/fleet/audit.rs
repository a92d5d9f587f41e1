//! `foretrain fleet audit`.

use foretrain::fleet::audit::audit;
use foretrain::report::json::{self, FleetAuditReport};
use foretrain::report::text;

use super::Source;
use crate::commands::Answer;
use crate::failure::Result;
use crate::output::Output;

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) tables: Source,
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let audit = audit(options.tables.open()?);
    output.give(
        || json::to_text(&FleetAuditReport::new(&audit)),
        |style| text::fleet_audit(&audit, style),
    )?;
    Ok(Answer::Yes)
}
