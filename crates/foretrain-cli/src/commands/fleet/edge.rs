//! `foretrain fleet edge`.

use std::path::PathBuf;

use foretrain::core::Bytes;
use foretrain::fleet::sharing::edge::{Memory, compare, parse};
use foretrain::report::json::{self, FleetEdgeReport};
use foretrain::report::text;

use crate::commands::Answer;
use crate::failure::Result;
use crate::output::Output;

/// What is played.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) file: PathBuf,
    /// Sizes of memory; the published levels if there are none.
    pub(crate) memory: Vec<Bytes>,
}

/// GEMEL's levels, and no swapping at all.
const LEVELS: [Memory; 4] =
    [Memory::Level(0.0), Memory::Level(0.5), Memory::Level(0.75), Memory::Unlimited];

pub(crate) fn run(options: &Options, output: &Output<'_>) -> Result<Answer> {
    let text = foretrain::hardware::read_text(&options.file)?;
    let edge = parse(&text).map_err(|error| error.in_file(&options.file))?;
    let given: Vec<Memory> = options.memory.iter().copied().map(Memory::Given).collect();
    let wanted = if given.is_empty() { &LEVELS[..] } else { &given };
    let compared = compare(&edge, wanted)?;
    let report = FleetEdgeReport::new(&edge, &compared);
    output.give(|| json::to_text(&report), |style| text::fleet_edge(&report, style))?;
    let fits = compared.iter().any(|run| run.best.is_some());
    Ok(if fits { Answer::Yes } else { Answer::No })
}
