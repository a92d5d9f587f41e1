//! `foretrain fleet sweep`.

use foretrain::core::Ledger;
use foretrain::fleet::pai::characterise::Method;
use foretrain::fleet::pai::sweep::{Change, Sweeper, of_cases, usual_grid};
use foretrain::fleet::pai::{Hardware, Overlap, Resource};
use foretrain::report::json::{self, FleetSweepReport};
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
    /// Changes to try; the usual grid if none.
    pub(crate) changes: Vec<Asked>,
}

/// What is changed at once.
#[derive(Clone, Debug)]
pub(crate) struct Asked(pub(crate) Vec<Setting>);

/// One resource at another rate.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) resource: Resource,
    pub(crate) to: To,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum To {
    /// In bytes or FLOP per second.
    Rate(f64),
    /// So many times as fast.
    Times(f64),
}

impl Asked {
    fn change(&self, hardware: &Hardware) -> foretrain::core::Result<Change> {
        let mut all = Change { name: String::new(), times: [1.0; 5] };
        for Setting { name, resource, to } in &self.0 {
            let times = match to {
                To::Rate(rate) => rate / hardware.peak(*resource),
                To::Times(times) => *times,
            };
            let one = Change::of(name.clone(), *resource, times)?;
            all = if all.name.is_empty() { one } else { all.and(&one) };
        }
        Ok(all)
    }
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let mut ledger = Ledger::new();
    let usual = options.changes.is_empty();
    let changes = match usual {
        true => usual_grid(&options.method),
        false => {
            let asked = options.changes.iter();
            let changes = asked.map(|asked| asked.change(&options.method.hardware));
            changes.collect::<foretrain::core::Result<_>>()?
        }
    };
    let answer = match &options.jobs {
        Jobs::Table(source) => {
            let mut all = Sweeper::new(options.method, options.overlap, changes);
            source.each_job(&mut ledger, |job| all.add(job))?;
            all.finish(&mut ledger)
        }
        Jobs::Pai2019 => of_cases(options.method, options.overlap, &changes, &mut ledger),
    };
    let name = options.jobs.name();
    output.give(
        || json::to_text(&FleetSweepReport::new(&name, &answer, usual, &ledger)),
        |style| text::fleet_sweep(&name, &answer, usual, &ledger, style),
    )?;
    Ok(if answer.rows.timed.used > 0 { Answer::Yes } else { Answer::No })
}
