//! `foretrain models`.

use foretrain::core::{InputError, Result as Read};
use foretrain::report::json::{self, ModelsReport};
use foretrain::report::text;
use foretrain::workload::model::Sample;
use foretrain::workload::{Known, Model, library};

use super::Answer;
use crate::failure::Result;
use crate::output::Output;

/// The model that a name or a file stands for.
pub(crate) fn load(wanted: &str) -> Read<Model> {
    foretrain::predict::described::load(wanted)
}

/// All models known by name, or the layers of one.
pub(crate) fn run(
    wanted: Option<&str>,
    sequence: Option<u64>,
    output: &Output<'_>,
) -> Result<Answer> {
    let report = match wanted {
        None => {
            let models: Vec<Model> = library().iter().map(Known::model).collect::<Read<_>>()?;
            ModelsReport::list(&models)
        }
        Some(wanted) => {
            let model = load(wanted)?;
            check(&model, sequence)?;
            ModelsReport::one(&model, sequence)
        }
    };
    output.give(|| json::to_text(&report), |style| text::models(&report, style))?;
    Ok(Answer::Yes)
}

/// A sequence must be one that the model can take.
fn check(model: &Model, sequence: Option<u64>) -> Read<()> {
    match (model.sample, sequence) {
        (Sample::Fixed, Some(_)) => Err(InputError::new(format!(
            "--sequence for {}, whose samples are no sequences",
            model.name
        ))
        .hint("leave it out")),
        (Sample::Tokens { longest: Some(longest), .. }, Some(sequence)) if sequence > longest => {
            Err(InputError::new(format!(
                "{sequence} tokens; {} has positions for {longest}",
                model.name
            ))
            .hint("take fewer, or a model without learned positions"))
        }
        _ => Ok(()),
    }
}
