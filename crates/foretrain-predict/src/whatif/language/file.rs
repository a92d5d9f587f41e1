//! Scenarios from a TOML file.
//!
//! ```toml
//! [[scenario]]
//! name = "new switches"
//! changes = ["bandwidth x2", "latency x0.5"]
//!
//! [[sweep]]
//! axes = ["gpus=8,16,32", "bandwidth x1,x2"]
//! with = ["fuse"]                              # part of every combination
//! ```

use std::path::Path;

use foretrain_core::suggest::nearest;
use foretrain_core::{InputError, Result};
use foretrain_hardware::read_text;
use serde::Deserialize;
use toml::Spanned;

use super::scenario::Scenario;
use super::sweep::{Axis, MOST_SCENARIOS, grid};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileSpec {
    #[serde(default)]
    scenario: Vec<Spanned<ScenarioSpec>>,
    #[serde(default)]
    sweep: Vec<Spanned<SweepSpec>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioSpec {
    name: Option<Spanned<String>>,
    changes: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepSpec {
    axes: Vec<Spanned<String>>,
    #[serde(default)]
    with: Vec<Spanned<String>>,
}

/// The scenarios of a file and, apart, the combinations of its sweeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScenarioFile {
    /// Those that are named, in the order of the file.
    pub scenarios: Vec<Scenario>,
    /// The combinations of its sweeps.
    pub sweeps: Vec<Scenario>,
}

impl ScenarioFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or as [`parse`](Self::parse).
    pub fn load(path: &Path) -> Result<Self> {
        Self::parse(&read_text(path)?).map_err(|error| error.in_file(path))
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// If it is not such a file; the error says the line and what was expected there.
    pub fn parse(text: &str) -> Result<Self> {
        let spec: FileSpec = toml::from_str(text).map_err(|error| explain(text, &error))?;
        let mut file = Self::default();
        for one in &spec.scenario {
            file.scenarios.push(scenario(text, one)?);
        }
        let mut names: Vec<&str> =
            file.scenarios.iter().filter_map(|one| one.name.as_deref()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let message = format!("two scenarios have the name {:?}", twice[0]);
            return Err(InputError::new(message).hint("give each its own"));
        }
        for one in &spec.sweep {
            file.sweeps.extend(sweep(text, one)?);
            if file.sweeps.len() > MOST_SCENARIOS {
                let message = format!("the sweeps have more than {MOST_SCENARIOS} combinations");
                return Err(InputError::new(message).at(line(text, one.span().start)));
            }
        }
        if file.scenarios.is_empty() && file.sweeps.is_empty() {
            return Err(InputError::new("the file has neither a scenario nor a sweep")
                .hint("add `[[scenario]]` with `changes = [\"bandwidth x2\"]`"));
        }
        Ok(file)
    }
}

fn scenario(text: &str, spec: &Spanned<ScenarioSpec>) -> Result<Scenario> {
    let name = match &spec.get_ref().name {
        Some(name) if name.get_ref().trim().is_empty() => {
            let error = InputError::new("expected a name, found an empty text");
            return Err(error.at(line(text, name.span().start)));
        }
        name => name.as_ref().map(|name| name.get_ref().clone()),
    };
    if spec.get_ref().changes.is_empty() {
        return Err(InputError::new("a scenario needs at least one change")
            .at(line(text, spec.span().start)));
    }
    Ok(Scenario { name, ..together(text, &spec.get_ref().changes)? })
}

fn sweep(text: &str, spec: &Spanned<SweepSpec>) -> Result<Vec<Scenario>> {
    let here = || line(text, spec.span().start);
    let spec = spec.get_ref();
    if spec.axes.is_empty() {
        return Err(InputError::new("a sweep needs at least one axis").at(here()));
    }
    let with = together(text, &spec.with)?;
    let axes = spec.axes.iter().map(|axis| placed(text, axis, Axis::parse));
    let combinations = grid(&axes.collect::<Result<Vec<_>>>()?).map_err(|e| e.at(here()))?;
    Ok(combinations.iter().map(|one| with.and(one)).collect())
}

fn together(text: &str, changes: &[Spanned<String>]) -> Result<Scenario> {
    let mut all = Scenario::default();
    for change in changes {
        all = all.and(&placed(text, change, Scenario::parse)?);
    }
    Ok(all)
}

/// Reads a text of the file; an error says its line.
fn placed<T>(text: &str, at: &Spanned<String>, read: impl Fn(&str) -> Result<T>) -> Result<T> {
    read(at.get_ref()).map_err(|error| {
        let message = match error.place() {
            Some(place) => format!("{} at {place}", error.message()),
            None => error.message().to_owned(),
        };
        let error = error.hints().iter().fold(InputError::new(message), InputError::hint);
        error.at(line(text, at.span().start))
    })
}

fn explain(text: &str, error: &toml::de::Error) -> InputError {
    let message = error.message().trim();
    let place = error.span().map_or_else(|| "the file".into(), |span| line(text, span.start));
    let unknown = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
    let Some((wrong, rest)) = unknown else {
        return InputError::new(message.to_owned()).at(place);
    };
    let valid: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    let hint = match nearest(wrong, valid.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected one of: {}", valid.join(", ")),
    };
    InputError::new(format!("unknown key {wrong:?}")).at(place).hint(hint)
}

/// The line, from 1, that holds byte `offset`.
fn line(text: &str, offset: usize) -> String {
    let before = &text.as_bytes()[..offset.min(text.len())];
    format!("line {}", 1 + before.iter().filter(|&&byte| byte == b'\n').count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenarios_and_sweeps_are_read() {
        let file = ScenarioFile::parse(
            "[[scenario]]\nname = \"a\"\nchanges = [\"fuse\", \"nic x2 + input x0\"]\n\
             [[sweep]]\naxes = [\"gpus=8,16\", \"nic x1,x2\"]\nwith = [\"fuse\"]\n",
        )
        .unwrap();
        assert_eq!(file.scenarios[0].label(), "a");
        assert_eq!(file.scenarios[0].to_string(), "fuse + nic x2 + input x0");
        assert_eq!(file.sweeps.len(), 4);
        assert_eq!(file.sweeps[3].to_string(), "fuse + gpus=16 + nic x2");
    }

    #[test]
    fn errors_name_the_line() {
        for (text, place, message) in [
            ("x = 1", "line 1", "unknown key \"x\""),
            ("[[scenario]]\nname = \"a\"", "line 1", "missing field `changes`"),
            ("[[scenario]]\nchanges = [\n  \"fuse\",\n  \"fuze\"]", "line 4", "expected a change"),
            ("[[scenario]]\nchanges = []", "line 1", "at least one change"),
            ("[[scenario]]\nchange = []", "line 2", "unknown key \"change\""),
            ("[[sweep]]\naxes = []", "line 1", "at least one axis"),
            ("[[sweep]]\naxes = [\"nic x1..2\"]", "line 2", "how many values"),
            ("[[sweep]]\naxes = 5", "line 2", "expected a sequence"),
            ("[[scenario]]\nname = \" \"\nchanges=[\"fuse\"]", "line 2", "expected a name"),
        ] {
            let error = ScenarioFile::parse(text).unwrap_err();
            assert_eq!(error.place(), Some(place), "{text}: {error}");
            assert!(error.message().contains(message), "{text}: {error}");
        }
        assert!(ScenarioFile::parse("").is_err());
        let twice = "[[scenario]]\nname = \"a\"\nchanges = [\"fuse\"]\n".repeat(2);
        assert!(ScenarioFile::parse(&twice).unwrap_err().message().contains("two scenarios"));
    }
}
