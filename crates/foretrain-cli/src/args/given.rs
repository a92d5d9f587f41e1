//! Which options were given on the command line.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command};

/// Long names of the options of `T` that were given; defaults do not count.
pub(super) fn given<T: Args>(matches: &ArgMatches) -> Vec<String> {
    let command = T::augment_args(Command::new("any"));
    command
        .get_arguments()
        .filter(|argument| {
            matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
        })
        .filter_map(|argument| argument.get_long().map(str::to_owned))
        .collect()
}
