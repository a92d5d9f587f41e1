//! `foretrain schema`.

use foretrain::report::json;

use super::Answer;
use crate::failure::Result;
use crate::output::Output;

pub(crate) fn run(verb: &str, output: &Output<'_>) -> Result<Answer> {
    output.answer(&json::to_text(&json::schema(verb)?))?;
    Ok(Answer::Yes)
}
