//! A pass of one's own: front layers that are frozen, so their gradients are not exchanged.
//!
//! Everything a pass needs is public: it is described by a [`PassKind`], rewrites a [`Draft`], and
//! joins Foretrain's own passes in a [`Registry`]. Strategies then name it like any other:
//! `freeze(0.5) | fuse(25MiB)`.

use foretrain::core::{InputError, Result};
use foretrain::rewrite::strategy::{Draft, Kind, Parameter, Pass, PassKind, Registry, Stage};

/// What `foretrain strategies` would say of it.
pub const FREEZE: PassKind = PassKind {
    name: "freeze",
    stage: Stage::Fuse,
    about: "Leaves out the gradients of the front layers, by their part of all gradient bytes.",
    source: "fine-tuning with frozen layers",
    parameters: &[Parameter::new("part", Kind::Number, "0.5", "Part of the bytes, from 0 to 1.")],
    build: &|values| match values.number("part") {
        Some(part) if part <= 1.0 => Ok(Box::new(Freeze { part })),
        part => Err(InputError::new(format!(
            "part = {}: expected a part from 0 to 1",
            part.unwrap_or(0.0)
        ))),
    },
};

struct Freeze {
    part: f64,
}

impl Pass for Freeze {
    /// Backward passes end with the front layers: the last exchanges go.
    fn apply(&self, draft: &mut Draft<'_>) -> Result<()> {
        let all: f64 = draft.exchanges.iter().map(|exchange| exchange.bytes.as_f64()).sum();
        let mut kept = 0.0;
        draft.exchanges.retain(|exchange| {
            kept += exchange.bytes.as_f64();
            kept <= all * (1.0 - self.part) + 0.5
        });
        draft.notes.push(format!("{:.0} % of the gradient bytes are frozen", 100.0 * self.part));
        Ok(())
    }
}

/// Foretrain's passes and this one.
///
/// # Errors
/// If Foretrain has a pass of that name one day.
pub fn registry() -> Result<Registry> {
    let mut registry = Registry::builtin();
    registry.add(FREEZE)?;
    Ok(registry)
}
