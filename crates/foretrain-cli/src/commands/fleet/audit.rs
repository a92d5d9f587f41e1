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

pub(crate) fn run(options: &Options, output: &Output) -> Result<Answer> {
    let audit = audit(options.tables.open()?);
    let text = if output.json() {
        json::to_text(&FleetAuditReport::new(&audit))
    } else {
        text::fleet_audit(&audit, output.style())
    };
    output.answer(&text)?;
    Ok(Answer::Yes)
}
