//! `foretrain fleet synthesize`.

use foretrain::core::InputError;
use foretrain::fleet::pai::synthetic::Population;

use crate::commands::Answer;
use crate::failure::Result;
use crate::output::Output;

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) jobs: u64,
    pub(crate) seed: u64,
}

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    if output.json() {
        return Err(InputError::new("the table is CSV; there is no JSON of it")
            .hint("leave out --json")
            .into());
    }
    let population = Population { jobs: options.jobs, seed: options.seed };
    output.answer(&population.csv())?;
    Ok(Answer::Yes)
}
