//! `foretrain strategies`.

use foretrain::report::json::{self, StrategiesReport};
use foretrain::report::text;
use foretrain::rewrite::strategy::Registry;

use super::Answer;
use crate::failure::Result;
use crate::output::Output;

/// All strategies and passes, or the one of a name.
pub(crate) fn run(name: Option<&str>, output: &Output) -> Result<Answer> {
    let registry = Registry::builtin();
    let Some(name) = name else {
        let (presets, passes) = (registry.presets(), registry.kinds());
        let text = if output.json() {
            json::to_text(&StrategiesReport::new(presets, passes))
        } else {
            text::strategies(presets, passes, output.style())
        };
        output.answer(&text)?;
        return Ok(Answer::Yes);
    };
    let preset = registry.presets().iter().find(|preset| preset.name == name);
    let pass = registry.kinds().iter().find(|kind| kind.name == name);
    let text = match (preset, pass) {
        (None, None) => return Err(registry.unknown(name).into()),
        _ if output.json() => json::to_text(&StrategiesReport::new(preset, pass)),
        (Some(preset), _) => text::strategy_preset(preset, output.style()),
        (None, Some(pass)) => text::strategy_pass(pass, output.style()),
    };
    output.answer(&text)?;
    Ok(Answer::Yes)
}
