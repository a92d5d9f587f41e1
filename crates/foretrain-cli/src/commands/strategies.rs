//! `foretrain strategies`.

use foretrain::report::json::{self, StrategiesReport};
use foretrain::report::text;
use foretrain::rewrite::strategy::Registry;

use super::Answer;
use crate::failure::Result;
use crate::output::Output;

/// All strategies and passes, or the one of a name.
pub(crate) fn run(name: Option<&str>, output: &Output<'_>) -> Result<Answer> {
    let registry = Registry::current();
    let Some(name) = name else {
        let (presets, passes) = (registry.presets(), registry.kinds());
        output.give(
            || json::to_text(&StrategiesReport::new(presets, passes)),
            |style| text::strategies(presets, passes, style),
        )?;
        return Ok(Answer::Yes);
    };
    let preset = registry.presets().iter().find(|preset| preset.name == name);
    let pass = registry.kinds().iter().find(|kind| kind.name == name);
    let page = |style| match (preset, pass) {
        (Some(preset), _) => text::strategy_preset(preset, style),
        (None, Some(pass)) => text::strategy_pass(pass, style),
        (None, None) => String::new(),
    };
    if preset.is_none() && pass.is_none() {
        return Err(registry.unknown(name).into());
    }
    output.give(|| json::to_text(&StrategiesReport::new(preset, pass)), page)?;
    Ok(Answer::Yes)
}
