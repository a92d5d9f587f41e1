//! `foretrain fleet project`.

use foretrain::core::Ledger;
use foretrain::fleet::jobs::Class;
use foretrain::fleet::pai::Overlap;
use foretrain::fleet::pai::characterise::Method;
use foretrain::fleet::pai::project::{Projector, of_cases};
use foretrain::report::json::{self, FleetProjectReport};
use foretrain::report::text;

use super::Jobs;
use crate::commands::Answer;
use crate::failure::Result;
use crate::output::Output;

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) jobs: Jobs,
    pub(crate) method: Method,
    pub(crate) overlap: Overlap,
    pub(crate) to: Vec<Class>,
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let mut ledger = Ledger::new();
    let answer = match &options.jobs {
        Jobs::Table(source) => {
            let mut all = Projector::new(options.method, options.overlap, options.to.clone());
            source.each_job(&mut ledger, |job| all.add(job))?;
            all.finish(&mut ledger)
        }
        Jobs::Pai2019 => of_cases(options.method, options.overlap, &options.to, &mut ledger),
    };
    let name = options.jobs.name();
    output.give(
        || json::to_text(&FleetProjectReport::new(&name, &answer, &ledger)),
        |style| text::fleet_project(&name, &answer, &ledger, style),
    )?;
    Ok(if answer.can_any_run() { Answer::Yes } else { Answer::No })
}
