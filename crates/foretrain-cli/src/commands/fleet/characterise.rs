//! `foretrain fleet characterise`.

use foretrain::core::Ledger;
use foretrain::fleet::pai::CASES;
use foretrain::fleet::pai::characterise::{Characteriser, Method};
use foretrain::report::json::{self, FleetCharacteriseReport};
use foretrain::report::text;

use super::Jobs;
use crate::commands::Answer;
use crate::failure::Result;
use crate::output::Output;

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) jobs: Jobs,
    pub(crate) method: Method,
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let mut ledger = Ledger::new();
    let mut all = Characteriser::new(options.method);
    match &options.jobs {
        Jobs::Table(source) => source.each_job(&mut ledger, |job| all.add(job))?,
        Jobs::Pai2019 => CASES.iter().for_each(|case| all.add(&case.job())),
    }
    let answer = all.finish(&mut ledger);
    let cases: &[_] = if matches!(options.jobs, Jobs::Pai2019) { &CASES } else { &[] };
    let name = options.jobs.name();
    output.give(
        || json::to_text(&FleetCharacteriseReport::new(&name, &answer, cases, &ledger)),
        |style| text::fleet_characterise(&name, &answer, cases, &ledger, style),
    )?;
    Ok(if answer.rows.timed.total > 0 { Answer::Yes } else { Answer::No })
}
